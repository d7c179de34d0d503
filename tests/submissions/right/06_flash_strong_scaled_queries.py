"""q takes the scale, in its own type."""

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
    q = (q * scale).to(q.dtype)
    m = tl.full((BLOCK_M,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, D), tl.float32)
    end = min(start + BLOCK_M, T) if CAUSAL else T
    for at in range(0, end, BLOCK_N):
        cols = at + tl.arange(0, BLOCK_N)
        k_ptrs = k_ptr + cols[None, :] * skt + dims[:, None] * skd
        k = tl.load(k_ptrs, mask=cols[None, :] < T, other=0.0)
        s = tl.dot(q, k)
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
