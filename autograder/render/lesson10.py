"""The picture of lesson 10: languages for kernels by what one writes and what one decides."""

from __future__ import annotations

from typing import TYPE_CHECKING

from autograder.render.style import CELL, INK, MUTED, ON_FILL, READ, bare, look, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["levels"]

_DECISIONS = (
    "what is\nfused",
    "what a block is,\nwho owns it",
    "where a tile\nlies",
    "which thread\nhas what",
    "what a thread\ndoes",
)
# What one writes, and how many of the decisions are one's own: that many from the left.
_LANGUAGES = (
    ("PyTorch", "operations", 0),
    ("torch.compile", "operations", 0),
    ("Triton", "the work of a block", 2),
    ("TileLang", "the work of a block", 3),
    ("CUTLASS / CuTe", "tiles and layouts", 4),
    ("CUDA C++", "the work of a thread", 5),
)


def levels() -> Figure:
    """A row a language, a column a decision: filled where the writer takes it."""
    from matplotlib.patches import Patch, Rectangle

    with look():
        figure = new_figure(
            3.1,
            "From row to row less is left to the compiler, and more has to be written",
            "a rough map: many of these languages let one reach further down in places",
        )
        axes = figure.subplots()
        bare(axes)
        axes.set_xlim(-3.3, len(_DECISIONS) + 0.1)
        axes.set_ylim(-len(_LANGUAGES) - 0.1, 1.0)
        for column, words in enumerate(_DECISIONS):
            place = dict(ha="center", va="center", fontsize=8.5, color=MUTED)
            axes.text(column + 0.5, 0.5, words, **place)
        for row, (name, written, own) in enumerate(_LANGUAGES):
            axes.text(-3.2, -row - 0.5, name, va="center", color=INK, weight="bold")
            axes.text(-1.75, -row - 0.5, written, va="center", fontsize=8.5, color=MUTED)
            others = "library" if name == "PyTorch" else "compiler"
            for column in range(len(_DECISIONS)):
                yours = column < own
                box = Rectangle(
                    (column + 0.04, -row - 0.92),
                    0.92,
                    0.84,
                    facecolor=READ if yours else CELL,
                    edgecolor="none",
                )
                axes.add_patch(box)
                said = dict(ha="center", va="center", fontsize=8.5, color=ON_FILL)
                axes.text(column + 0.5, -row - 0.5, "you" if yours else others, **said)
        handles = [Patch(color=READ, label="you decide"), Patch(color=CELL, label="it decides")]
        figure.legend(handles=handles, loc="outside lower left", ncols=2)
    return figure
