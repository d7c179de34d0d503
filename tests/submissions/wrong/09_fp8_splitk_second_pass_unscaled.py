# expect: values values
import torch
import triton
import triton.language as tl


@triton.jit
def fp8_gemm_kernel(
    a_ptr,
    b_ptr,
    parts_ptr,
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
    for start in range(split * BLOCK_K, K, SPLIT_K * BLOCK_K):
        ks = start + tl.arange(0, BLOCK_K)
        a_ptrs = a_ptr + rows[:, None] * stride_am + ks[None, :] * stride_ak
        a = tl.load(a_ptrs, mask=(rows[:, None] < M) & (ks[None, :] < K), other=0.0)
        b_ptrs = b_ptr + ks[:, None] * stride_bk + cols[None, :] * stride_bn
        b = tl.load(b_ptrs, mask=(ks[:, None] < K) & (cols[None, :] < N), other=0.0)
        acc = tl.dot(a, b, acc)
    out_ptrs = parts_ptr + split * M * N + rows[:, None] * N + cols[None, :]
    tl.store(out_ptrs, acc, mask=(rows[:, None] < M) & (cols[None, :] < N))


@triton.jit
def sum_splits_kernel(
    parts_ptr, out_ptr, scale_a_ptr, scale_b_ptr, size, SPLIT_K, BLOCK: tl.constexpr
):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for split in range(0, SPLIT_K):
        total += tl.load(parts_ptr + split * size + at, mask=at < size, other=0.0)
    tl.store(out_ptr + at, total, mask=at < size)


def fp8_gemm(a, b, scale_a, scale_b, SPLIT_K):
    (m, k), n = a.shape, b.shape[1]
    parts = torch.empty((SPLIT_K, m, n), dtype=torch.float32, device=a.device)
    out = torch.empty((m, n), dtype=torch.float32, device=a.device)
    grid = (triton.cdiv(m, 16), triton.cdiv(n, 64), SPLIT_K)
    blocks = dict(BLOCK_M=16, BLOCK_N=64, BLOCK_K=64, SPLIT_K=SPLIT_K)
    fp8_gemm_kernel[grid](a, b, parts, m, n, k, *a.stride(), *b.stride(), **blocks)
    size = m * n
    reduce = (triton.cdiv(size, 256),)
    sum_splits_kernel[reduce](parts, out, scale_a, scale_b, size, SPLIT_K, BLOCK=256)
    return out
