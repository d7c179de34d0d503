"""The two pictures of lesson 06 that show the T × T square: who writes it, what causal skips."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from autograder.render.neutral import spaced
from autograder.render.style import (
    CELL,
    DONE,
    INK,
    INSIDE,
    MUTED,
    ON_FILL,
    READ,
    STATES,
    WRAPPED,
    bare,
    legend,
    look,
    new_figure,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["causal_blocks", "square"]

# ---------------------------------------------------------------- eager against blocks

TENSOR, WRITTEN, NOW, BEFORE, NEVER = range(5)
_PARTS = {
    TENSOR: dict(facecolor=CELL, edgecolor="none"),
    WRITTEN: dict(facecolor=WRAPPED, edgecolor="none"),
    NOW: dict(facecolor=READ, edgecolor="none"),
    BEFORE: dict(facecolor=DONE, edgecolor="none"),
    NEVER: dict(facecolor="none", edgecolor=MUTED, linestyle=(0, (3, 3))),
}
_PART_WORDS = {
    TENSOR: "in memory",
    WRITTEN: "a T × T result in memory",
    NOW: "one program, now",
    BEFORE: "the blocks before",
    NEVER: "never written",
}


def square(blocks: int = 6, row: int = 3, column: int = 2) -> Figure:
    """Attention of one head in eager PyTorch and in blocks; a scheme, not to scale.

    ``blocks`` of queries and of keys; the program of block ``row`` is at the block ``column``.
    Raises ValueError if there is no such block.
    """
    if not (0 <= row < blocks and 0 <= column < blocks):
        raise ValueError(f"block {row}, {column} is none of {blocks} × {blocks} blocks.")
    with look():
        figure = new_figure(
            2.9,
            "Eager attention writes a T × T square; FlashAttention keeps one block of it",
            "one head: queries from top to bottom, keys from left to right; q, k, v and o are "
            "T × D and thin",
        )
        left, right = figure.subplots(1, 2)
        for axes, name in ((left, "eager PyTorch"), (right, "FlashAttention")):
            bare(axes)
            axes.set_aspect("equal")
            axes.set_anchor("NW")
            axes.set_title(name, color=INK)
            _thin(axes, blocks)
        _rectangle(left, (0, 0), (blocks, blocks), WRITTEN)
        left.text(blocks / 2, blocks / 2, "S, then P", ha="center", va="center", color=ON_FILL)
        _rectangle(right, (0, 0), (blocks, blocks), NEVER)
        for j in range(column):
            _rectangle(right, (j, row), (1, 1), BEFORE)
        if column + 1 < blocks:
            arrow = dict(arrowstyle="->", color=MUTED, linewidth=1.0)
            place = dict(xytext=(column + 1.15, row + 0.5), xy=(blocks - 0.15, row + 0.5))
            right.annotate("", arrowprops=arrow, **place)
        for place, size in (
            ((column, row), (1, 1)),
            ((-1.1, row), (0.7, 1)),
            ((blocks + 0.4, row), (0.7, 1)),
            ((column, -1.1), (1, 0.7)),
            ((column, -2.0), (1, 0.7)),
        ):
            _rectangle(right, place, size, NOW)
        legend(figure, range(5), looks=_PARTS, words=_PART_WORDS)
    return figure


def _thin(axes: Axes, blocks: int) -> None:
    """q and o beside the square, k and v above it, with their names."""
    for name, (x, y), (width, height) in (
        ("q", (-1.1, 0), (0.7, blocks)),
        ("o", (blocks + 0.4, 0), (0.7, blocks)),
        ("v", (0, -1.1), (blocks, 0.7)),
        ("k", (0, -2.0), (blocks, 0.7)),
    ):
        _rectangle(axes, (x, y), (width, height), TENSOR)
        if width > height:
            axes.text(-0.25, y + height / 2, name, ha="right", va="center", color=INK)
        else:
            side, at = ("right", x - 0.1) if x < 0 else ("left", x + width + 0.15)
            axes.text(at, blocks / 2, name, ha=side, va="center", color=INK)
    axes.set_xlim(-1.7, blocks + 1.8)
    axes.set_ylim(blocks + 0.2, -2.2)  # queries go down, as rows do


def _rectangle(axes: Axes, place, size, part: int, gap: float = 0.05) -> None:
    from matplotlib.patches import Rectangle

    (x, y), (width, height) = place, size
    corner = (x + gap, y + gap)
    axes.add_patch(Rectangle(corner, width - 2 * gap, height - 2 * gap, **_PARTS[part]))


# ---------------------------------------------------------------- what a causal kernel computes

WHOLE, CROSSED, SKIPPED = range(3)
_BLOCKS = {
    WHOLE: STATES[INSIDE],
    CROSSED: dict(facecolor=WRAPPED, edgecolor="none"),
    SKIPPED: dict(facecolor="none", edgecolor=MUTED, hatch="////"),
}
_BLOCK_WORDS = {
    WHOLE: "every query sees every key",
    CROSSED: "needs a mask",
    SKIPPED: "skipped: neither loaded nor computed",
}


def causal_blocks(t: int, block_m: int, block_n: int) -> Figure:
    """Which blocks of the T × T scores a causal kernel computes, and where each program stops."""
    rows, columns = -(-t // block_m), -(-t // block_n)
    kinds = np.full((rows, columns), SKIPPED)
    for i in range(rows):
        first, last = i * block_m, min((i + 1) * block_m, t) - 1
        for j in range(columns):
            if j * block_n <= last:
                inside = (j + 1) * block_n - 1 <= first and (j + 1) * block_n <= t
                kinds[i, j] = WHOLE if inside else CROSSED
    done = int((kinds != SKIPPED).sum())
    with look():
        figure = new_figure(
            3.1,
            f"A causal kernel computes {done} of {kinds.size} blocks",
            f"{spaced(t)} queries in blocks of {block_m}, {spaced(t)} keys in blocks of {block_n}; "
            "query i sees keys 0 … i",
        )
        axes = figure.subplots()
        bare(axes)
        axes.set_aspect("equal")
        axes.set_anchor("NW")
        _grid(axes, kinds, t, block_m, block_n)
        legend(figure, np.unique(kinds).tolist(), looks=_BLOCKS, words=_BLOCK_WORDS)
    return figure


def _grid(axes: Axes, kinds: np.ndarray, t: int, block_m: int, block_n: int) -> None:
    from matplotlib.patches import Rectangle

    gap = 0.006 * t
    for (i, j), kind in np.ndenumerate(kinds):
        height, width = min(block_m, t - i * block_m), min(block_n, t - j * block_n)
        place = (j * block_n + gap, i * block_m + gap)
        size = (max(width - 2 * gap, gap), max(height - 2 * gap, gap))
        axes.add_patch(Rectangle(place, *size, linewidth=0.6, **_BLOCKS[int(kind)]))
    for i, row in enumerate(kinds):
        middle = (i * block_m + min((i + 1) * block_m, t)) / 2
        last = min((i + 1) * block_m, t) - 1
        words = f"program {i}: last query {last}, {(row != SKIPPED).sum()} blocks of keys"
        axes.text(1.04 * t, middle, words, ha="left", va="center", fontsize=8.8, color=MUTED)
    axes.plot([0, t], [0, t], color=INK, linewidth=0.8)
    axes.text(-0.02 * t, t / 2, "queries", rotation=90, ha="right", va="center", color=MUTED)
    axes.text(t / 2, -0.02 * t, "keys", ha="center", va="bottom", color=MUTED)
    axes.set_xlim(-0.1 * t, 2.2 * t)
    axes.set_ylim(1.02 * t, -0.1 * t)
