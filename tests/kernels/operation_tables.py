"""The element-wise operations, group by group: see `operations.Entry`.

References take arrays that are wider than the type (float64 for float32, long double for float64)
or Python's integers in object arrays, and are NumPy's, torch's or written from the definition.
"""

from __future__ import annotations

import mpmath
import numpy as np
import triton.language as tl
from triton.language.extra.cuda import libdevice as ld

from tests.kernels import operation_bits as bits
from tests.kernels.operations import OPERATORS, Entry

O = OPERATORS
POSITIVE = (1e-3, 1e3)
UNIT = (-1.0, 1.0)
TURNS = (-8.0, 8.0)


def _exact(function):
    """A function of mpmath's numbers for arrays, to more digits than any type here has."""

    def one(*numbers):
        value = function(*(mpmath.mpf(float(n)) for n in numbers))
        high = float(value)
        return np.longdouble(high) + np.longdouble(float(value - high))

    def want(*xs):
        with mpmath.workdps(40):
            return np.frompyfunc(one, len(xs), 1)(*xs).astype(xs[-1].dtype)

    return want


def _away(x):
    return np.trunc(x) + np.where(np.abs(x - np.trunc(x)) >= 0.5, np.sign(x), 0)


ARITHMETIC = (
    Entry("x + y", O["add"], np.add, ("any", "any")),
    Entry("x - y", O["sub"], np.subtract, ("any", "any")),
    Entry("x * y", O["mul"], np.multiply, ("any", "any")),
    Entry("x / y", O["divide"], np.divide, (TURNS, POSITIVE), card=2),
    Entry("x % y", O["mod"], np.fmod, (TURNS, (0.5, 3.0)), card=4),
    Entry("div_rn", tl.div_rn, np.divide, (TURNS, TURNS), only=("float32",)),
    Entry("fdiv", tl.fdiv, np.divide, (TURNS, POSITIVE), card=2, only=("float32", "float64")),
    Entry("maximum", tl.maximum, np.fmax, ("any", "any")),
    Entry("minimum", tl.minimum, np.fmin, ("any", "any")),
    Entry("maximum, NaN stays", O["largest_nan"], np.maximum, ("any", "any")),
    Entry("minimum, NaN stays", O["smallest_nan"], np.minimum, ("any", "any")),
)
COMPARISONS = tuple(
    Entry(f"x {sign} y", O[name], function, ("any", "any"))
    for sign, name, function in (
        ("<", "less", np.less),
        ("<=", "less_equal", np.less_equal),
        (">", "greater", np.greater),
        (">=", "greater_equal", np.greater_equal),
        ("==", "equal", np.equal),
        ("!=", "not_equal", np.not_equal),
    )
)
THREE = (
    Entry("fma", tl.fma, lambda a, b, c: a * b + c, ("any", "any", "any"), cpu=0.51),
    Entry("clamp", O["clamp"], lambda x, a, b: np.clip(x, *_sorted(a, b)), (TURNS, TURNS, TURNS)),
    Entry(
        "clamp, NaN stays",
        O["clamp_nan"],
        lambda x, a, b: np.clip(x, *_sorted(a, b)),
        ("any", TURNS, TURNS),
    ),
    Entry("where", O["chosen"], lambda c, a, b: np.where(c > 0, a, b), ("any", "any", "any")),
)


def _sorted(a, b):
    return np.minimum(a, b), np.maximum(a, b)


# tl.exp and the like are ex2.approx of a scaled argument on the card: 2 ulp and the rounding of
# x·log2(e), at most 2^-24·12 here, which is 12·ln 2 ulp of the result.
FUNCTIONS = (
    Entry("exp", tl.exp, np.exp, (TURNS,), cpu=4, card=12),
    Entry("exp2", tl.exp2, np.exp2, (TURNS,), cpu=4, card=4),
    Entry("log", tl.log, np.log, (POSITIVE,), cpu=4, card=3),
    Entry("log2", tl.log2, np.log2, (POSITIVE,), cpu=4, card=3),
    Entry("sin", tl.sin, np.sin, (TURNS,), cpu=4, card=4, slack=2**-21),
    Entry("cos", tl.cos, np.cos, (TURNS,), cpu=4, card=4, slack=2**-21),
    Entry("sqrt", tl.sqrt, np.sqrt, (POSITIVE,), card=2),
    Entry("sqrt_rn", tl.sqrt_rn, np.sqrt, (POSITIVE,), only=("float32",)),
    Entry("rsqrt", tl.rsqrt, lambda x: 1 / np.sqrt(x), (POSITIVE,), cpu=2, card=3),
    Entry("erf", tl.erf, _exact(mpmath.erf), (UNIT,), cpu=2, card=4),
    Entry("floor", tl.floor, np.floor),
    Entry("ceil", tl.ceil, np.ceil),
    Entry("abs", tl.abs, np.abs),
    Entry("-x", O["negative"], np.negative),
    Entry("sigmoid", tl.sigmoid, lambda x: 1 / (1 + np.exp(-x)), (TURNS,), cpu=6, card=12),
    Entry("softmax", O["softmax"], lambda x: _softmax(x), (TURNS,), cpu=12, card=16),
)


def _softmax(x):
    e = np.exp(x - x.max())
    return e / e.sum()


# ---------------------------------------------------------------- integers


def _trunc_divide(a, b):
    return np.array(
        [abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1) for x, y in zip(a, b, strict=True)],
        object,
    )


INTEGERS = (
    Entry("x + y", O["add"], lambda a, b: a + b, ("any", "any")),
    Entry("x - y", O["sub"], lambda a, b: a - b, ("any", "any")),
    Entry("x * y", O["mul"], lambda a, b: a * b, ("any", "any")),
    Entry("x // y", O["floordiv"], _trunc_divide, ("any", ("int", 1, 100))),
    Entry("x % y", O["mod"], lambda a, b: a - _trunc_divide(a, b) * b, ("any", ("int", 1, 100))),
    Entry(
        "cdiv",
        O["cdiv"],
        lambda a, b: _trunc_divide(a + b - 1, b),
        (("int", 0, 27), ("int", 1, 100)),
    ),
    Entry("x & y", O["bit_and"], lambda a, b: a & b, ("any", "any")),
    Entry("x | y", O["bit_or"], lambda a, b: a | b, ("any", "any")),
    Entry("x ^ y", O["bit_xor"], lambda a, b: a ^ b, ("any", "any")),
    Entry("x << y", O["shift_left"], lambda a, b: a << b, ("any", ("int", 0, 7))),
    Entry("x >> y", O["shift_right"], lambda a, b: a >> b, ("any", ("int", 0, 7))),
    Entry("maximum", tl.maximum, np.maximum, ("any", "any")),
    Entry("minimum", tl.minimum, np.minimum, ("any", "any")),
    *COMPARISONS,
)


def _upper_half(a, b):
    """Of the product of unsigned numbers; how wide they are is seen from the operands' size."""
    size = 64 if max(abs(int(v)) for v in (*a, *b)) >> 32 else 32
    full = (1 << size) - 1
    rows = zip(a, b, strict=True)
    return np.array([(int(x) & full) * (int(y) & full) >> size for x, y in rows], object)


UMULHI = (Entry("umulhi", tl.umulhi, _upper_half, ("any", "any")),)
ONE_INTEGER = (
    Entry("-x", O["negative"], lambda a: -a),
    Entry("~x", O["invert"], lambda a: ~a),
    Entry("abs", tl.abs, abs),
)

# ---------------------------------------------------------------- libdevice, by operand and result

# Near their zeros the Bessel functions keep the absolute, not the relative error of their sum. In
# float64 y0 and y1 come from a quadrature that is good to 1e-13; normcdf multiplies the rounding
# of x/√2 by its condition, x².
LIB_ONE = (
    Entry("acos", ld.acos, np.arccos, (UNIT,), 4, 3),
    Entry("acosh", ld.acosh, np.arccosh, ((1.0, 100.0),), 4, 5),
    Entry("asin", ld.asin, np.arcsin, (UNIT,), 4, 3),
    Entry("asinh", ld.asinh, np.arcsinh, (TURNS,), 4, 4),
    Entry("atan", ld.atan, np.arctan, (TURNS,), 4, 3),
    Entry("atanh", ld.atanh, np.arctanh, ((-0.9, 0.9),), 4, 4),
    Entry("cbrt", ld.cbrt, np.cbrt, (TURNS,), 4, 2),
    Entry("ceil", ld.ceil, np.ceil),
    Entry("cos", ld.cos, np.cos, (TURNS,), 4, 4),
    Entry("cosh", ld.cosh, np.cosh, (TURNS,), 4, 3),
    Entry("cospi", ld.cospi, _exact(mpmath.cospi), (UNIT,), 4, 3, slack=1e-15),
    Entry(
        "cyl_bessel_i0", ld.cyl_bessel_i0, _exact(lambda x: mpmath.besseli(0, x)), (TURNS,), 8, 8
    ),
    Entry(
        "cyl_bessel_i1",
        ld.cyl_bessel_i1,
        _exact(lambda x: mpmath.besseli(1, x)),
        ((1.0, 8.0),),
        8,
        8,
    ),
    Entry("erf", ld.erf, _exact(mpmath.erf), (TURNS,), 4, 4),
    Entry("erfc", ld.erfc, _exact(mpmath.erfc), ((-4.0, 4.0),), 8, 6),
    Entry("erfcinv", ld.erfcinv, _exact(lambda x: mpmath.erfinv(1 - x)), ((0.1, 1.9),), 32, 8),
    Entry(
        "erfcx",
        ld.erfcx,
        _exact(lambda x: mpmath.exp(x * x) * mpmath.erfc(x)),
        ((-2.0, 20.0),),
        64,
        8,
    ),
    Entry("erfinv", ld.erfinv, _exact(mpmath.erfinv), ((-0.99, 0.99),), 16, 6),
    Entry("exp", ld.exp, np.exp, (TURNS,), 4, 3),
    Entry("exp10", ld.exp10, lambda x: np.power(x.dtype.type(10), x), (TURNS,), 4, 3),
    Entry("exp2", ld.exp2, np.exp2, (TURNS,), 4, 3),
    Entry("expm1", ld.expm1, np.expm1, (TURNS,), 4, 3),
    Entry("abs", ld.abs, np.abs),
    Entry("floor", ld.floor, np.floor),
    Entry("j0", ld.j0, _exact(mpmath.j0), ((0.0, 2.0),), 16, 9),
    Entry("j1", ld.j1, _exact(mpmath.j1), ((0.5, 2.0),), 16, 9),
    Entry("lgamma", ld.lgamma, _exact(mpmath.loggamma), ((3.0, 60.0),), 8, 7),
    Entry("log", ld.log, np.log, (POSITIVE,), 4, 3),
    Entry("log10", ld.log10, np.log10, (POSITIVE,), 4, 3),
    Entry("log1p", ld.log1p, np.log1p, (POSITIVE,), 4, 3),
    Entry("log2", ld.log2, np.log2, (POSITIVE,), 4, 3),
    Entry("logb", ld.logb, lambda x: np.frexp(x)[1] - 1, (POSITIVE,)),
    Entry("nearbyint", ld.nearbyint, np.rint),
    Entry("normcdf", ld.normcdf, _exact(mpmath.ncdf), ((-4.0, 4.0),), 1, 6, double=32),
    Entry(
        "normcdfinv",
        ld.normcdfinv,
        _exact(lambda p: mpmath.sqrt(2) * mpmath.erfinv(2 * p - 1)),
        ((0.05, 0.45),),
        8,
        9,
    ),
    Entry("rcbrt", ld.rcbrt, lambda x: 1 / np.cbrt(x), (POSITIVE,), 4, 2),
    Entry("rcp_rn", ld.rcp_rn, lambda x: 1 / x, (POSITIVE,)),
    Entry("rint", ld.rint, np.rint),
    Entry("round", ld.round, _away),
    Entry("rsqrt", ld.rsqrt, lambda x: 1 / np.sqrt(x), (POSITIVE,), 1, 3, double=2),
    Entry("sin", ld.sin, np.sin, (TURNS,), 4, 4),
    Entry("sinh", ld.sinh, np.sinh, (TURNS,), 4, 4),
    Entry("sinpi", ld.sinpi, _exact(mpmath.sinpi), (UNIT,), 4, 3, slack=1e-15),
    Entry("sqrt", ld.sqrt, np.sqrt, (POSITIVE,), card=1),
    Entry("sqrt_rn", ld.sqrt_rn, np.sqrt, (POSITIVE,)),
    Entry("tan", ld.tan, np.tan, (UNIT,), 4, 5),
    Entry("tanh", ld.tanh, np.tanh, (TURNS,), 4, 3),
    Entry(
        "tgamma",
        ld.tgamma,
        _exact(mpmath.gamma),
        ((1.5, 8.0),),
        64,
        12,
    ),
    Entry("trunc", ld.trunc, np.trunc),
    Entry("y0", ld.y0, _exact(lambda x: mpmath.bessely(0, x)), ((1.5, 3.0),), 1, 10, double=2048),
    Entry("y1", ld.y1, _exact(lambda x: mpmath.bessely(1, x)), ((0.2, 1.5),), 1, 10, double=2048),
)


LIB_TWO = (
    Entry("add_rn", ld.add_rn, np.add, ("any", "any")),
    Entry("atan2", ld.atan2, np.arctan2, (TURNS, TURNS), 4, 4),
    Entry("copysign", ld.copysign, np.copysign, ("any", TURNS)),
    Entry("div_rn", ld.div_rn, np.divide, ("any", "any")),
    Entry("fdim", ld.fdim, lambda a, b: np.where(a > b, a - b, 0), (TURNS, TURNS)),
    Entry("fmod", ld.fmod, np.fmod, (TURNS, (0.5, 3.0))),
    Entry("hypot", ld.hypot, np.hypot, (TURNS, TURNS), 2, 4),
    Entry("mul_rn", ld.mul_rn, np.multiply, ("any", "any")),
    Entry("pow", ld.pow, np.power, ((0.1, 8.0), (-4.0, 4.0)), 4, 9),
    Entry(
        "remainder",
        ld.remainder,
        _exact(lambda a, b: a - b * mpmath.nint(a / b)),
        (TURNS, (0.5, 3.0)),
        slack=1e-15,
    ),
    Entry("rhypot", ld.rhypot, lambda a, b: 1 / np.hypot(a, b), (TURNS, POSITIVE), 2, 3),
    Entry("sub_rn", ld.sub_rn, np.subtract, ("any", "any")),
)
LIB_THREE = (
    Entry("fma", ld.fma, lambda a, b, c: a * b + c, ("any", "any", "any"), 0.51),
    Entry("fma_rn", ld.fma_rn, lambda a, b, c: a * b + c, ("any", "any", "any"), 0.51),
    Entry("norm3d", ld.norm3d, lambda *x: np.sqrt(sum(v * v for v in x)), (TURNS,) * 3, 2, 4),
    Entry("rnorm3d", ld.rnorm3d, lambda *x: 1 / np.sqrt(sum(v * v for v in x)), (TURNS,) * 3, 2, 3),
)
LIB_FOUR = (
    Entry("norm4d", ld.norm4d, lambda *x: np.sqrt(sum(v * v for v in x)), (TURNS,) * 4, 2, 4),
    Entry("rnorm4d", ld.rnorm4d, lambda *x: 1 / np.sqrt(sum(v * v for v in x)), (TURNS,) * 4, 2, 3),
)


# ---------------------------------------------------------------- what runs on which types

SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
FLOATS = ("float64", "float32", "float16", "bfloat16")


def groups():
    """(label, entries, types of the operands, type of the result) of every launch."""
    for t in FLOATS:
        yield f"arithmetic, {t}", ARITHMETIC, (t, t), t
        yield f"comparisons, {t}", COMPARISONS, (t, t), "int32"
        yield f"three operands, {t}", THREE, (t, t, t), t
    for t in SIGNED + UNSIGNED:
        yield f"integers, {t}", INTEGERS, (t, t), t
        yield f"integers, {t}", ONE_INTEGER, (t,), t
    for t in ("int32", "uint32", "int64", "uint64"):
        yield f"umulhi, {t}", UMULHI, (t, t), t
    for t in ("float32", "float64"):
        yield f"functions, {t}", FUNCTIONS, (t,), t
        for count, entries in enumerate((LIB_ONE, LIB_TWO, LIB_THREE, LIB_FOUR), 1):
            yield f"libdevice, {t}", entries, (t,) * count, t
        for count, entries in bits.DIRECTED.items():
            yield f"libdevice, roundings, {t}", entries, (t,) * count, t
        yield f"libdevice, classes, {t}", bits.CLASSES, (t,), "int64"
    for entries, types, result in bits.GROUPS:
        yield f"libdevice, {types[0]}", entries, types, result
    for target, t in bits.TARGETS.items():
        for source, kind in (("float", "float32"), ("double", "float64")):
            yield f"libdevice, {source}2{target}", bits.to_integer(source, target), (kind,), t
            if entries := bits.to_float(target, source):
                yield f"libdevice, {target}2{source}", entries, (t,), kind
