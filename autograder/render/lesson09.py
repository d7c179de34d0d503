"""The pictures of lesson 09: fp8's formats and their numbers, a sum along K that is split."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from autograder.floats import decode
from autograder.ir.cards import DEFAULT, card
from autograder.render.style import (
    CELL,
    DONE,
    INK,
    MUTED,
    ON_FILL,
    OUTSIDE,
    PAPER,
    READ,
    WRAPPED,
    bare,
    look,
    new_figure,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["fp8_formats", "split_k"]

_FORMATS = (("float16", 5, 10), ("bfloat16", 8, 7), ("e5m2", 5, 2), ("e4m3", 4, 3))


def fp8_formats() -> Figure:
    """Bits of the narrow formats, and every positive number that the two fp8 formats have."""
    with look():
        figure = new_figure(
            2.9,
            "Eight bits: e4m3 has finer steps, e5m2 reaches further",
            "sign, exponent (range), fraction (steps); below, all positive numbers of both, on an "
            "axis of powers of two",
        )
        bits, line = figure.subplots(2, 1, height_ratios=(1.5, 1.2))
        _bits(bits)
        _numbers(line)
    return figure


def _bits(axes: Axes) -> None:
    from matplotlib.patches import Rectangle

    bare(axes)
    axes.set_xlim(-4.2, 30)
    axes.set_ylim(-len(_FORMATS) * 1.2 + 0.2, 1.0)
    for line, (name, exponent, fraction) in enumerate(_FORMATS):
        y, x = -1.2 * line, 0
        axes.text(-0.6, y + 0.45, name, ha="right", va="center", color=INK)
        for count, colour in ((1, MUTED), (exponent, WRAPPED), (fraction, READ)):
            for _ in range(count):
                axes.add_patch(Rectangle((x, y), 0.9, 0.9, facecolor=colour, edgecolor="none"))
                x += 1
        words = f"{2**fraction} numbers from 1 to 2, without 2"
        axes.text(16.8, y + 0.45, words, va="center", fontsize=8.5, color=MUTED)


def _numbers(axes: Axes) -> None:
    bare(axes, keep="bottom")
    for y, name in ((1, "float8_e5m2"), (0, "float8_e4m3fn")):
        with np.errstate(all="ignore"):
            values = decode(np.arange(128, dtype=np.uint8), name)
        values = np.sort(values[np.isfinite(values) & (values > 0)])
        axes.vlines(np.log2(values), y - 0.3, y + 0.3, color=INK, linewidth=0.8)
        short = name.removeprefix("float8_").removesuffix("fn")
        largest = f"{short}: largest {values[-1]:,.0f}, smallest {_power(values[0])}"
        axes.text(-17, y + 0.42, largest, fontsize=8.5, color=MUTED)
    axes.set_xlim(-17.5, 17)
    axes.set_ylim(-0.5, 1.85)
    ticks = range(-16, 17, 4)
    axes.set_xticks(ticks, [_power(2.0**t) for t in ticks])


def _power(value: float) -> str:
    exponent = int(np.log2(value))
    raised = str(exponent).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"2{raised}"


def split_k(tiles: int, split: int, steps: int, name: str = DEFAULT) -> Figure:
    """The SMs of a card that work on one row of ``tiles`` tiles, with one program a tile and with
    ``split``, and how many steps of ``steps`` they take.

    A model: every step takes equally long, and each SM has one program at a time.
    """
    sms = card(name).sms
    with look():
        figure = new_figure(
            1.25,
            f"{tiles} programs leave {max(sms - tiles, 0)} of {sms} SMs without work; "
            f"splitting K by {split} uses {min(tiles * split, sms)}",
            f"a row of {tiles} tiles, {steps} steps along K each; a box is an SM, its number the "
            "tile, its letter and colour the split",
        )
        for axes, parts in zip(figure.subplots(1, 2), (1, split), strict=True):
            _occupied(axes, tiles, parts, steps, sms)
    return figure


_SPLITS = (READ, WRAPPED, DONE, OUTSIDE)


def _occupied(axes: Axes, tiles: int, parts: int, steps: int, sms: int) -> None:
    from matplotlib.patches import Rectangle

    wide = 19
    rounds = -(-tiles * parts // sms)
    for sm in range(sms):
        busy = sm < tiles * parts
        colour = _SPLITS[sm % parts % len(_SPLITS)] if busy else CELL
        x, y = sm % wide, -(sm // wide)
        axes.add_patch(Rectangle((x, y), 0.9, 0.9, facecolor=colour, edgecolor="none"))
        if busy:
            place = dict(
                ha="center", va="center", fontsize=5.4 if parts > 1 else 6.5, in_layout=False
            )
            ink = PAPER if colour == OUTSIDE else ON_FILL
            part = chr(ord("a") + sm % parts) if parts > 1 else ""
            axes.text(x + 0.45, y + 0.42, f"{sm // parts}{part}", color=ink, **place)
    bare(axes)
    axes.set_xlim(-0.2, wide + 0.2)
    axes.set_ylim(-(sms // wide) - 0.4, 1.2)
    axes.set_aspect("equal")
    axes.set_anchor("NW")
    took = rounds * -(-steps // parts)
    left = tiles * parts - sms
    rest = f", {left} more programs wait" if left > 0 else ""
    axes.set_title(f"SPLIT_K = {parts}: {took} steps{rest}")
