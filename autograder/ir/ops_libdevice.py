"""tl.extra.cuda.libdevice: the functions of CUDA's device library by symbol, less its ``__nv_``.

A name stands for the function of doubles and, with an ``f`` behind it, of floats. What is no single
NumPy function is computed in float64 and rounded once, so it lies nearer to the true value than the
card's own result; the ``fast_`` forms have their exact values here. For what they mean see NVIDIA's
CUDA Math API and libdevice guides.
"""

from __future__ import annotations

import numpy as np

from autograder.floats import rounded
from autograder.ir import special
from autograder.ir.exact import fused, residual, toward, two_product
from autograder.ir.ops_cast import float_to_integer
from autograder.ir.ops_float import MATH
from autograder.ir.ops_int import multiply_high
from autograder.ir.ops_table import operation, unsigned
from autograder.records import CouldNotCheck


def _wide(function):
    """Compute in float64."""
    return lambda *xs: function(*(x.astype(np.float64) if x.dtype.kind == "f" else x for x in xs))


def _round_away(x):
    whole = np.trunc(x)
    return np.where(np.abs(x - whole) >= 0.5, whole + np.copysign(1, x), whole).astype(x.dtype)


def _exponent(x):
    """log2 of the largest power of two that is at most |x|."""
    return np.frexp(x)[1].astype(np.float64) - 1


def _log_b(x):
    plain = np.isfinite(x) & (x != 0)
    return np.where(plain, _exponent(x), np.where(x == 0, -np.inf, np.abs(x)))


def _integer_log_b(x):
    limits = np.iinfo(np.int32)
    rest = np.where(np.isinf(x), limits.max, limits.min)
    return np.where(np.isfinite(x) & (x != 0), _exponent(x), rest).astype(np.int32)


def _scale(x, n):
    return np.ldexp(x, np.clip(n, -5000, 5000).astype(np.int32))


def _norm(*xs):
    """Square root of a sum of squares, without overflow on the way."""
    total = np.hypot(xs[0], xs[1])
    for x in xs[2:]:
        total = np.hypot(total, x)
    return total


_FLOATS = {
    **{name: function for name, function in MATH.items() if name not in ("absf", "roundeven")},
    "fabs": np.abs,
    "pow": np.power,
    "powi": lambda x, n: np.power(x.astype(np.float64), n),
    "rint": np.rint,
    "nearbyint": np.rint,
    "round": _round_away,
    "fmod": np.fmod,
    "fmax": np.fmax,
    "fmin": np.fmin,
    "fma": fused,
    "exp10": _wide(lambda x: np.power(10.0, x)),
    "hypot": _wide(np.hypot),
    "rhypot": _wide(lambda *xs: 1 / _norm(*xs)),
    "norm3d": _wide(_norm),
    "norm4d": _wide(_norm),
    "rnorm3d": _wide(lambda *xs: 1 / _norm(*xs)),
    "rnorm4d": _wide(lambda *xs: 1 / _norm(*xs)),
    "rsqrt": _wide(lambda x: 1 / np.sqrt(x)),
    "rcbrt": _wide(lambda x: 1 / np.cbrt(x)),
    "fdim": lambda a, b: np.where(a <= b, a.dtype.type(0), a - b),
    "remainder": _wide(special.remainder),
    "nextafter": np.nextafter,
    "ldexp": _scale,
    "scalbn": _scale,
    "logb": _log_b,
    "ilogb": _integer_log_b,
    "llrint": lambda x: float_to_integer(x, np.dtype(np.int64), True, np.rint),
    "llround": lambda x: float_to_integer(_round_away(x), np.dtype(np.int64), True),
    "sinpi": _wide(special.sine_pi),
    "cospi": _wide(special.cosine_pi),
    "erfc": _wide(special.erfc),
    "erfcx": _wide(special.erfcx),
    "erfinv": _wide(special.erf_inverse),
    "erfcinv": _wide(special.erfc_inverse),
    "normcdf": _wide(lambda x: special.erfc(-x / np.sqrt(2)) / 2),
    "normcdfinv": _wide(special.normal_quantile),
    "tgamma": _wide(special.gamma),
    "lgamma": _wide(special.log_gamma),
    "j0": _wide(lambda x: special.bessel_j(np.float64(0), x)),
    "j1": _wide(lambda x: special.bessel_j(np.float64(1), x)),
    "jn": _wide(special.bessel_j),
    "y0": _wide(lambda x: special.bessel_y(np.float64(0), x)),
    "y1": _wide(lambda x: special.bessel_y(np.float64(1), x)),
    "yn": _wide(special.bessel_y),
    "cyl_bessel_i0": _wide(lambda x: special.bessel_i(np.float64(0), x)),
    "cyl_bessel_i1": _wide(lambda x: special.bessel_i(np.float64(1), x)),
}

# ---------------------------------------------------------------- rounding in a direction


def _double(x):
    return x.astype(np.float64)


def _rounding(nearest, error):
    """A function of (direction, operands): the nearest result, then a step where it has to be."""

    def apply(direction, *xs):
        result = nearest(*xs).astype(xs[0].dtype, copy=False)
        if direction == "rn":
            return result
        wide = [_double(x) for x in xs]
        return toward(
            direction, result, np.where(np.isfinite(result), error(_double(result), *wide), 0)
        )

    return apply


def _of_quotient(r, a, b):
    high, low = two_product(r, b)
    return residual(a, -high, -low) * np.sign(b)


def _of_root(r, a):
    high, low = two_product(r, r)
    return residual(a, -high, -low)


def _of_product(r, a, b):
    high, low = two_product(a, b)
    return residual(high, low, -r)


def _of_fused(r, a, b, c):
    high, low = two_product(a, b)
    return residual(high, low, c, -r)


_DIRECTED = {
    "add": _rounding(np.add, lambda r, a, b: residual(a, b, -r)),
    "sub": _rounding(np.subtract, lambda r, a, b: residual(a, -b, -r)),
    "mul": _rounding(np.multiply, _of_product),
    "div": _rounding(np.divide, _of_quotient),
    "rcp": _rounding(lambda a: 1 / a, lambda r, a: _of_quotient(r, np.ones_like(a), a)),
    "sqrt": _rounding(np.sqrt, _of_root),
    "fma": _rounding(fused, _of_fused),
}
_TO_WHOLE = {"rn": np.rint, "rz": np.trunc, "rd": np.floor, "ru": np.ceil}


def _integer_to_float(direction, x, to):
    nearest = x.astype(to)
    if direction == "rn":
        return nearest
    # As Python's integers, for they have no end.
    off = np.frompyfunc(lambda a, r: (a > (r := int(r))) - (a < r), 2, 1)(x.astype(object), nearest)
    return toward(direction, nearest, np.asarray(off, np.float64))


def _to_float(direction, x):
    nearest = x.astype(np.float32)
    finite = np.isfinite(x)
    error = np.where(finite, x - np.where(np.isfinite(nearest), nearest, np.copysign(np.inf, x)), 0)
    return toward(direction, nearest, error)


# ---------------------------------------------------------------- bits


def _leading_zeros(x):
    bits, left = unsigned(x), x.dtype.itemsize * 8
    count = np.zeros(x.shape, np.int32)
    step = left // 2
    while step:  # by halves
        empty = bits >> bits.dtype.type(left - step) == 0
        count += np.where(empty, step, 0).astype(np.int32)
        bits = np.where(empty, bits << bits.dtype.type(step), bits)
        step //= 2
    return count + (unsigned(x) == 0)


def _reverse(x):
    """All bits in the opposite order."""
    data = np.ascontiguousarray(x)[..., None].view(np.uint8)
    bits = np.unpackbits(data, axis=-1, bitorder="little")[..., ::-1]
    return np.packbits(bits, axis=-1, bitorder="little").view(x.dtype)[..., 0]


def _first_set(x):
    lowest = x & -x
    return np.where(x == 0, 0, x.dtype.itemsize * 8 - _leading_zeros(lowest)).astype(np.int32)


def _pick_bytes(a, b, selector):
    """Bytes of b:a, numbered from a's lowest by three bits of each four of the selector."""
    a, b, selector = np.broadcast_arrays(a, b, selector)
    pool = np.stack([a, b], axis=-1).view(np.uint8)
    numbers = (selector[..., None] >> np.array([0, 4, 8, 12], np.int32)) & 7
    picked = np.take_along_axis(pool, numbers.astype(np.int64), axis=-1)
    return np.ascontiguousarray(picked).view(np.int32)[..., 0]


def _low_24(x):
    return x << x.dtype.type(8) >> x.dtype.type(8)


def _high_signed(a, b):
    high = multiply_high(unsigned(a), unsigned(b)).view(a.dtype)
    return high - np.where(a < 0, b, 0) - np.where(b < 0, a, 0)


def _bits(to):
    return lambda x: np.ascontiguousarray(x).view(to)


def _on_unsigned(function):
    return lambda *xs: function(*map(unsigned, xs)).view(xs[0].dtype)


_EXACT = {
    "abs": np.abs,
    "llabs": np.abs,
    "clz": _leading_zeros,
    "clzll": _leading_zeros,
    "popc": lambda x: np.bitwise_count(unsigned(x)).astype(np.int32),
    "popcll": lambda x: np.bitwise_count(unsigned(x)).astype(np.int32),
    "ffs": _first_set,
    "ffsll": _first_set,
    "brev": _reverse,
    "brevll": _reverse,
    "byte_perm": _pick_bytes,
    "mul24": lambda a, b: _low_24(a) * _low_24(b),
    "umul24": _on_unsigned(lambda a, b: _low_24(a) * _low_24(b)),
    "mulhi": _high_signed,
    "mul64hi": _high_signed,
    "umulhi": _on_unsigned(multiply_high),
    "umul64hi": _on_unsigned(multiply_high),
    "hadd": lambda a, b: (a & b) + ((a ^ b) >> 1),
    "uhadd": _on_unsigned(lambda a, b: (a & b) + ((a ^ b) >> 1)),
    "rhadd": lambda a, b: (a | b) - ((a ^ b) >> 1),
    "urhadd": _on_unsigned(lambda a, b: (a | b) - ((a ^ b) >> 1)),
    "sad": lambda a, b, c: np.maximum(a, b) - np.minimum(a, b) + c,
    "usad": _on_unsigned(lambda a, b, c: np.maximum(a, b) - np.minimum(a, b) + c),
    "float_as_int": _bits(np.int32),
    "float_as_uint": _bits(np.int32),
    "int_as_float": _bits(np.float32),
    "uint_as_float": _bits(np.float32),
    "double_as_longlong": _bits(np.int64),
    "longlong_as_double": _bits(np.float64),
    "double2hiint": lambda x: (_bits(np.int64)(x) >> 32).astype(np.int32),
    "double2loint": lambda x: _bits(np.int64)(x).astype(np.int32),
    "hiloint2double": lambda high, low: (
        (high.astype(np.int64) << 32) | unsigned(low).astype(np.int64)
    ).view(np.float64),
    "saturatef": lambda x: np.nan_to_num(np.clip(x, 0, 1), nan=0.0),
    "finitef": np.isfinite,
    "isfinited": np.isfinite,
    "isnanf": np.isnan,
    "isnand": np.isnan,
    "isinff": np.isinf,
    "isinfd": np.isinf,
    "signbitf": np.signbit,
    "signbitd": np.signbit,
    "frsqrt_rn": _wide(lambda x: 1 / np.sqrt(x)),
    "fast_fdividef": np.divide,
    "fast_powf": np.power,
    "fast_exp10f": _FLOATS["exp10"],
    **{
        f"fast_{name}f": MATH[name] for name in ("exp", "log", "log2", "log10", "sin", "cos", "tan")
    },
}

LIBDEVICE = dict(_EXACT)
for _name, _function in _FLOATS.items():
    LIBDEVICE |= {_name: _function, _name + "f": _function}
for _name, _function in _DIRECTED.items():
    for _d in _TO_WHOLE:
        _pair = ("fmaf", "fma") if _name == "fma" else ("f" + _name, "d" + _name)
        LIBDEVICE |= {f"{n}_{_d}": lambda *xs, d=_d, f=_function: f(d, *xs) for n in _pair}
for _d, _whole in _TO_WHOLE.items():
    LIBDEVICE[f"double2float_{_d}"] = lambda x, d=_d: _to_float(d, x)
    for _from in ("float", "double"):
        for _to, _type in (("int", "i4"), ("uint", "u4"), ("ll", "i8"), ("ull", "u8")):
            LIBDEVICE[f"{_from}2{_to}_{_d}"] = lambda x, t=_type, w=_whole: float_to_integer(
                x, np.dtype(t), x.dtype == np.float64, w
            )
    for _from, _sign in (("int", False), ("uint", True), ("ll", False), ("ull", True)):
        for _to, _type in (("float", np.float32), ("double", np.float64)):
            LIBDEVICE[f"{_from}2{_to}_{_d}"] = lambda x, d=_d, t=_type, s=_sign: _integer_to_float(
                d, unsigned(x) if s else x, t
            )

# What has no value of its own to compute.
REFUSED = {"rcp64h": "the reciprocal that the hardware guesses from the upper half of a double"}


@operation("tt.extern_elementwise", counted=True)
def _libdevice(op, arguments):
    symbol = op.attribute("symbol", '""').strip('"')
    name = symbol.removeprefix("__nv_")
    function = LIBDEVICE.get(name) if symbol.startswith("__nv_") else None
    if function is None:
        why = f" ({REFUSED[name]})" if name in REFUSED else ""
        raise CouldNotCheck(f"The IR interpreter does not know the library function {symbol}{why}.")
    result, to = np.asarray(function(*arguments)), op.result_types[-1].dtype
    if result.dtype.kind == "u":  # the IR's integers have no sign
        result = result.view(f"i{result.dtype.itemsize}")
    return rounded(result, to)
