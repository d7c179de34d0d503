"""One axis of programs, each of which takes pieces of work, tile and split, one after the other."""

import torch
import triton
import triton.language as tl


@triton.jit
def splitk_kernel(a_ptr, b_ptr, c_ptr, M, N, K, work, SPLIT_K: tl.constexpr, SIDE: tl.constexpr):
    wide = tl.cdiv(N, SIDE)
    lanes = tl.arange(0, SIDE)
    for piece in range(tl.program_id(0), work, tl.num_programs(0)):
        tile, split = piece // SPLIT_K, piece % SPLIT_K
        rows = tile // wide * SIDE + lanes[:, None]
        cols = tile % wide * SIDE + lanes[None, :]
        acc = tl.zeros((SIDE, SIDE), tl.float32)
        for start in range(split * SIDE, K, SPLIT_K * SIDE):
            a_k, b_k = start + lanes[None, :], start + lanes[:, None]
            a = tl.load(a_ptr + rows * K + a_k, mask=(rows < M) & (a_k < K), other=0)
            b = tl.load(b_ptr + b_k * N + cols, mask=(b_k < K) & (cols < N), other=0)
            acc += tl.dot(a, b)
        tl.atomic_add(c_ptr + rows * N + cols, acc, mask=(rows < M) & (cols < N), sem="relaxed")


def splitk_matmul(a, b, SPLIT_K=4):
    (m, k), n = a.shape, b.shape[1]
    c = a.new_zeros((m, n), dtype=torch.float32)
    work = triton.cdiv(m, 32) * triton.cdiv(n, 32) * SPLIT_K
    splitk_kernel[(min(work, 8),)](a, b, c, m, n, k, work, SPLIT_K=SPLIT_K, SIDE=32)
    return c
