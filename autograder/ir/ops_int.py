"""Integer arithmetic: two's complement that wraps, as on the card."""

from __future__ import annotations

import numpy as np

from autograder.ir.memory import Pointer
from autograder.ir.ops_table import elementwise, operation, unsigned


def _divide(a, b):
    """Signed division towards zero; a zero divisor, undefined on the card, gives 0."""
    safe = np.where(b == 0, b.dtype.type(1), b)
    quotient = a // safe
    quotient += ((a % safe) != 0) & ((a < 0) != (safe < 0))
    return np.where(b == 0, a.dtype.type(0), quotient)


def _divide_unsigned(a, b):
    return np.where(b == 0, a.dtype.type(0), a // np.where(b == 0, b.dtype.type(1), b))


def _shift(function, fill=None):
    """A shift by as many bits as there are or more leaves zeros; an arithmetic one to the right
    leaves the sign (PTX's shl and shr clamp the amount)."""

    def apply(a, b):
        bits = a.dtype.itemsize * 8
        over = (b < 0) | (b >= bits)
        if not over.any():
            return function(a, b)
        rest = a.dtype.type(0) if fill is None else fill(a)
        return np.where(over, rest, function(a, np.where(over, b.dtype.type(0), b)))

    return apply


def _ceil_divide(a, b):
    return -_divide(-a, b)


_SIGNED = {
    "addi": np.add,
    "subi": np.subtract,
    "muli": np.multiply,
    "divsi": _divide,
    "remsi": lambda a, b: a - _divide(a, b) * b,
    "ceildivsi": _ceil_divide,
    "floordivsi": lambda a, b: a // np.where(b == 0, b.dtype.type(1), b),
    "andi": np.bitwise_and,
    "ori": np.bitwise_or,
    "xori": np.bitwise_xor,
    "shli": _shift(np.left_shift),
    "shrsi": _shift(np.right_shift, fill=lambda a: -(a < 0).astype(a.dtype)),
    "minsi": np.minimum,
    "maxsi": np.maximum,
}
_UNSIGNED = {
    "divui": _divide_unsigned,
    "remui": lambda a, b: a - _divide_unsigned(a, b) * b,
    "ceildivui": lambda a, b: _divide_unsigned(a, b) + (a - _divide_unsigned(a, b) * b != 0),
    "shrui": _shift(np.right_shift),
    "minui": np.minimum,
    "maxui": np.maximum,
}
# One bit: sums lose their carry, and as a signed number the set bit is −1.
_BIT = {
    "addi": np.logical_xor,
    "subi": np.logical_xor,
    "muli": np.logical_and,
    "minsi": np.logical_or,
    "maxsi": np.logical_and,
    "minui": np.logical_and,
    "maxui": np.logical_or,
    "divui": np.logical_and,
    "divsi": np.logical_and,
    "remui": lambda a, b: a & ~b,
    "remsi": lambda a, b: a & ~b,
    "shli": lambda a, b: a & ~b,
    "shrui": lambda a, b: a & ~b,
    "shrsi": lambda a, b: a | (b & False),
}


def _integer(name, function, of_unsigned):
    def apply(op, arguments):
        if arguments[0].dtype == bool:
            return _BIT.get(name, function)(*arguments)
        if not of_unsigned:
            return plain(op, arguments)
        return plain(op, [unsigned(a) for a in arguments])

    plain = elementwise(function)
    return apply


for _name, _function in _SIGNED.items():
    operation(f"arith.{_name}")(_integer(_name, _function, False))
for _name, _function in _UNSIGNED.items():
    operation(f"arith.{_name}")(_integer(_name, _function, True))

COMPARE = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}


@operation("arith.cmpi")
def _compare(op, arguments):
    if op.cache is None:
        predicate = op.text.split(",")[0].strip()
        op.cache = (predicate[0], COMPARE[predicate[-2:]])
    sign, function = op.cache
    if sign == "u":
        arguments = [unsigned(a) for a in arguments]
    elif sign == "s" and arguments[0].dtype == bool:  # −1 and 0
        arguments = arguments[::-1]
    return function(*arguments)


@operation("arith.select")
def _select(op, arguments):
    condition, a, b = arguments
    rank = max(len(a.shape), len(b.shape))
    if condition.ndim < rank:  # one condition for a whole block
        condition = condition.reshape(-1, *[1] * (rank - 1))
    if isinstance(a, Pointer):
        return Pointer.choose(condition, a, b)
    return np.where(condition, a, b)


operation("math.absi")(elementwise(np.abs))


def multiply_high(a, b):
    """The upper half of the product of two arrays of one unsigned type, 32 or 64 bits."""
    if a.dtype == np.uint32:
        return (a.astype(np.uint64) * b.astype(np.uint64) >> np.uint64(32)).astype(np.uint32)
    low, high = np.uint64(0xFFFFFFFF), np.uint64(32)
    a0, a1, b0, b1 = a & low, a >> high, b & low, b >> high
    middle = (a0 * b0 >> high) + (a1 * b0 & low) + (a0 * b1 & low)
    return a1 * b1 + (a1 * b0 >> high) + (a0 * b1 >> high) + (middle >> high)


@operation("tt.mulhiui")
def _multiply_high(op, arguments):
    return multiply_high(*map(unsigned, arguments)).view(arguments[0].dtype)
