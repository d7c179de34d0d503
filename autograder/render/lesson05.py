"""The pictures of lesson 05: blocks of addresses, tiles under the roof, orders, what L2 fetches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from autograder.ir.cards import DEFAULT, card
from autograder.render import style
from autograder.render.neutral import spaced
from autograder.render.passes import Solution, passes
from autograder.render.style import (
    BEYOND,
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
    look,
    new_figure,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["addresses", "epilogue", "fetches", "formats", "orders", "tile_roof"]


def addresses(
    rows: Sequence[int], cols: Sequence[int], shape: tuple[int, int], strides: tuple[int, int]
) -> Figure:
    """How rows[:, None] · stride + cols[None, :] · stride becomes a block of offsets.

    ``shape`` and ``strides`` (in elements) of the matrix; ``rows`` and ``cols`` may lie past its
    end: such lanes are the ones to mask.
    """
    height, width = shape
    inside = sum(r < height for r in rows) * sum(c < width for c in cols)
    lanes = len(rows) * len(cols)
    with look():
        figure = new_figure(
            0.42 * max(height, len(rows) + 1) + 0.75,
            "A column of rows and a row of columns add up to a block of offsets",
            f"a matrix of {height} × {width} with strides {strides[0]} and {strides[1]}; {inside} "
            f"of {lanes} lanes have an element",
        )
        left, right = figure.subplots(1, 2, width_ratios=(len(cols) + 4.4, width + 1.2))
        for axes in (left, right):
            bare(axes)
            axes.set_aspect("equal")
            axes.set_anchor("NW")
        _sum(left, rows, cols, shape, strides)
        _matrix(right, rows, cols, shape, strides)
        seen = (style.ARRAY, INSIDE, BEYOND) if inside < lanes else (style.ARRAY, INSIDE)
        words = style.STATE_WORDS | {BEYOND: "lane without an element"}
        style.legend(figure, seen, looks=_FRAME, words=words)
    return figure


def _sum(axes: Axes, rows, cols, shape, strides) -> None:
    """The two vectors, and the block that they give."""
    x0 = 3.4
    axes.set_xlim(-0.2, x0 + len(cols) + 0.2)
    axes.set_ylim(-len(rows) - 0.3, 2.1)
    place = dict(fontsize=8.5, color=MUTED)
    axes.text(0, 1.85, f"rows[:, None] · {strides[0]}", va="top", **place)
    axes.text(x0, 1.85, f"+ cols[None, :] · {strides[1]}", va="top", **place)
    for j, col in enumerate(cols):
        _box(axes, x0 + j, 0.25, col * strides[1], style.ARRAY)
    for i, row in enumerate(rows):
        _box(axes, 1.2, -1 - i, row * strides[0], style.ARRAY)
        for j, col in enumerate(cols):
            state = INSIDE if row < shape[0] and col < shape[1] else BEYOND
            _box(axes, x0 + j, -1 - i, row * strides[0] + col * strides[1], state)


def _matrix(axes: Axes, rows, cols, shape, strides) -> None:
    """The matrix with the offset of every element, the block's lanes in blue."""
    height, width = shape
    axes.set_xlim(-1.0, width + 0.2)
    axes.set_ylim(-height - 0.2, 2.1)
    for c in range(width):
        axes.text(c + 0.5, 0.15, str(c), ha="center", fontsize=8, color=MUTED)
    for r in range(height):
        axes.text(-0.25, -r - 0.5, str(r), ha="right", va="center", fontsize=8, color=MUTED)
        for c in range(width):
            state = INSIDE if r in rows and c in cols else style.ARRAY
            _box(axes, c, -1 - r, r * strides[0] + c * strides[1], state)
    axes.text(0, 1.85, "the matrix: offset of each element", va="top", fontsize=8.5, color=MUTED)


# The hatch of the other pictures would cross the numbers, so a frame marks the lanes beyond.
_FRAME = STATES | {BEYOND: dict(facecolor="none", edgecolor=OUTSIDE)}


def _box(axes: Axes, x: float, y: float, number: int, state: int) -> None:
    from matplotlib.patches import Rectangle

    box = Rectangle((x + 0.05, y + 0.05), 0.9, 0.9, linewidth=1.1, **_FRAME[state])
    axes.add_patch(box)
    ink = INK if state == BEYOND else ON_FILL
    axes.text(x + 0.5, y + 0.5, str(number), color=ink, **style.IN_CELL)


# ---------------------------------------------------------------- number formats


def formats() -> Figure:
    """Bits of the formats that meet in a matmul: how far they reach, how finely they tell apart."""
    rows = (("float32", 8, 23), ("TF32", 8, 10), ("float16", 5, 10), ("bfloat16", 8, 7))
    with look():
        figure = new_figure(
            1.75,
            "TF32 has the range of float32 and the steps of float16",
            "sign, exponent (range) and fraction (steps); tl.dot on a card cuts float32 to TF32 "
            "unless told otherwise",
        )
        axes = figure.subplots()
        bare(axes)
        axes.set_xlim(-5.2, 40)
        axes.set_ylim(-len(rows) * 1.2 + 0.2, 1.0)
        for line, (name, exponent, fraction) in enumerate(rows):
            y = -1.2 * line
            axes.text(-0.6, y + 0.5, name, ha="right", va="center", color=INK)
            x = 0
            for bits, colour in ((1, MUTED), (exponent, WRAPPED), (fraction, READ)):
                for _ in range(bits):
                    _bit(axes, x, y, colour)
                    x += 1
            words = f"steps of 2⁻{str(fraction).translate(_RAISED)} between 1 and 2"
            axes.text(32.6, y + 0.5, words, va="center", fontsize=8.5, color=MUTED)
    return figure


_RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def _bit(axes: Axes, x: float, y: float, colour: str) -> None:
    from matplotlib.patches import Rectangle

    axes.add_patch(Rectangle((x, y), 0.9, 0.9, facecolor=colour, edgecolor="none"))


# ---------------------------------------------------------------- tiles under the roof


def tile_roof(sides: Sequence[int], itemsize: int = 2, name: str = DEFAULT) -> Figure:
    """What square tiles would reach if every load went to memory (a prediction).

    A tile of side s does 2 s² operations on 2 s numbers of ``itemsize`` bytes, for each step of
    depth 1 along K: s ÷ itemsize FLOP a byte. Bandwidth times that is the roof, up to the peak.
    """
    row = card(name)
    ridge = row.bf16_tflops / row.bandwidth * 1e3
    with look():
        figure = new_figure(
            2.5,
            f"{row.name}: tiles of 128 × 128 are not enough, if every load goes to memory",
            f"predicted: {row.bandwidth:g} GB/s × FLOP a byte, up to {row.bf16_tflops:g} TFLOP/s; "
            f"the tensor cores are busy from {ridge:.0f} FLOP a byte on",
        )
        axes = figure.subplots()
        for at, side in enumerate(sides):
            intensity = side / itemsize
            speed = min(row.bf16_tflops, row.bandwidth * intensity / 1e3)
            axes.bar([at], [speed], width=0.6, color=READ)
            words = f"{intensity:g} FLOP a byte\n{speed:.0f} TFLOP/s"
            foot = speed + 2 if speed < 0.75 * row.bf16_tflops else row.bf16_tflops + 2
            axes.text(at, foot, words, ha="center", va="bottom", fontsize=8.8, color=INK)
        axes.axhline(row.bf16_tflops, color=OUTSIDE, linewidth=1.0, linestyle="--")
        said = f"all that the tensor cores can do: {row.bf16_tflops:g} TFLOP/s"
        axes.text(-0.4, row.bf16_tflops + 2, said, va="bottom", fontsize=8.8, color=INK)
        axes.set_xticks(range(len(sides)), [f"{side} × {side}" for side in sides])
        axes.set_ylim(0, row.bf16_tflops * 1.35)
        axes.set_ylabel("TFLOP/s")
        axes.set_xlabel("tile of the result that one program computes")
    return figure


# ---------------------------------------------------------------- the order of programs


def orders(maps: Mapping[str, Sequence[tuple[int, int]]], at_once: int) -> Figure:
    """Which tiles the first ``at_once`` programs own, and which strips of a and b they read.

    ``maps``: a name → tiles (row, column) in program order; all maps have one number of rows and
    columns of tiles.
    """
    tiles = next(iter(maps.values()))
    rows, columns = (1 + max(axis) for axis in zip(*tiles, strict=True))
    read = {name: _strips(order[:at_once]) for name, order in maps.items()}
    with look():
        figure = new_figure(
            3.5,
            f"{at_once} programs at a time share strips: the squarer they stand, the fewer",
            f"{rows} × {columns} tiles; light to dark: the order of program ids; darker strips at "
            "the edges: those that they read",
        )
        for axes, (name, order) in zip(
            figure.subplots(1, len(maps), squeeze=False)[0], maps.items(), strict=True
        ):
            _order(axes, name, order, at_once, rows, columns, read[name])
    return figure


def _strips(tiles: Sequence[tuple[int, int]]) -> tuple[set[int], set[int]]:
    return {row for row, _ in tiles}, {column for _, column in tiles}


def _order(axes: Axes, name, order, at_once, rows, columns, read) -> None:
    from matplotlib import colormaps
    from matplotlib.patches import Rectangle

    bare(axes)
    axes.set_aspect("equal")
    axes.set_anchor("NW")
    axes.set_xlim(-2.6, columns + 0.3)
    axes.set_ylim(-rows - 0.3, 7.0)
    axes.text(-1.7, 6.8, name, va="top", color=INK, weight="bold")
    shades = colormaps["cividis_r"]
    # Not filled: on a dark page a grey would be the shade of the tiles in the middle.
    axes.add_patch(Rectangle((0, -rows), columns, rows, facecolor="none", edgecolor=MUTED))
    for number, (row, column) in enumerate(order[:at_once]):
        colour = shades(0.15 + 0.8 * number / at_once)
        axes.add_patch(Rectangle((column, -row - 1), _SIDE, _SIDE, facecolor=colour))
    for row in range(rows):
        colour = READ if row in read[0] else CELL
        axes.add_patch(Rectangle((-1.7, -row - 1), 1.1, _SIDE, facecolor=colour))
    for column in range(columns):
        colour = READ if column in read[1] else CELL
        axes.add_patch(Rectangle((column, 0.6), _SIDE, 1.1, facecolor=colour))
    said = [f"{len(strips)} strips of {name}" for strips, name in zip(read, "ab", strict=True)]
    axes.text(-2.0, -rows / 2, said[0], rotation=90, ha="right", va="center", **_SMALL)
    axes.text(columns / 2, 1.9, said[1], ha="center", va="bottom", **_SMALL)
    path = np.array(order[:at_once], np.float64)
    axes.plot(path[:, 1] + _SIDE / 2, -path[:, 0] - 1 + _SIDE / 2, color=OUTSIDE, linewidth=0.7)


_SIDE = 0.8  # of a tile; what is left to 1 is a gap that stays visible in a small picture
_SMALL = dict(fontsize=8.5, color=MUTED)


def fetches(
    groups: Sequence[int],
    predicted: Mapping[str, Sequence[float]],
    measured: Mapping[str, Sequence[float]],
    title: str,
    subtitle: str = "",
) -> Figure:
    """GB that have to come from memory, by the number of tile rows in a group.

    ``predicted`` and ``measured``: a label → one number for each of ``groups``.
    """
    with look():
        figure = new_figure(2.9, title, subtitle)
        axes = figure.subplots()
        axes.set_xscale("log", base=2)
        for (label, numbers), (colour, mark) in zip(predicted.items(), _LINES, strict=False):
            axes.plot(
                groups,
                numbers,
                mark,
                linestyle="-",
                color=colour,
                markerfacecolor="none",
                markersize=6,
                label=f"{label} (predicted)",
            )
        for label, numbers in measured.items():
            axes.plot(groups, numbers, "x", color=INK, markersize=8, label=f"{label} (measured)")
        axes.set_xticks(groups, [spaced(group) for group in groups])
        axes.minorticks_off()
        axes.set_ylim(bottom=0)
        axes.set_xlabel("rows of tiles in a group (1: row by row)")
        axes.set_ylabel("GB from memory")
        axes.legend(loc="upper right")
    return figure


_LINES = ((READ, "o"), (WRAPPED, "s"), (OUTSIDE, "^"))


# ---------------------------------------------------------------- fused into the matmul


def epilogue() -> Figure:
    """matmul, bias and gelu as three kernels and as one: boxes are tensors of M × N."""
    apart = (
        ("c = a · b", ("(a)", "(b)", "→ c")),
        ("z = c + bias", ("c", "(bias)", "→ z")),
        ("y = gelu(z)", ("z", "→ y")),
    )
    fused = (("y = gelu(a · b + bias)", ("(a)", "(b)", "(bias)", "→ y")),)
    return passes(
        (Solution(apart, "5MN"), Solution(fused, "MN")),
        "The epilogue is free while the tile is in registers",
        "every large box is M × N numbers; a and b are the same in both and stand apart",
    )
