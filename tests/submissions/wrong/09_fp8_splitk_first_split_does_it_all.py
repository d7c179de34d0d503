# expect: interface values
# Right numbers: the first split sums all of K, the others add zeros.
import torch
import triton
import triton.language as tl


@triton.jit
def fp8_gemm_kernel(
    a_ptr,
    b_ptr,
    out_ptr,
    scale_a_ptr,
    scale_b_ptr,
    M,
    N,
    K,
    stride_am,
    stride_ak,
    stride_bk,
    stride_bn,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    SPLIT_K: tl.constexpr,
):
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    split = tl.program_id(2)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, K if split == 0 else 0, BLOCK_K):
        ks = start + tl.arange(0, BLOCK_K)
        a_ptrs = a_ptr + rows[:, None] * stride_am + ks[None, :] * stride_ak
        a = tl.load(a_ptrs, mask=(rows[:, None] < M) & (ks[None, :] < K), other=0.0)
        b_ptrs = b_ptr + ks[:, None] * stride_bk + cols[None, :] * stride_bn
        b = tl.load(b_ptrs, mask=(ks[:, None] < K) & (cols[None, :] < N), other=0.0)
        acc = tl.dot(a, b, acc)
    acc *= tl.load(scale_a_ptr) * tl.load(scale_b_ptr)
    out_ptrs = out_ptr + rows[:, None] * N + cols[None, :]
    tl.atomic_add(out_ptrs, acc, mask=(rows[:, None] < M) & (cols[None, :] < N))


def fp8_gemm(a, b, scale_a, scale_b, SPLIT_K):
    (m, k), n = a.shape, b.shape[1]
    out = torch.zeros((m, n), dtype=torch.float32, device=a.device)
    grid = (triton.cdiv(m, 16), triton.cdiv(n, 64), SPLIT_K)
    blocks = dict(BLOCK_M=16, BLOCK_N=64, BLOCK_K=64, SPLIT_K=SPLIT_K)
    strides = (*a.stride(), *b.stride())
    fp8_gemm_kernel[grid](a, b, out, scale_a, scale_b, m, n, k, *strides, **blocks)
    return out
