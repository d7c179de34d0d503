"""The pictures of lesson 06: softmax block by block, what overflows, memory, shared heads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from autograder.render import style
from autograder.render.neutral import spaced
from autograder.render.style import (
    CELL,
    INK,
    MUTED,
    ON_FILL,
    OUTSIDE,
    READ,
    WRAPPED,
    bare,
    look,
    new_figure,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["heads", "memory", "numerics", "online_steps"]


# ---------------------------------------------------------------- online softmax


def online_steps(scores: Sequence[float], values: Sequence[float], block: int) -> Figure:
    """One query's keys in blocks: after each block, the weight e^(s − m) that every key has so far.

    ``scores`` and ``values``: a number a key. Computed here as the kernel does it:
    shrink = exp(m − new m), l ← l · shrink + Σ p, acc ← acc · shrink + Σ p v.
    """
    scores, values = np.asarray(scores, np.float64), np.asarray(values, np.float64)
    m, weights, lines = -np.inf, np.zeros(len(scores)), []
    for start in range(0, len(scores), block):
        part = slice(start, start + block)
        new_m = max(m, scores[part].max())
        shrink = float(np.exp(m - new_m))
        weights *= shrink
        weights[part] = np.exp(scores[part] - new_m)
        m = new_m
        total, acc = weights.sum(), weights @ values
        said = f"{_short(m)}", f"{shrink:.2f}", f"{total:.2f}", f"{acc:.2f}", f"{acc / total:.2f}"
        lines.append((min(start + block, len(scores)), weights.copy(), said))
    with look():
        figure = new_figure(
            0.95 + 0.42 * len(lines),
            "A larger maximum shrinks all that is there, and the sums by the same factor",
            f"one query, {len(scores)} keys in blocks of {block}; a number in a cell is the weight "
            "exp(s − m) of the key so far",
        )
        axes = figure.subplots()
        bare(axes)
        end = _at(len(scores), block)
        axes.set_xlim(-3.0, end + 6.6)
        axes.set_ylim(-1.25 * len(lines) + 0.05, 3.0)
        for y, name, row in ((2.5, "score s", scores), (1.6, "value v", values)):
            axes.text(-0.2, y, name, ha="right", va="center", color=INK)
            for key, number in enumerate(row):
                x = _at(key, block) + 0.5
                axes.text(x, y, _short(number), ha="center", va="center", color=INK)
        for column, name in enumerate(("m", "shrink", "l", "acc", "acc / l")):
            _at_right(axes, end, column, 1.6, name)
        for number, (seen, shares, said) in enumerate(lines):
            y = -1.25 * number
            words = f"after block {number + 1}"
            axes.text(-0.2, y + 0.5, words, ha="right", va="center", color=INK)
            for key, share in enumerate(shares):
                _share(axes, _at(key, block), y, share, key < seen)
            for column, word in enumerate(said):
                _at_right(axes, end, column, y + 0.5, word)
    return figure


def _at_right(axes: Axes, end: float, column: int, y: float, word: str) -> None:
    axes.text(end + 0.8 + 1.3 * column, y, word, ha="center", va="center", fontsize=8.8, color=INK)


def _at(key: int, block: int) -> float:
    """Where a key stands: a gap after every block."""
    return key + 0.3 * (key // block)


def _share(axes: Axes, x: float, y: float, share: float, seen: bool) -> None:
    """A key's cell, the darker the larger its weight; empty before its block has come."""
    from matplotlib.colors import to_rgb
    from matplotlib.patches import Rectangle

    if not seen:
        box = Rectangle((x + 0.04, y), 0.92, 1.0, facecolor="none", edgecolor=CELL)
        axes.add_patch(box)
        return
    depth = 0.1 + 0.8 * share
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
            "float32: largest error of a row's softmax, relative to the largest exact weight; × "
            "is NaN or a row of zeros",
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
            if len(gone):
                axes.text(gone[0] * 0.9, top, "no number", ha="right", va="center")
        axes.set_ylim(1e-8, 40)
        axes.set_xlabel("largest score of the row")
        axes.set_ylabel("relative error")
        axes.set_yticks([1e-8, 1e-6, 1e-4, 1e-2, 1], ["1e−8", "1e−6", "1e−4", "1e−2", "1"])
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axes.minorticks_off()
        axes.legend(loc="center right")
    return figure


_LINES = ((OUTSIDE, "o"), (READ, "s"), (WRAPPED, "^"))


# ---------------------------------------------------------------- memory, heads


def memory(lengths: Sequence[int], bytes_of: Mapping[str, Sequence[float]]) -> Figure:
    """Bytes that attention keeps against the length of the sequence, both axes logarithmic."""
    with look():
        figure = new_figure(
            2.7,
            "The scores grow with the square of the length, all the rest with the length",
            "computed from shapes: batch 1, 16 heads, D = 64, 2 bytes a number",
        )
        axes = figure.subplots()
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        for (label, row), (colour, mark) in zip(bytes_of.items(), _LINES, strict=False):
            look_ = dict(color=colour, markerfacecolor="none", markersize=6)
            axes.plot(lengths, np.asarray(row) / 1e9, mark, linestyle="-", label=label, **look_)
            words = dict(xytext=(7, -3), textcoords="offset points")
            axes.annotate(f"{row[-1] / 1e9:.2g} GB", (lengths[-1], row[-1] / 1e9), **words)
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
            f"k and v are {group} times smaller; a model that writes keeps both for each token",
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
