"""The pictures of lesson 06: softmax block by block, what overflows, which blocks are skipped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from autograder.render import style
from autograder.render.neutral import spaced
from autograder.render.style import (
    CELL,
    INK,
    INSIDE,
    MUTED,
    ON_FILL,
    OUTSIDE,
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

__all__ = ["causal_blocks", "heads", "memory", "numerics", "online_steps"]


# ---------------------------------------------------------------- online softmax


def online_steps(scores: Sequence[float], block: int) -> Figure:
    """One query's scores in blocks: after each block, the share that every key has so far.

    Computed here as the kernel does it: shrink = exp(m − new m), l ← l · shrink + Σ p.
    """
    scores = np.asarray(scores, np.float64)
    m, total, weights = -np.inf, 0.0, np.zeros(len(scores))
    lines = []
    for start in range(0, len(scores), block):
        part = scores[start : start + block]
        new_m = max(m, part.max())
        shrink = float(np.exp(m - new_m))
        weights *= shrink
        weights[start : start + block] = np.exp(part - new_m)
        total = total * shrink + weights[start : start + block].sum()
        m = new_m
        said = f"m = {_short(m)}   shrink = {shrink:.2f}   l = {total:.2f}"
        lines.append((start + len(part), weights / total, said))
    with look():
        figure = new_figure(
            0.6 + 0.5 * len(lines),
            "A larger maximum shrinks what is there; the last line is the softmax of the whole row",
            f"{len(scores)} keys in blocks of {block}; a number is the key's share in l so far",
        )
        axes = figure.subplots()
        bare(axes)
        end = _at(len(scores), block)
        axes.set_xlim(-2.6, end + 6.4)
        axes.set_ylim(-1.25 * len(lines) + 0.05, 2.2)
        axes.text(-0.2, 1.55, "score s", ha="right", va="center", color=INK)
        for key, score in enumerate(scores):
            x = _at(key, block) + 0.5
            axes.text(x, 1.55, _short(score), ha="center", va="center", color=INK)
        for number, (seen, shares, said) in enumerate(lines):
            y = -1.25 * number
            words = f"after block {number + 1}"
            axes.text(-0.2, y + 0.5, words, ha="right", va="center", color=INK)
            for key, share in enumerate(shares):
                _share(axes, _at(key, block), y, share, key < seen)
            axes.text(end + 0.3, y + 0.5, said, va="center", fontsize=8.8, color=MUTED)
    return figure


def _at(key: int, block: int) -> float:
    """Where a key stands: a gap after every block."""
    return key + 0.3 * (key // block)


def _share(axes: Axes, x: float, y: float, share: float, seen: bool) -> None:
    from matplotlib.colors import to_rgb
    from matplotlib.patches import Rectangle

    if not seen:
        box = Rectangle((x + 0.04, y), 0.92, 1.0, facecolor="none", edgecolor=CELL)
        axes.add_patch(box)
        return
    depth = min(1.0, 0.12 + 1.6 * share)
    colour = tuple(
        depth * a + (1 - depth) * b for a, b in zip(to_rgb(READ), (1, 1, 1), strict=True)
    )
    axes.add_patch(Rectangle((x + 0.04, y), 0.92, 1.0, facecolor=colour, edgecolor=MUTED))
    axes.text(x + 0.5, y + 0.5, f"{share:.2f}", color=ON_FILL, **style.IN_CELL)


def _short(number: float) -> str:
    return f"{number:.3g}".replace("-", "−")


def numerics(largest: Sequence[float], errors: Mapping[str, Sequence[float]]) -> Figure:
    """Largest error of several softmaxes against the size of the scores.

    ``errors``: a label → one relative error for each of ``largest``; NaN and infinity stand for a
    result that is no number, and are drawn at the top.
    """
    top = 10.0
    with look():
        figure = new_figure(
            2.9,
            "exp without the maximum ends at 88; with it, and block by block, nothing happens",
            "float32: largest error of a row's softmax, relative to the exact one; × is NaN or a "
            "row of zeros",
        )
        axes = figure.subplots()
        axes.set_xscale("log")
        axes.set_yscale("log")
        for (label, row), (colour, mark) in zip(errors.items(), _LINES, strict=False):
            row = np.asarray(row, np.float64)
            lost = ~np.isfinite(row) | (row >= 1)
            drawn = np.where(lost, np.nan, np.maximum(row, 1e-9))
            look_ = dict(color=colour, markerfacecolor="none", markersize=6)
            axes.plot(largest, drawn, mark, linestyle="-", label=label, **look_)
            gone = np.asarray(largest)[lost]
            axes.plot(gone, np.full(len(gone), top), "x", color=colour, markersize=8)
        axes.set_ylim(1e-8, 40)
        axes.set_xlabel("largest score of the row")
        axes.set_ylabel("relative error")
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_formatter(lambda value, _: f"{value:g}")
        axes.legend(loc="center right")
    return figure


_LINES = ((OUTSIDE, "o"), (READ, "s"), (WRAPPED, "^"))


# ---------------------------------------------------------------- blocks of the score matrix

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
    """Which blocks of the T × T scores a causal kernel computes, in blocks of queries and keys."""
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
        place = (j * block_n + gap, -i * block_m - height + gap)
        size = (max(width - 2 * gap, gap), max(height - 2 * gap, gap))
        axes.add_patch(Rectangle(place, *size, linewidth=0.6, **_BLOCKS[int(kind)]))
    axes.plot([0, t], [0, -t], color=INK, linewidth=0.8)
    axes.text(-0.02 * t, -t / 2, "queries", rotation=90, ha="right", va="center", color=MUTED)
    axes.text(t / 2, 0.02 * t, "keys", ha="center", va="bottom", color=MUTED)
    axes.set_xlim(-0.1 * t, 1.02 * t)
    axes.set_ylim(-1.02 * t, 0.1 * t)


# ---------------------------------------------------------------- memory, heads


def memory(lengths: Sequence[int], bytes_of: Mapping[str, Sequence[float]]) -> Figure:
    """Bytes that attention keeps against the length of the sequence, both axes logarithmic."""
    with look():
        figure = new_figure(
            2.7,
            "The scores grow with the square of the length, everything else with the length",
            "computed from shapes: batch 1, 16 heads, D = 64, 2 bytes a number",
        )
        axes = figure.subplots()
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        for (label, row), (colour, mark) in zip(bytes_of.items(), _LINES, strict=False):
            look_ = dict(color=colour, markerfacecolor="none", markersize=6)
            axes.plot(lengths, np.asarray(row) / 1e9, mark, linestyle="-", label=label, **look_)
        axes.set_xticks(lengths, [spaced(length) for length in lengths])
        axes.minorticks_off()
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axes.set_xlabel("length of the sequence, T")
        axes.set_ylabel("GB")
        axes.legend(loc="upper left")
    return figure


def heads(queries: int, keys: int) -> Figure:
    """Which key and value head each query head reads, in grouped-query attention."""
    from matplotlib.patches import Rectangle

    group = queries // keys
    with look():
        figure = new_figure(
            1.35,
            f"{queries} query heads share {keys} key heads: head h reads h // {group}",
            f"k and v are {group} times smaller, in memory and in the cache of a language model",
        )
        axes = figure.subplots()
        bare(axes)
        axes.set_xlim(-3.2, queries + 0.3)
        axes.set_ylim(-1.5, 1.9)
        axes.text(-0.2, 1.4, "query heads", ha="right", va="center", color=INK)
        axes.text(-0.2, -0.8, "key, value heads", ha="right", va="center", color=INK)
        for head in range(queries):
            colour = (READ, WRAPPED)[head // group % 2]
            axes.add_patch(Rectangle((head + 0.05, 1.0), 0.9, 0.8, facecolor=colour))
            axes.text(head + 0.5, 1.4, str(head), color=ON_FILL, **style.IN_CELL)
            middle = (head // group + 0.5) * group
            axes.plot([head + 0.5, middle], [0.95, -0.35], color=MUTED, linewidth=0.7)
        for head in range(keys):
            colour = (READ, WRAPPED)[head % 2]
            left = (head + 0.5) * group - 0.45
            axes.add_patch(Rectangle((left, -1.2), 0.9, 0.8, facecolor=colour))
            axes.text(left + 0.45, -0.8, str(head), color=ON_FILL, **style.IN_CELL)
    return figure
