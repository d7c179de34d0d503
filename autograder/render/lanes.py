"""The picture of one memory operation: its lanes over the cells of its tensor."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from autograder.records import Access, Finding
from autograder.render import geometry, style
from autograder.render.cells import FEW, GAP, closer, describe, paint, ticks
from autograder.render.geometry import Lanes, Page
from autograder.render.neutral import count, neutral, spaced
from autograder.render.sheets import sheet
from autograder.render.style import ARRAY, BEYOND, INSIDE, MASKED

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["lanes_over_array", "paint_row", "shows_its_fault"]

_DIGITS = 90  # that fit side by side into a strip of cells


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
        return sheet(access, layout, placed)


def shows_its_fault(finding: Finding) -> bool:
    """Whether the lanes of a finding's access, drawn over their tensor, show what is wrong.

    Lanes outside do. A race, or a number that nobody wrote, looks like any other access: it takes
    two programs, or what happened before, to see it.
    """
    access = finding.access
    if access is None or not len(access.programs):
        return False
    return bool((access.active & ~access.inside).any())


def _telling(access: Access, program: int | None, most: int) -> np.ndarray:
    if program is not None or len(access.programs) <= most:
        return geometry.select(access, program, most)
    axes = tuple(range(1, access.offsets.ndim))
    outside = np.flatnonzero((access.active & ~access.inside).any(axis=axes))
    last = int(outside[0]) if outside.size else len(access.programs) - 1
    return np.arange(max(0, last - (most - 1 if most == 1 else 1)), last + 1)


# ---------------------------------------------------------------- tensors of one axis


def _strips(access: Access, layout: Page, placed: Lanes) -> Figure:
    """The tensor as a strip, and a strip of lanes below it for every program."""
    left, right, cut = _stretch(layout, placed)
    n = layout.columns
    reach = int(min(placed.columns.min(), 0)), int(max(placed.columns.max() + 1, n))
    zoomed = right - left < 0.7 * (reach[1] - reach[0])
    rows = 1 + len(placed.programs)
    figure = style.new_figure(
        0.62 + 0.4 * rows + (0.62 if zoomed else 0), *describe(access, placed)
    )
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
    style.legend(figure, seen)
    return figure


def _stretch(layout: Page, placed: Lanes) -> tuple[int, int, bool]:
    """First and last column of the close-up, and whether lanes go on beyond it."""
    low, high = int(placed.columns.min()), int(placed.columns.max()) + 1
    n = layout.columns
    if n <= FEW:
        low, high = min(low, 0), max(high, n)
    margin = max(1, (high - low) // 14)
    left = low if low == 0 and n <= FEW else low - margin
    left = max(left, 0) if low >= 0 else left
    right = high + margin if high < n or n > FEW else high
    have = max(0, min(n, right) - max(0, left))
    most = have + max(5 * have, 24)  # a block far larger than the tensor would make a speck of it
    if high - low > most and have:
        if high > n:
            right = min(right, n + most - have)
        if low < 0:
            left = max(left, have - most)
    if placed.how_many(BEYOND):
        outside = placed.columns[placed.states == BEYOND]
        left, right = closer(left, right, int(outside.min()), int(outside.max()) + 1)
    return left, right, low < left or high > right


def paint_row(
    axes: Axes, layout: Page, placed: Lanes | None, left: int, right: int, y: float
) -> set:
    """One strip of cells at height ``y``: of the tensor, or of one program's lanes."""
    window = (0, left, 1, right - left)
    if placed is None:
        states, _, per = geometry.grid(layout, None, window, (1, 4096))
    else:
        empty = Page(0, 0, (), layout.step, layout.low, layout.axes)
        states, _, per = geometry.grid(empty, placed, window, (1, 4096))
    few = right - left <= FEW
    seen = paint(axes, states, (y, left), (0.8, per), gap=0.1 if few else 0.0)
    if few:
        _numbers(axes, layout, placed, left, right, y)
    return seen


def _numbers(
    axes: Axes, layout: Page, placed: Lanes | None, left: int, right: int, y: float
) -> None:
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
    digits = max((len(str(number)) for _, number, _ in spots), default=1)
    if digits * (right - left) > _DIGITS:
        return
    for column, number, state in spots:
        colour = {BEYOND: style.PAPER, MASKED: style.MUTED}.get(state, style.ON_FILL)
        text = axes.text(column + 0.5, y + 0.41, str(number), color=colour, **style.IN_CELL)
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
    chosen = ticks(wishes, left, right, 0.09)
    unit = "offset in elements" if layout.step == 1 else f"index (1 cell = {layout.step} elements)"
    axes.set_xticks(chosen, [spaced(tick, GAP) for tick in chosen])
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
