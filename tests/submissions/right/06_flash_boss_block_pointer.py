"""Block pointers, and a grid of three axes."""

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
    T,
    scale,
    D: tl.constexpr,
    CAUSAL: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    start, head, batch = tl.program_id(0) * BLOCK_M, tl.program_id(1), tl.program_id(2)
    pair = batch * tl.num_programs(1) + head
    q_block = tl.make_block_ptr(
        q_ptr + batch * sqb + head * sqh, (T, D), (sqt, sqd), (start, 0), (BLOCK_M, D), (1, 0)
    )
    k_block = tl.make_block_ptr(
        k_ptr + batch * skb + head * skh, (D, T), (skd, skt), (0, 0), (D, BLOCK_N), (0, 1)
    )
    v_block = tl.make_block_ptr(
        v_ptr + batch * svb + head * svh, (T, D), (svt, svd), (0, 0), (BLOCK_N, D), (1, 0)
    )
    o_block = tl.make_block_ptr(
        o_ptr + pair * T * D, (T, D), (D, 1), (start, 0), (BLOCK_M, D), (1, 0)
    )
    q = tl.load(q_block, boundary_check=(0,), padding_option="zero")
    rows = start + tl.arange(0, BLOCK_M)
    m = tl.full((BLOCK_M,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, D), tl.float32)
    end = T
    if CAUSAL:
        end = min(start + BLOCK_M, T)
    for at in range(0, end, BLOCK_N):
        cols = at + tl.arange(0, BLOCK_N)
        k = tl.load(k_block, boundary_check=(1,), padding_option="zero")
        seen = cols[None, :] < T
        if CAUSAL:
            seen = seen & (cols[None, :] <= rows[:, None])
        s = tl.where(seen, tl.dot(q, k) * scale, -float("inf"))
        new_m = tl.maximum(m, tl.max(s, axis=1))
        p = tl.exp(s - new_m[:, None])
        shrink = tl.exp(m - new_m)
        total = total * shrink + tl.sum(p, axis=1)
        v = tl.load(v_block, boundary_check=(0,), padding_option="zero")
        acc = tl.dot(p.to(v.dtype), v, acc * shrink[:, None])
        m = new_m
        k_block = tl.advance(k_block, (0, BLOCK_N))
        v_block = tl.advance(v_block, (BLOCK_N, 0))
    tl.store(o_block, (acc / total[:, None]).to(o_ptr.dtype.element_ty), boundary_check=(0,))
    tl.store(lse_ptr + pair * T + rows, m + tl.log(total), mask=rows < T)


def flash_attention(q, k, v, causal=True, BLOCK_M=64, BLOCK_N=64):
    b, h, t, d = q.shape
    o = torch.empty((b, h, t, d), dtype=q.dtype, device=q.device)
    lse = torch.empty((b, h, t), dtype=torch.float32, device=q.device)
    grid = (triton.cdiv(t, BLOCK_M), h, b)
    strides = (*q.stride(), *k.stride(), *v.stride())
    flash_kernel[grid](
        q, k, v, o, lse, *strides, t, d**-0.5, D=d, CAUSAL=causal, BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N
    )
    return o, lse
