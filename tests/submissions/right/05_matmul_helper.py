"""A helper function loads a tile of either operand; a heuristic chooses the depth of a step."""

import torch
import triton
import triton.language as tl


@triton.jit
def load_tile(ptr, rows, cols, height, width, stride_row, stride_col):
    inside = (rows[:, None] < height) & (cols[None, :] < width)
    ptrs = ptr + rows[:, None] * stride_row + cols[None, :] * stride_col
    return tl.load(ptrs, mask=inside, other=0.0)


@triton.heuristics({"BLOCK_K": lambda args: 64 if args["K"] >= 64 else 16})
@triton.jit
def matmul_kernel(
    a_ptr,
    b_ptr,
    c_ptr,
    M,
    N,
    K,
    stride_am,
    stride_ak,
    stride_bk,
    stride_bn,
    stride_cm,
    stride_cn,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    pid = tl.program_id(0)
    tiles_n = tl.cdiv(N, BLOCK_N)
    pid_m = pid // tiles_n
    pid_n = pid % tiles_n
    rows = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, K, BLOCK_K):
        ks = start + tl.arange(0, BLOCK_K)
        a = load_tile(a_ptr, rows, ks, M, K, stride_am, stride_ak)
        b = load_tile(b_ptr, ks, cols, K, N, stride_bk, stride_bn)
        acc = tl.dot(a, b, acc)
    c_ptrs = c_ptr + rows[:, None] * stride_cm + cols[None, :] * stride_cn
    c = acc.to(c_ptr.dtype.element_ty)
    tl.store(c_ptrs, c, mask=(rows[:, None] < M) & (cols[None, :] < N))


def matmul(a, b):
    (m, k), n = a.shape, b.shape[1]
    c = torch.empty((m, n), dtype=a.dtype, device=a.device)
    grid = (triton.cdiv(m, 64) * triton.cdiv(n, 64),)
    strides = (*a.stride(), *b.stride(), *c.stride())
    matmul_kernel[grid](a, b, c, m, n, k, *strides, BLOCK_M=64, BLOCK_N=64)
    return c
