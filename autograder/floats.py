"""Number formats that NumPy lacks: bfloat16 and fp8, held in float32 arrays, rounded as asked.

``stored(dtype)`` is the NumPy dtype of a buffer's bytes, ``held(dtype)`` the one that arrays of
values use in memory. bfloat16 is done by hand because every bf16 operation rounds through here;
fp8 goes through ml_dtypes.
"""

from __future__ import annotations

import ml_dtypes
import numpy as np

ITEMSIZE = {
    "float64": 8,
    "float32": 4,
    "float16": 2,
    "bfloat16": 2,
    "float8_e4m3fn": 1,
    "float8_e5m2": 1,
    "int64": 8,
    "int32": 4,
    "int16": 2,
    "int8": 1,
    "uint64": 8,
    "uint32": 4,
    "uint16": 2,
    "uint8": 1,
    "bool": 1,
}
_FP8 = {"float8_e4m3fn": ml_dtypes.float8_e4m3fn, "float8_e5m2": ml_dtypes.float8_e5m2}

# Unit roundoff (half the spacing at 1): |fl(x) - x| <= unit * |x| for normal numbers.
UNIT = {
    "float64": 2.0**-53,
    "float32": 2.0**-24,
    "float16": 2.0**-11,
    "bfloat16": 2.0**-8,
    "float8_e4m3fn": 2.0**-4,
    "float8_e5m2": 2.0**-3,
}
# Half the spacing of the subnormals: the absolute error that rounding near zero may add.
TINY = {
    "float64": 2.0**-1075,
    "float32": 2.0**-150,
    "float16": 2.0**-25,
    "bfloat16": 2.0**-134,
    "float8_e4m3fn": 2.0**-10,
    "float8_e5m2": 2.0**-17,
}

LARGEST = {
    "float64": float(np.finfo(np.float64).max),
    "float32": float(np.finfo(np.float32).max),
    "float16": 65504.0,
    "bfloat16": float(ml_dtypes.finfo(ml_dtypes.bfloat16).max),
    "float8_e4m3fn": 448.0,
    "float8_e5m2": 57344.0,
}


def is_float(dtype: str) -> bool:
    return dtype.startswith(("float", "bfloat"))


def held(dtype: str) -> np.dtype:
    """NumPy dtype in which values of ``dtype`` are computed."""
    if dtype == "bfloat16" or dtype in _FP8:
        return np.dtype(np.float32)
    return np.dtype(dtype)


def stored(dtype: str) -> np.dtype:
    """NumPy dtype of the bytes of ``dtype`` in a buffer."""
    if dtype == "bfloat16":
        return np.dtype(np.uint16)
    if dtype in _FP8:
        return np.dtype(np.uint8)
    return np.dtype(dtype)


def round_bfloat16(values: np.ndarray) -> np.ndarray:
    """float32 → nearest bfloat16 (ties to even), held in float32; NaN stays NaN."""
    x = np.asarray(values, np.float32, order="C")  # keeps a single number a single number
    bits = x.view(np.uint32)
    rounded = (bits + (np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1)))) & np.uint32(
        0xFFFF0000
    )
    out = rounded.view(np.float32)
    nan = np.isnan(x)
    return np.where(nan, np.float32(np.nan), out) if nan.any() else out


def rounded(values: np.ndarray, dtype: str) -> np.ndarray:
    """``values`` cast to ``dtype`` with round to nearest even, in ``held(dtype)``."""
    if dtype == "bfloat16":
        return round_bfloat16(values)
    if dtype in _FP8:
        return np.asarray(values, np.float32).astype(_FP8[dtype]).astype(np.float32)
    return np.asarray(values).astype(held(dtype), copy=False)


def cut(values: np.ndarray, dtype: str) -> np.ndarray:
    """``values`` cast to ``dtype`` with rounding towards zero, in ``held(dtype)``. What lies beyond
    the largest number of the type becomes that number; infinities and NaN stay."""
    values = np.asarray(values)
    most = LARGEST[dtype]
    inside = np.clip(values, -most, most)
    nearest = rounded(inside, dtype)
    over = np.abs(nearest.astype(np.float64)) > np.abs(inside.astype(np.float64))
    if over.any():  # the next number towards zero has the bit pattern one below
        below = encode(nearest, dtype)
        below = below.view(f"u{below.itemsize}") - over.astype(f"u{below.itemsize}")
        nearest = decode(below.view(stored(dtype)), dtype)
    return np.where(np.isinf(values), rounded(values, dtype), nearest)


def round_tf32(values: np.ndarray, nearest: bool = True) -> np.ndarray:
    """float32 → TF32 (10 bits of fraction), held in float32: to nearest with ties away from zero,
    as PTX's cvt.rna.tf32 does, or cut off as the tensor cores do with numbers as they come."""
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
    half = np.uint32(0x1000 if nearest else 0)
    result = ((bits + half) & np.uint32(0xFFFFE000)).view(np.float32)
    return np.where(np.isfinite(values), result, values)


def encode(values: np.ndarray, dtype: str) -> np.ndarray:
    """Held values → stored bit patterns."""
    if dtype == "bfloat16":
        return (round_bfloat16(values).view(np.uint32) >> np.uint32(16)).astype(np.uint16)
    if dtype in _FP8:
        return np.asarray(values, np.float32).astype(_FP8[dtype]).view(np.uint8)
    return np.asarray(values).astype(stored(dtype), copy=False)


def decode(bits: np.ndarray, dtype: str) -> np.ndarray:
    """Stored bit patterns → held values."""
    if dtype == "bfloat16":
        return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)
    if dtype in _FP8:
        return np.ascontiguousarray(bits).view(_FP8[dtype]).astype(np.float32)
    return bits
