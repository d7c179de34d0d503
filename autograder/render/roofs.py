"""The roofline of a card: the least time a kernel can take, and where kernels stand under it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from autograder.render import style
from autograder.render.neutral import neutral

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["roofline"]

_FEW = 6  # points with their names beside them; more get numbers and a list

Placed = tuple[float, float, str, bool]


def roofline(
    card: Mapping[str, float | str],
    points: Iterable[Mapping] = (),
    shares: Sequence[Mapping] = (),
    facts: str = "",
) -> Figure:
    """The least time a kernel can take on a card, as attainable TFLOP/s over FLOP per byte.

    ``card``: ``name``, ``bandwidth`` in GB/s, ``peak`` in TFLOP/s; and, drawn as lower roofs where
    they are given, ``ceilings``: (GB/s or 0, TFLOP/s or 0, words). A point is a mapping with
    ``label``, ``intensity`` (FLOP per byte) and either ``performance`` in TFLOP/s (measured) or
    nothing: then it is predicted, drawn hollow on the roof and labelled so. ``predicted=True``
    marks a performance that is a prediction; ``band`` is the range in TFLOP/s that a good kernel
    attains. Roof: min(peak, intensity × bandwidth), Williams, Waterman and Patterson, 2009.

    ``shares`` adds a list below: rows with ``label``, ``band`` (two shares of the roof),
    ``predicted`` (a share) and ``marks``, a mapping of names to measured shares, the kernel's own
    first. Points then carry the row's number, in the order in which they come.
    """
    bandwidth, peak = float(card["bandwidth"]) / 1e3, float(card["peak"])  # TB/s, TFLOP/s
    ridge = peak / bandwidth
    points = list(points)
    placed = [_placed(point, bandwidth, peak) for point in points]
    xs = [x for x, _, _, _ in placed] + [ridge / 300, ridge * 12]
    low, high = min(xs) / 1.8, max(xs) * 1.8
    ys = [y for _, y, _, _ in placed] + [low * bandwidth]
    name = neutral(card["name"], 40)
    title = f"{name}: below {ridge:.0f} FLOP a byte, memory sets the pace"
    said = f"roof: {1e3 * bandwidth:g} GB/s and {peak:g} TFLOP/s"
    if any(hollow for _, _, _, hollow in placed):
        said += " · hollow points are predicted, not measured"
    if any("band" in point for point in points):
        said += " · bars: what a good kernel attains"
    said += f" · {facts}" if facts else ""
    tall = 0.28 * len(shares) + 0.9 if shares else 0
    with style.look():
        figure = style.new_figure(3.6 + tall, title, said)
        if shares:
            axes, below = figure.subplots(2, 1, height_ratios=[3.6, tall])
            _shares(below, shares)
        else:
            axes = figure.subplots()
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlim(low, high)
        axes.set_ylim(min(ys) / 1.6, peak * 2.6)
        axes.plot([low, ridge, high], [low * bandwidth, peak, peak], color=style.INK, linewidth=1.8)
        axes.fill_between(
            [low, ridge, high], [low * bandwidth, peak, peak], 1e-9, color=style.CELL, alpha=0.35
        )
        axes.plot([ridge, ridge], [1e-9, peak], color=style.MUTED, linewidth=0.8, linestyle=":")
        _ceilings(axes, card.get("ceilings", ()), bandwidth, peak, low, high)
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_formatter(lambda value, _: f"{value:g}")
        axes.set_xlabel("arithmetic intensity, FLOP per byte of memory traffic")
        axes.set_ylabel("TFLOP/s")
        for point, (x, _, _, _) in zip(points, placed, strict=True):
            if "band" in point:
                axes.plot([x, x], point["band"], color=style.READ, linewidth=5, alpha=0.6, zorder=2)
        if shares:
            _numbers(axes, placed)
        else:
            _points(axes, placed, low, high)
    return figure


def _placed(point: Mapping, bandwidth: float, peak: float) -> Placed:
    x = float(point["intensity"])
    y = point.get("performance")
    hollow = y is None or bool(point.get("predicted"))
    y = min(peak, x * bandwidth) if y is None else float(y)
    label = neutral(point["label"], 40) + (" (predicted)" if hollow else "")
    return x, y, label, hollow


def _marker(
    axes: Axes, x: float, y: float, hollow: bool, shape: str = "o", size: float = 8
) -> None:
    fill = style.PAPER if hollow else style.OUTSIDE
    look = dict(color=style.OUTSIDE, markerfacecolor=fill, markersize=size, markeredgewidth=1.6)
    axes.plot([x], [y], "o", zorder=3, **look)


def _ceilings(axes: Axes, ceilings: Iterable, bandwidth: float, peak: float, low, high) -> None:
    """Lower roofs: what a simple program was seen to reach."""
    for gbs, tflops, words in ceilings:
        width = gbs / 1e3 or bandwidth
        top = tflops or peak
        start, end = (low, top / width) if gbs else (top / width, high)
        look = dict(color=style.MUTED, linewidth=1.0, linestyle="--", zorder=1)
        axes.plot([start, end], [min(top, start * width), min(top, end * width)], **look)
        at = (np.sqrt(start * min(end, peak / width)), 0.0) if gbs else (high / 1.1, top / 1.35)
        y = at[0] * width / 2.0 if gbs else at[1]
        side = "left" if gbs else "right"
        axes.text(at[0], y, words, ha=side, va="top", fontsize=8.3, color=style.MUTED)


def _numbers(axes: Axes, placed: list[Placed]) -> None:
    """Markers that carry a number. Those that would cover one another stand side by side, with a
    line to where they belong."""
    taken: list[tuple[float, float]] = []
    for number, (x, y, _, hollow) in enumerate(placed, 1):
        at, step = x, 0
        while any(abs(np.log10(at / s)) < 0.12 and abs(np.log10(y / t)) < 0.12 for s, t in taken):
            step += 1
            at = x * 10 ** (0.125 * step)
        taken.append((at, y))
        if at != x:
            axes.plot([x, at], [y, y], color=style.OUTSIDE, linewidth=0.8, zorder=2)
        _marker(axes, at, y, hollow, size=13)
        ink = style.OUTSIDE if hollow else style.PAPER
        look = dict(ha="center", va="center_baseline", fontsize=7.5, weight="bold", color=ink)
        axes.text(at, y, str(number), zorder=4, **look)


def _shares(axes: Axes, rows: Sequence[Mapping]) -> None:
    """One line a row: its number and name, the band, the prediction, what was measured."""
    shapes = dict(zip(("D", "s", "^", "v", "P"), range(5), strict=True))
    names: dict[str, str] = {}
    top = 1.05
    for y, row in enumerate(rows):
        marks = dict(row.get("marks", {}))
        own = next(iter(marks), None)
        low, high = row["band"]
        axes.barh([y], [high - low], left=low, height=0.62, color=style.READ, alpha=0.6)
        axes.plot([0, 1], [y, y], color=style.CELL, linewidth=0.6, zorder=0)
        _marker(axes, row["predicted"], y, True, size=7)
        for name, share in marks.items():
            top = max(top, share + 0.05)
            if name == own:
                _marker(axes, share, y, False, size=7)
            else:
                shape = names.setdefault(name, list(shapes)[len(names) % len(shapes)])
                axes.plot([share], [y], shape, color=style.INK, markersize=5, zorder=2)
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.set_xlim(0, top)
    style.bare(axes, "bottom left")
    axes.spines["left"].set_visible(False)
    axes.tick_params(axis="y", length=0)
    labels = [f"{i}  {neutral(row['label'], 30)}" for i, row in enumerate(rows, 1)]
    axes.set_yticks(range(len(rows)), labels)
    axes.set_xticks(np.arange(0, top, 0.2), [f"{x:.0%}" for x in np.arange(0, top, 0.2)])
    axes.plot([1, 1], [-0.6, len(rows) - 0.4], color=style.INK, linewidth=1.4)
    axes.set_xlabel("share of the roof: the least time that the task can take, over the time")
    _key(axes, names, any(row.get("marks") for row in rows))


def _key(axes: Axes, names: Mapping[str, str], measured: bool) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    own = dict(color=style.OUTSIDE, linestyle="none", markersize=7, markeredgewidth=1.6)
    handles = [
        Line2D([], [], marker="o", markerfacecolor="none", label="predicted, at best", **own)
    ]
    if measured:
        handles.append(Line2D([], [], marker="o", label="measured", **own))
    handles += [
        Line2D([], [], marker=shape, color=style.INK, linestyle="none", markersize=5, label=name)
        for name, shape in names.items()
    ]
    handles.append(Patch(color=style.READ, alpha=0.6, label="expected of a good kernel"))
    look = dict(
        loc="upper center", bbox_to_anchor=(0.42, -0.9 / max(2, 0.28 * len(axes.get_yticks())))
    )
    axes.legend(handles=handles, ncols=4, **look)


def _points(axes: Axes, placed: list[Placed], low: float, high: float) -> None:
    """Markers, and labels below the roof that keep clear of one another."""
    middle = np.sqrt(low * high)
    taken: list[tuple[float, float]] = []
    for x, y, label, hollow in sorted(placed, key=lambda point: (point[0], -point[1])):
        fill = "none" if hollow else style.OUTSIDE
        look = dict(color=style.OUTSIDE, markerfacecolor=fill, markersize=8, markeredgewidth=1.6)
        axes.plot([x], [y], "o", zorder=3, **look)
        beside = x < middle
        place = y / (1.35 if beside else 1.9)
        near = [t for s, t in taken if abs(np.log10(x / s)) < 1.2]
        while any(abs(np.log10(place / t)) < 0.2 for t in near):
            place /= 1.25
        taken.append((x, place))
        where = (x * 1.2 if beside else x, place)
        axes.annotate(
            label, (x, y), where, ha="left" if beside else "center", va="center", fontsize=8.8
        )
    bottom, top = axes.get_ylim()
    axes.set_ylim(min([bottom] + [place / 1.6 for _, place in taken]), top)
