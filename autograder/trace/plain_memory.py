"""Memory in a watched run of unit 01: it forgives no fault, and it does not end the run at one.

The mini-Triton stops at the first lane outside, and ``np.empty`` hands out what happened to lie
there. A check that stopped or guessed so would hold two faults against a student who made one, so
here lanes outside read NaN and write nothing, as in the interpreter of real kernels, and arrays of
``np.empty`` hold NaN until something is stored.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial, update_wrapper

import numpy as np

from autograder import minitriton
from autograder.trace.watch import Recorder, is_students

__all__ = ["going_on"]


@contextmanager
def going_on(record: Recorder) -> Iterator[None]:
    """Inside the block a lane outside stops nothing, and ``record`` learns which arrays of the
    student's came from ``np.empty`` and ``np.empty_like``."""
    found = minitriton._lanes, np.empty, np.empty_like
    minitriton._lanes = partial(_past_the_edge, found[0])
    # NumPy imports parts of itself late, and such a part (``ma``) asks for the names of these.
    np.empty, np.empty_like = (
        update_wrapper(partial(_unwritten, record, make), make) for make in found[1:]
    )
    try:
        yield
    finally:
        minitriton._lanes, np.empty, np.empty_like = found


def _past_the_edge(lanes, operation, arr, offs, mask, values=None):
    """``minitriton._lanes`` (``lanes``) for accesses that it refuses as well. The watchers have
    heard of them: it asks them first."""
    try:
        return lanes(operation, arr, offs, mask, values)
    except minitriton.OutOfBounds:
        flat = arr.reshape(-1)
    offs, on = np.broadcast_arrays(offs, True if mask is None else np.asarray(mask, bool))
    outside = (offs < 0) | (offs >= flat.size)
    if operation == "store":
        return flat, offs, on & ~outside
    nothing = np.nan if flat.dtype.kind == "f" else 0
    return np.append(flat, flat.dtype.type(nothing)), np.where(outside, flat.size, offs), on


def _unwritten(record: Recorder, make, *args, **named):
    array = make(*args, **named)
    # NumPy's own functions call these too, and fill what they get without a store.
    if array.dtype.kind == "f" and is_students(sys._getframe(1).f_code.co_filename):
        array.fill(np.nan)
        record.cells(array).written[:] = False
    return array
