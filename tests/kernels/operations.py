"""Operations of `tl` and libdevice, element by element, as data: kernel, inputs, exact values.

An `Entry` is one function with its reference; all entries of a group run in one launch, one row
each. Bounds are in units of the last place of the result's type: ``cpu`` between the interpreter
and the reference (NumPy's own functions err by up to 4), ``card`` what NVIDIA allows its function
(CUDA Math API, "Mathematical Functions", "Intrinsic Functions") or PTX its instruction.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
import triton
import triton.language as tl

B = 64  # lanes of a row


@triton.jit
def one_operand(x_ptr, out_ptr, FS: tl.constexpr, B: tl.constexpr):
    i = tl.arange(0, B)
    for f in tl.static_range(len(FS)):
        x = tl.load(x_ptr + f * B + i)
        tl.store(out_ptr + f * B + i, FS[f](x).to(out_ptr.dtype.element_ty))


@triton.jit
def two_operands(x_ptr, y_ptr, out_ptr, FS: tl.constexpr, B: tl.constexpr):
    i = tl.arange(0, B)
    for f in tl.static_range(len(FS)):
        x, y = tl.load(x_ptr + f * B + i), tl.load(y_ptr + f * B + i)
        tl.store(out_ptr + f * B + i, FS[f](x, y).to(out_ptr.dtype.element_ty))


@triton.jit
def three_operands(x_ptr, y_ptr, z_ptr, out_ptr, FS: tl.constexpr, B: tl.constexpr):
    i = tl.arange(0, B)
    for f in tl.static_range(len(FS)):
        x, y, z = (
            tl.load(x_ptr + f * B + i),
            tl.load(y_ptr + f * B + i),
            tl.load(z_ptr + f * B + i),
        )
        tl.store(out_ptr + f * B + i, FS[f](x, y, z).to(out_ptr.dtype.element_ty))


@triton.jit
def four_operands(x_ptr, y_ptr, z_ptr, w_ptr, out_ptr, FS: tl.constexpr, B: tl.constexpr):
    i = tl.arange(0, B)
    for f in tl.static_range(len(FS)):
        x, y, z = (
            tl.load(x_ptr + f * B + i),
            tl.load(y_ptr + f * B + i),
            tl.load(z_ptr + f * B + i),
        )
        w = tl.load(w_ptr + f * B + i)
        tl.store(out_ptr + f * B + i, FS[f](x, y, z, w).to(out_ptr.dtype.element_ty))


KERNELS = {1: one_operand, 2: two_operands, 3: three_operands, 4: four_operands}


@dataclass(frozen=True, repr=False)
class Entry:
    name: str
    function: Callable  # what the kernel calls
    want: Callable  # float64 arrays (integers: object arrays of Python's) → exact values
    domain: tuple = ("any",)  # one an operand: "any", (low, high), or ("int", low, high)
    cpu: float = 0.5
    card: float = 0.5
    slack: float = 0.0  # absolute, on the card: what intrinsics are allowed near a zero
    double: float | None = None  # ``cpu`` for float64, where it is another
    only: tuple = ()  # types, if not all of the group

    def __repr__(self):
        return self.name


def launch(entries, dtype: torch.dtype, *xs: torch.Tensor) -> torch.Tensor:
    """(entries, B) results of type ``dtype``."""
    out = torch.empty((len(entries), B), dtype=dtype, device=xs[0].device)
    KERNELS[len(xs)][(1,)](*xs, out, FS=tuple(e.function for e in entries), B=B)
    return out


# ---------------------------------------------------------------- small kernels' functions

OPERATORS = {}


def _operator(function):
    made = OPERATORS[function.__name__] = triton.jit(function)
    return made


@_operator
def add(a, b):
    return a + b


@_operator
def sub(a, b):
    return a - b


@_operator
def mul(a, b):
    return a * b


@_operator
def divide(a, b):
    return a / b


@_operator
def floordiv(a, b):
    return a // b


@_operator
def mod(a, b):
    return a % b


@_operator
def negative(a):
    return -a


@_operator
def invert(a):
    return ~a


@_operator
def bit_and(a, b):
    return a & b


@_operator
def bit_or(a, b):
    return a | b


@_operator
def bit_xor(a, b):
    return a ^ b


@_operator
def shift_left(a, b):
    return a << b


@_operator
def shift_right(a, b):
    return a >> b


@_operator
def less(a, b):
    return a < b


@_operator
def less_equal(a, b):
    return a <= b


@_operator
def greater(a, b):
    return a > b


@_operator
def greater_equal(a, b):
    return a >= b


@_operator
def equal(a, b):
    return a == b


@_operator
def not_equal(a, b):
    return a != b


@_operator
def largest_nan(a, b):
    return tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)


@_operator
def smallest_nan(a, b):
    return tl.minimum(a, b, propagate_nan=tl.PropagateNan.ALL)


@_operator
def clamp_nan(x, a, b):
    return tl.clamp(x, tl.minimum(a, b), tl.maximum(a, b), propagate_nan=tl.PropagateNan.ALL)


@_operator
def clamp(x, a, b):
    return tl.clamp(x, tl.minimum(a, b), tl.maximum(a, b))


@_operator
def chosen(c, a, b):
    return tl.where(c > 0, a, b)


@_operator
def softmax(x):
    return tl.softmax(x)


@_operator
def cdiv(a, b):
    return tl.cdiv(a, b)


@_operator
def fdiv_exact(a, b):
    return tl.fdiv(a, b, ieee_rounding=True)
