"""The picture of one memory operation: its lanes over the cells of its tensor."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from autograder.records import Access
from autograder.render import geometry, style
from autograder.render.geometry import Lanes, Page
from autograder.render.neutral import count, neutral, spaced
from autograder.render.style import ARRAY, BEYOND, INSIDE, MASKED, NEXT_ROW

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["describe", "lanes_over_array", "paint", "paint_row"]

GAP = "\u202f"  # narrow no-break space between thousands
_CELLS = 20  # on a page, up to so many cells a side stand apart
_FEW = 40  # so many cells in a row are drawn one by one, with their numbers
_PREPOSITION = {"load": "load from", "store": "store to", "atomic": "atomic on"}


def lanes_over_array(access: Access, program: int | None = None) -> Figure:
    """Lanes inside, masked off and outside, over the tensor's cells.

    ``program`` is a linear program id; without it the programs with lanes outside are shown, or
    else the last ones, where ragged edges are. Large tensors get an overview and a close-up.
    Raises ValueError when ``program`` did not take part or the access holds no program.
    """
    if not len(access.programs):
        raise ValueError("this access holds no programs, so there is nothing to draw.")
    layout = geometry.page(access.view)
    which = _telling(access, program, 3 if layout.flat else 1)
    placed = geometry.lanes(access, which, layout)
    with style.look():
        if layout.flat:
            return _strips(access, layout, placed)
        return _sheet(access, layout, placed)


def _telling(access: Access, program: int | None, most: int) -> np.ndarray:
    if program is not None or len(access.programs) <= most:
        return geometry.select(access, program, most)
    axes = tuple(range(1, access.offsets.ndim))
    outside = np.flatnonzero((access.active & ~access.inside).any(axis=axes))
    last = int(outside[0]) if outside.size else len(access.programs) - 1
    return np.arange(max(0, last - (most - 1 if most == 1 else 1)), last + 1)


def describe(access: Access, placed: Lanes) -> tuple[str, str]:
    """Title and subtitle: the point, and where it is."""
    lanes = placed.states.size
    outside, wrapped = placed.how_many(BEYOND), placed.how_many(NEXT_ROW)
    masked = placed.how_many(MASKED)
    what = f"{_PREPOSITION[access.operation]} {neutral(access.argument, 40)}"
    if outside:
        bad = placed.states == BEYOND
        faulty = np.unique(placed.programs[bad.any(axis=1)])
        who = f"program {faulty[0]}" if len(faulty) == 1 else count(len(faulty), "program")
        lanes = int(np.count_nonzero(np.isin(placed.programs, faulty))) * placed.states.shape[1]
        point = f"{what}, {who}: {spaced(outside, GAP)} of {spaced(lanes, GAP)} lanes are outside"
        if wrapped:
            point += f", {spaced(wrapped, GAP)} in the next row"
    elif wrapped:
        point = f"{what}: {count(wrapped, 'lane')} of {spaced(lanes, GAP)} end up in the next row"
    elif masked == lanes:
        point = f"{what}: every lane is masked off"
    elif masked:
        point = f"{what}: all in bounds; the mask stops {spaced(masked, GAP)} of {count(lanes, 'lane')}"
    else:
        point = f"{what}: {'all ' if lanes > 1 else ''}{count(lanes, 'lane')} in bounds"
    shape = " × ".join(spaced(size, GAP) for size in access.view.shape) or "1"
    facts = [neutral(access.kernel, 40), f"line {access.line}" if access.line > 0 else ""]
    facts.append(f"{neutral(access.argument, 40)} has {shape} elements")
    layout = geometry.page(access.view)
    if not layout.flat and layout.pitch != layout.columns * layout.step:
        facts.append(f"a row starts every {spaced(layout.pitch, GAP)} elements")
    shown = placed.offsets[placed.states == BEYOND] if outside else placed.offsets[placed.states != MASKED]
    if shown.size:
        facts.append(("outside: " if outside else "") + f"offsets {_range(shown)}")
    return point, " · ".join(fact for fact in facts if fact)


def _range(values: np.ndarray) -> str:
    low, high = int(values.min()), int(values.max())
    return spaced(low, GAP) if low == high else f"{spaced(low, GAP)}…{spaced(high, GAP)}"


def paint(
    axes: Axes,
    states: np.ndarray,
    origin: tuple[float, float] = (0, 0),
    scale: tuple[float, float] = (1, 1),
    looks: dict | None = None,
    gap: float = 0.0,
) -> set[int]:
    """Draw an array of states as rectangles; returns the states that occur.

    ``origin`` and ``scale`` are (row, column) of the first cell and the size of a cell. With a
    ``gap`` every cell stands alone, without it equal neighbours melt into one rectangle.
    """
    from matplotlib.collections import PatchCollection
    from matplotlib.patches import Rectangle

    seen = set()
    for state, look in (looks or style.STATES).items():
        if gap:
            boxes = [(int(r), int(c), 1, 1) for r, c in np.argwhere(states == state)]
        else:
            boxes = geometry.merged(states, state)
        if not boxes:
            continue
        seen.add(state)
        patches = [
            Rectangle(
                (origin[1] + (c + gap / 2) * scale[1], origin[0] + (r + gap / 2) * scale[0]),
                (w - gap) * scale[1],
                (h - gap) * scale[0],
            )
            for r, c, h, w in boxes
        ]
        collection = PatchCollection(patches, linewidth=0.6 if look.get("hatch") else 0.0, **look)
        collection.set_gid(f"state-{state}")
        axes.add_collection(collection, autolim=False)
    return seen


# ---------------------------------------------------------------- tensors of one axis


def _strips(access: Access, layout: Page, placed: Lanes) -> Figure:
    """The tensor as a strip, and a strip of lanes below it for every program."""
    left, right, cut = _stretch(layout, placed)
    n = layout.columns
    reach = int(min(placed.columns.min(), 0)), int(max(placed.columns.max() + 1, n))
    zoomed = right - left < 0.7 * (reach[1] - reach[0])
    rows = 1 + len(placed.programs)
    figure = style.new_figure(0.62 + 0.4 * rows + (0.62 if zoomed else 0), *describe(access, placed))
    if zoomed:
        above, axes = figure.subplots(2, 1, height_ratios=[0.34, 0.42 * rows + 0.35])
    else:
        axes = figure.subplots()
    seen = set()
    for i in range(rows):
        one = None if i == 0 else placed.one(i - 1)
        seen |= paint_row(axes, layout, one, left, right, i)
    style.bare(axes, keep="bottom")
    axes.set_xlim(left, right)
    axes.set_ylim(rows - 0.12, -0.32)
    names = [neutral(access.argument, 24)] + [f"program {p}" for p in placed.programs]
    axes.set_yticks([i + 0.4 for i in range(rows)], names, color=style.INK)
    axes.tick_params(axis="y", length=0)
    tally = axes.secondary_yaxis("right")
    tally.set_yticks([i + 0.4 for i in range(rows)], _tallies(layout, placed, cut))
    tally.tick_params(length=0)
    tally.spines["right"].set_visible(False)
    _edge(axes, layout, left, right, rows)
    _marks(axes, layout, placed, left, right)
    if zoomed:
        seen |= _whole_strip(above, access, layout, (left, right), axes)
    style.legend(figure, sorted(seen))
    return figure


def _stretch(layout: Page, placed: Lanes) -> tuple[int, int, bool]:
    """First and last column of the close-up, and whether lanes go on beyond it."""
    low, high = int(placed.columns.min()), int(placed.columns.max()) + 1
    n = layout.columns
    if n <= _FEW:
        low, high = min(low, 0), max(high, n)
    margin = max(1, (high - low) // 14)
    left = low if low == 0 and n <= _FEW else low - margin
    left = max(left, 0) if low >= 0 else left
    right = high + margin if high < n or n > _FEW else high
    have = max(0, min(n, right) - max(0, left))
    most = have + max(5 * have, 24)  # a block far larger than the tensor would make a speck of it
    if high - low > most and have:
        if high > n:
            right = min(right, n + most - have)
        if low < 0:
            left = max(left, have - most)
    return left, right, low < left or high > right


def paint_row(axes: Axes, layout: Page, placed: Lanes | None, left: int, right: int, y: float) -> set:
    """One strip of cells at height ``y``: of the tensor, or of one program's lanes."""
    window = (0, left, 1, right - left)
    if placed is None:
        states, _, per = geometry.grid(layout, None, window, (1, 4096))
    else:
        empty = Page(0, 0, (), layout.step, layout.low, layout.axes)
        states, _, per = geometry.grid(empty, placed, window, (1, 4096))
    few = right - left <= _FEW
    seen = paint(axes, states, (y, left), (0.8, per), gap=0.1 if few else 0.0)
    if few:
        _numbers(axes, layout, placed, left, right, y)
    return seen


def _numbers(axes: Axes, layout: Page, placed: Lanes | None, left: int, right: int, y: float) -> None:
    """Indices in the tensor's cells; lane numbers in a program's."""
    if placed is None:
        spots = [(c, c, ARRAY) for c in range(max(0, left), min(layout.columns, right))]
    else:
        columns, states = placed.columns[0], placed.states[0]
        spots = [
            (int(c), lane, int(s))
            for lane, (c, s) in enumerate(zip(columns, states, strict=True))
            if left <= c < right
        ]
        if len({c for c, _, _ in spots}) < len(spots):
            return  # several lanes in one cell: numbers would lie over each other
    for column, number, state in spots:
        colour = {BEYOND: style.PAPER, MASKED: style.MUTED}.get(state, style.ON_FILL)
        text = axes.text(
            column + 0.5, y + 0.41, str(number), ha="center", va="center", fontsize=8, color=colour
        )
        if state == BEYOND:  # the hatch is of the same white
            text.set_bbox(dict(facecolor=style.OUTSIDE, edgecolor="none", pad=0.8))


def _tallies(layout: Page, placed: Lanes, cut: bool) -> list[str]:
    words = [count(layout.columns, "element")]
    for i in range(len(placed.programs)):
        one = placed.one(i)
        parts = [
            f"{spaced(one.how_many(state), GAP)} {word}"
            for state, word in ((INSIDE, "in"), (MASKED, "masked"), (BEYOND, "outside"))
            if one.how_many(state)
        ]
        words.append(", ".join(parts) + (" ▸" if cut else ""))
    return words


def _edge(axes: Axes, layout: Page, left: int, right: int, rows: int) -> None:
    """A line where the tensor ends (and where it begins, if lanes are before that)."""
    for column in (0, layout.columns):
        if left < column < right:
            axes.plot([column, column], [-0.2, rows - 0.1], color=style.INK, linewidth=1.1)


def _marks(axes: Axes, layout: Page, placed: Lanes, left: int, right: int) -> None:
    """Ticks at the ends of lanes and tensor, dropping those that would touch."""
    used = placed.columns[placed.states != MASKED]
    wishes = [layout.columns, 0]
    if used.size:
        wishes += [int(used.min()), int(used.max()), int(placed.columns[-1].min())]
    wishes += [int(placed.columns.min()), int(placed.columns.max())]
    ticks: list[int] = []
    for tick in wishes:
        if left <= tick <= right and all(abs(tick - t) > 0.09 * (right - left) for t in ticks):
            ticks.append(tick)
    unit = "offset in elements" if layout.step == 1 else f"index (1 cell = {layout.step} elements)"
    axes.set_xticks(ticks, [spaced(tick, GAP) for tick in ticks])
    axes.set_xlabel(unit)


def _whole_strip(
    axes: Axes, access: Access, layout: Page, close_up: tuple[int, int], below: Axes
) -> set[int]:
    """The whole tensor in one thin strip, with lines that lead to the close-up."""
    from matplotlib.patches import ConnectionPatch

    states, window, _, per = geometry.overview(access, layout, (1, 700))
    seen = paint(axes, states, (0, window[1]), (1, per))
    axes.set_xlim(window[1], window[1] + window[3])
    axes.set_ylim(1, 0)
    style.bare(axes)
    axes.set_yticks([0.5], ["all programs" if len(access.programs) > 1 else "whole"])
    axes.tick_params(axis="y", length=0)
    for column in close_up:
        inner = min(max(column, window[1]), window[1] + window[3])
        line = ConnectionPatch(
            (inner, 1),
            (column, -0.32),
            "data",
            "data",
            axesA=axes,
            axesB=below,
            color=style.MUTED,
            linewidth=0.8,
        )
        line.set_in_layout(False)
        axes.figure.add_artist(line)
    return seen


# ---------------------------------------------------------------- tensors of two and more axes


def _sheet(access: Access, layout: Page, placed: Lanes) -> Figure:
    """The tensor as a page of cells: on the left whole, on the right around the block."""
    window = _around(layout, placed)
    height, width = window[2:]
    zoomed = height * width < 0.5 * layout.rows * layout.columns
    wide = width > 3 * height or height > 3 * width
    figure = style.new_figure(3.3 if not wide else 2.6, *describe(access, placed))
    seen = set()
    if zoomed:
        side, axes = figure.subplots(1, 2, width_ratios=[1, 2.4 if wide else 1.7])
        states, whole, per_row, per_column = geometry.overview(access, layout, (200, 200))
        seen |= paint(side, states, whole[:2], (per_row, per_column))
        _frame(side, layout, whole, equal=0.2 < whole[2] / whole[3] < 5)
        side.set_xticks([0, layout.columns], ["0", spaced(layout.columns, GAP)])
        side.set_yticks([0, layout.rows], ["0", spaced(layout.rows, GAP)])
        side.set_title("the whole tensor" if len(access.programs) == 1 else "all programs")
        axes.set_title(f"program {placed.programs[0]}, close up")
        _box(side, window, style.INK)
    else:
        axes = figure.subplots()
    states, per_row, per_column = geometry.grid(layout, placed, window, (256, 512))
    cells = max(height, width) <= _CELLS
    seen |= paint(axes, states, window[:2], (per_row, per_column), gap=0.08 if cells else 0.0)
    _frame(axes, layout, window, equal=not wide)
    _corner_ticks(axes, layout, placed)
    style.legend(figure, sorted(seen))
    return figure


def _around(layout: Page, placed: Lanes) -> tuple[int, int, int, int]:
    """The window of the close-up: the lanes, and a margin where the tensor goes on."""
    top, left, height, width = placed.box
    if max(layout.rows, layout.columns) <= _FEW:  # a small tensor is shown whole
        return geometry.union((0, 0, layout.rows, layout.columns), placed.box)
    down, across = max(1, height // 6), max(1, width // 6)
    first = (max(min(0, top), top - down), max(min(0, left), left - across))
    bottom, right = top + height, left + width
    bottom = min(bottom + down, max(bottom, layout.rows))
    right = min(right + across, max(right, layout.columns))
    return (*first, bottom - first[0], right - first[1])


def _frame(axes: Axes, layout: Page, window: tuple[int, ...], equal: bool) -> None:
    """Limits, and a thin line along the tensor's own edge."""
    top, left, height, width = window
    axes.set_xlim(left, left + width)
    axes.set_ylim(top + height, top)
    axes.set_aspect("equal" if equal else "auto", anchor="W")
    style.bare(axes, keep="left bottom")
    for spine in axes.spines.values():
        spine.set_visible(False)
    _box(axes, (0, 0, layout.rows, layout.columns), style.INK)


def _box(axes: Axes, window: tuple[int, ...], colour: str) -> None:
    from matplotlib.patches import Rectangle

    top, left, height, width = window
    box = Rectangle((left, top), width, height, fill=False, edgecolor=colour, linewidth=1.0)
    axes.add_patch(box)


def _corner_ticks(axes: Axes, layout: Page, placed: Lanes) -> None:
    used = placed.states != MASKED
    for values, size, name, axis in (
        (placed.rows, layout.rows, layout.axes[0], "y"),
        (placed.columns, layout.columns, layout.axes[1], "x"),
    ):
        low, high = sorted(axes.get_ylim() if axis == "y" else axes.get_xlim())
        inner = values[used] if used.any() else values
        wishes = [size, int(inner.min()), int(inner.max()), int(values.max()), 0]
        ticks: list[int] = []
        for tick in wishes:
            if low <= tick <= high and all(abs(tick - t) > 0.12 * (high - low) for t in ticks):
                ticks.append(tick)
        labels = [spaced(tick, GAP) + (" (end)" if tick == size else "") for tick in ticks]
        if axis == "y":
            axes.set_yticks(ticks, labels)
            axes.set_ylabel(name)
        else:
            axes.set_xticks(ticks, labels)
            axes.set_xlabel(name)
