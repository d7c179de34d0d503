"""Conversions between types as host functions: to every type that a card converts to."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from tests.kernels.operation_blocks import _like


@triton.jit
def cast_kernel(x_ptr, outs, B: tl.constexpr):
    i = tl.arange(0, B)
    x = tl.load(x_ptr + i)
    for k in tl.static_range(len(outs)):
        tl.store(outs[k] + i, tl.cast(x, outs[k].dtype.element_ty))


INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
FLOATS = ("float64", "float32", "float16", "bfloat16")


def targets(source: str) -> tuple[str, ...]:
    """Types that a card converts ``source`` to."""
    if source in INTEGERS:
        return INTEGERS + FLOATS
    if source.startswith("float8"):
        return ("float32", "float16", "bfloat16")
    eight = () if source == "float64" else ("float8_e4m3fn", "float8_e5m2")
    return INTEGERS + FLOATS + eight


def casts(x):
    name = str(x.dtype).removeprefix("torch.")
    outs = tuple(_like(x, x.shape, getattr(torch, t)) for t in targets(name))
    cast_kernel[(1,)](x, outs, B=x.numel())
    return outs


@triton.jit
def bitcast_kernel(x_ptr, int_ptr, out_ptr, B: tl.constexpr):
    i = tl.arange(0, B)
    bits = tl.load(x_ptr + i).to(int_ptr.dtype.element_ty, bitcast=True)
    tl.store(int_ptr + i, bits)
    tl.store(out_ptr + i, bits.to(out_ptr.dtype.element_ty, bitcast=True))


def bitcasts(x):
    bits = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[x.element_size()]
    out, back = _like(x, x.shape, bits), torch.empty_like(x)
    bitcast_kernel[(1,)](x, out, back, B=x.numel())
    return out, back


@triton.jit
def rounding_kernel(x_ptr, near_ptr, zero_ptr, B: tl.constexpr):
    i = tl.arange(0, B)
    x = tl.load(x_ptr + i)
    to: tl.constexpr = near_ptr.dtype.element_ty
    tl.store(near_ptr + i, x.to(to, fp_downcast_rounding="rtne"))
    tl.store(zero_ptr + i, x.to(to, fp_downcast_rounding="rtz"))


def roundings(to):
    def run(x):
        near, zero = (_like(x, x.shape, getattr(torch, to)) for _ in range(2))
        rounding_kernel[(1,)](x, near, zero, B=x.numel())
        return near, zero

    return run
