"""Kernels as boxes: what each reads from memory and writes back, one row of boxes a solution."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from autograder.render.style import CELL, INK, MUTED, ON_FILL, READ, bare, legend, look, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["Solution", "passes"]

_BOXES = {
    "read": dict(facecolor=CELL, edgecolor=MUTED),
    "written": dict(facecolor=READ, edgecolor=MUTED),
}


@dataclass(frozen=True)
class Solution:
    """One way to the result: kernels as (formula, boxes), and the sum of what they move.

    A box is a tensor's name: ``"x"`` is read, ``"→ y"`` is written, and one in brackets, such as
    ``"(m)"`` or ``"→ (m)"``, is so small beside the others that it does not count.
    """

    kernels: Sequence[tuple[str, Sequence[str]]]
    total: str


def passes(solutions: Sequence[Solution], title: str, subtitle: str) -> Figure:
    """The solutions below one another, drawn to one scale."""
    with look():
        figure = new_figure(0.55 + 0.85 * len(solutions), title, subtitle)
        axes = figure.subplots()
        bare(axes)
        width = 0.0
        for line, solution in enumerate(solutions):
            y = 1.6 * (len(solutions) - 1 - line)
            x = 0.0
            for formula, boxes in solution.kernels:
                axes.text(x, y + 0.85, formula, fontsize=9, color=INK, va="bottom")
                for box in boxes:
                    x += _box(axes, x, y, box) + 0.1
                x += 0.5
            place = dict(fontsize=13, weight="bold", va="center", color=INK)
            axes.text(x + 0.1, y + 0.35, solution.total, **place)
            width = max(width, x + 0.7 * len(solution.total) * 0.6 + 0.6)
        axes.set_xlim(-0.1, width)
        axes.set_ylim(-0.2, 1.6 * len(solutions) - 0.3)
        legend(figure, _BOXES, _BOXES, {box: box for box in _BOXES})
    return figure


def _box(axes: Axes, x: float, y: float, name: str) -> float:
    from matplotlib.patches import Rectangle

    written, name = name.startswith("→ "), name.removeprefix("→ ")
    small, name = name.startswith("("), name.strip("()")
    width, height = (0.55, 0.42) if small else (1.5, 0.7)
    box = Rectangle(
        (x, y), width, height, linewidth=0.8, **_BOXES["written" if written else "read"]
    )
    axes.add_patch(box)
    place = dict(ha="center", va="center", color=ON_FILL, fontsize=8 if small else 9.5)
    axes.text(x + width / 2, y + height / 2, name, **place)
    return width
