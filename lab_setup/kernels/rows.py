"""What kernels that hold whole rows have in common: blocks of rows, their configs, their checks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import triton

__all__ = ["CONFIGS", "LONGEST", "as_rows", "block_of", "even", "fitting_rows", "programs"]

LONGEST = 65_536  # columns; a longer row does not stay in one program's registers

CONFIGS = [
    triton.Config({"ROWS": rows}, num_warps=warps)
    for warps in (2, 4, 8, 16, 32)
    for rows in (1, 2, 4, 8, 16, 32)
]
"""Blocks of rows that ``fitting_rows`` chooses from, by their width."""


def block_of(n_cols: int) -> int:
    """The power of two that holds a row."""
    return triton.next_power_of_2(n_cols)


def even(given: dict[str, Any]) -> bool:
    """Whether blocks cover the matrix exactly, so that the compiler may drop every mask."""
    return given["n_cols"] == given["BLOCK"] and given["n_rows"] % given["ROWS"] == 0


def fitting_rows(
    configs: Sequence[triton.Config], given: dict[str, Any], **options: Any
) -> list[triton.Config]:
    """For autotuning: the configs that give each thread 16 or 32 numbers of a block of rows.

    With fewer a thread has too little under way, with more it runs out of registers, two or three
    numbers in float32 for each: 32 warps leave it 64 registers, which 32 numbers fill. Rows too
    long for that get the most threads that there are, very short ones the smallest block.
    """
    width = {**given, **options}["BLOCK"]
    share = {c: width * c.kwargs["ROWS"] / (32 * c.num_warps) for c in configs}
    kept = [c for c in configs if share[c] == 16 or (share[c] == 32 and c.num_warps < 32)]
    if not kept:
        nearest = min(abs(share[c] - 24) for c in configs)
        kept = [c for c in configs if abs(share[c] - 24) == nearest]
    return kept[:6]


def programs(n_rows: int) -> Callable[[dict[str, Any]], tuple[int]]:
    """The grid: a program for each block of rows."""
    return lambda given: (triton.cdiv(n_rows, given["ROWS"]),)


def as_rows(name: str, x: torch.Tensor) -> torch.Tensor:
    """``x`` with neighbours in a row side by side in memory, copied only if they are not.

    Raises ValueError for what is no matrix or has rows longer than ``LONGEST``.
    """
    if x.ndim != 2:
        raise ValueError(f"{name} wants a matrix, not {x.ndim} dimensions: .reshape(-1, n) it.")
    if x.shape[1] > LONGEST:
        raise ValueError(
            f"{name} holds a row in registers, {LONGEST} columns at most, not {x.shape[1]}; "
            "longer rows take a loop over blocks, as in exercise 03.softmax_long."
        )
    return x if x.stride(1) == 1 else x.contiguous()
