"""The pictures of lesson 01: the machine, blocks and owners, rows in memory, tiles and traffic."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from autograder.ir.cards import DEFAULT, card
from autograder.render.neutral import count, spaced
from autograder.render.style import (
    ARRAY,
    BEYOND,
    CELL,
    DONE,
    INK,
    INSIDE,
    MASKED,
    MUTED,
    NEXT_ROW,
    ON_FILL,
    OUTSIDE,
    PAPER,
    READ,
    STATE_WORDS,
    STATES,
    bare,
    legend,
    look,
    new_figure,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["blocks", "machine", "rows", "tile_time", "tiles"]


def machine(name: str = DEFAULT) -> Figure:
    """Where numbers can be on a card, from its memory to the registers of one SM."""
    row = card(name)
    registers = row.registers_per_sm * 4 // 1024
    inside = (
        (5.0, READ, "arithmetic"),
        (4.25, DONE, f"registers, {registers} KB"),
        (3.5, CELL, f"shared memory, {row.shared_per_block // 1024} KB"),
    )
    outside = (
        (1.7, f"L2 cache: {row.l2_mb:g} MB, for all SMs together"),
        (0.1, f"memory (DRAM): gigabytes, {row.bandwidth:g} GB/s"),
    )
    with look():
        figure = new_figure(
            3.4,
            f"{row.name}: the nearer to the arithmetic, the less room there is",
            f"{row.sms} SMs; from the data sheet; shared memory: what one program may have",
        )
        axes = figure.subplots()
        bare(axes)
        axes.set_xlim(0, 12)
        axes.set_ylim(0, 6.2)
        for x, number in ((0.6, "SM 0"), (4.5, "SM 1"), (8.4, f"SM {row.sms - 1}")):
            _panel(axes, (x, 3.3), (3.0, 2.8), "none")
            axes.text(x + 1.5, 5.82, number, ha="center", va="center", weight="bold")
            for y, colour, words in inside:
                _panel(axes, (x + 0.2, y), (2.6, 0.6), colour)
                axes.text(
                    x + 1.5, y + 0.3, words, ha="center", va="center", color=ON_FILL, size=8.5
                )
            _arrow(axes, x + 1.5, 2.65, 3.3)
        axes.text(7.95, 4.7, "…", ha="center", va="center", fontsize=12, color=MUTED)
        for y, words in outside:
            _panel(axes, (0.6, y), (10.8, 0.95), CELL)
            axes.text(6, y + 0.47, words, ha="center", va="center", color=ON_FILL)
        _arrow(axes, 6, 1.05, 1.7)
    return figure


def _panel(axes: Axes, corner: tuple[float, float], size: tuple[float, float], colour: str) -> None:
    from matplotlib.patches import Rectangle

    axes.add_patch(Rectangle(corner, *size, facecolor=colour, edgecolor=MUTED, linewidth=0.8))


def _arrow(axes: Axes, x: float, low: float, high: float) -> None:
    style = dict(arrowstyle="<->", color=MUTED, linewidth=1, shrinkA=0, shrinkB=0)
    axes.annotate("", (x, low), (x, high), arrowprops=style)


def blocks(n: int, block: int, masked: bool = True) -> Figure:
    """An array of ``n`` numbers, and below it the blocks of cdiv(n, block) programs, lane by lane.

    ``masked``: lanes without a number are drawn as switched off, otherwise as outside.
    """
    programs = -(-n // block)
    total = programs * block
    empty = total - n
    point = f"{count(programs, 'program')} of {count(block, 'lane')} for {count(n, 'number')}"
    if empty:
        point += f": the last one has {count(empty, 'lane')} too many"
    with look():
        figure = new_figure(1.75, point, "a lane takes the number above it")
        axes = figure.subplots()
        bare(axes)
        axes.set_xlim(-3.2, max(total, 10) + 0.1)
        axes.set_ylim(-0.9, 2.5)
        axes.text(-0.3, 1.9, "offset", ha="right", va="center", color=MUTED)
        axes.text(-0.3, 0.5, "lane", ha="right", va="center", color=MUTED)
        for offset in range(n):
            _cell(axes, offset, 1.5, ARRAY, str(offset))
        for offset in range(total):
            state = INSIDE if offset < n else MASKED if masked else BEYOND
            lane = offset % block
            # Room between blocks: a program's lanes stand together.
            sides = (0.14 if lane == 0 else 0.04, 0.14 if lane == block - 1 else 0.04)
            _cell(axes, offset, 0.1, state, str(lane), sides)
        for program in range(programs):
            middle = program * block + block / 2
            words = f"program {program}"
            axes.text(middle, -0.15, words, ha="center", va="top", color=INK, fontsize=9)
        rest = (MASKED if masked else BEYOND,) if empty else ()
        legend(figure, (ARRAY, INSIDE, *rest), words=STATE_WORDS | {ARRAY: "the array"})
    return figure


def _cell(axes: Axes, x: float, y: float, state: int, words: str, sides=(0.04, 0.04), size=9.0):
    """A unit cell with its words; ``sides`` are the gaps left and right of it."""
    from matplotlib.patches import Rectangle

    width = 1 - sum(sides)
    axes.add_patch(Rectangle((x + sides[0], y), width, 0.86, linewidth=0.5, **STATES[state]))
    if state not in (MASKED, BEYOND):  # a number on hatching is hard to read
        place = dict(ha="center", va="center", color=ON_FILL, fontsize=size)
        axes.text(x + 0.5, y + 0.43, words, **place)


def rows(n_rows: int, n_cols: int, stride: int, row: int = 1) -> Figure:
    """A matrix whose rows begin ``stride`` numbers apart, and the same numbers as memory has them.

    ``row`` is coloured in both; columns from ``n_cols`` on are padding.
    """
    with look():
        figure = new_figure(
            0.62 * n_rows + 0.9,
            f"Row {row}, column c lies at offset {row} · {stride} + c",
            f"{n_rows} × {n_cols} numbers, row stride {stride}"
            + (f": {count(stride - n_cols, 'number')} of padding a row" if stride > n_cols else ""),
        )
        top, bottom = figure.subplots(2, 1, height_ratios=(n_rows, 1.1))
        for axes, cells in ((top, False), (bottom, True)):
            bare(axes)
            axes.set_ylim((n_rows if not cells else 1) + 0.05, -0.05)
            for r in range(n_rows):
                for c in range(stride):
                    state = INSIDE if r == row and c < n_cols else ARRAY if c < n_cols else MASKED
                    place = (r * stride + c, 0) if cells else (c, r)
                    size = 6.5 if cells else 9
                    _cell(axes, *place, state, str(r * stride + c), size=size)
        top.set_xlim(-0.1, max(stride, 14) + 0.1)
        bottom.set_xlim(-0.1, n_rows * stride + 0.1)
        padding = (MASKED,) if stride > n_cols else ()
        words = {ARRAY: "the array", INSIDE: f"row {row}", MASKED: "padding"}
        legend(figure, (ARRAY, INSIDE, *padding), words=words)
    return figure


def tiles(
    m: int,
    n: int,
    k: int,
    bm: int,
    bn: int,
    bk: int,
    program: tuple[int, int] = (1, 1),
    step: int = 1,
) -> Figure:
    """C = A B, with the tile of C that ``program`` owns and the tiles that it reads in its k loop.

    A is m × k, B is k × n, C is m × n; a tile of C is bm × bn. ``step`` counts tiles along k.
    """
    (i, j), steps = program, -(-k // bk)
    gap = 0.16 * max(m, k)
    with look():
        figure = new_figure(
            3.9,
            f"Program ({i}, {j}) owns one tile of C and walks along k in {count(steps, 'step')}",
            f"A is {m} × {k}, B {k} × {n}, C {m} × {n}; tiles of C {bm} × {bn}, steps of {bk}; "
            f"this is step {step}, the first one is step 0",
        )
        axes = figure.subplots()
        bare(axes)
        axes.set_aspect("equal", anchor="W")
        axes.set_xlim(-gap, 1.9 * (k + gap + m + gap))
        axes.set_ylim(k + gap + m + gap, -gap)
        a, b, c = (k + gap, 0), (0, k + gap), (k + gap, k + gap)  # corners: row, column
        _matrix(axes, "A", a, (m, k), (bm, bk))
        _matrix(axes, "B", b, (k, n), (bk, bn))
        _matrix(axes, "C", c, (m, n), (bm, bn))
        for s in range(steps):
            style = STATES[INSIDE] if s == step else dict(facecolor=DONE if s < step else PAPER)
            _tile(axes, a, (i * bm, s * bk), (bm, bk), (m, k), style)
            _tile(axes, b, (s * bk, j * bn), (bk, bn), (k, n), style)
        _tile(axes, c, (i * bm, j * bn), (bm, bn), (m, n), STATES[NEXT_ROW])
        for x, y, words in (
            (k / 2, k + gap + m + gap / 2, "k"),
            (-gap / 2, k + gap + m / 2, "m"),
            (k + gap / 2, k / 2, "k"),
            (k + gap + n / 2, k + gap + m + gap / 2, "n"),
        ):
            axes.text(x, y, words, ha="center", va="center", color=MUTED)
        _tally(axes, k + gap + n + gap, k + gap, (m, n, k, bm, bn, bk))
        figure.legend(
            handles=_swatches(
                (STATES[INSIDE], "read in this step"),
                (dict(facecolor=DONE), "read before"),
                (dict(facecolor=PAPER, edgecolor=MUTED), "still to come"),
                (STATES[NEXT_ROW], "its own: written once"),
            ),
            loc="outside lower left",
            ncols=4,
        )
    return figure


def _tally(axes: Axes, x: float, y: float, sizes: tuple[int, ...]) -> None:
    """What the programs read, as a sum, where tiles fill the matrices."""
    m, n, k, bm, bn, bk = sizes
    if m % bm or n % bn or k % bk:
        return
    steps, programs, step = k // bk, (m // bm) * (n // bn), bm * bk + bk * bn
    lines = (
        f"a step reads {bm}·{bk} + {bk}·{bn} = {spaced(step)} numbers",
        f"a program: {steps} steps, {spaced(steps * step)} numbers",
        f"{programs} programs: {spaced(programs * steps * step)} numbers",
        f"(an element a program: 2·{m}·{n}·{k} = {spaced(2 * m * n * k)} numbers)",
    )
    axes.text(x, y, "\n".join(lines), va="top", linespacing=1.9)


def _swatches(*entries: tuple[dict, str]) -> list:
    from matplotlib.patches import Patch

    return [Patch(label=words, linewidth=0.6, **style) for style, words in entries]


def _matrix(axes: Axes, name: str, corner, shape, tile) -> None:
    (top, left), (height, width) = corner, shape
    axes.text(left, top - 1, name, ha="left", va="bottom", weight="bold")
    _panel(axes, (left, top), (width, height), CELL)
    for row in range(tile[0], height, tile[0]):
        axes.plot([left, left + width], [top + row] * 2, color=PAPER, linewidth=0.8)
    for column in range(tile[1], width, tile[1]):
        axes.plot([left + column] * 2, [top, top + height], color=PAPER, linewidth=0.8)


def _tile(axes: Axes, corner, place, size, shape, style: dict) -> None:
    """A tile at ``place`` of the matrix at ``corner``, as far as it lies in it."""
    from matplotlib.patches import Rectangle

    (top, left), (row, column) = corner, place
    height, width = min(size[0], shape[0] - row), min(size[1], shape[1] - column)
    style = dict(edgecolor=MUTED, linewidth=0.8) | style
    axes.add_patch(Rectangle((left + column, top + row), width, height, **style))


def tile_time(n: int, sides: Sequence[int] = (1, 4, 16, 64, 128), name: str = DEFAULT) -> Figure:
    """The least time that the requested numbers of an n × n × n matmul would take from memory.

    Points: 4 bytes · 2n³/side at the card's bandwidth, for square tiles; the line: 2n³ operations
    at its fp32 peak. A prediction: caches are left out, and so is everything else that costs time.
    """
    row = card(name)
    arithmetic = 2 * n**3 / (row.fp32_tflops * 1e12) * 1e3
    times = [4 * 2 * n**3 / side / (row.bandwidth * 1e9) * 1e3 for side in sides]
    with look():
        figure = new_figure(
            3.1,
            f"Matmul {n} × {n} × {n}: a tile of side T divides the traffic by T",
            f"predictions for an {row.name} without caches: {row.bandwidth:g} GB/s and "
            f"{row.fp32_tflops:g} TFLOP/s (fp32) by its data sheet",
        )
        axes = figure.subplots()
        bare(axes, keep="bottom")
        ys = range(len(sides))
        axes.hlines(ys, [arithmetic] * len(sides), times, color=CELL, linewidth=2, zorder=1)
        axes.scatter(times, ys, s=70, color=READ, zorder=2)
        axes.set_xscale("log")
        axes.set_ylim(len(sides) - 0.4, -0.75)
        axes.set_xlim(arithmetic / 4, max(times) * 4)
        for y, time in zip(ys, times, strict=True):
            axes.text(time * 1.16, y, f"{time:.3g} ms", va="center", color=INK, fontsize=9)
        axes.set_yticks(ys, [f"{s} × {s}" for s in sides])
        axes.tick_params(axis="y", length=0, labelcolor=INK)
        axes.axvline(arithmetic, color=OUTSIDE, linewidth=1.4, linestyle="--")
        words = f"arithmetic alone: {arithmetic:.3g} ms"
        axes.text(arithmetic * 1.06, -0.55, words, color=INK, va="center", fontsize=8.5)
        axes.set_xticks([0.1, 1, 10], ["0.1 ms", "1 ms", "10 ms"])
        axes.minorticks_off()
        axes.set_ylabel("tile of C")
        axes.set_xlabel("time for memory, on a logarithmic axis: a mark further, ten times as long")
    return figure
