# expect: torch_computed kernel
# delta by torch.
import torch
import triton
import triton.language as tl


@triton.jit
def flash_kernel(
    q_ptr,
    k_ptr,
    v_ptr,
    o_ptr,
    lse_ptr,
    sqb,
    sqh,
    sqt,
    sqd,
    skb,
    skh,
    skt,
    skd,
    svb,
    svh,
    svt,
    svd,
    H,
    T,
    scale,
    D: tl.constexpr,
    CAUSAL: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    start = tl.program_id(0) * BLOCK_M
    batch, head = tl.program_id(1) // H, tl.program_id(1) % H
    rows = start + tl.arange(0, BLOCK_M)
    dims = tl.arange(0, D)
    q_ptr += batch * sqb + head * sqh
    k_ptr += batch * skb + head * skh
    v_ptr += batch * svb + head * svh
    q_ptrs = q_ptr + rows[:, None] * sqt + dims[None, :] * sqd
    q = tl.load(q_ptrs, mask=rows[:, None] < T, other=0.0)
    m = tl.full((BLOCK_M,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, D), tl.float32)
    end = min(start + BLOCK_M, T) if CAUSAL else T
    for at in range(0, end, BLOCK_N):
        cols = at + tl.arange(0, BLOCK_N)
        k_ptrs = k_ptr + cols[None, :] * skt + dims[:, None] * skd
        k = tl.load(k_ptrs, mask=cols[None, :] < T, other=0.0)
        s = tl.dot(q, k) * scale
        seen = cols[None, :] < T
        if CAUSAL:
            seen = seen & (cols[None, :] <= rows[:, None])
        s = tl.where(seen, s, -float("inf"))
        new_m = tl.maximum(m, tl.max(s, axis=1))
        p = tl.exp(s - new_m[:, None])
        shrink = tl.exp(m - new_m)
        total = total * shrink + tl.sum(p, axis=1)
        v_ptrs = v_ptr + cols[:, None] * svt + dims[None, :] * svd
        v = tl.load(v_ptrs, mask=cols[:, None] < T, other=0.0)
        acc = tl.dot(p.to(v.dtype), v, acc * shrink[:, None])
        m = new_m
    at_row = tl.program_id(1) * T + rows
    o_ptrs = o_ptr + at_row[:, None] * D + dims[None, :]
    o = acc / total[:, None]
    tl.store(o_ptrs, o.to(o_ptr.dtype.element_ty), mask=rows[:, None] < T)
    tl.store(lse_ptr + at_row, m + tl.log(total), mask=rows < T)


def flash_attention(q, k, v, causal=True, BLOCK_M=64, BLOCK_N=64):
    b, h, t, d = q.shape
    o = torch.empty((b, h, t, d), dtype=q.dtype, device=q.device)
    lse = torch.empty((b, h, t), dtype=torch.float32, device=q.device)
    grid = (triton.cdiv(t, BLOCK_M), b * h)
    strides = (*q.stride(), *k.stride(), *v.stride())
    flash_kernel[grid](
        q,
        k,
        v,
        o,
        lse,
        *strides,
        h,
        t,
        d**-0.5,
        D=d,
        CAUSAL=causal,
        BLOCK_M=BLOCK_M,
        BLOCK_N=BLOCK_N,
    )
    return o, lse


@triton.jit
def delta_kernel(o_ptr, do_ptr, delta_ptr, n, D: tl.constexpr, BLOCK: tl.constexpr):
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    at = rows[:, None] * D + tl.arange(0, D)[None, :]
    o = tl.load(o_ptr + at, mask=rows[:, None] < n, other=0.0).to(tl.float32)
    do = tl.load(do_ptr + at, mask=rows[:, None] < n, other=0.0).to(tl.float32)
    tl.store(delta_ptr + rows, tl.sum(o * do, axis=1), mask=rows < n)


@triton.jit
def dq_kernel(
    q_ptr,
    k_ptr,
    v_ptr,
    do_ptr,
    lse_ptr,
    delta_ptr,
    dq_ptr,
    sqb,
    sqh,
    sqt,
    sqd,
    skb,
    skh,
    skt,
    skd,
    svb,
    svh,
    svt,
    svd,
    H,
    T,
    scale,
    D: tl.constexpr,
    CAUSAL: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    start = tl.program_id(0) * BLOCK_M
    pair = tl.program_id(1)
    batch, head = pair // H, pair % H
    rows = start + tl.arange(0, BLOCK_M)
    dims = tl.arange(0, D)
    q_ptr += batch * sqb + head * sqh
    k_ptr += batch * skb + head * skh
    v_ptr += batch * svb + head * svh
    at = pair * T * D + rows[:, None] * D + dims[None, :]
    inside = rows[:, None] < T
    q = tl.load(q_ptr + rows[:, None] * sqt + dims[None, :] * sqd, mask=inside, other=0.0)
    do = tl.load(do_ptr + at, mask=inside, other=0.0)
    lse = tl.load(lse_ptr + pair * T + rows, mask=rows < T, other=0.0)
    delta = tl.load(delta_ptr + pair * T + rows, mask=rows < T, other=0.0)
    dq = tl.zeros((BLOCK_M, D), tl.float32)
    end = min(start + BLOCK_M, T) if CAUSAL else T
    for begin in range(0, end, BLOCK_N):
        cols = begin + tl.arange(0, BLOCK_N)
        k_ptrs = k_ptr + cols[:, None] * skt + dims[None, :] * skd
        k = tl.load(k_ptrs, mask=cols[:, None] < T, other=0.0)
        v_ptrs = v_ptr + cols[None, :] * svt + dims[:, None] * svd
        v = tl.load(v_ptrs, mask=cols[None, :] < T, other=0.0)
        s = tl.dot(q, tl.trans(k)) * scale
        seen = cols[None, :] < T
        if CAUSAL:
            seen = seen & (cols[None, :] <= rows[:, None])
        p = tl.where(seen, tl.exp(s - lse[:, None]), 0.0)
        ds = p * (tl.dot(do, v) - delta[:, None])
        dq = tl.dot(ds.to(k.dtype), k, dq)
    tl.store(dq_ptr + at, (dq * scale).to(dq_ptr.dtype.element_ty), mask=inside)


@triton.jit
def dkv_kernel(
    q_ptr,
    k_ptr,
    v_ptr,
    do_ptr,
    lse_ptr,
    delta_ptr,
    dk_ptr,
    dv_ptr,
    sqb,
    sqh,
    sqt,
    sqd,
    skb,
    skh,
    skt,
    skd,
    svb,
    svh,
    svt,
    svd,
    H,
    T,
    scale,
    D: tl.constexpr,
    CAUSAL: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    start = tl.program_id(0) * BLOCK_N
    pair = tl.program_id(1)
    batch, head = pair // H, pair % H
    cols = start + tl.arange(0, BLOCK_N)
    dims = tl.arange(0, D)
    q_ptr += batch * sqb + head * sqh
    k_ptr += batch * skb + head * skh
    v_ptr += batch * svb + head * svh
    inside = cols[:, None] < T
    k = tl.load(k_ptr + cols[:, None] * skt + dims[None, :] * skd, mask=inside, other=0.0)
    v = tl.load(v_ptr + cols[:, None] * svt + dims[None, :] * svd, mask=inside, other=0.0)
    dk = tl.zeros((BLOCK_N, D), tl.float32)
    dv = tl.zeros((BLOCK_N, D), tl.float32)
    first = start // BLOCK_M * BLOCK_M if CAUSAL else 0
    for begin in range(first, T, BLOCK_M):
        rows = begin + tl.arange(0, BLOCK_M)
        q_ptrs = q_ptr + rows[:, None] * sqt + dims[None, :] * sqd
        q = tl.load(q_ptrs, mask=rows[:, None] < T, other=0.0)
        do_ptrs = do_ptr + (pair * T + rows)[:, None] * D + dims[None, :]
        do = tl.load(do_ptrs, mask=rows[:, None] < T, other=0.0)
        lse = tl.load(lse_ptr + pair * T + rows, mask=rows < T, other=0.0)
        delta = tl.load(delta_ptr + pair * T + rows, mask=rows < T, other=0.0)
        s = tl.dot(q, tl.trans(k)) * scale
        seen = (cols[None, :] < T) & (rows[:, None] < T)
        if CAUSAL:
            seen = seen & (cols[None, :] <= rows[:, None])
        p = tl.where(seen, tl.exp(s - lse[:, None]), 0.0)
        dv = tl.dot(tl.trans(p).to(do.dtype), do, dv)
        ds = p * (tl.dot(do, tl.trans(v)) - delta[:, None])
        dk = tl.dot(tl.trans(ds).to(q.dtype), q, dk)
    at = pair * T * D + cols[:, None] * D + dims[None, :]
    tl.store(dk_ptr + at, (dk * scale).to(dk_ptr.dtype.element_ty), mask=inside)
    tl.store(dv_ptr + at, dv.to(dv_ptr.dtype.element_ty), mask=inside)


class FlashAttention(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, k, v, causal):
        o, lse = flash_attention(q, k, v, causal)
        ctx.save_for_backward(q, k, v, o, lse)
        ctx.causal = causal
        return o

    @staticmethod
    def backward(ctx, do):
        q, k, v, o, lse = ctx.saved_tensors
        b, h, t, d = q.shape
        do = do.contiguous()
        delta = torch.empty_like(lse)
        delta = (o * do).sum(-1)
        dq, dk, dv = (torch.empty((b, h, t, d), dtype=q.dtype, device=q.device) for _ in range(3))
        given = (q, k, v, do, lse, delta)
        rest = (*q.stride(), *k.stride(), *v.stride(), h, t, d**-0.5)
        grid = (triton.cdiv(t, 64), b * h)
        blocks = {"D": d, "CAUSAL": ctx.causal, "BLOCK_M": 64, "BLOCK_N": 64}
        dq_kernel[grid](*given, dq, *rest, **blocks)
        dkv_kernel[grid](*given, dk, dv, *rest, **blocks)
        return dq, dk, dv, None
