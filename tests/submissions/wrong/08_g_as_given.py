# expect: compile compiles
import torch
import triton
import triton.language as tl


@triton.jit
def attention_kernel(
    q_ptr,
    k_ptr,
    v_ptr,
    o_ptr,
    T,
    scale,
    D: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    head = tl.program_id(1) * T * D
    rows, dims = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M), tl.arange(0, D)
    row_at = head + rows[:, None] * D + dims[None, :]
    q = tl.load(q_ptr + row_at, mask=rows[:, None] < T, other=0.0)
    m = tl.full((BLOCK_M,), -float("inf"), tl.float32)
    l = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, D), tl.float32)
    for start in range(0, SEQ_LEN, BLOCK_N):
        cols = start + tl.arange(0, BLOCK_N)
        key_at = head + cols[:, None] * D + dims[None, :]
        k = tl.load(k_ptr + key_at, mask=cols[:, None] < T, other=0.0)
        s = tl.where(cols[None, :] < T, tl.dot(q, tl.trans(k)) * scale, -float("inf"))
        new_m = tl.maximum(m, tl.max(s, axis=1))
        shrink, p = tl.exp(m - new_m), tl.exp(s - new_m[:, None])
        l = l * shrink + tl.sum(p, axis=1)
        acc = acc * shrink[:, None] + tl.dot(p.to(k.dtype), k)
        m = new_m
    o = (acc / l[:, None]).to(o_ptr.dtype.element_ty)
    tl.store(o_ptr + row_at, o, mask=rows[:, None] < T)


def attention(q, k, v):
    b, h, t, d = q.shape
    o = torch.empty_like(q)
    grid = (triton.cdiv(t, 32), b * h)
    attention_kernel[grid](q, k, v, o, t, d**-0.5, D=d, BLOCK_M=32, BLOCK_N=32)
    return o
