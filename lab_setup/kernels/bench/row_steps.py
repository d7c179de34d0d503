"""The early steps of the ladders: the course's plain solutions, and what lies between them and the
tuned kernels."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from lab_setup.kernels import fp8
from lab_setup.kernels.dispatch import sms
from lab_setup.kernels.rmsnorm import rmsnorm_backward_kernel, rmsnorm_reduce_kernel
from lab_setup.kernels.rows import block_of
from lab_setup.kernels.softmax import softmax_forward_kernel

__all__ = [
    "add_small",
    "fp8_with",
    "plain_norm_kernel",
    "plain_softmax_kernel",
    "rmsnorm_plain",
    "rmsnorm_walking",
    "small_kernel",
    "softmax_plain",
    "softmax_with",
    "warps_of",
]


@triton.jit
def plain_softmax_kernel(x_ptr, out_ptr, x_stride, out_stride, n_cols, BLOCK_SIZE: tl.constexpr):
    """Exercise 03.softmax as the course solves it: a row a program."""
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK_SIZE)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * x_stride + cols, mask=mask, other=-float("inf")).to(tl.float32)
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + row * out_stride + cols, e / tl.sum(e, axis=0), mask=mask)


def warps_of(block: int) -> int:
    """The course's warps for a row of softmax."""
    return min(max(block // 1024, 4), 16)


def softmax_plain(x: torch.Tensor) -> torch.Tensor:
    """Exercise 03.softmax."""
    out = torch.empty_like(x)
    block = block_of(x.shape[1])
    plain_softmax_kernel[(x.shape[0],)](
        *(x, out, x.stride(0), out.stride(0), x.shape[1]),
        BLOCK_SIZE=block,
        num_warps=warps_of(block),
    )
    return out


def softmax_with(x: torch.Tensor, rows: int, warps: int, even: bool) -> torch.Tensor:
    """The fast kernel with a config that nothing tuned; ``even`` False keeps its masks."""
    out = torch.empty_like(x)
    n_rows, n_cols = x.shape
    softmax_forward_kernel.fn.fn[(triton.cdiv(n_rows, rows),)](
        *(x, out, x.stride(0), out.stride(0), n_rows, n_cols),
        BLOCK=block_of(n_cols),
        ROWS=rows,
        EVEN=even,
        num_warps=warps,
    )
    return out


@triton.jit
def plain_norm_kernel(
    x_ptr, w_ptr, r_ptr, dy_ptr, dx_ptr, dw_ptr, x_stride, n_cols, BLOCK_SIZE: tl.constexpr
):
    """Exercise 04.rmsnorm_backward as the course solves it: a row a program, atomics for dw."""
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK_SIZE)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * x_stride + cols, mask=mask, other=0.0).to(tl.float32)
    dy = tl.load(dy_ptr + row * n_cols + cols, mask=mask, other=0.0).to(tl.float32)
    w = tl.load(w_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    r = tl.load(r_ptr + row)
    normed = x * r
    c = tl.sum(w * dy * normed, axis=0) / n_cols
    tl.store(dx_ptr + row * n_cols + cols, r * (w * dy - normed * c), mask=mask)
    tl.atomic_add(dw_ptr + cols, dy * normed, mask=mask)


def rmsnorm_plain(x, w, r, dy) -> tuple[torch.Tensor, torch.Tensor]:
    """Exercise 04.rmsnorm_backward."""
    n_rows, n_cols = x.shape
    dx = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    dw = torch.zeros(n_cols, dtype=torch.float32, device=x.device)
    plain_norm_kernel[(n_rows,)](
        x, w, r, dy, dx, dw, x.stride(0), n_cols, BLOCK_SIZE=block_of(n_cols)
    )
    return dx, dw.to(w.dtype)


def rmsnorm_walking(x, w, r, dy, rows: int, warps: int, per_sm: int, stages: int):
    """The fast backward pass with a config that nothing tuned."""
    n_rows, n_cols = x.shape
    dx = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    dw = torch.empty(n_cols, dtype=w.dtype, device=x.device)
    programs = min(per_sm * sms(), triton.cdiv(n_rows, rows))
    sums = torch.empty(programs, n_cols, dtype=torch.float32, device=x.device)
    used = torch.empty(1, dtype=torch.int32, device=x.device)
    rmsnorm_backward_kernel.fn[(programs,)](
        *(x, w, r, dy, dx, sums, used, x.stride(0), dy.stride(0), n_rows, n_cols, 0),
        BLOCK=block_of(n_cols),
        ROWS=rows,
        PER_SM=per_sm,
        STAGES=stages,
        NARROW=n_cols > 8192,
        num_warps=warps,
    )
    rmsnorm_reduce_kernel[(triton.cdiv(n_cols, 32),)](
        *(sums, used, dw, n_cols), BLOCK_ROWS=128, BLOCK_COLS=32, num_warps=8
    )
    return dx, dw


@triton.jit
def small_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """out[i] = x[i] + y[i]: so little work that its launch is what takes the time."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    x = tl.load(x_ptr + i, mask=inside)
    y = tl.load(y_ptr + i, mask=inside)
    tl.store(out_ptr + i, x + y, mask=inside)


def add_small(x: torch.Tensor, y: torch.Tensor, out: torch.Tensor) -> None:
    """One launch of the small kernel, into ``out``."""
    n = x.numel()
    small_kernel[(triton.cdiv(n, 1024),)](x, y, out, n, BLOCK=1024)


def fp8_with(
    a, b, scale_a, scale_b, block_n: int, block_k: int, stages: int, split: int
) -> torch.Tensor:
    """The fp8 product with a config that nothing tuned."""
    config = {"BLOCK_N": block_n, "BLOCK_K": block_k, "num_stages": stages}
    return fp8.run(fp8.fp8_gemm_kernel.fn, a, b, scale_a, scale_b, split, **config)
