"""Pictures of whole tensors: how often each cell was written, and where values are wrong."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from autograder.records import Access
from autograder.render import geometry, style
from autograder.render.cells import GAP, paint
from autograder.render.neutral import count, neutral, spaced

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["counts_of", "coverage", "error_map"]

# Bins (rows, columns) that a picture resolves: few enough that one odd cell can still be seen.
_SHEET = (100, 150)
_STRIP = (1, 200)

# Categories of coverage and of errors, in painting order; colours and hatches as for lanes.
_FINE, _TWICE, _NEVER = 1, 2, 3
_COVERAGE = {
    _FINE: style.STATES[style.PAST],
    _TWICE: style.STATES[style.NEXT_ROW],
    _NEVER: style.STATES[style.BEYOND],
}
_NEAR, _FAR, _NOT_FINITE = 2, 3, 4
_ERRORS = {
    _FINE: style.STATES[style.PAST],
    _NEAR: style.STATES[style.NEXT_ROW],
    _FAR: style.STATES[style.BEYOND],
    _NOT_FINITE: dict(facecolor=style.INK, edgecolor=style.MUTED, hatch="\\\\\\\\"),
}


def counts_of(stores: Access | Iterable[Access]) -> np.ndarray:
    """How often each cell of one tensor was written, for ``coverage``.

    ``stores`` are accesses of all programs to the same view. The counts lie as memory does: axes
    by falling stride, so a transposed tensor comes out as its rows in memory.
    """
    stores = [stores] if isinstance(stores, Access) else list(stores)
    layout = geometry.page(stores[0].view)
    counts = np.zeros((layout.rows, layout.columns), np.int64)
    for access in stores:
        cells = layout.cells(access.offsets[access.active & access.inside])
        np.add.at(counts, cells, 1)
    return counts[0] if layout.flat and layout.rows else counts


def coverage(counts: np.ndarray, name: str = "the output") -> Figure:
    """How often each cell of a tensor was written: never and more than once stand out.

    ``counts`` are integers in the tensor's shape. Axes before the last become rows.
    """
    counts = np.asarray(counts)
    states = np.full(counts.shape, _FINE, np.uint8)
    states[counts > 1] = _TWICE
    states[counts == 0] = _NEVER
    never, twice = int((counts == 0).sum()), int((counts > 1).sum())
    points = [f"{count(never, 'cell')} never written"] if never else []
    points += [f"{count(twice, 'cell')} written more than once"] if twice else []
    point = " and ".join(points) or f"every one of {count(counts.size, 'cell')} is written once"
    facts = [f"{_shape(counts.shape)} cells"]
    if never:
        facts.append(f"never written {_where(counts == 0)}")
    if twice:
        facts.append(f"up to {counts.max()} times {_where(counts > 1)}")
    words = {_FINE: "written once", _TWICE: "more than once", _NEVER: "never written"}
    numbers = counts if counts.size <= 200 else None
    return _categories(states, _COVERAGE, words, f"{neutral(name, 40)}: {point}", facts, numbers)


def error_map(
    actual: np.ndarray,
    expected: np.ndarray,
    tolerance: np.ndarray | float,
    name: str = "the output",
) -> Figure:
    """Where ``actual`` differs from ``expected`` by more than ``tolerance`` (which broadcasts).

    Equal infinities, and NaN where NaN is expected, are right. Axes before the last become rows.
    Raises ValueError for different shapes.
    """
    actual, expected = np.asarray(actual, np.float64), np.asarray(expected, np.float64)
    if actual.shape != expected.shape:
        raise ValueError(f"shapes differ: {actual.shape} and {expected.shape}.")
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        error = np.abs(actual - expected)
        same = (actual == expected) | (np.isnan(actual) & np.isnan(expected))
        times = np.where(same, 0.0, error / np.broadcast_to(tolerance, actual.shape))
    off = ~(times <= 1)
    broken = off & ~np.isfinite(actual)
    states = np.full(actual.shape, _FINE, np.uint8)
    states[off] = _NEAR
    states[~(times <= 10)] = _FAR
    states[broken] = _NOT_FINITE
    wrong = int(off.sum())
    if not wrong:
        point = f"all {count(actual.size, 'value')} agree within the tolerance"
    else:
        point = f"{spaced(wrong, GAP)} of {count(actual.size, 'value')} differ"
    facts = [f"{_shape(actual.shape)} values"]
    if wrong:
        facts.append(f"wrong {_where(off)}")
    finite = times[off & ~broken]
    if finite.size and np.isfinite(finite.max()):
        facts.append(f"largest error {finite.max():.3g} times the tolerance")
    words = {
        _FINE: "right",
        _NEAR: "up to 10 tolerances off",
        _FAR: "more than 10 off",
        _NOT_FINITE: "NaN or infinite",
    }
    return _categories(states, _ERRORS, words, f"{neutral(name, 40)}: {point}", facts)


def _shape(shape: tuple[int, ...]) -> str:
    return " × ".join(spaced(size, GAP) for size in shape) or "1"


def _where(flags: np.ndarray) -> str:
    """The smallest box that holds all flagged cells, in words."""
    if flags.all():
        return "everywhere"
    flags = np.atleast_1d(flags)
    parts = []
    for axis in range(flags.ndim):
        others = tuple(a for a in range(flags.ndim) if a != axis)
        hit = np.flatnonzero(flags.any(axis=others))
        low, high, last = int(hit[0]), int(hit[-1]), flags.shape[axis] - 1
        if flags.ndim > 1 and low == 0 and high == last:
            continue
        named = f"axis {axis}: " if flags.ndim > 1 else ""
        span = f"{spaced(low, GAP)}…{spaced(high, GAP)}" if high > low else spaced(low, GAP)
        parts.append(named + span + (" (to the end)" if high == last else ""))
    if not parts:
        return "spread over the whole tensor"
    return "within " + ", ".join(parts)


def _categories(
    states: np.ndarray,
    looks: dict,
    words: dict[int, str],
    title: str,
    facts: list[str],
    numbers: np.ndarray | None = None,
) -> Figure:
    """A tensor of few categories as a page, or as a strip where it has one axis."""
    strip = states.ndim < 2 or states.size == states.shape[-1]
    page = states.reshape(1, -1) if strip else states.reshape(-1, states.shape[-1])
    rows, columns = page.shape
    wide = not strip and not 0.25 < rows / max(columns, 1) < 4
    with style.look():
        figure = style.new_figure(0.95 if strip else 3.0, title, " · ".join(facts))
        axes = figure.subplots()
        binned, per_row, per_column = geometry.binned(page, _STRIP if strip else _SHEET)
        apart = rows * columns <= 200
        seen = paint(axes, binned, (0, 0), (per_row, per_column), looks, 0.08 if apart else 0.0)
        axes.set_xlim(0, max(columns, 1))
        axes.set_ylim(max(rows, 1), 0)
        axes.set_aspect("auto" if strip or wide else "equal", anchor="W")
        style.bare(axes)
        axes.set_xticks(*_ends(columns))
        if not strip:
            axes.set_yticks(*_ends(rows))
            last = states.ndim - 1
            axes.set_ylabel("axis 0" if last == 1 else f"axes 0 to {last - 1}")
            axes.set_xlabel(f"axis {last}")
        if numbers is not None and apart:
            for (r, c), number in np.ndenumerate(numbers.reshape(page.shape)):
                colour = style.PAPER if page[r, c] == _NEVER else style.ON_FILL
                text = axes.text(c + 0.5, r + 0.5, str(number), color=colour, **style.IN_CELL)
                if page[r, c] != _FINE:  # a hatch would cross the number
                    face = looks[int(page[r, c])]["facecolor"]
                    text.set_bbox(dict(facecolor=face, edgecolor="none", pad=0.8))
        style.legend(figure, seen, looks, words)
    return figure


def _ends(size: int) -> tuple[list[int], list[str]]:
    ends = [0, size] if size else [0]
    return ends, [spaced(end, GAP) for end in ends]
