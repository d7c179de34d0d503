"""Special functions that NumPy lacks, in float64, element by element or by quadrature.

Bessel's integrals (DLMF 10.9.2, 10.9.7, 10.32.3) are summed by the trapezoidal rule where the
integrand is periodic, which then converges faster than any power, and by Gauss's rule elsewhere.
"""

from __future__ import annotations

import math
from functools import cache, partial
from statistics import NormalDist

import numpy as np

from autograder.records import CouldNotCheck

MAX_BESSEL = 256.0  # the integrands turn that often
_NORMAL = NormalDist()


def by_element(function):
    """A function of Python floats for float64 arrays; where it is undefined stands NaN."""

    def one(*numbers):
        try:
            return function(*numbers)
        except (ValueError, ZeroDivisionError):
            return math.nan
        except OverflowError:
            return math.inf

    many = np.frompyfunc(
        one, function.__code__.co_argcount if hasattr(function, "__code__") else 1, 1
    )
    return lambda *arrays: np.asarray(many(*arrays), dtype=np.float64)


erfc = by_element(math.erfc)
remainder = by_element(
    lambda a, b: a if math.isinf(b) and math.isfinite(a) else math.remainder(a, b)
)


@by_element
def gamma(x):
    if x == 0:
        return math.copysign(math.inf, x)
    return math.gamma(x)


@by_element
def log_gamma(x):
    return math.inf if x <= 0 and x == math.floor(x) else math.lgamma(x)


@by_element
def erfcx(x):
    """exp(x²) erfc(x): from where erfc underflows by Laplace's continued fraction."""
    if x < 10:
        return math.exp(x * x) * math.erfc(x)
    tail = x
    for k in range(40, 0, -1):
        tail = x + k / 2 / tail
    return 1 / (math.sqrt(math.pi) * tail)


@by_element
def normal_quantile(p):
    if p in (0.0, 1.0):
        return -math.inf if p == 0 else math.inf
    return _NORMAL.inv_cdf(p)


@by_element
def erf_inverse(x):
    if abs(x) == 1:
        return math.copysign(math.inf, x)
    if abs(x) > 0.5:
        return math.copysign(_NORMAL.inv_cdf((1 - abs(x)) / 2) / -math.sqrt(2), x)
    y = x * math.sqrt(math.pi) / 2
    for _ in range(6):  # Newton's method
        y -= (math.erf(y) - x) * math.sqrt(math.pi) / 2 * math.exp(y * y)
    return y


def erfc_inverse(x):
    near = np.abs(x - 1) <= 0.5
    far = -normal_quantile(np.where(near, 0.5, x / 2)) / math.sqrt(2)
    return np.where(near, erf_inverse(np.where(near, 1 - x, 0)), far)


def sine_pi(x):
    """sin(πx), exact where it is 0 or ±1."""
    quarter = np.rint(2 * x)
    angle = np.pi * (x - quarter / 2)
    turn = np.mod(quarter, 4)
    value = np.where(turn % 2 == 0, np.sin(angle), np.cos(angle))
    return np.where(turn >= 2, -value, value) + 0.0 * x


def cosine_pi(x):
    quarter = np.rint(2 * x)
    angle = np.pi * (x - quarter / 2)
    turn = np.mod(quarter, 4)
    value = np.where(turn % 2 == 0, np.cos(angle), np.sin(angle))
    return np.where((turn == 1) | (turn == 2), -value, value) + 0.0 * x


# ---------------------------------------------------------------- Bessel's functions

_TRAPEZOID = np.pi * (np.arange(1024) + 0.5) / 1024
_gauss = cache(partial(np.polynomial.legendre.leggauss, 512))  # an eigenvalue problem of that size


def _within(order, x):
    if (np.abs(order) > MAX_BESSEL).any() or (np.abs(x[np.isfinite(x)]) > MAX_BESSEL).any():
        raise CouldNotCheck(
            f"Bessel functions are interpreted for orders and arguments up to {MAX_BESSEL:.0f}."
        )
    return np.broadcast_arrays(np.asarray(order, np.float64)[..., None], x[..., None])


def bessel_j(order, x):
    n, z = _within(order, x)
    return np.cos(n * _TRAPEZOID - z * np.sin(_TRAPEZOID)).mean(axis=-1)


def bessel_y(order, x):
    """For orders from 0 on; NaN for x < 0, −∞ at 0."""
    n, z = _within(order, x)
    nodes, weights = _gauss()
    turns = np.pi / 2 * (nodes + 1)
    first = np.sin(z * np.sin(turns) - n * turns) @ weights / 2
    safe = np.where(z > 0, z, 1)
    end = np.arcsinh((750 + 50 * n) / safe)  # beyond, exp(nt − z sinh t) is nothing
    t = end / 2 * (nodes + 1)
    fall = np.exp(n * t - safe * np.sinh(t)) + np.cos(np.pi * n) * np.exp(
        -n * t - safe * np.sinh(t)
    )
    value = first - (fall * end / 2) @ weights / np.pi
    return np.where(x > 0, value, np.where(x == 0, -np.inf, np.nan))


def bessel_i(order, x):
    n, z = _within(order, x)
    return (np.exp(z * np.cos(_TRAPEZOID)) * np.cos(n * _TRAPEZOID)).mean(axis=-1)
