"""Where lanes lie in the picture of a tensor: offsets → rows and columns, and their state.

Pure NumPy. A tensor of one axis is one row of cells; of more axes it is a page whose columns run
along the axis with the smallest stride, so that neighbours on the page are neighbours in memory.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from autograder.records import Access, View
from autograder.render.style import ARRAY, BEYOND, INSIDE, MASKED, NEXT_ROW, NOTHING

__all__ = [
    "Lanes",
    "Page",
    "binned",
    "grid",
    "lanes",
    "merged",
    "overview",
    "page",
    "select",
    "union",
]


_LANES = 2**25  # most lanes that a picture looks at
_PORTION = 2**20  # so many at a time: bounds memory


@dataclass(frozen=True)
class Page:
    """A view laid out as ``rows`` × ``columns`` cells.

    ``outer`` are (size, stride) of the axes that make the rows, largest stride first; ``step`` is
    the stride along a row; ``low`` the smallest offset of the view (below 0 for negative strides).
    """

    rows: int
    columns: int
    outer: tuple[tuple[int, int], ...]
    step: int
    low: int
    axes: tuple[str, str]  # what a row and a column are, e.g. ("axis 0", "axis 1")

    @property
    def flat(self) -> bool:
        return not self.outer

    @property
    def pitch(self) -> int:
        """Elements from one row to the next."""
        return self.outer[-1][1] if self.outer else 0

    def cells(self, offsets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Row and column of each offset, as memory has it; outside they go on counting."""
        rest = np.asarray(offsets, np.int64) - self.low
        row = np.zeros_like(rest)
        for i, (size, stride) in enumerate(self.outer):
            index = rest // stride
            if i:  # only the outermost axis may leave its range
                index = np.clip(index, 0, size - 1)
            rest = rest - index * stride
            row = row * size + index
        return row, rest // self.step


def page(view: View) -> Page:
    """How a view is laid out. Axes of size 1 or stride 0 take no room."""
    axes = [
        (abs(stride), size, axis)
        for axis, (size, stride) in enumerate(zip(view.shape, view.strides, strict=True))
        if size != 1 and stride
    ]
    axes.sort(key=lambda entry: -entry[0])
    low = sum(
        min(0, (size - 1) * stride) for size, stride in zip(view.shape, view.strides, strict=True)
    )
    if any(size == 0 for size in view.shape):
        return Page(0, 0, (), 1, 0, ("", ""))
    if not axes:
        return Page(1, 1, (), 1, low, ("", ""))
    stride, columns, axis = axes[-1]
    outer = tuple((size, stride) for stride, size, _ in axes[:-1])
    rows = math.prod(size for size, _ in outer)
    names = ("axis " + " and ".join(str(axis) for _, _, axis in axes[:-1]), f"axis {axis}")
    return Page(rows, columns, outer, stride, low, names)


@dataclass(frozen=True)
class Lanes:
    """Rows, columns and states of the lanes of some programs, each of shape (programs, lanes)."""

    programs: np.ndarray
    rows: np.ndarray
    columns: np.ndarray
    states: np.ndarray
    offsets: np.ndarray

    @property
    def box(self) -> tuple[int, int, int, int]:
        """The window (row, column, rows, columns) that the lanes span."""
        top, left = int(self.rows.min()), int(self.columns.min())
        return top, left, int(self.rows.max()) + 1 - top, int(self.columns.max()) + 1 - left

    def one(self, i: int) -> Lanes:
        """The lanes of the i-th program alone."""
        return Lanes(*(part[i : i + 1] for part in vars(self).values()))

    def how_many(self, state: int) -> int:
        return int(np.count_nonzero(self.states == state))


def select(access: Access, program: int | None, most: int) -> np.ndarray:
    """Indices into ``access.programs``: the one asked for, or at most ``most`` telling ones.

    Programs with lanes outside come first, then the first, the last, and some in between.
    Raises ValueError when ``program`` did not take part.
    """
    if program is not None:
        where = np.flatnonzero(access.programs == program)
        if not where.size:
            raise ValueError(
                f"program {program} has no such access; there are {len(access.programs)}."
            )
        return where[:1]
    total = len(access.programs)
    if total <= most:
        return np.arange(total)
    axes = tuple(range(1, access.offsets.ndim))
    outside = np.flatnonzero((access.active & ~access.inside).any(axis=axes))
    spread = np.linspace(0, total - 1, most).round().astype(int)
    chosen = list(dict.fromkeys([*outside[:most].tolist(), total - 1, 0, *spread.tolist()]))
    return np.sort(np.array(chosen[:most]))


def lanes(access: Access, which: np.ndarray, layout: Page) -> Lanes:
    """Place the lanes of the programs ``access.programs[which]`` on the page.

    A lane past the end of a row of a tensor without padding falls, in memory, on the beginning of
    the next row. Where a block is a regular grid of lanes, such a lane is drawn where the block
    would have it, right of the edge, with the state NEXT_ROW.
    """
    offsets = np.asarray(access.offsets[which], np.int64)
    active = np.asarray(access.active[which], bool)
    inside = np.asarray(access.inside[which], bool)
    shape = offsets.shape
    rows, columns = _as_block(offsets, layout) or layout.cells(offsets)
    on_page = (rows >= 0) & (rows < layout.rows) & (columns >= 0) & (columns < layout.columns)
    states = np.full(shape, INSIDE, np.uint8)
    states[~on_page] = NEXT_ROW
    states[~inside] = BEYOND
    states[~active] = MASKED
    flat = (shape[0], -1)
    return Lanes(
        np.asarray(access.programs)[which],
        rows.reshape(flat),
        columns.reshape(flat),
        states.reshape(flat),
        offsets.reshape(flat),
    )


def _as_block(offsets: np.ndarray, layout: Page) -> tuple[np.ndarray, np.ndarray] | None:
    """Rows and columns that keep the block's shape, or None where lanes form no regular grid."""
    if layout.flat or offsets.ndim < 2 or not offsets.size:
        return None
    anchor = offsets.reshape(len(offsets), -1)[:, :1].reshape((-1,) + (1,) * (offsets.ndim - 1))
    row, column = layout.cells(anchor)
    expected = anchor
    for axis in range(1, offsets.ndim):
        size = offsets.shape[axis]
        if size == 1:
            continue
        picked = [slice(None)] + [slice(0, 1)] * (offsets.ndim - 1)
        picked[axis] = slice(1, 2)
        step = int((offsets[tuple(picked)] - anchor).flat[0])
        if step % layout.pitch == 0:
            across = (step // layout.pitch, 0)
        elif abs(step) < layout.pitch and step % layout.step == 0:
            across = (0, step // layout.step)
        else:
            return None
        count = np.arange(size).reshape((1,) * axis + (size,) + (1,) * (offsets.ndim - axis - 1))
        expected = expected + count * step
        row, column = row + count * across[0], column + count * across[1]
    if expected.shape != offsets.shape or not np.array_equal(expected, offsets):
        return None
    return np.broadcast_to(row, offsets.shape), np.broadcast_to(column, offsets.shape)


def grid(
    layout: Page, placed: Lanes | None, window: tuple[int, int, int, int], most: tuple[int, int]
) -> tuple[np.ndarray, int, int]:
    """States of the cells in ``window`` = (row, column, rows, columns) as a small uint8 array.

    Windows of more than ``most`` (rows, columns) cells are binned; a bin shows the most telling of
    its states, so one lane outside among ten million stays visible. Returns the array and how many
    rows and columns of cells a bin spans.
    """
    top, left, height, width = window
    per_row, per_column = (
        max(1, -(-size // limit)) for size, limit in zip((height, width), most, strict=True)
    )
    shape = (-(-height // per_row), -(-width // per_column))
    states = np.full(shape, NOTHING, np.uint8)
    first = (max(0, -top) // per_row, max(0, -left) // per_column)
    last = (
        -(-(min(layout.rows, top + height) - top) // per_row),
        -(-(min(layout.columns, left + width) - left) // per_column),
    )
    states[first[0] : max(last[0], 0), first[1] : max(last[1], 0)] = ARRAY
    if placed is not None:
        rows, columns = (placed.rows - top) // per_row, (placed.columns - left) // per_column
        seen = (rows >= 0) & (rows < shape[0]) & (columns >= 0) & (columns < shape[1])
        for state in (MASKED, INSIDE, NEXT_ROW, BEYOND):
            chosen = seen & (placed.states == state)
            states[rows[chosen], columns[chosen]] = state
    return states, per_row, per_column


def overview(
    access: Access, layout: Page, most: tuple[int, int]
) -> tuple[np.ndarray, tuple[int, int, int, int], int, int]:
    """``grid`` over the lanes of all programs, in portions; beyond 2^25 lanes over a sample.

    Returns states, the window that holds the whole tensor and every lane, and the cells of a bin.
    """
    each = max(1, access.offsets[0].size) if len(access.programs) else 1
    which = select(access, None, max(1, _LANES // each))
    portion = max(1, _PORTION // each)
    portions = [which[start : start + portion] for start in range(0, len(which), portion)]
    window = (0, 0, layout.rows, layout.columns)
    for part in portions:
        window = union(window, lanes(access, part, layout).box)
    states, per_row, per_column = grid(layout, None, window, most)
    for part in portions:
        states = np.maximum(states, grid(layout, lanes(access, part, layout), window, most)[0])
    return states, window, per_row, per_column


def union(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, int, int, int]:
    """The smallest window (row, column, rows, columns) that holds both."""
    top, left = min(a[0], b[0]), min(a[1], b[1])
    bottom, right = max(a[0] + a[2], b[0] + b[2]), max(a[1] + a[3], b[1] + b[3])
    return top, left, bottom - top, right - left


def binned(states: np.ndarray, most: Sequence[int]) -> tuple[np.ndarray, int, int]:
    """At most ``most`` bins; each shows the highest state in it. Returns cells a bin, too."""
    per = [max(1, -(-size // limit)) for size, limit in zip(states.shape, most, strict=True)]
    if 0 in states.shape:
        return np.zeros((1, 1), np.uint8), 1, 1
    for axis in (0, 1):
        starts = np.arange(0, states.shape[axis], per[axis])
        states = np.maximum.reduceat(states, starts, axis=axis)
    return states, per[0], per[1]


def merged(states: np.ndarray, state: int) -> list[tuple[int, int, int, int]]:
    """The cells of one state as few rectangles (row, column, rows, columns)."""
    open_runs: dict[tuple[int, int], tuple[int, int]] = {}
    done = []
    for row in range(states.shape[0] + 1):
        runs = _runs(states[row] == state) if row < states.shape[0] else []
        still = {}
        for run in runs:
            still[run] = open_runs.pop(run, (row, 0))
        for (start, stop), (first, _) in open_runs.items():
            done.append((first, start, row - first, stop - start))
        open_runs = still
    return done


def _runs(flags: np.ndarray) -> list[tuple[int, int]]:
    edges = np.flatnonzero(np.diff(np.concatenate(([0], flags.astype(np.int8), [0]))))
    return [(int(a), int(b)) for a, b in zip(edges[::2], edges[1::2], strict=True)]
