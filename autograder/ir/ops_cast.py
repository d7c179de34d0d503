"""Conversions between types, and constants as MLIR prints them."""

from __future__ import annotations

import re

import numpy as np

from autograder.floats import LARGEST, cut, decode, encode, held, is_float, rounded, stored
from autograder.ir.memory import Pointer
from autograder.ir.ops_table import operation, unsigned
from autograder.ir.parse import Op


@operation("arith.extsi", "arith.trunci", "arith.index_cast", "arith.sitofp")
def _cast_signed(op, arguments):
    (a,) = arguments
    if a.dtype == bool and op.name in ("arith.extsi", "arith.sitofp"):
        a = -a.astype(np.int8)
    to = op.result_types[-1].dtype
    if to == "bool":
        return (a.astype(np.int64) & 1).astype(bool)
    return rounded(a, to)


@operation("arith.extui", "arith.uitofp", "arith.index_castui")
def _cast_unsigned(op, arguments):
    to = op.result_types[-1].dtype
    wide = unsigned(arguments[0])
    return rounded(wide, to) if is_float(to) else wide.astype("u" + to).view(to)


@operation("arith.fptosi", "arith.fptoui")
def _cast_to_integer(op, arguments):
    to, sign = op.result_types[-1].dtype, "u" if op.name == "arith.fptoui" else ""
    if to == "bool":
        to = "int8"
    double = op.types[0].dtype == "float64"
    # PTX has no conversion to 8 bits: the card converts to 16 and keeps the lower half.
    by = "int16" if to == "int8" else to
    result = float_to_integer(arguments[0], np.dtype(sign + by), double)
    return result.astype(sign + to).view(to).astype(op.result_types[-1].dtype, copy=False)


def float_to_integer(a: np.ndarray, to: np.dtype, double: bool, rounding=np.trunc) -> np.ndarray:
    """What PTX's cvt does: round, then saturate. NaN becomes 0, or, from or to 64 bits, the number
    whose highest bit alone is set."""
    limits = np.iinfo(to)
    clean = np.nan_to_num(a.astype(np.float64), nan=0.0, posinf=np.inf, neginf=-np.inf)
    whole = rounding(clean)
    high, low = whole >= float(limits.max), whole <= float(limits.min)
    result = np.where(high | low, 0, whole).astype(to)
    result = np.where(high, to.type(limits.max), np.where(low, to.type(limits.min), result))
    if double or to.itemsize == 8:
        top = np.array(1 << (8 * to.itemsize - 1), np.uint64).astype(f"u{to.itemsize}").view(to)
        result = np.where(np.isnan(a), top, result)
    return result


@operation("arith.extf", "arith.truncf")
def _cast_float(op, arguments):
    return rounded(arguments[0], op.result_types[-1].dtype)


@operation("tt.fp_to_fp")
def _cast_rounding(op, arguments):
    (a,), to = arguments, op.result_types[-1].dtype
    if not a.size:
        return rounded(a, to)
    result = cut(a, to) if op.attribute("rounding") == "rtz" else rounded(a, to)
    if to in ("float8_e4m3fn", "float8_e5m2"):  # the card saturates, infinities too
        most = np.float32(LARGEST[to])
        beyond = np.abs(a) > most
        result = np.where(beyond, np.copysign(most, a).astype(np.float32), result)
    return result


@operation("arith.bitcast", "tt.bitcast")
def _bitcast(op, arguments):
    (a,), to = arguments, op.result_types[-1]
    if isinstance(a, Pointer):
        return a.cast(to.dtype)
    source = op.types[0].dtype
    if "bool" in (source, to.dtype):
        return a.astype(held(to.dtype), copy=False)
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
    if text.startswith('"0x'):  # many elements: their bytes
        size = stored(type_.dtype)
        bits = np.frombuffer(bytes.fromhex(text.strip('"')[2:]), size)
        return decode(bits.copy(), type_.dtype).reshape(1, *type_.shape)
    return np.full((1,) * (1 + len(type_.shape)), _number(text, type_.dtype), held(type_.dtype))


def _number(text: str, dtype: str):
    if text in ("true", "false"):
        return text == "true"
    if text.lower().startswith("0x") and is_float(dtype):
        kind = {"float64": np.uint64, "float32": np.uint32, "float16": np.uint16}.get(dtype)
        bits = np.array([int(text, 16)], kind or stored(dtype))
        return decode(bits, dtype)[0] if kind is None else bits.view(dtype)[0]
    return float(text) if is_float(dtype) else int(text)


@operation("ub.poison")
def _poison(op, arguments):
    """A value that nobody looks at: what a branch leaves that never comes back."""
    type_ = op.result_types[-1]
    return np.zeros((1,) * (1 + len(type_.shape)), held(type_.dtype))
