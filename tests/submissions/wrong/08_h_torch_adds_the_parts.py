# expect: torch_computed kernel
import torch
import triton
import triton.language as tl


@triton.jit
def splitk_kernel(
    a_ptr,
    b_ptr,
    c_ptr,
    M,
    N,
    K,
    SPLIT_K: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    split = tl.program_id(2)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(split * BLOCK_K, K, SPLIT_K * BLOCK_K):
        ks = start + tl.arange(0, BLOCK_K)
        a_mask = (rows[:, None] < M) & (ks[None, :] < K)
        b_mask = (ks[:, None] < K) & (cols[None, :] < N)
        a = tl.load(a_ptr + rows[:, None] * K + ks[None, :], mask=a_mask, other=0.0)
        b = tl.load(b_ptr + ks[:, None] * N + cols[None, :], mask=b_mask, other=0.0)
        acc = tl.dot(a, b, acc)
    c_mask = (rows[:, None] < M) & (cols[None, :] < N)
    tl.store(c_ptr + split * M * N + rows[:, None] * N + cols[None, :], acc, mask=c_mask)


def splitk_matmul(a, b, SPLIT_K=4):
    (M, K), N = a.shape, b.shape[1]
    parts = torch.empty((SPLIT_K, M, N), dtype=torch.float32, device=a.device)
    grid = (triton.cdiv(M, 32), triton.cdiv(N, 32), SPLIT_K)
    splitk_kernel[grid](a, b, parts, M, N, K, SPLIT_K=SPLIT_K, BLOCK_M=32, BLOCK_N=32, BLOCK_K=32)
    return parts.sum(dim=0)
