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
