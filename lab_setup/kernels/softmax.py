"""Softmax along rows, forward and backward: each reads its inputs once and writes once."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from lab_setup.kernels.rows import CONFIGS, as_rows, block_of, even, fitting_rows, programs

__all__ = [
    "LONG",
    "softmax_backward_kernel",
    "softmax_backward_long_kernel",
    "softmax_forward_kernel",
    "softmax",
    "softmax_backward",
    "softmax_forward",
]

_tuned = triton.autotune(
    CONFIGS, key=["n_rows", "n_cols"], prune_configs_by={"early_config_prune": fitting_rows}
)
LONG = 2048  # columns; longer rows of two inputs leave too few registers for loads under way
_LOG2E = tl.constexpr(1.4426950408889634)


@_tuned
@triton.heuristics({"EVEN": even})
@triton.jit
def softmax_forward_kernel(
    x_ptr,
    y_ptr,
    x_stride,
    y_stride,
    n_rows,
    n_cols,
    BLOCK: tl.constexpr,
    ROWS: tl.constexpr,
    EVEN: tl.constexpr,
):
    """y[row] = softmax(x[row]) for ROWS rows; blocks cover the matrix exactly where EVEN."""
    rows = (tl.program_id(0) * ROWS + tl.arange(0, ROWS)).to(tl.int64)[:, None]
    cols = tl.arange(0, BLOCK)[None, :]
    # A mask of which all is known to be true is none: the compiler drops it.
    inside = ((rows < n_rows) & (cols < n_cols)) | EVEN
    x = tl.load(x_ptr + rows * x_stride + cols, mask=inside, other=-float("inf")).to(tl.float32)
    # The card knows powers of two only; the factor is folded in once for both uses.
    x *= _LOG2E
    e = tl.exp2(x - tl.max(x, axis=1)[:, None])
    y = e * (1 / tl.sum(e, axis=1))[:, None]  # one division a row, not one a number
    tl.store(y_ptr + rows * y_stride + cols, y.to(y_ptr.dtype.element_ty), mask=inside)


@_tuned
@triton.heuristics({"EVEN": even})
@triton.jit
def softmax_backward_kernel(
    y_ptr,
    dy_ptr,
    dx_ptr,
    y_stride,
    dy_stride,
    dx_stride,
    n_rows,
    n_cols,
    BLOCK: tl.constexpr,
    ROWS: tl.constexpr,
    EVEN: tl.constexpr,
):
    """dx[row] = y[row] * (dy[row] - sum(dy[row] * y[row])) for ROWS rows."""
    rows = (tl.program_id(0) * ROWS + tl.arange(0, ROWS)).to(tl.int64)[:, None]
    cols = tl.arange(0, BLOCK)[None, :]
    inside = ((rows < n_rows) & (cols < n_cols)) | EVEN
    y = tl.load(y_ptr + rows * y_stride + cols, mask=inside, other=0.0).to(tl.float32)
    dy = tl.load(dy_ptr + rows * dy_stride + cols, mask=inside, other=0.0).to(tl.float32)
    dx = y * (dy - tl.sum(dy * y, axis=1)[:, None])
    tl.store(dx_ptr + rows * dx_stride + cols, dx.to(dx_ptr.dtype.element_ty), mask=inside)


@triton.autotune(
    [
        triton.Config({"BLOCK": block}, num_warps=warps)
        for block, warps in ((2048, 16), (4096, 16), (4096, 32), (8192, 32))
    ],
    key=["n_cols"],
)
@triton.heuristics({"EVEN": lambda given: given["n_cols"] % given["BLOCK"] == 0})
@triton.jit
def softmax_backward_long_kernel(
    y_ptr,
    dy_ptr,
    dx_ptr,
    y_stride,
    dy_stride,
    dx_stride,
    n_cols,
    BLOCK: tl.constexpr,
    EVEN: tl.constexpr,
):
    """The same for one long row in two passes; EVEN: whole blocks cover it.

    A row that is held in registers while it is summed leaves none for loads under way. The second
    pass reads it again from the cache, where the first asked to keep it.
    """
    row = tl.program_id(0).to(tl.int64)
    y_ptr += row * y_stride
    dy_ptr += row * dy_stride
    dx_ptr += row * dx_stride
    cols = tl.arange(0, BLOCK)
    products = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n_cols, BLOCK):
        at = start + cols
        inside = (at < n_cols) | EVEN
        y = tl.load(y_ptr + at, mask=inside, other=0.0, eviction_policy="evict_last")
        dy = tl.load(dy_ptr + at, mask=inside, other=0.0, eviction_policy="evict_last")
        products += y.to(tl.float32) * dy.to(tl.float32)
    total = tl.sum(products, axis=0)
    for start in range(0, n_cols, BLOCK):
        at = start + cols
        inside = (at < n_cols) | EVEN
        y = tl.load(y_ptr + at, mask=inside, other=0.0, eviction_policy="evict_first")
        dy = tl.load(dy_ptr + at, mask=inside, other=0.0, eviction_policy="evict_first")
        dx = y.to(tl.float32) * (dy.to(tl.float32) - total)
        tl.store(dx_ptr + at, dx.to(dx_ptr.dtype.element_ty), mask=inside)


def softmax_forward(x: torch.Tensor) -> torch.Tensor:
    """x: (M, N), N to 65 536, float16, bfloat16 or float32. Softmax along N, a new contiguous
    tensor; summed in float32, rounded once. Raises ValueError for other shapes."""
    x = as_rows("softmax", x)
    y = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    n_rows, n_cols = x.shape
    if x.numel():
        softmax_forward_kernel[programs(n_rows)](
            x, y, x.stride(0), y.stride(0), n_rows, n_cols, BLOCK=block_of(n_cols)
        )
    return y


def softmax_backward(y: torch.Tensor, dy: torch.Tensor) -> torch.Tensor:
    """y: what ``softmax_forward`` returned; dy: the gradient of it, of the same shape. Returns the
    gradient of x, (M, N), of y's type."""
    y, dy = as_rows("softmax", y), as_rows("softmax", dy)
    dx = torch.empty(y.shape, dtype=y.dtype, device=y.device)
    n_rows, n_cols = y.shape
    if n_rows and n_cols > LONG:
        softmax_backward_long_kernel[(n_rows,)](
            y, dy, dx, y.stride(0), dy.stride(0), dx.stride(0), n_cols
        )
    elif y.numel():
        softmax_backward_kernel[programs(n_rows)](
            *(y, dy, dx, y.stride(0), dy.stride(0), dx.stride(0), n_rows, n_cols),
            BLOCK=block_of(n_cols),
        )
    return dx


class _Softmax(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = softmax_forward(x)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, dy):
        return softmax_backward(*ctx.saved_tensors, dy)


def softmax(x: torch.Tensor) -> torch.Tensor:
    """As ``softmax_forward``, and autograd can differentiate it."""
    return _Softmax.apply(x)
