"""Programs take blocks of queries one after the other; a helper loads a block of a head."""

import torch
import triton
import triton.language as tl


@triton.jit
def block_of(ptr, T, row_stride, stride, start, D: tl.constexpr, ROWS: tl.constexpr):
    rows = start + tl.arange(0, ROWS)[:, None]
    return tl.load(ptr + rows * row_stride + tl.arange(0, D) * stride, mask=rows < T, other=0)


@triton.jit
def flash_kernel(
    o_ptr,
    lse_ptr,
    q_ptr,
    sqb,
    sqh,
    sqt,
    sqd,
    k_ptr,
    skb,
    skh,
    skt,
    skd,
    v_ptr,
    svb,
    svh,
    svt,
    svd,
    work,
    T,
    scale,
    KV: tl.constexpr,
    GROUP: tl.constexpr,
    D: tl.constexpr,
    CAUSAL: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    dims = tl.arange(0, D)
    blocks = tl.cdiv(T, BLOCK_M)
    for piece in range(tl.program_id(0), work, tl.num_programs(0)):
        start, pair = piece % blocks * BLOCK_M, piece // blocks
        batch, group, member = pair // (KV * GROUP), pair // GROUP % KV, pair % GROUP
        rows = start + tl.arange(0, BLOCK_M)
        q_head = q_ptr + batch * sqb + (group * GROUP + member) * sqh
        k_head = k_ptr + batch * skb + group * skh
        v_head = v_ptr + batch * svb + group * svh
        q = block_of(q_head, T, sqt, sqd, start, D, BLOCK_M)
        m = tl.full((BLOCK_M,), -float("inf"), tl.float32)
        total = tl.zeros((BLOCK_M,), tl.float32)
        acc = tl.zeros((BLOCK_M, D), tl.float32)
        end = T
        if CAUSAL:
            end = min(start + BLOCK_M, T)
        for at in range(0, end, BLOCK_N):
            cols = at + tl.arange(0, BLOCK_N)
            k = block_of(k_head, T, skt, skd, at, D, BLOCK_N)
            v = block_of(v_head, T, svt, svd, at, D, BLOCK_N)
            seen = (cols < T)[None, :]
            if CAUSAL:
                seen = seen & (cols[None, :] <= rows[:, None])
            s = tl.where(seen, tl.dot(q, k.T) * scale, -float("inf"))
            new_m = tl.maximum(m, tl.max(s, axis=1))
            p = tl.exp(s - new_m[:, None])
            shrink = tl.exp(m - new_m)
            total = total * shrink + tl.sum(p, axis=1)
            acc = tl.dot(p.to(v.dtype), v, acc * shrink[:, None])
            m = new_m
        at_row = pair * T + rows
        o = (acc / total[:, None]).to(o_ptr.dtype.element_ty)
        tl.store(o_ptr + at_row[:, None] * D + dims, o, mask=rows[:, None] < T)
        tl.store(lse_ptr + at_row, m + tl.log(total), mask=rows < T)


def flash_attention(q, k, v, causal=True, BLOCK_M=64, BLOCK_N=64):
    (b, h, t, d), kv = q.shape, k.shape[1]
    o = torch.empty((b, h, t, d), dtype=q.dtype, device=q.device)
    lse = torch.empty((b, h, t), dtype=torch.float32, device=q.device)
    given = [x for tensor in (q, k, v) for x in (tensor, *tensor.stride())]
    work = b * h * triton.cdiv(t, BLOCK_M)
    sizes = dict(KV=kv, GROUP=h // kv, D=d, CAUSAL=causal, BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N)
    flash_kernel[(min(work, 5),)](o, lse, *given, work, t, d**-0.5, **sizes)
    return o, lse
