"""The pictures of lesson 07: what host and card do at the same time, and a ladder of clocks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from autograder.render.style import (
    CELL,
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

__all__ = ["answers", "timeline"]

_LOOKS = {
    "launch": dict(facecolor=CELL, edgecolor=MUTED),
    "wait": dict(facecolor="none", edgecolor=MUTED, hatch="////"),
    "flush": dict(facecolor="none", edgecolor=WRAPPED, hatch="----"),
    "compile": dict(facecolor=WRAPPED, edgecolor=MUTED),
}
_KERNEL = dict(facecolor=READ, edgecolor=PAPER)


def timeline(
    cases: Mapping[str, Sequence[tuple[str, str, float, float]]], title: str, subtitle: str = ""
) -> Figure:
    """Two bars of time a case, the host's and the card's, on one axis of µs.

    ``cases``: a name → spans (where, what, start, end): where is "host" or "card", what is
    "launch", "wait", "flush", "compile", or else a kernel's name.
    """
    from matplotlib.ticker import MaxNLocator

    last = max(span[3] for spans in cases.values() for span in spans)
    with look():
        figure = new_figure(1.35 * len(cases) + 0.3, title, subtitle)
        for axes, (name, spans) in zip(
            figure.subplots(len(cases), 1, sharex=True, squeeze=False)[:, 0],
            cases.items(),
            strict=True,
        ):
            bare(axes, keep="bottom" if name == list(cases)[-1] else "")
            axes.set_xlim(-0.09 * last, last * 1.02)
            axes.set_ylim(-1.15, 1.75)
            axes.text(0, 1.28, name, va="bottom", color=INK, fontsize=9)
            for y, where in ((0.2, "host"), (-1.0, "card")):
                axes.text(-0.012 * last, y + 0.45, where, ha="right", va="center", color=MUTED)
                for span in spans:
                    if span[0] == where:
                        _span(axes, span, y, last)
        for other in figure.axes[:-1]:  # they share its ticks
            other.tick_params(axis="x", length=0, labelbottom=False)
        axes.set_xticks([t for t in MaxNLocator(8).tick_values(0, last) if 0 <= t <= last])
        axes.set_xlabel("µs")
        _legend(figure, cases)
    return figure


def _span(axes: Axes, span: tuple[str, str, float, float], y: float, last: float) -> None:
    from matplotlib.patches import Rectangle

    _, what, start, end = span
    box = Rectangle((start, y), end - start, 0.9, linewidth=0.8, **_LOOKS.get(what, _KERNEL))
    axes.add_patch(box)
    if what not in _LOOKS and end - start > 0.009 * last * len(what):
        place = dict(ha="center", va="center", fontsize=8.5, color=ON_FILL)
        axes.text((start + end) / 2, y + 0.45, what, **place)


def _legend(figure: Figure, cases: Mapping) -> None:
    from matplotlib.patches import Patch

    words = {
        "launch": "launching",
        "wait": "waiting for the card",
        "flush": "emptying L2",
        "compile": "compiling",
    }
    seen = {span[1] for spans in cases.values() for span in spans}
    handles = [
        Patch(label=word, linewidth=0.8, **_LOOKS[what])
        for what, word in words.items()
        if what in seen
    ]
    handles.append(Patch(label="a kernel", linewidth=0.8, **_KERNEL))
    figure.legend(handles=handles, loc="outside lower left", ncols=len(handles))


def answers(
    sizes: Sequence[str], found: Mapping[str, Sequence[float]], least: Sequence[float]
) -> Figure:
    """What each way of measuring says of one kernel at every size, in µs, on a log axis.

    ``least``: the time that the bytes need from memory at full bandwidth, drawn as a line that no
    honest answer falls below.
    """
    with look():
        figure = new_figure(
            2.9,
            "One kernel, four answers: only emptying L2 gives the time from memory at every size",
            "by the model of a card; lines: the least time that the bytes need from memory",
        )
        axes = figure.subplots()
        axes.set_yscale("log")
        wide = 0.8 / len(found)
        for i, ((name, times), style) in enumerate(zip(found.items(), _BARS, strict=False)):
            at = [x - 0.4 + wide * (i + 0.5) for x in range(len(sizes))]
            axes.bar(at, times, width=wide * 0.9, label=name, linewidth=0.8, **style)
        for x, time in enumerate(least):
            axes.plot([x - 0.45, x + 0.45], [time, time], color=OUTSIDE, linewidth=1.8)
        axes.set_xticks(range(len(sizes)), sizes)
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axes.set_ylabel("µs")
        axes.set_xlabel("numbers in each vector")
        axes.legend(loc="upper left")
    return figure


_BARS = (
    dict(facecolor=CELL, edgecolor=MUTED),
    dict(facecolor="none", edgecolor=MUTED, hatch="////"),
    dict(facecolor=WRAPPED, edgecolor=MUTED, hatch="----"),
    dict(facecolor=READ, edgecolor=MUTED),
)
