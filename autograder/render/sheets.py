"""Lanes over a tensor of two or more axes: a page of cells, whole and close up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from autograder.records import Access
from autograder.render import geometry, style
from autograder.render.cells import CELLS, FEW, GAP, closer, describe, paint, ticks
from autograder.render.geometry import Lanes, Page
from autograder.render.neutral import spaced
from autograder.render.style import BEYOND, MASKED

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["sheet"]


def sheet(access: Access, layout: Page, placed: Lanes) -> Figure:
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
    cells = max(height, width) <= CELLS
    seen |= paint(axes, states, window[:2], (per_row, per_column), gap=0.08 if cells else 0.0)
    _frame(axes, layout, window, equal=not wide)
    _corner_ticks(axes, layout, placed)
    style.legend(figure, seen)
    return figure


def _around(layout: Page, placed: Lanes) -> tuple[int, int, int, int]:
    """The window of the close-up: the lanes, and a margin where the tensor goes on."""
    top, left, height, width = placed.box
    if max(layout.rows, layout.columns) <= FEW:  # a small tensor is shown whole
        top, left, height, width = geometry.union((0, 0, layout.rows, layout.columns), placed.box)
        # A pitch that is far too small throws lanes far out: the tensor must not become a speck.
        return top, left, min(height, 3 * layout.rows + 12), min(width, 3 * layout.columns + 12)
    down, across = max(1, height // 6), max(1, width // 6)
    first = (max(min(0, top), top - down), max(min(0, left), left - across))
    bottom, right = top + height, left + width
    bottom = min(bottom + down, max(bottom, layout.rows))
    right = min(right + across, max(right, layout.columns))
    outside = placed.states == BEYOND
    if outside.any():
        rows, columns = placed.rows[outside], placed.columns[outside]
        top, bottom = closer(first[0], bottom, int(rows.min()), int(rows.max()) + 1)
        left, right = closer(first[1], right, int(columns.min()), int(columns.max()) + 1)
        first = (top, left)
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
        chosen = ticks(wishes, low, high, 0.12)
        labels = [spaced(tick, GAP) + (" (end)" if tick == size else "") for tick in chosen]
        if axis == "y":
            axes.set_yticks(chosen, labels)
            axes.set_ylabel(name)
        else:
            axes.set_xticks(chosen, labels)
            axes.set_xlabel(name)
