"""libdevice's functions of integers, bits and roundings in a direction, with exact references."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
from triton.language.extra.cuda import libdevice as ld

from tests.kernels.operations import Entry

FULL32, FULL64 = (1 << 32) - 1, (1 << 64) - 1


def _each(function, bits=None, signed=True):
    """A function of Python's integers for object arrays; ``bits``: take operands as unsigned."""

    def want(*xs):
        if bits:
            xs = [np.array([int(v) & ((1 << bits) - 1) for v in x], object) for x in xs]
        return np.array([function(*map(int, row)) for row in zip(*xs, strict=True)], object)

    return want


def _low24(x):
    x &= 0xFFFFFF
    return x - (1 << 24) if x >> 23 else x


def _permuted(a, b, s):
    pool = (a | b << 32).to_bytes(8, "little")
    return int.from_bytes(bytes(pool[s >> 4 * k & 7] for k in range(4)), "little")


def _reversed(bits):
    return lambda x: int(f"{x:0{bits}b}"[::-1], 2)


INT32 = (
    Entry("clz", ld.clz, _each(lambda x: 32 - x.bit_length(), 32)),
    Entry("popc", ld.popc, _each(lambda x: x.bit_count(), 32)),
    Entry("ffs", ld.ffs, _each(lambda x: (x & -x).bit_length(), 32)),
    Entry("brev", ld.brev, _each(_reversed(32), 32)),
    Entry("abs", ld.abs, _each(abs)),
)
INT64 = (
    Entry("brev", ld.brev, _each(_reversed(64), 64)),
    Entry("clz", ld.clz, _each(lambda x: 64 - x.bit_length(), 64)),
    Entry("popc", ld.popc, _each(lambda x: x.bit_count(), 64)),
    Entry("ffs", ld.ffs, _each(lambda x: (x & -x).bit_length(), 64)),
    Entry("abs", ld.abs, _each(abs)),
)
TWO_INT32 = (
    Entry("mulhi", ld.mulhi, _each(lambda a, b: a * b >> 32), ("any", "any")),
    Entry("mul24", ld.mul24, _each(lambda a, b: _low24(a) * _low24(b)), ("any", "any")),
    Entry("hadd", ld.hadd, _each(lambda a, b: a + b >> 1), ("any", "any")),
    Entry("rhadd", ld.rhadd, _each(lambda a, b: a + b + 1 >> 1), ("any", "any")),
)
TWO_UINT32 = (
    Entry("mulhi", ld.mulhi, _each(lambda a, b: a * b >> 32), ("any", "any")),
    Entry("mul24", ld.mul24, _each(lambda a, b: (a & 0xFFFFFF) * (b & 0xFFFFFF)), ("any", "any")),
    Entry("hadd", ld.hadd, _each(lambda a, b: a + b >> 1), ("any", "any")),
    Entry("rhadd", ld.rhadd, _each(lambda a, b: a + b + 1 >> 1), ("any", "any")),
)
TWO_INT64 = (Entry("mulhi", ld.mulhi, _each(lambda a, b: a * b >> 64), ("any", "any")),)
THREE_INT32 = (Entry("byte_perm", ld.byte_perm, _each(_permuted, 32), ("any", "any", "any")),)
THREE_UINT32 = (Entry("sad", ld.sad, _each(lambda a, b, c: abs(a - b) + c), ("any", "any", "any")),)


# ---------------------------------------------------------------- roundings in a direction


def directed(value: Fraction, direction: str, dtype) -> float:
    """The number of ``dtype`` next to ``value`` on the side that ``direction`` names."""
    near = dtype(float(value))
    while Fraction(float(near)) > value:
        near = np.nextafter(near, dtype(-np.inf))
    while Fraction(float(up := np.nextafter(near, dtype(np.inf)))) <= value:
        near = up
    exact = Fraction(float(near)) == value
    if direction == "rd" or exact or direction == "rz" and value > 0:
        return near
    return up


def _exact(function, direction):
    def want(*xs):
        dtype = np.float64 if xs[0].dtype == np.longdouble else np.float32
        rows = zip(*([Fraction(float(v)) for v in x] for x in xs), strict=True)
        return np.array([directed(function(*row), direction, dtype) for row in rows], xs[0].dtype)

    return want


def _root(value: Fraction) -> Fraction:
    """A rational on the same side of every float as the square root: 200 bits of it."""
    scaled = value * 4**200
    whole = math.isqrt(math.floor(scaled))
    exact = Fraction(whole * whole) == scaled
    return Fraction(2 * whole + (0 if exact else 1), 2**201)


_SIDES = ("rd", "ru", "rz")
_NEAR, _FAR = (-8.0, 8.0), (0.1, 9.0)
DIRECTED = {
    1: tuple(
        Entry(f"{name}_{d}", getattr(ld, f"{name}_{d}"), _exact(function, d), (_FAR,))
        for d in _SIDES
        for name, function in (("rcp", lambda a: 1 / a), ("sqrt", _root))
    ),
    2: tuple(
        Entry(f"{name}_{d}", getattr(ld, f"{name}_{d}"), _exact(function, d), (_NEAR, _FAR))
        for d in _SIDES
        for name, function in (
            ("add", lambda a, b: a + b),
            ("sub", lambda a, b: a - b),
            ("mul", lambda a, b: a * b),
            ("div", lambda a, b: a / b),
        )
    ),
    3: tuple(
        Entry(
            f"fma_{d}", getattr(ld, f"fma_{d}"), _exact(lambda a, b, c: a * b + c, d), (_NEAR,) * 3
        )
        for d in _SIDES
    ),
}
_WHOLE = {"rn": np.rint, "rz": np.trunc, "rd": np.floor, "ru": np.ceil}
_RANGE = {
    "int": (-(2**31), 2**31 - 1),
    "uint": (0, 2**32 - 1),
    "ll": (-(2**63), 2**63 - 1),
    "ull": (0, 2**64 - 1),
}


def _to_integer(name, whole):
    low, high = _RANGE[name]

    def want(x):
        return np.array([max(low, min(high, int(v))) for v in whole(x)], object)

    return want


def to_integer(source: str, target: str) -> tuple[Entry, ...]:
    """float2int_rn and its kind, for numbers inside and outside the target's range."""
    reach = float(_RANGE[target][1])
    return tuple(
        Entry(
            f"{source}2{target}_{d}",
            getattr(ld, f"{source}2{target}_{d}"),
            _to_integer(target, whole),
            (domain,),
        )
        for d, whole in _WHOLE.items()
        for domain in ((-9.0, 9.0), (-2 * reach, 2 * reach))
    )


def to_float(source: str, target: str) -> tuple[Entry, ...]:
    """int2float_rn and its kind."""
    dtype = {"float": np.float32, "double": np.float64}[target]
    made = []
    for d in ("rn", *_SIDES):
        function = getattr(ld, f"{source}2{target}_{d}", None)
        if function is None:
            continue

        def want(x, d=d):
            if d == "rn":
                return np.array([dtype(int(v)) for v in x])
            return np.array([directed(Fraction(int(v)), d, dtype) for v in x])

        made.append(Entry(f"{source}2{target}_{d}", function, want))
    return tuple(made)


CLASSES = (
    Entry("isnan", ld.isnan, np.isnan),
    Entry("isinf", ld.isinf, np.isinf),
    Entry("signbit", ld.signbit, np.signbit),
    Entry("llrint", ld.llrint, lambda x: np.rint(x), ((-9.0, 9.0),)),
    Entry("llround", ld.llround, lambda x: np.trunc(x + np.copysign(0.5, x)), ((-9.0, 9.0),)),
    Entry("ilogb", ld.ilogb, lambda x: np.frexp(x)[1] - 1, ((0.001, 900.0),)),
)


def _view(to):
    return lambda x: np.asarray(x, dtype=x.dtype).astype(_SIZED[to]).view(to)


_SIZED = {"int32": np.float32, "int64": np.float64}


def _from_bits(size, to):
    def want(x):
        return np.array([int(v) for v in x], size).view(to).astype(np.float64)

    return want


def _narrowed(direction):
    def want(x):
        if direction == "rn":
            return x.astype(np.float32)
        return np.array([directed(Fraction(float(v)), direction, np.float32) for v in x])

    return want


def _glued(high, low):
    bits = [(int(h) & FULL32) << 32 | int(lo) & FULL32 for h, lo in zip(high, low, strict=True)]
    return np.array(bits, np.uint64).view(np.float64).astype(np.longdouble)


def _scaled(x, n):
    return np.ldexp(x, np.asarray(n, np.int64).astype(np.int32))


FLOAT32_BITS = (
    Entry("float_as_int", ld.float_as_int, _view("int32")),
    Entry("finitef", ld.finitef, np.isfinite),
)
FLOAT64_BITS = (
    Entry("double_as_longlong", ld.double_as_longlong, _view("int64")),
    Entry("double2hiint", ld.double2hiint, lambda x: _view("int64")(x) >> 32),
    Entry("double2loint", ld.double2loint, lambda x: _view("int64")(x).astype(np.int32)),
    Entry("isfinited", ld.isfinited, np.isfinite),
)
# Numbers small enough that no pattern of bits is a NaN, whose payload nobody promises.
_PLAIN = (("int", 1, 2**31 - 2**24),)


def _following(dtype):
    """The next number: by its bits, one up or down, for these have no zero among them."""

    def want(a, b):
        bits = a.astype(dtype).view("i" + dtype[-2:].replace("32", "4").replace("64", "8"))
        away = (b > a) == (a > 0)
        return (bits + np.where(away, 1, -1).astype(bits.dtype)).view(dtype).astype(a.dtype)

    return want


SATURATE = (
    Entry("saturatef", ld.saturatef, lambda x: np.where(x > 0, np.minimum(x, 1), 0)),
    Entry("rsqrt_rn", ld.rsqrt_rn, lambda x: 1 / np.sqrt(x), (_FAR,)),
)
_SCALES = ((-8.0, 8.0), ("int", -20, 20))
SCALED = (
    Entry("ldexp", ld.ldexp, _scaled, _SCALES),
    Entry("scalbn", ld.scalbn, _scaled, _SCALES),
    Entry("powi", ld.pow, lambda x, n: np.power(x, np.asarray(n, np.float64)), _SCALES, 2, 9),
)
ORDERS = (("int", 0, 4), (2.5, 9.0))


def _of_order(function):
    def want(n, x):
        rows = zip(n, x, strict=True)
        return np.array([float(function(int(k), float(v))) for k, v in rows], x.dtype)

    return want


# Near a zero they keep the absolute error of their integral, 1e-15 and 1e-13.
BESSEL = (
    Entry("jn", ld.jn, _of_order(mpmath.besselj), ORDERS, 64, 64, slack=1e-6, double=2**16),
    Entry("yn", ld.yn, _of_order(mpmath.bessely), ORDERS, 64, 64, slack=1e-6, double=2**20),
)
# Intrinsics: an absolute error near the zero of a logarithm, a relative one of the argument's size.
FAST = (
    Entry("fast_expf", ld.fast_expf, np.exp, (_NEAR,), 4, 2 + 9),
    Entry("fast_exp10f", ld.fast_exp10f, lambda x: np.power(10.0, x), (_NEAR,), 4, 2 + 24),
    Entry("fast_logf", ld.fast_logf, np.log, (_FAR,), 4, 3, slack=2**-21.4),
    Entry("fast_log2f", ld.fast_log2f, np.log2, (_FAR,), 4, 2, slack=2**-22),
    Entry("fast_log10f", ld.fast_log10f, np.log10, (_FAR,), 4, 3, slack=2**-24),
    Entry("fast_sinf", ld.fast_sinf, np.sin, ((-3.0, 3.0),), 4, 4, slack=2**-21.4),
    Entry("fast_cosf", ld.fast_cosf, np.cos, ((-3.0, 3.0),), 4, 4, slack=2**-21.1),
    Entry("fast_tanf", ld.fast_tanf, np.tan, ((-1.0, 1.0),), 4, 32, slack=2**-20),
)
# powf is 2^(y·log2 x): the error of the logarithm times y, at most 2^-22·4·4, and of exp2.
FAST_TWO = (
    Entry("fast_dividef", ld.fast_dividef, np.divide, (_NEAR, _FAR), 0.5, 2),
    Entry("fast_powf", ld.fast_powf, np.power, ((0.1, 9.0), (-4.0, 4.0)), 4, 64),
)

GROUPS = (
    (FLOAT32_BITS, ("float32",), "int32"),
    ((Entry("float_as_uint", ld.float_as_uint, _view("int32")),), ("float32",), "uint32"),
    (FLOAT64_BITS[:1], ("float64",), "int64"),
    (FLOAT64_BITS[1:], ("float64",), "int32"),
    (
        (Entry("int_as_float", ld.int_as_float, _from_bits(np.int32, np.float32), _PLAIN),),
        ("int32",),
        "float32",
    ),
    (
        (Entry("uint_as_float", ld.uint_as_float, _from_bits(np.uint32, np.float32), _PLAIN),),
        ("uint32",),
        "float32",
    ),
    (
        (
            Entry(
                "longlong_as_double",
                ld.longlong_as_double,
                _from_bits(np.int64, np.float64),
                (("int", 1, 2**63 - 2**53),),
            ),
        ),
        ("int64",),
        "float64",
    ),
    (
        (Entry("hiloint2double", ld.hiloint2double, _glued, (*_PLAIN, "any")),),
        ("int32", "int32"),
        "float64",
    ),
    *(
        (
            (Entry(f"double2float_{d}", getattr(ld, f"double2float_{d}"), _narrowed(d), (_NEAR,)),),
            ("float64",),
            "float32",
        )
        for d in ("rn", *_SIDES)
    ),
    (SATURATE, ("float32",), "float32"),
    *((SCALED, (t, "int32"), t) for t in ("float32", "float64")),
    *((BESSEL, ("int32", t), t) for t in ("float32", "float64")),
    (FAST, ("float32",), "float32"),
    (FAST_TWO, ("float32", "float32"), "float32"),
    *(
        ((Entry("nextafter", ld.nextafter, _following(t), (_NEAR, _NEAR)),), (t, t), t)
        for t in ("float32", "float64")
    ),
    (INT32, ("int32",), "int32"),
    (INT64[:1] + INT64[-1:], ("int64",), "int64"),
    (INT64[1:-1], ("int64",), "int32"),
    (TWO_INT32, ("int32",) * 2, "int32"),
    (TWO_UINT32, ("uint32",) * 2, "uint32"),
    (TWO_INT64, ("int64",) * 2, "int64"),
    (THREE_INT32, ("int32",) * 3, "int32"),
    (THREE_UINT32, ("uint32",) * 3, "uint32"),
)
TARGETS = {"int": "int32", "uint": "uint32", "ll": "int64", "ull": "uint64"}
