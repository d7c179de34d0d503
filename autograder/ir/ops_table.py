"""The table of operations: how an entry is made, and what every entry may use.

A value is an array with the program axis in front: ``(programs, *shape)``. Any axis may have length
1 where the type says more, program axis included: such an axis is uniform, and NumPy's broadcasting
does the rest. So splats, masks and offset vectors stay small until something really needs them
whole (`whole`). bfloat16 and fp8 are held in float32 and rounded after every operation, as a GPU
would.

An entry is ``function(op, arguments) -> array``; add one with ``@operation("dialect.name")``.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from autograder.floats import rounded
from autograder.ir.parse import Op

TABLE: dict[str, Callable] = {}
COUNTED: set[str] = set()  # floating-point arithmetic, one operation an element


def operation(*names: str, counted: bool = False):
    """Register a function for these operations."""

    def add(function):
        for name in names:
            TABLE[name] = function
            if counted:
                COUNTED.add(name)
        return function

    return add


def whole(value: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """``value`` with every axis but the program axis at its full length (a view)."""
    if value.shape[1:] == shape:
        return value
    return np.broadcast_to(value, (value.shape[0], *shape))


def alike(arrays: list) -> list:
    """Arrays with one length of the program axis (views)."""
    count = max(len(a) for a in arrays)
    return [np.broadcast_to(a, (count, *a.shape[1:])) for a in arrays]


def unsigned(value: np.ndarray) -> np.ndarray:
    """The same bits as an unsigned type; an i1 is unsigned already."""
    return value if value.dtype.kind in "bu" else value.view("u" + value.dtype.name)


def elementwise(function):
    """An entry that applies ``function`` and rounds to the result's type."""

    def apply(op: Op, arguments):
        return rounded(function(*arguments), op.result_types[-1].dtype)

    return apply
