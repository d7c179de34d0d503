"""The product of two matrices as assignment 05 asks for it: where the ladder begins.

The kernel is the course's solution, word for word in its IR (tests/test_kernels_products.py).
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

__all__ = ["PLAIN", "plain_kernel", "run"]

PLAIN = {"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 32}


@triton.jit
def plain_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K,
    stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """c = a b, for the tile of this program."""
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, K, BLOCK_K):
        ks = start + tl.arange(0, BLOCK_K)
        a_mask = (rows[:, None] < M) & (ks[None, :] < K)
        b_mask = (ks[:, None] < K) & (cols[None, :] < N)
        a_ptrs = a_ptr + rows[:, None] * stride_am + ks[None, :] * stride_ak
        a = tl.load(a_ptrs, mask=a_mask, other=0.0)
        b_ptrs = b_ptr + ks[:, None] * stride_bk + cols[None, :] * stride_bn
        b = tl.load(b_ptrs, mask=b_mask, other=0.0)
        acc = tl.dot(a, b, acc)
    c_ptrs = c_ptr + rows[:, None] * stride_cm + cols[None, :] * stride_cn
    c_mask = (rows[:, None] < M) & (cols[None, :] < N)
    tl.store(c_ptrs, acc.to(c_ptr.dtype.element_ty), mask=c_mask)


def run(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor, **options: int) -> torch.Tensor:
    """a: (M, K), b: (K, N), any strides, one type. ``c`` takes a @ b and is returned; ``options``
    are tile sides, ``num_warps`` and ``num_stages``, ``PLAIN``'s by default."""
    options = PLAIN | options
    (m, n), k = c.shape, a.shape[1]
    over = (triton.cdiv(m, options["BLOCK_M"]), triton.cdiv(n, options["BLOCK_N"]))
    plain_kernel[over](a, b, c, m, n, k, *a.stride(), *b.stride(), *c.stride(), **options)
    return c
