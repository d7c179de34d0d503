"""The element-wise operations, group by group: see `operations.Entry`.

References take arrays that are wider than the type (float64 for float32, long double for float64)
or Python's integers in object arrays, and are NumPy's, torch's or written from the definition.
"""

from __future__ import annotations

import numpy as np
import torch
import triton.language as tl

from tests.kernels.operations import OPERATORS, Entry, ld

O = OPERATORS
POSITIVE = (1e-3, 1e3)
UNIT = (-1.0, 1.0)
TURNS = (-8.0, 8.0)


def _torch(function):
    def want(*xs):
        made = function(*(torch.from_numpy(np.asarray(x, np.float64)) for x in xs))
        return made.numpy().astype(xs[-1].dtype)

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
    Entry("erf", tl.erf, _torch(torch.erf), (UNIT,), cpu=2, card=4),
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
UMULHI = (Entry("umulhi", tl.umulhi, None, ("any", "any")),)
ONE_INTEGER = (
    Entry("-x", O["negative"], lambda a: -a),
    Entry("~x", O["invert"], lambda a: ~a),
    Entry("abs", tl.abs, abs),
)

# ---------------------------------------------------------------- libdevice, by operand and result

S = torch.special


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
    Entry("cospi", ld.cospi, lambda x: np.cos(np.pi * x), (UNIT,), 4, 3, slack=1e-15),
    Entry("cyl_bessel_i0", ld.cyl_bessel_i0, _torch(S.i0), (TURNS,), 8, 8),
    Entry("cyl_bessel_i1", ld.cyl_bessel_i1, _torch(S.i1), (TURNS,), 8, 8),
    Entry("erf", ld.erf, _torch(torch.erf), (TURNS,), 4, 4),
    Entry("erfc", ld.erfc, _torch(torch.erfc), ((-4.0, 4.0),), 8, 6),
    Entry("erfcinv", ld.erfcinv, lambda x: _torch(torch.erfinv)(1 - x), ((0.1, 1.9),), 32, 8),
    Entry("erfcx", ld.erfcx, _torch(S.erfcx), ((-2.0, 20.0),), 64, 8),
    Entry("erfinv", ld.erfinv, _torch(torch.erfinv), ((-0.99, 0.99),), 16, 6),
    Entry("exp", ld.exp, np.exp, (TURNS,), 4, 3),
    Entry("exp10", ld.exp10, lambda x: np.power(x.dtype.type(10), x), (TURNS,), 4, 3),
    Entry("exp2", ld.exp2, np.exp2, (TURNS,), 4, 3),
    Entry("expm1", ld.expm1, np.expm1, (TURNS,), 4, 3),
    Entry("abs", ld.abs, np.abs),
    Entry("floor", ld.floor, np.floor),
    Entry("j0", ld.j0, _torch(S.bessel_j0), ((0.0, 2.0),), 16, 9),
    Entry("j1", ld.j1, _torch(S.bessel_j1), ((0.1, 2.0),), 16, 9),
    Entry("lgamma", ld.lgamma, _torch(torch.lgamma), ((3.0, 60.0),), 8, 7),
    Entry("log", ld.log, np.log, (POSITIVE,), 4, 3),
    Entry("log10", ld.log10, np.log10, (POSITIVE,), 4, 3),
    Entry("log1p", ld.log1p, np.log1p, (POSITIVE,), 4, 3),
    Entry("log2", ld.log2, np.log2, (POSITIVE,), 4, 3),
    Entry("logb", ld.logb, lambda x: np.frexp(x)[1] - 1, (POSITIVE,)),
    Entry("nearbyint", ld.nearbyint, np.rint),
    Entry("normcdf", ld.normcdf, _torch(S.ndtr), ((-4.0, 4.0),), 8, 6),
    Entry("normcdfinv", ld.normcdfinv, _torch(S.ndtri), ((0.05, 0.45),), 8, 9),
    Entry("rcbrt", ld.rcbrt, lambda x: 1 / np.cbrt(x), (POSITIVE,), 4, 2),
    Entry("rcp_rn", ld.rcp_rn, lambda x: 1 / x, (POSITIVE,)),
    Entry("rint", ld.rint, np.rint),
    Entry("round", ld.round, _away),
    Entry("rsqrt", ld.rsqrt, lambda x: 1 / np.sqrt(x), (POSITIVE,), 1, 3),
    Entry("sin", ld.sin, np.sin, (TURNS,), 4, 4),
    Entry("sinh", ld.sinh, np.sinh, (TURNS,), 4, 4),
    Entry("sinpi", ld.sinpi, lambda x: np.sin(np.pi * x), (UNIT,), 4, 3, slack=1e-15),
    Entry("sqrt", ld.sqrt, np.sqrt, (POSITIVE,), card=1),
    Entry("sqrt_rn", ld.sqrt_rn, np.sqrt, (POSITIVE,)),
    Entry("tan", ld.tan, np.tan, (UNIT,), 4, 5),
    Entry("tanh", ld.tanh, np.tanh, (TURNS,), 4, 3),
    Entry(
        "tgamma",
        ld.tgamma,
        lambda x: _torch(lambda t: torch.exp(torch.lgamma(t)))(x),
        ((1.5, 8.0),),
        64,
        12,
    ),
    Entry("trunc", ld.trunc, np.trunc),
    Entry("y0", ld.y0, _torch(S.bessel_y0), ((1.5, 3.0),), 16, 10),
    Entry("y1", ld.y1, _torch(S.bessel_y1), ((0.2, 1.5),), 16, 10),
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
        lambda a, b: a - b * np.rint(a / b),
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
