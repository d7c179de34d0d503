"""The table: operation → NumPy. Every entry works on all programs of a batch at once.

A value is an array with the program axis in front: ``(programs, *shape)``. Any axis may have length
1 where the type says more, program axis included: such an axis is uniform, and NumPy's broadcasting
does the rest. So splats, masks and offset vectors stay small until something really needs them
whole (`whole`). bfloat16 and fp8 are held in float32 and rounded after every operation, as a GPU
would.

An entry is ``function(op, arguments) -> array``; add one with ``@operation("dialect.name")``.
An operation that is not in the table makes the run end in CouldNotCheck, which names it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable

import numpy as np

from autograder.floats import decode, encode, held, is_float, rounded, stored
from autograder.ir.memory import Pointer
from autograder.ir.parse import Op
from autograder.records import CouldNotCheck

TABLE: dict[str, Callable] = {}
COUNTED: set[str] = set()  # floating-point arithmetic, one operation an element


def operation(*names: str, counted: bool = False):
    """Register a function for these operations."""

    def add(function):
        for name in names:
            TABLE[name] = function
            if counted:
                COUNTED.add(name)
        return function

    return add


def whole(value: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """``value`` with every axis but the program axis at its full length (a view)."""
    if value.shape[1:] == shape:
        return value
    return np.broadcast_to(value, (value.shape[0], *shape))


def _unsigned(value: np.ndarray) -> np.ndarray:
    return value if value.dtype == bool else value.view("u" + value.dtype.name)


def _elementwise(function, unsigned: bool = False):
    def apply(op: Op, arguments):
        if unsigned:
            arguments = [_unsigned(a) for a in arguments]
        return rounded(function(*arguments), op.result_types[-1].dtype)

    return apply


# ---------------------------------------------------------------- arithmetic


def _divide(a, b):
    """Signed division towards zero; a zero divisor, undefined on the card, gives 0."""
    safe = np.where(b == 0, b.dtype.type(1), b)
    quotient = a // safe
    quotient += ((a % safe) != 0) & ((a < 0) != (safe < 0))
    return np.where(b == 0, a.dtype.type(0), quotient)


def _divide_unsigned(a, b):
    return np.where(b == 0, a.dtype.type(0), a // np.where(b == 0, b.dtype.type(1), b))


def _shift(function):
    def apply(a, b):
        bits = a.dtype.itemsize * 8
        over = (b < 0) | (b >= bits)
        return np.where(over, a.dtype.type(0), function(a, np.where(over, b.dtype.type(0), b)))

    return apply


def _ceil_divide(a, b):
    return -_divide(-a, b)


_INTEGER = {
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
    "shrsi": _shift(np.right_shift),
    "minsi": np.minimum,
    "maxsi": np.maximum,
}
_UNSIGNED = {
    "divui": _divide_unsigned,
    "remui": lambda a, b: a - _divide_unsigned(a, b) * b,
    "ceildivui": lambda a, b: _divide_unsigned(a + b - b.dtype.type(1), b),
    "shrui": _shift(np.right_shift),
    "minui": np.minimum,
    "maxui": np.maximum,
}


def _zero_aware(function, first):
    """maximum and minimum that order −0 below +0, as IEEE 754-2019 asks of maximumf/minimumf."""

    def apply(a, b):
        result = function(a, b)
        return np.where((a == 0) & (b == 0), np.where(np.signbit(a) == first, a, b), result)

    return apply


_FLOAT = {
    "addf": np.add,
    "subf": np.subtract,
    "mulf": np.multiply,
    "divf": np.divide,
    "remf": np.fmod,
    "maxnumf": np.fmax,
    "minnumf": np.fmin,
    "maximumf": _zero_aware(np.maximum, False),
    "minimumf": _zero_aware(np.minimum, True),
    "negf": np.negative,
}
for _name, _function in _INTEGER.items():
    operation(f"arith.{_name}")(_elementwise(_function))
for _name, _function in _UNSIGNED.items():
    operation(f"arith.{_name}")(_elementwise(_function, unsigned=True))
for _name, _function in _FLOAT.items():
    operation(f"arith.{_name}", counted=True)(_elementwise(_function))

_COMPARE = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}


@operation("arith.cmpi")
def _compare_integers(op, arguments):
    if op.cache is None:
        predicate = op.text.split(",")[0].strip()
        op.cache = (predicate[0] == "u", _COMPARE[predicate[-2:]])
    unsigned, function = op.cache
    return function(*(map(_unsigned, arguments) if unsigned else arguments))


@operation("arith.cmpf", counted=True)
def _compare_floats(op, arguments):
    predicate = op.text.split(",")[0].strip()
    a, b = arguments
    nan = np.isnan(a) | np.isnan(b)
    if predicate in ("ord", "uno"):
        return nan == (predicate == "uno")
    result = _COMPARE[predicate[1:]](a, b)
    return (result | nan) if predicate[0] == "u" else (result & ~nan)


@operation("arith.select")
def _select(op, arguments):
    condition, a, b = arguments
    if isinstance(a, Pointer):
        return Pointer.choose(condition, a, b)
    return np.where(condition, a, b)


@operation("arith.extsi", "arith.trunci", "arith.index_cast", "arith.sitofp", "arith.fptosi")
def _cast_signed(op, arguments):
    (a,) = arguments
    if a.dtype == bool and op.name in ("arith.extsi", "arith.sitofp"):
        a = -a.astype(np.int8)
    to = op.result_types[-1].dtype
    if to == "bool":
        return (a.astype(np.int64) & 1).astype(bool)
    if op.name == "arith.fptosi":
        return _float_to_integer(a, np.dtype(to))
    return rounded(a, to)


def _float_to_integer(a: np.ndarray, to: np.dtype) -> np.ndarray:
    """Towards zero, saturating, NaN → 0: what PTX's cvt.rzi does."""
    limits = np.iinfo(to)
    clean = np.nan_to_num(a.astype(np.float64), nan=0.0, posinf=limits.max, neginf=limits.min)
    trunc = np.trunc(clean)
    inside = np.where((trunc >= limits.max) | (trunc <= limits.min), 0, trunc).astype(to)
    return np.where(trunc >= limits.max, to.type(limits.max), inside) + np.where(
        trunc <= limits.min, to.type(limits.min), to.type(0)
    )


@operation("arith.extui", "arith.uitofp", "arith.index_castui")
def _cast_unsigned(op, arguments):
    to = op.result_types[-1].dtype
    wide = _unsigned(arguments[0])
    return rounded(wide, to) if is_float(to) else wide.astype("u" + to).view(to)


@operation("arith.fptoui")
def _cast_to_unsigned(op, arguments):
    to = op.result_types[-1].dtype
    return _float_to_integer(arguments[0], np.dtype("u" + to)).view(to)


@operation("arith.extf", "arith.truncf")
def _cast_float(op, arguments):
    return rounded(arguments[0], op.result_types[-1].dtype)


@operation("tt.fp_to_fp")
def _cast_rounding(op, arguments):
    (a,), to = arguments, op.result_types[-1].dtype
    nearest = rounded(a, to)
    if op.attribute("rounding", "rtne") != "rtz" or not a.size:
        return nearest
    if held(to) != stored(to) and to != "bfloat16":
        raise CouldNotCheck(f"Rounding towards zero to {to} is not supported.")
    if to == "bfloat16":
        bits = np.ascontiguousarray(a, np.float32).view(np.uint32) & np.uint32(0xFFFF0000)
        return bits.view(np.float32)
    over = np.abs(nearest.astype(a.dtype)) > np.abs(a)
    return np.where(over, np.nextafter(nearest, nearest.dtype.type(0)), nearest)


@operation("arith.bitcast", "tt.bitcast")
def _bitcast(op, arguments):
    (a,), to = arguments, op.result_types[-1]
    if isinstance(a, Pointer):
        return a.cast(to.dtype)
    source = op.types[0].dtype
    bits = np.ascontiguousarray(encode(a, source))
    return decode(bits.view(stored(to.dtype)), to.dtype)


@operation("arith.constant")
def _constant(op, arguments):
    if op.cache is None:
        op.cache = _read_constant(op)
    return op.cache


def _read_constant(op: Op) -> np.ndarray:
    type_ = op.result_types[-1]
    text = re.sub(r"^\s*(\{[^}]*\}\s*)?", "", op.text).strip()
    match = re.fullmatch(r"dense<(.*)>", text)
    text = match[1] if match else text
    if text.startswith("["):
        numbers = [_number(t, type_.dtype) for t in re.findall(r"[^\[\],\s]+", text)]
        return np.array(numbers, held(type_.dtype)).reshape(1, *type_.shape)
    return np.full((1,) * (1 + len(type_.shape)), _number(text, type_.dtype), held(type_.dtype))


def _number(text: str, dtype: str):
    if text in ("true", "false"):
        return text == "true"
    if text.lower().startswith("0x") and is_float(dtype):
        kind = {"float64": np.uint64, "float32": np.uint32, "float16": np.uint16}.get(dtype)
        bits = np.array([int(text, 16)], kind or stored(dtype))
        return decode(bits, dtype)[0] if kind is None else bits.view(dtype)[0]
    return float(text) if is_float(dtype) else int(text)


# ---------------------------------------------------------------- functions

_erf = np.frompyfunc(math.erf, 1, 1)
_MATH = {
    "exp": np.exp,
    "exp2": np.exp2,
    "expm1": np.expm1,
    "log": np.log,
    "log2": np.log2,
    "log10": np.log10,
    "log1p": np.log1p,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "cbrt": np.cbrt,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tanh": np.tanh,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "roundeven": np.rint,
    "absf": np.abs,
    "absi": np.abs,
    "erf": lambda x: _erf(x).astype(x.dtype),
    "powf": np.power,
    "atan2": np.arctan2,
    "copysign": np.copysign,
}
for _name, _function in _MATH.items():
    operation(f"math.{_name}", counted=True)(_elementwise(_function))
operation("tt.precise_sqrt", counted=True)(_elementwise(np.sqrt))
operation("tt.precise_divf", counted=True)(_elementwise(np.divide))

# libdevice's names where they differ from MLIR's
_LIBDEVICE = {
    "fabs": np.abs,
    "pow": np.power,
    "rint": np.rint,
    "nearbyint": np.rint,
    "round": lambda x: np.trunc(x + np.copysign(x.dtype.type(0.5), x)),
    "fmod": np.fmod,
    "fmax": np.fmax,
    "fmin": np.fmin,
    "fma": lambda a, b, c: (a.astype(np.float64) * b + c).astype(a.dtype),
    "isnan": lambda x: np.isnan(x).astype(np.int32),
    "isinf": lambda x: np.isinf(x).astype(np.int32),
    "exp10": lambda x: np.power(x.dtype.type(10), x),
    "hypot": np.hypot,
    "abs": np.abs,
    "fast_exp": np.exp,
    "fast_log": np.log,
    "fast_tanh": np.tanh,
    "fast_sin": np.sin,
    "fast_cos": np.cos,
    "fdiv_rn": np.divide,
    "div_rn": np.divide,
    "sqrt_rn": np.sqrt,
}


@operation("tt.extern_elementwise", counted=True)
def _libdevice(op, arguments):
    symbol = op.attribute("symbol", '""').strip('"')
    name = symbol.removeprefix("__nv_")
    table = _MATH | _LIBDEVICE
    function = table.get(name) or table.get(name.removesuffix("f"))
    if function is None:
        raise CouldNotCheck(f"The IR interpreter does not know the library function {symbol}.")
    return rounded(function(*arguments), op.result_types[-1].dtype)


@operation("math.fma", counted=True)
def _fma(op, arguments):
    a, b, c = arguments
    wide = np.longdouble if a.dtype == np.float64 else np.float64
    return rounded(a.astype(wide) * b + c, op.result_types[-1].dtype)


@operation("tt.clampf", counted=True)
def _clamp(op, arguments):
    x, low, high = arguments
    if op.attribute("propagateNan") == "all":
        return np.minimum(np.maximum(x, low), high)
    return np.fmin(np.fmax(x, low), high)


@operation("tt.mulhiui")
def _multiply_high(op, arguments):
    a, b = map(_unsigned, arguments)
    if a.dtype == np.uint32:
        product = a.astype(np.uint64) * b.astype(np.uint64)
        return (product >> np.uint64(32)).astype(np.uint32).view(np.int32)
    low, high = np.uint64(0xFFFFFFFF), np.uint64(32)
    a0, a1, b0, b1 = a & low, a >> high, b & low, b >> high
    middle = (a0 * b0 >> high) + (a1 * b0 & low) + (a0 * b1 & low)
    result = a1 * b1 + (a1 * b0 >> high) + (a0 * b1 >> high) + (middle >> high)
    return result.view(np.int64)


# ---------------------------------------------------------------- shapes


def _structural(function):
    """Shape operations treat values and pointers alike."""

    def apply(op, arguments):
        if isinstance(arguments[0], Pointer):
            return arguments[0].reshaped(lambda a: function(op, [a]))
        return function(op, arguments)

    return apply


@operation("tt.splat", "tt.unsplat")
@_structural
def _splat(op, arguments):
    (a,) = arguments
    return a.reshape(a.shape[0], *[1] * len(op.result_types[-1].shape))


@operation("tt.broadcast")
@_structural
def _broadcast(op, arguments):
    return arguments[0]  # length-1 axes are uniform already


@operation("tt.expand_dims")
@_structural
def _expand_dims(op, arguments):
    return np.expand_dims(arguments[0], int(op.attribute("axis")) + 1)


@operation("tt.reshape")
@_structural
def _reshape(op, arguments):
    (a,) = arguments
    if a[0].size == 1:
        return a.reshape(a.shape[0], *[1] * len(op.result_types[-1].shape))
    a = whole(a, op.types[0].shape)
    return a.reshape(a.shape[0], *op.result_types[-1].shape)


@operation("tt.trans")
@_structural
def _transpose(op, arguments):
    return np.transpose(arguments[0], [0, *(axis + 1 for axis in op.integers("order"))])


@operation("tt.join")
def _join(op, arguments):
    shape = op.result_types[-1].shape[:-1]
    a, b = np.broadcast_arrays(*[whole(x, shape) for x in arguments])
    return np.stack([a, b], axis=-1)


@operation("tt.split")
def _split(op, arguments):
    a = whole(arguments[0], op.types[0].shape)
    return [a[..., 0], a[..., 1]]


@operation("tt.cat")
def _cat(op, arguments):
    parts = [whole(x, t.shape) for x, t in zip(arguments, (op.types[0], op.types[0]), strict=True)]
    count = max(len(p) for p in parts)
    return np.concatenate([np.broadcast_to(p, (count, *p.shape[1:])) for p in parts], axis=1)


@operation("tt.make_range")
def _make_range(op, arguments):
    if op.cache is None:
        start, end = int(op.attribute("start")), int(op.attribute("end"))
        op.cache = np.arange(start, end, dtype=np.int32)[None]
    return op.cache


@operation("tt.gather")
def _gather(op, arguments):
    axis = int(op.attribute("axis")) + 1
    source = whole(arguments[0], op.types[0].shape)
    index = whole(arguments[1], op.types[1].shape)
    count = max(len(source), len(index))
    source = np.broadcast_to(source, (count, *source.shape[1:]))
    index = np.broadcast_to(index, (count, *index.shape[1:]))
    if index.size and (index.min() < 0 or index.max() >= source.shape[axis]):
        raise CouldNotCheck("tl.gather was given an index outside its source.")
    return np.take_along_axis(source, index.astype(np.int64), axis)


@operation("tt.histogram")
def _histogram(op, arguments):
    values = whole(arguments[0], op.types[0].shape)
    mask = whole(arguments[1], op.types[0].shape) if len(arguments) > 1 else True
    bins = op.result_types[-1].shape[0]
    count = max(len(values), len(mask) if mask is not True else 1)
    values = np.broadcast_to(values, (count, *values.shape[1:]))
    keep = (values >= 0) & (values < bins) & mask
    rows = np.broadcast_to(np.arange(count)[:, None], values.shape)
    flat = np.bincount((rows * bins + values)[keep].astype(np.int64), minlength=count * bins)
    return flat.reshape(count, bins).astype(held(op.result_types[-1].dtype))


@operation("tt.dot")
def _dot(op, arguments):
    """fp32 accumulation whatever the inputs; integers exactly, in float64 (K·2¹⁴ < 2⁵³)."""
    types = op.types
    a, b = (whole(x, t.shape) for x, t in zip(arguments[:2], types[:2], strict=True))
    out = op.result_types[-1]
    wide = np.float64 if out.dtype in ("float64", "int32") else np.float32
    product = np.matmul(a.astype(wide, copy=False), b.astype(wide, copy=False))
    if out.dtype == "int32":
        return product.astype(np.int32) + arguments[2]
    return rounded(product + arguments[2], out.dtype)


NO_EFFECT = frozenset(
    {
        "tt.print",
        "tt.assert",
        "ttg.barrier",
        "gpu.barrier",
        "llvm.intr.assume",
        "ttg.async_wait",
        "ttg.local_barrier",
    }
)
