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
    ``predicted`` (a share), ``own``, the share that the kernel itself was measured at, or None, and
    ``marks``, those of its rivals by name. Points then carry the row's number, in the order in
    which they come.
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
            _shares(figure, below, shares)
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
                axes.plot(
                    [x, x], point["band"], color=style.READ, linewidth=5, alpha=0.6, zorder=1.5
                )
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
        if gbs:
            x = np.sqrt(start * end)
            place = dict(x=x, y=x * width / 2, ha="left", va="top")
        else:  # above the roof, where no point can be
            place = dict(x=high / 1.1, y=1.25 * peak, ha="right", va="bottom")
        axes.text(s=f"dashed: {words}", fontsize=8.3, color=style.MUTED, **place)


def _numbers(axes: Axes, placed: list[Placed]) -> None:
    """Markers that carry a number. One that would cover another moves down, with a line back to
    where it belongs."""
    taken: list[tuple[float, float]] = []
    for number, (x, y, _, hollow) in enumerate(placed, 1):
        at = y
        while any(abs(np.log10(x / s)) < 0.15 and abs(np.log10(at / t)) < 0.26 for s, t in taken):
            at /= 1.08
        taken.append((x, at))
        if at != y:
            axes.plot([x, x], [y, at], color=style.OUTSIDE, linewidth=0.8, zorder=2)
        axes.plot([x], [y], ".", color=style.OUTSIDE, markersize=4, zorder=3)
        _marker(axes, x, at, hollow, size=11)
        ink = style.OUTSIDE if hollow else style.PAPER
        look = dict(ha="center", va="center_baseline", fontsize=6.8, weight="bold", color=ink)
        axes.text(x, at, str(number), zorder=4, **look)


_SHAPES = "Ds^vPX"  # of rivals, in the order in which they come


def _shares(figure: Figure, axes: Axes, rows: Sequence[Mapping]) -> None:
    """One line a row: its number and name, the band, the prediction, what was measured."""
    shapes: dict[str, str] = {}
    top = 1.05
    for y, row in enumerate(rows):
        low, high = row["band"]
        axes.barh([y], [high - low], left=low, height=0.62, color=style.READ, alpha=0.6)
        axes.plot([0, 1], [y, y], color=style.CELL, linewidth=0.6, zorder=0)
        _marker(axes, row["predicted"], y, True, size=7)
        for name, share in row["marks"].items():
            top = max(top, share + 0.05)
            shape = shapes.setdefault(name, _SHAPES[len(shapes) % len(_SHAPES)])
            axes.plot([share], [y], shape, color=style.INK, markersize=5, zorder=3)
        if row["own"] is not None:
            _marker(axes, row["own"], y, False, size=7)
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.set_xlim(0, top)
    style.bare(axes, "bottom left")
    axes.spines["left"].set_visible(False)
    axes.tick_params(axis="y", length=0)
    labels = [f"{neutral(row['label'], 30)}  {i}" for i, row in enumerate(rows, 1)]
    axes.set_yticks(range(len(rows)), labels)
    ticks = np.arange(0, top, 0.2)
    axes.set_xticks(ticks, [f"{100 * x:.0f} %" for x in ticks])
    axes.plot([1, 1], [-0.6, len(rows) - 0.4], color=style.INK, linewidth=1.4)
    axes.set_xlabel("share of the roof: the least time that the task can take, over the time")
    _key(figure, shapes, any(row["own"] is not None for row in rows))


def _key(figure: Figure, shapes: Mapping[str, str], measured: bool) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    look = dict(color=style.OUTSIDE, linestyle="none", markersize=7, markeredgewidth=1.6)
    hollow = look | {"marker": "o", "markerfacecolor": "none"}
    handles = [Line2D([], [], label="predicted: this kernel's roof", **hollow)]
    if measured:
        handles.append(Line2D([], [], marker="o", label="measured", **look))
    handles.append(Patch(color=style.READ, alpha=0.6, label="expected of a good kernel"))
    dark = dict(color=style.INK, linestyle="none", markersize=5)
    handles += [Line2D([], [], marker=shape, label=name, **dark) for name, shape in shapes.items()]
    figure.legend(handles=handles, loc="outside lower left", ncols=4)


def _points(axes: Axes, placed: list[Placed], low: float, high: float) -> None:
    """Markers, and labels below the roof that keep clear of one another."""
    middle = np.sqrt(low * high)
    late = low * (high / low) ** 0.9  # a label in the middle would leave the axes
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
        ha = "left" if beside else "right" if x > late else "center"
        where = (high / 1.08, place) if ha == "right" else where
        axes.annotate(label, (x, y), where, ha=ha, va="center", fontsize=8.8)
    bottom, top = axes.get_ylim()
    axes.set_ylim(min([bottom] + [place / 1.6 for _, place in taken]), top)
