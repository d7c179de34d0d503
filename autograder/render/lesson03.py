"""The pictures of lesson 03: passes over the matrix, lanes of a block, registers, a running sum."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from autograder.records import CompileFacts
from autograder.render.neutral import count, spaced
from autograder.render.passes import Solution
from autograder.render.passes import passes as _passes
from autograder.render.style import (
    BEYOND,
    CELL,
    INK,
    INSIDE,
    MUTED,
    ON_FILL,
    OUTSIDE,
    PAPER,
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

__all__ = ["lanes", "online", "passes", "registers"]

MOST_REGISTERS = 255  # a thread can address, on every NVIDIA card from compute capability 3.5 on


def passes() -> Figure:
    """softmax as five kernels and as one: every large box is the whole matrix."""
    naive = (
        ("m = max of x", ("x", "→ (m)")),
        ("t = x − m", ("x", "(m)", "→ t")),
        ("e = exp(t)", ("t", "→ e")),
        ("s = sum of e", ("e", "→ (s)")),
        ("y = e ÷ s", ("e", "(s)", "→ y")),
    )
    return _passes(
        (Solution(naive, "8"), Solution((("y = softmax(x)", ("x", "→ y")),), "2")),
        "Five kernels pass over the matrix eight times, one kernel twice",
        "every large box is M × N numbers between memory and the SMs; m and s have one a row",
    )


# ---------------------------------------------------------------- lanes, step by step


def lanes(
    steps: Mapping[str, Sequence[float]], inside: int, title: str, sums: Collection[str] = ()
) -> Figure:
    """What every lane of a block holds, one line a step.

    ``steps``: name → one number a lane; the first ``inside`` lanes have an element of the row, the
    others lie beyond it and are drawn so. ``sums`` names the steps that end in their sum.
    """
    block = len(next(iter(steps.values())))
    subtitle = f"{count(inside, 'element')} in a block of {block}: lanes from {inside} on have none"
    with look():
        figure = new_figure(0.55 + 0.34 * len(steps), title, subtitle)
        axes = figure.subplots()
        bare(axes)
        axes.set_xlim(-1.5, block + 1.6)
        axes.set_ylim(-len(steps) + 0.2, 1.35)
        for lane in range(block):
            axes.text(lane + 0.5, 1.15, f"lane {lane}", ha="center", color=MUTED, fontsize=8)
        if sums:
            axes.text(block + 0.8, 1.15, "sum", ha="center", color=MUTED, fontsize=8)
        for line, (name, numbers) in enumerate(steps.items()):
            axes.text(-0.2, 0.5 - line, name, ha="right", va="center", color=INK)
            for lane, number in enumerate(np.asarray(numbers, np.float64)):
                _lane(axes, lane, -line, number, lane < inside)
            if name in sums:
                total = _short(float(np.sum(np.asarray(numbers, np.float64))))
                axes.text(block + 0.8, 0.5 - line, total, ha="center", va="center", weight="bold")
        legend(figure, _LANE, looks=_LANE, words={INSIDE: "in the row", BEYOND: "beyond the row"})
    return figure


# The hatch of the other pictures would cross the numbers, so a frame marks the lanes beyond.
_LANE = {INSIDE: STATES[INSIDE], BEYOND: dict(facecolor="none", edgecolor=OUTSIDE)}


def _lane(axes: Axes, x: float, y: float, number: float, inside: bool) -> None:
    from matplotlib.patches import Rectangle

    face = _LANE[INSIDE if inside else BEYOND]
    axes.add_patch(Rectangle((x + 0.04, y + 0.08), 0.92, 0.84, linewidth=1.2, **face))
    place = dict(ha="center", va="center", fontsize=8.5, color=ON_FILL if inside else INK)
    axes.text(x + 0.5, y + 0.5, _short(number), **place)


def _short(number: float) -> str:
    if np.isnan(number):
        return "NaN"
    if np.isinf(number):
        return "−∞" if number < 0 else "∞"
    text = f"{number:.3g}" if abs(number) < 1000 else f"{number:.0f}"
    return text.replace("-", "−")


# ---------------------------------------------------------------- wide rows


def registers(facts: Sequence[CompileFacts], blocks: Sequence[int]) -> Figure:
    """Registers a thread against the length of the block, one line a number of warps.

    ``facts`` as ``autograder.compiled.facts_of`` gives them, ``blocks`` the block of each. Where
    the compiler spilled, the point says how many bytes.
    """
    with look():
        card = facts[0].card
        figure = new_figure(
            3.0,
            "A block that grows fills the registers of its threads, then overflows",
            f"{facts[0].kernel} compiled for the {card}; a thread has {MOST_REGISTERS} registers "
            "at most",
        )
        axes = figure.subplots()
        axes.set_xscale("log", base=2)
        lines = sorted({fact.num_warps for fact in facts})
        for warps, (colour, mark) in zip(lines, _LINES, strict=False):
            points = [(b, f) for b, f in zip(blocks, facts, strict=True) if f.num_warps == warps]
            points.sort(key=lambda point: point[0])
            xs, ys = [b for b, _ in points], [f.registers for _, f in points]
            axes.plot(xs, ys, mark, linestyle="-", color=colour, label=f"{warps} warps")
            for block, fact in points:
                if fact.spills:
                    words = f"{spaced(fact.spills)} bytes spilled"
                    place = dict(xytext=(4, 7), textcoords="offset points", ha="right")
                    place["fontsize"] = 8.8
                    axes.annotate(words, (block, fact.registers), color=INK, **place)
        axes.axhline(MOST_REGISTERS, color=MUTED, linewidth=0.8, linestyle=":")
        axes.set_xticks(sorted(set(blocks)), [spaced(block) for block in sorted(set(blocks))])
        axes.minorticks_off()
        axes.set_xlabel("numbers in the block")
        axes.set_ylabel("registers a thread")
        axes.set_ylim(0, MOST_REGISTERS * 1.12)
        axes.legend(loc="upper left", bbox_to_anchor=(0, 0.88))
    return figure


_LINES = ((OUTSIDE, "o"), (READ, "s"), (WRAPPED, "^"), (INK, "D"))


def online(row: Sequence[float], block: int) -> Figure:
    """A row in blocks: the running maximum m, and the running sum s that shrinks when m rises.

    Computed here as the kernel does it: s ← s · exp(m − new m) + Σ exp(x − new m).
    """
    row = np.asarray(row, np.float64)
    m, s, steps = -np.inf, 0.0, []
    for start in range(0, len(row), block):
        part = row[start : start + block]
        new_m = max(m, part.max())
        shrink = np.exp(m - new_m)
        s = s * shrink + np.exp(part - new_m).sum()
        m = new_m
        steps.append((start, len(part), m, shrink, s))
    whole = np.exp(row - row.max()).sum()
    with look():
        figure = new_figure(
            2.7,
            f"After the last block m and s are those of the whole row: s = {_short(s)}",
            f"blocks of {block}; the sum computed with the row's maximum from the start is "
            f"{_short(whole)}",
        )
        axes = figure.subplots()
        bare(axes, keep="left")
        low = min(row.min(), 0)
        for start, length, m, shrink, s in steps:
            at = np.arange(start, start + length)
            shade = CELL if start // block % 2 == 0 else READ
            axes.bar(at, row[at], width=0.82, color=shade, edgecolor=PAPER, linewidth=0.4)
            axes.plot([start - 0.5, start + length - 0.5], [m, m], color=OUTSIDE, linewidth=2)
            words = f"s · {_short(shrink)} + …" if start else "s begins"
            middle = start + (length - 1) / 2
            axes.text(middle, low - 0.35, words, ha="center", va="top", fontsize=8.5, color=MUTED)
            place = dict(ha="center", va="top", fontsize=9)
            axes.text(middle, low - 0.95, f"s = {_short(s)}", color=INK, **place)
        axes.text(len(row) - 0.4, m, " m", color=INK, va="center", weight="bold")
        axes.set_xlim(-0.7, len(row) + 0.4)
        axes.set_ylim(low - 1.6, max(row) + 0.5)
        axes.set_ylabel("x")
    return figure
