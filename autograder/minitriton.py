"""Triton's programming model in NumPy, short enough to read in one sitting.

A kernel is a function ``kernel(pid, *args)`` that does the work of one *program*; ``pid`` is the
tuple that tells the programs apart. An array stands for memory: offsets count its numbers in the
order in which they lie there, whatever its shape. What a GPU does at once happens here one
program after the other, so all that it teaches is what is computed and moved, not how fast.

``STATS`` counts since it was last set to 0, over all launches; nothing in here resets it.
"""

from __future__ import annotations

from itertools import product

import numpy as np

__all__ = ["STATS", "arange", "cdiv", "launch", "load", "store"]

STATS = {"loads": 0, "stores": 0}  # numbers read and numbers written
WATCHERS = []  # the check and the pictures listen here: objects with launch() and access()
_program = "(no launch)"  # the pid that is running


class Pid(tuple):
    """A program's number along each axis of the grid. A plain tuple times 64 is 64 copies of it."""

    def __mul__(self, factor):
        raise TypeError("pid is a tuple, a number for each axis of the grid: write pid[0], not pid")

    __rmul__ = __mul__


class OutOfBounds(IndexError):
    """A lane that is on touches no number of the array: on a GPU, a memory fault at best."""

    def __init__(self, operation, size, offs, outside, mask):
        low, high = offs[outside].min(), offs[outside].max()
        super().__init__(
            f"program {_program} {operation}s at offset{f's {low}…' if low < high else ' '}{high} "
            f"({outside.sum()} of {offs.size} lanes), outside an array of {size} numbers, and "
            f"{'no mask switches these lanes off' if mask is None else 'the mask leaves them on'}"
        )


def cdiv(a: int, b: int) -> int:
    """a / b, rounded up: how many blocks of b cover a numbers."""
    return -(-a // b)


def arange(start: int, end: int | None = None) -> np.ndarray:
    """The lanes of a block: start, start + 1 … end - 1. ``arange(n)`` begins at 0."""
    return np.arange(start, end)


def load(arr, offs, mask=None, other=0.0) -> np.ndarray:
    """The numbers of ``arr`` at ``offs``; lanes that ``mask`` switches off get ``other``.

    ``offs``: whole numbers of any shape, which is the shape of the result; its dtype is ``arr``'s.
    ``mask`` broadcasts with ``offs``; None means that every lane is on.
    Raises IndexError if a lane that is on is outside (below 0 counts as outside).
    """
    flat, offs, on = _lanes("load", arr, offs, mask)
    block = np.full(offs.shape, other, flat.dtype)
    block[on] = flat[offs[on]]
    STATS["loads"] += int(on.sum())
    return block


def store(arr, offs, values, mask=None) -> None:
    """Write ``values`` into ``arr`` at ``offs``, in place, where ``mask`` is true.

    ``values`` broadcasts to the shape of ``offs`` and is cast to ``arr``'s dtype.
    Raises IndexError as ``load`` does; then nothing has been written.
    """
    flat, offs, on = _lanes("store", arr, offs, mask, values)
    flat[offs[on]] = np.broadcast_to(values, offs.shape)[on]
    STATS["stores"] += int(on.sum())


def launch(kernel, grid, *args, order=iter, **named) -> None:
    """Call ``kernel(pid, *args)`` for every ``pid`` of ``grid``, a tuple of one to three sizes.

    ``order`` rearranges the list of pids (``reversed``, for one): a GPU promises no order.
    """
    global _program
    if not isinstance(grid, tuple | list):
        raise TypeError(f"the grid is a tuple of sizes, such as (97,) or (4, 3), not {grid!r}")
    for watcher in WATCHERS:
        watcher.launch(kernel, grid, args, named)
    try:
        for _program in order(list(product(*map(range, grid)))):
            kernel(Pid(_program), *args, **named)
    finally:
        _program = "(no launch)"


def _lanes(operation, arr, offs, mask, values=None):
    """The array seen flat, the offsets, which lanes are on; raises if one that is on is outside."""
    flat, offs = _flat(operation, arr), _whole(offs)
    offs, on = np.broadcast_arrays(offs, True if mask is None else np.asarray(mask, bool))
    outside = on & ((offs < 0) | (offs >= flat.size))
    for watcher in WATCHERS:
        watcher.access(operation, _program, arr, offs, on, values)
    if outside.any():
        raise OutOfBounds(operation, flat.size, offs, outside, mask)
    return flat, offs, on


def _flat(operation, arr):
    """``arr`` as one row of numbers, as they lie in memory: a view, never a copy."""
    if not isinstance(arr, np.ndarray):
        raise TypeError(f"{operation} works on a NumPy array, and this is a {type(arr).__name__}")
    try:
        return arr.reshape(-1, copy=False)
    except ValueError:
        raise ValueError(
            f"{operation} cannot view this array of shape {arr.shape} flat: its numbers lie in "
            "another order in memory (a transpose or a slice?); pass np.ascontiguousarray(it)"
        ) from None


def _whole(offs):
    offs = np.asarray(offs)
    if offs.dtype.kind not in "iu":
        raise TypeError(f"offsets are whole numbers, and these are {offs.dtype} (// divides whole)")
    return offs
