"""Arithmetic without error, for what rounds once or in a direction.

A sum is kept as the rounded sum and its error (Knuth's TwoSum), a product as the rounded product
and its error (Dekker's, after Veltkamp's split). float32 and narrower go through float64, whose
products of two such numbers are exact. Sources: D. E. Knuth, TAOCP 2, 4.2.2; T. J. Dekker, Numer.
Math. 18 (1971); S. Boldo and G. Melquiond, IEEE Trans. Comput. 57 (2008), for the fused operation.
"""

from __future__ import annotations

import math

import numpy as np

_SPLIT = np.float64(2**27 + 1)
_SUM = np.frompyfunc(lambda *terms: math.fsum(terms), 4, 1)


def two_sum(a, b):
    """(rounded sum, its error); the error is 0 where the sum is not finite."""
    total = a + b
    part = total - a
    error = (a - (total - part)) + (b - part)
    return total, np.where(np.isfinite(total), error, 0)


def two_product(a, b):
    """(rounded product, its error) of float64; exact while nothing leaves the range of normals."""
    product = a * b
    a1, b1 = (x * _SPLIT - (x * _SPLIT - x) for x in (a, b))
    a0, b0 = a - a1, b - b1
    error = a0 * b0 - (((product - a1 * b1) - a0 * b1) - a1 * b0)
    return product, np.where(np.isfinite(error), error, 0)


def _to_odd(total, error):
    """A float64 sum rounded to odd: rounding it again, to fewer bits, is as rounding once."""
    even = total.view(np.int64) & 1 == 0
    toward = np.nextafter(total, np.where(error > 0, np.inf, -np.inf))
    return np.where(even & (error != 0) & np.isfinite(total), toward, total)


def fused(a, b, c):
    """a·b + c rounded once, for arrays of one type: float16, float32 (also where it holds bfloat16,
    as float64 then) or float64."""
    if a.dtype != np.float64:
        wide = a.astype(np.float64) * b.astype(np.float64)
        return _to_odd(*two_sum(wide, c.astype(np.float64)))
    high, low = two_product(a, b)
    small, smaller = two_sum(c, low)
    large, rest = two_sum(high, small)
    plain = a * b + c
    exact = large + _to_odd(*two_sum(smaller, rest))
    return np.where(np.isfinite(plain), exact, plain)


def toward(direction: str, nearest, error):
    """``nearest`` moved one step where it lies on the wrong side of the true value.

    ``error`` has the sign of true value − nearest; ``direction`` is "rn", "rz", "rd" or "ru".
    """
    down, up = np.nextafter(nearest, -np.inf), np.nextafter(nearest, np.inf)
    over, under = error < 0, error > 0
    if direction == "rz":
        over, under = over & (nearest > 0), under & (nearest < 0)
    if direction in ("rd", "rz"):
        nearest = np.where(over, down.astype(nearest.dtype), nearest)
    if direction in ("ru", "rz"):
        nearest = np.where(under, up.astype(nearest.dtype), nearest)
    return nearest


def residual(*terms):
    """Sum of float64 terms, at most four, rounded once: its sign is the sign of the exact sum."""
    terms = np.broadcast_arrays(*terms)
    ok = np.all([np.isfinite(t) for t in terms], axis=0)
    clean = [np.where(ok, t, 0.0) for t in terms] + [np.zeros(ok.shape)] * (4 - len(terms))
    return _SUM(*clean).astype(np.float64)
