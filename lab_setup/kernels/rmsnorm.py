"""RMSNorm along rows, y = x · r · w with r = 1 / √(mean(x²) + eps): forward and backward.

Backward sums dw over all rows. Atomics would make the programs wait for one another, so each walks
over its share of the rows with its sum in registers, and a second, small kernel adds the programs'
sums, always in the same order.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl

from lab_setup.kernels.dispatch import shared_per_block, sms
from lab_setup.kernels.rows import CONFIGS, as_rows, block_of, even, fitting_rows, programs

__all__ = [
    "BACKWARD_CONFIGS",
    "RMSNorm",
    "rmsnorm_backward_kernel",
    "rmsnorm_forward_kernel",
    "rmsnorm_reduce_kernel",
    "rmsnorm",
    "rmsnorm_backward",
    "rmsnorm_forward",
]


@triton.autotune(
    CONFIGS, key=["n_rows", "n_cols"], prune_configs_by={"early_config_prune": fitting_rows}
)
@triton.heuristics({"EVEN": even})
@triton.jit
def rmsnorm_forward_kernel(
    x_ptr,
    w_ptr,
    y_ptr,
    r_ptr,
    x_stride,
    n_rows,
    n_cols,
    eps,
    BLOCK: tl.constexpr,
    ROWS: tl.constexpr,
    EVEN: tl.constexpr,
):
    """y[row], and r[row] for backward, of ROWS rows; w is loaded once for all of them."""
    rows = (tl.program_id(0) * ROWS + tl.arange(0, ROWS)).to(tl.int64)[:, None]
    cols = tl.arange(0, BLOCK)[None, :]
    # A mask of which all is known to be true is none: the compiler drops it.
    inside = ((rows < n_rows) & (cols < n_cols)) | EVEN
    x = tl.load(x_ptr + rows * x_stride + cols, mask=inside, other=0.0).to(tl.float32)
    w = tl.load(w_ptr + cols, mask=(cols < n_cols) | EVEN, other=0.0).to(tl.float32)
    r = tl.rsqrt(tl.sum(x * x, axis=1)[:, None] / n_cols + eps)
    y = (x * r * w).to(y_ptr.dtype.element_ty)
    tl.store(y_ptr + rows * n_cols + cols, y, mask=inside)
    tl.store(r_ptr + rows, r, mask=(rows < n_rows) | EVEN)


@triton.jit
def _again(x, zero):
    """x, which the compiler cannot know, for the 0 comes at run time: so it keeps x in its own 16
    bits in a register, and not in the 32 of an earlier conversion."""
    if x.dtype.primitive_bitwidth == 16:
        x = (x.to(tl.int16, bitcast=True) ^ zero.to(tl.int16)).to(x.dtype, bitcast=True)
    return x


def _backward_config(rows: int, warps: int, per_sm: int, stages: int, narrow: bool = False):
    kwargs = {"ROWS": rows, "PER_SM": per_sm, "STAGES": stages, "NARROW": narrow}
    return triton.Config(kwargs, num_warps=warps)


# By the widest block that they serve. PER_SM: programs on each multiprocessor, as many as its 65536
# registers hold at once, at 60 to 235 a thread, as compiled for cc 9.0: a program that had to wait
# for another's end would double the time.
BACKWARD_CONFIGS: dict[int, list[triton.Config]] = {
    width: [_backward_config(*c) for c in configs]
    for width, configs in {
        512: ((4, 4, 7, 3), (4, 4, 7, 2), (8, 4, 4, 3), (8, 4, 4, 2), (16, 4, 2, 2), (8, 4, 7, 1)),
        2048: ((2, 4, 4, 3), (1, 4, 8, 3), (2, 4, 5, 2), (4, 8, 2, 3), (2, 4, 5, 1)),
        4096: ((1, 8, 2, 3), (1, 8, 2, 2), (1, 16, 2, 3), (1, 16, 2, 2), (1, 8, 2, 1)),
        8192: ((1, 16, 1, 3), (1, 16, 1, 2), (1, 16, 1, 3, True), (1, 16, 1, 1)),
        65536: (
            *((1, 16, 1, 2, True), (1, 16, 1, 3, True), (1, 32, 1, 2, True)),
            *((1, 32, 1, 3, True), (1, 32, 1, 1, True), (1, 16, 1, 1, True)),
        ),
    }.items()
}


def _fitting(
    configs: list[triton.Config], given: dict[str, Any], **options: Any
) -> list[triton.Config]:
    """The configs for this width whose rows under way fit into shared memory."""
    given = {**given, **options}
    row = given["BLOCK"] * given["x_ptr"].element_size()
    limit = shared_per_block() - 1024  # what the sums along rows exchange

    def under_way(config: triton.Config) -> int:
        loaded = 2 * config.kwargs["ROWS"] + config.kwargs["NARROW"]  # rows of x, of dy, and w
        return (config.kwargs["STAGES"] - 1) * loaded * row

    widths = (width for width in BACKWARD_CONFIGS if given["BLOCK"] <= width)
    return [config for config in BACKWARD_CONFIGS[next(widths)] if under_way(config) <= limit]


@triton.autotune(
    [config for configs in BACKWARD_CONFIGS.values() for config in configs],
    key=["n_rows", "n_cols"],
    prune_configs_by={"early_config_prune": _fitting},
)
@triton.heuristics({"EVEN": even})
@triton.jit
def rmsnorm_backward_kernel(
    x_ptr,
    w_ptr,
    r_ptr,
    dy_ptr,
    dx_ptr,
    sums_ptr,
    used_ptr,
    x_stride,
    dy_stride,
    n_rows,
    n_cols,
    zero,
    BLOCK: tl.constexpr,
    ROWS: tl.constexpr,
    PER_SM: tl.constexpr,
    STAGES: tl.constexpr,
    NARROW: tl.constexpr,
    EVEN: tl.constexpr,
):
    """dx of every row, and in sums[program] the share of dw of the rows that this program walked.

    sums is (used[0], n_cols) in float32. The loop loads STAGES - 1 blocks of rows ahead.
    """
    cols = tl.arange(0, BLOCK)[None, :]
    in_row = (cols < n_cols) | EVEN
    w = tl.load(w_ptr + cols, mask=in_row, other=0.0)
    dw = tl.zeros((ROWS, BLOCK), tl.float32)
    blocks = tl.cdiv(n_rows, ROWS)
    for block in tl.range(tl.program_id(0), blocks, tl.num_programs(0), num_stages=STAGES):
        rows = (block * ROWS + tl.arange(0, ROWS)).to(tl.int64)[:, None]
        inside = ((rows < n_rows) & in_row) | EVEN
        x = tl.load(x_ptr + rows * x_stride + cols, mask=inside, other=0.0)
        dy = tl.load(dy_ptr + rows * dy_stride + cols, mask=inside, other=0.0)
        r = tl.load(r_ptr + rows, mask=(rows < n_rows) | EVEN, other=0.0)
        if NARROW:  # held for the loop it would not fit beside the rest; each turn finds it in L2
            w = tl.load(w_ptr + cols, mask=in_row, other=0.0)
        wdy = w.to(tl.float32) * dy.to(tl.float32)
        c = tl.sum(wdy * x.to(tl.float32), axis=1)[:, None] * r / n_cols
        if NARROW:
            x, dy, w = _again(x, zero), _again(dy, zero), _again(w, zero)
        dy32 = dy.to(tl.float32)
        normed = x.to(tl.float32) * r
        dx = r * (w.to(tl.float32) * dy32 - normed * c)
        tl.store(dx_ptr + rows * n_cols + cols, dx.to(dx_ptr.dtype.element_ty), mask=inside)
        dw += dy32 * normed
    program = tl.program_id(0).to(tl.int64)
    tl.store(sums_ptr + program * n_cols + cols, tl.sum(dw, axis=0)[None, :], mask=in_row)
    if program == 0:
        tl.store(used_ptr, tl.num_programs(0))


@triton.jit
def rmsnorm_reduce_kernel(
    sums_ptr, used_ptr, dw_ptr, n_cols, BLOCK_ROWS: tl.constexpr, BLOCK_COLS: tl.constexpr
):
    """dw[col] = sum of sums[:used[0], col], for BLOCK_COLS columns."""
    cols = tl.program_id(0) * BLOCK_COLS + tl.arange(0, BLOCK_COLS)[None, :]
    used = tl.load(used_ptr)
    dw = tl.zeros((BLOCK_ROWS, BLOCK_COLS), tl.float32)
    for first in range(0, used, BLOCK_ROWS):
        rows = (first + tl.arange(0, BLOCK_ROWS)).to(tl.int64)[:, None]
        inside = (rows < used) & (cols < n_cols)
        dw += tl.load(sums_ptr + rows * n_cols + cols, mask=inside, other=0.0)
    total = tl.sum(dw, axis=0)[None, :].to(dw_ptr.dtype.element_ty)
    tl.store(dw_ptr + cols, total, mask=cols < n_cols)


def rmsnorm_forward(
    x: torch.Tensor, w: torch.Tensor, eps: float = 1e-6
) -> tuple[torch.Tensor, torch.Tensor]:
    """x: (M, N), N to 65 536, rows may be padded; w: (N,) contiguous. Returns y, a new contiguous
    tensor of x's type, and r: (M,) float32, which ``rmsnorm_backward`` wants.

    Raises ValueError for other shapes.
    """
    x = as_rows("rmsnorm", x)
    n_rows, n_cols = x.shape
    if w.shape != (n_cols,) or not w.is_contiguous():
        raise ValueError(
            f"rmsnorm wants {n_cols} contiguous weights, one a column of x, not {tuple(w.shape)} "
            f"with strides {w.stride()}."
        )
    y = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    r = torch.empty(n_rows, dtype=torch.float32, device=x.device)
    if x.numel():
        rmsnorm_forward_kernel[programs(n_rows)](
            x, w, y, r, x.stride(0), n_rows, n_cols, eps, BLOCK=block_of(n_cols)
        )
    return y, r


def rmsnorm_backward(
    x: torch.Tensor, w: torch.Tensor, r: torch.Tensor, dy: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """x, w as for ``rmsnorm_forward``; r: what that returned; dy: (M, N), the gradient of y.
    Returns dx: (M, N), contiguous, of x's type, and dw: (N,) of w's, summed in float32."""
    x, dy = as_rows("rmsnorm", x), as_rows("rmsnorm", dy)
    n_rows, n_cols = x.shape
    dx = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if not x.numel():
        return dx, torch.zeros_like(w)
    dw = torch.empty(n_cols, dtype=w.dtype, device=x.device)
    most = min(8 * sms(), n_rows)  # 8: the largest PER_SM
    sums = torch.empty(most, n_cols, dtype=torch.float32, device=x.device)
    used = torch.empty(1, dtype=torch.int32, device=x.device)
    rmsnorm_backward_kernel[
        lambda given: (min(sms() * given["PER_SM"], triton.cdiv(n_rows, given["ROWS"])),)
    ](
        *(x, w, r, dy, dx, sums, used, x.stride(0), dy.stride(0), n_rows, n_cols, 0),
        BLOCK=block_of(n_cols),
    )
    block_cols = 8 if n_cols <= 1024 else 32  # 32 bytes is what memory hands out at once
    rmsnorm_reduce_kernel[(triton.cdiv(n_cols, block_cols),)](
        *(sums, used, dw, n_cols),
        BLOCK_ROWS=4096 // block_cols,
        BLOCK_COLS=block_cols,
        num_warps=8,
    )
    return dx, dw


class RMSNorm(torch.autograd.Function):
    """``RMSNorm.apply(x, w, eps)``: y, with gradients for x and w."""

    @staticmethod
    def forward(ctx, x, w, eps):
        y, r = rmsnorm_forward(x, w, eps)
        ctx.save_for_backward(x, w, r)
        return y

    @staticmethod
    def backward(ctx, dy):
        return *rmsnorm_backward(*ctx.saved_tensors, dy), None


def rmsnorm(x: torch.Tensor, w: torch.Tensor, eps: float = 1e-6) -> torch.Tensor:
    """As ``rmsnorm_forward``, y alone; autograd can differentiate it."""
    return RMSNorm.apply(x, w, eps)
