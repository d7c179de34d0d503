"""out = x + y, the memory's speed and nothing else."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

__all__ = ["CONFIGS", "add", "add_kernel"]

# Eight to sixteen numbers a thread: two or four moves of 16 bytes in flight for each operand.
CONFIGS = [
    triton.Config({"BLOCK": block}, num_warps=warps)
    for block, warps in ((1024, 4), (2048, 4), (2048, 8), (4096, 8))
]


@triton.autotune(CONFIGS, key=["n"])
@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """out[i] = x[i] + y[i] for the block of this program."""
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    x = tl.load(x_ptr + i, mask=inside)
    y = tl.load(y_ptr + i, mask=inside)
    tl.store(out_ptr + i, x + y, mask=inside)


def add(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """x, y: contiguous, one shape, one type. Returns x + y as a new tensor.

    Raises ValueError where they are not.
    """
    if x.shape != y.shape or x.dtype != y.dtype:
        raise ValueError(
            f"add wants two tensors of one shape and type, not {tuple(x.shape)} {x.dtype} and "
            f"{tuple(y.shape)} {y.dtype}; broadcast and cast them before."
        )
    if not (x.is_contiguous() and y.is_contiguous()):
        raise ValueError("add wants contiguous tensors: call .contiguous() on them first.")
    out = torch.empty_like(x)
    n = x.numel()
    if n:
        add_kernel[lambda given: (triton.cdiv(n, given["BLOCK"]),)](x, y, out, n)
    return out
