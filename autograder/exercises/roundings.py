"""Bounds on what roundings can add up to, for the tolerances of reductions.

Kernels of these units compute in float32 and round once more when they store. ``U`` is float32's
unit roundoff. Counted are single operations at what a GPU guarantees, which is less than IEEE:
``exp``, ``/`` and ``rsqrt`` are approximations there (PTX ISA: ex2.approx.ftz relative error
2^-22; div.full 2 ulp; rsqrt.approx 2^-22.9), so each counts four roundings, the others one.

A sum of n numbers in *any* order differs from the exact one by at most (n − 1) u Σ|xᵢ| to first
order (Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., section 4.2). A tree would
allow log₂ n in place of n − 1, but nobody is asked to sum in a tree: one number after the other is
right as well, and so is any mix. Inputs are random, so the bound is some √n too wide; what a wrong
kernel adds, drops or rounds too early is told by the short rows, where it is narrow.
"""

from __future__ import annotations

import numpy as np

from autograder.floats import TINY, UNIT

U = UNIT["float32"]
EXP = DIVIDE = RSQRT = 4 * U
FLUSHED = 2.0**-126  # a GPU may turn subnormal float32 into 0


def of_sum(n: int) -> float:
    """Bound on |computed − exact| ÷ Σ|xᵢ| for n numbers summed in any order in float32."""
    return max(n - 1, 0) * U


def stored(error: np.ndarray, value: np.ndarray, dtype: str) -> np.ndarray:
    """``error`` of a float32 result ``value``, and the rounding to ``dtype`` behind it."""
    if dtype == "float32":  # nothing is rounded again
        return error + TINY[dtype]
    return error + UNIT[dtype] * (np.abs(value) + error) + TINY[dtype]


def softmax_error(x: np.ndarray, y: np.ndarray, chunks: int = 0) -> np.ndarray:
    """Bound on the relative error of y = softmax(x) along rows in float32, an array of y's shape.

    With t = x − max and e = exp(t), y = e ÷ Σe:

    * the exponent's error, absolute, is at most u (|x| + |max| + 3 |t|): that of exp2(x log₂e − max
      log₂e), the widest of the usual forms (two products, the constant, the difference);
    * a relative error of e is the exponent's error, and exp's own;
    * Σe has the mean of these, weighted by e, and the sum's; then comes one division, or exp of a
      difference with log Σ.

    ``chunks``: how often a running sum is rescaled by exp(m − new m), at the price of an
    exponential and two operations. Its exponent's error is that of t with the maxima so far, none
    of which is larger than max|x|; the differences of maxima add up to the row's range at most.
    """
    largest = x.max(axis=-1, keepdims=True, initial=-np.inf)
    finite = y > 0  # elsewhere the result is 0 or NaN, and no bound is needed
    exponent = np.where(finite, U * (np.abs(x) + np.abs(largest) + 3 * np.abs(x - largest)), 0.0)
    e = np.expm1(exponent) + EXP
    whole = (y * e).sum(axis=-1, keepdims=True) + of_sum(x.shape[-1])
    if chunks:
        size = np.where(np.isfinite(x), np.abs(x), 0.0).max(axis=-1, keepdims=True, initial=0.0)
        whole = whole + chunks * (EXP + 2 * U) + np.expm1((chunks + 3) * 2 * U * size)
    # exp(x − (m + log Σ)) in place of the division rounds a number of up to |m| + log N once more.
    return e + whole + DIVIDE + 2 * U * np.log(x.shape[-1])
