"""fp8 product of a few rows with a matrix of weights, whose time goes into loading the weights."""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl

from lab_setup.kernels.dispatch import fitting

__all__ = [
    "CONFIGS",
    "MOST_ROWS",
    "fp8_gemm",
    "fp8_gemm_kernel",
    "fp8_reduce_kernel",
    "rows_of",
    "run",
]

MOST_ROWS = 64

# Narrow tiles make programs enough for all multiprocessors; long steps along K, and many of them
# ahead, keep the 64 KB under way in each that memory needs to be busy.
CONFIGS = [
    triton.Config({"BLOCK_N": n, "BLOCK_K": k}, num_warps=4, num_stages=stages)
    for n, k, stages in (
        (64, 256, 6),
        (64, 256, 8),
        (64, 128, 8),
        (64, 256, 4),
        (32, 256, 6),
        (32, 256, 8),
        (32, 512, 4),
        (32, 256, 4),
    )
]


def rows_of(m: int) -> int:
    """BLOCK_M: the least that tensor cores take, or a whole Hopper instruction."""
    return 16 if m <= 16 else 64


def _shared(given: dict[str, Any]) -> int:
    """Bytes of the tiles under way: a number is a byte."""
    return given["num_stages"] * given["BLOCK_K"] * (given["BLOCK_M"] + given["BLOCK_N"])


def _fits(configs: list, given: dict[str, Any], **options: Any) -> list:
    """With few rows the weights come first, and tensor cores take 64 of theirs at a time."""
    wide = options["BLOCK_M"] == 16
    kept = [c for c in configs if c.kwargs["BLOCK_N"] == 64 or not wide]
    return fitting(_shared)(kept, given, **options)[:6]


def _even(given: dict[str, Any]) -> bool:
    return given["N"] % given["BLOCK_N"] == 0 and given["K"] % given["BLOCK_K"] == 0


@triton.autotune(
    CONFIGS,
    key=["M", "N", "K", "SPLIT_K"],
    prune_configs_by={"early_config_prune": _fits},
)
@triton.heuristics({"EVEN": _even})
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
    a_stride,
    b_stride,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    SPLIT_K: tl.constexpr,
    EVEN: tl.constexpr,
):
    """A tile of out = a @ b, all of M high; with SPLIT_K above 1 the sum over a part of K alone.

    Hopper's tensor cores take 64 rows of their first factor, so where BLOCK_M is less the tile is
    computed as its transpose, bᵀ aᵀ.

    a: rows of a_stride; b: columns of b_stride, each with its K numbers side by side. Then out is
    (SPLIT_K, M, N) in float32, without the scales.
    """
    n = (tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)).to(tl.int64)[:, None]
    part = tl.program_id(1)
    m = tl.arange(0, BLOCK_M)[:, None]
    k = tl.arange(0, BLOCK_K)[None, :]
    steps = tl.cdiv(tl.cdiv(K, BLOCK_K), SPLIT_K)
    first = part * steps * BLOCK_K
    transposed: tl.constexpr = BLOCK_M < 64
    if transposed:
        acc = tl.zeros((BLOCK_N, BLOCK_M), tl.float32)
    else:
        acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(first, tl.minimum(first + steps * BLOCK_K, K), BLOCK_K):
        along = start + k
        a_inside = (m < M) & ((along < K) | EVEN)
        b_inside = ((n < N) & (along < K)) | EVEN
        b = tl.load(b_ptr + n * b_stride + along, mask=b_inside, other=0.0)
        a = tl.load(a_ptr + m * a_stride + along, mask=a_inside, other=0.0)
        if transposed:
            acc = tl.dot(b, a.T, acc)
        else:
            acc = tl.dot(a, b.T, acc)
    if SPLIT_K == 1:
        acc *= tl.load(scale_a_ptr) * tl.load(scale_b_ptr)
    if transposed:
        row, column = m.T, n
    else:
        row, column = m, n.T
    at = out_ptr + (part * M + row).to(tl.int64) * N + column
    tl.store(at, acc.to(out_ptr.dtype.element_ty), mask=(row < M) & (column < N))


@triton.jit
def fp8_reduce_kernel(
    parts_ptr, out_ptr, scale_a_ptr, scale_b_ptr, size, SPLIT_K: tl.constexpr, BLOCK: tl.constexpr
):
    """out[i] = scale_a * scale_b * the sum of parts[:, i], always in the same order."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK,), tl.float32)
    for part in tl.static_range(SPLIT_K):
        acc += tl.load(parts_ptr + part * size + i, mask=i < size, other=0.0)
    acc *= tl.load(scale_a_ptr) * tl.load(scale_b_ptr)
    tl.store(out_ptr + i, acc.to(out_ptr.dtype.element_ty), mask=i < size)


def fp8_gemm(
    a: torch.Tensor,
    b: torch.Tensor,
    scale_a: torch.Tensor,
    scale_b: torch.Tensor,
    split_k: int = 1,
) -> torch.Tensor:
    """scale_a * scale_b * (a @ b) in bfloat16, (M, N), summed in float32.

    As ``torch._scaled_mm``: a is (M, K) with M to 64 and its rows side by side in memory, b (K, N)
    with its columns side by side, such as the transpose of a layer's weights; both
    torch.float8_e4m3fn. Scales: one float32 number each, on the card. ``split_k``: programs that
    share the sum over K of a tile, for N so small that there are too few tiles.
    Raises ValueError for other shapes, types and strides.
    """
    if a.dtype != torch.float8_e4m3fn or b.dtype != torch.float8_e4m3fn:
        raise ValueError(f"fp8_gemm wants torch.float8_e4m3fn, not {a.dtype} and {b.dtype}.")
    (M, K), (Kb, _) = a.shape, b.shape
    if Kb != K or not 1 <= M <= MOST_ROWS or split_k < 1:
        raise ValueError(
            f"fp8_gemm multiplies (M, K) by (K, N) with M from 1 to {MOST_ROWS}, in split_k >= 1 "
            f"parts, not {tuple(a.shape)} by {tuple(b.shape)} in {split_k}."
        )
    if a.stride(1) != 1 or b.stride(0) != 1:
        raise ValueError(
            "fp8_gemm wants the numbers along K side by side in memory, in a and in b: pass b as "
            "the transpose of a contiguous (N, K)."
        )
    return run(fp8_gemm_kernel, a, b, scale_a, scale_b, split_k)


def run(kernel, a, b, scale_a, scale_b, split_k: int, **config: int) -> torch.Tensor:
    """The product by ``kernel``: the tuned one, or that without tuning and with a ``config``."""
    (M, K), N = a.shape, b.shape[1]
    out = torch.empty(M, N, dtype=torch.bfloat16, device=a.device)
    parts = torch.empty(split_k, M, N, device=a.device) if split_k > 1 else out
    kernel[lambda given: (triton.cdiv(N, given["BLOCK_N"]), split_k)](
        *(a, b, parts, scale_a, scale_b, M, N, K, a.stride(0), b.stride(1)),
        BLOCK_M=rows_of(M),
        SPLIT_K=split_k,
        **config,
    )
    if split_k > 1:
        fp8_reduce_kernel[(triton.cdiv(M * N, 256),)](
            parts, out, scale_a, scale_b, M * N, SPLIT_K=split_k, BLOCK=256
        )
    return out
