"""Pictures of what kernels do, one function each; all return a matplotlib Figure.

Jupyter shows the figures as SVG in the ink of the page. The lanes stand in ``lanes``,
pictures of whole tensors in ``maps``; here are those of memory and speed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from autograder.floats import ITEMSIZE
from autograder.records import Access
from autograder.render import style
from autograder.render.cells import GAP
from autograder.render.lanes import lanes_over_array
from autograder.render.maps import counts_of, coverage, error_map
from autograder.render.neutral import count, neutral, spaced
from autograder.render.tiles import program_map, tiles_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "counts_of",
    "coverage",
    "error_map",
    "lanes_over_array",
    "program_map",
    "roofline",
    "sectors",
    "tiles_of",
]

SECTOR = 32  # bytes: the smallest piece that a GPU fetches from memory
_BOXES = 16  # sectors drawn one by one


def sectors(access: Access, program: int | None = None) -> Figure:
    """Which 32-byte sectors one program touches, and how much of each it uses.

    A GPU moves whole sectors between memory and chip, so a lane that takes 4 bytes of a sector
    costs 32. ``program`` is a linear id; the default is the first that took part. The tensor's
    buffer is taken to start on a sector. Raises ValueError when the program did not take part.
    """
    which = 0
    if program is not None:
        where = np.flatnonzero(access.programs == program)
        if not where.size:
            raise ValueError(f"program {program} has no such access.")
        which = int(where[0])
    size = ITEMSIZE[access.view.dtype]
    each = max(1, SECTOR // size)  # elements a sector
    used = np.asarray(access.active[which] & access.inside[which], bool)
    touched = np.unique(access.view.offset + np.asarray(access.offsets[which], np.int64)[used])
    ids, elements = np.unique(touched * size // SECTOR, return_counts=True)
    share = touched.size / (len(ids) * each) if len(ids) else 0.0
    name = neutral(access.argument, 40)
    title = f"{access.operation} of {name}: {count(int(used.sum()), 'lane')}"
    title += f", {count(len(ids), 'sector')}, {share:.0%} of the bytes are used".replace("%", " %")
    facts = [neutral(access.kernel, 40), f"line {access.line}" if access.line > 0 else ""]
    facts += [f"program {access.programs[which]}", f"{each} elements of {size} bytes in a sector"]
    if len(ids) > 2 * _BOXES:
        facts.append(f"first {_BOXES} of {count(len(ids), 'sector')} in detail")
    with style.look():
        figure = style.new_figure(1.7, title, " · ".join(fact for fact in facts if fact))
        above, below = figure.subplots(2, 1, height_ratios=[1, 0.6])
        _sector_boxes(above, ids, touched, each)
        _bytes_bar(below, touched.size * size, len(ids) * SECTOR)
        style.legend(figure, {style.ARRAY, style.INSIDE}, words=_SECTOR_WORDS)
    return figure


_SECTOR_WORDS = {style.ARRAY: "fetched, not used", style.INSIDE: "used"}


def _sector_boxes(axes: Axes, ids: np.ndarray, touched: np.ndarray, each: int) -> None:
    """The first sectors as boxes of elements, a gap between boxes that are no neighbours."""
    from matplotlib.patches import Rectangle

    shown = ids[: _BOXES if len(ids) > 2 * _BOXES else 2 * _BOXES]
    hit = set(touched.tolist())
    x = 0.0
    ticks, labels = [], []
    for i, sector in enumerate(shown.tolist()):
        if i:
            x += 0.25 if sector == shown[i - 1] + 1 else 0.8
        for e in range(each):
            state = style.INSIDE if sector * each + e in hit else style.ARRAY
            wide = (0.88 if len(shown) <= 8 else 1.0) / each
            box = Rectangle((x + e / each, 0), wide, 1, **style.STATES[state])
            axes.add_patch(box)
        if len(shown) <= 8 or i % 4 == 0:
            ticks.append(x + 0.5)
            labels.append(spaced(sector, GAP))
        x += 1.0
    axes.set_xlim(0, max(x, 1.0))
    axes.set_ylim(0, 1)
    style.bare(axes)
    axes.set_xticks(ticks, labels)
    axes.tick_params(axis="x", length=0)
    axes.set_xlabel("number of the sector in its buffer")


def _bytes_bar(axes: Axes, used: int, fetched: int) -> None:
    axes.barh([0], [fetched], height=0.8, color=style.CELL)
    axes.barh([0], [used], height=0.8, color=style.READ)
    axes.set_xlim(0, max(fetched, 1))
    axes.set_ylim(-0.4, 0.4)
    style.bare(axes)
    axes.set_title(f"{spaced(used, GAP)} bytes used of {spaced(fetched, GAP)} fetched")


# ---------------------------------------------------------------- roofline


def roofline(card: Mapping[str, float | str], points: Iterable[Mapping] = ()) -> Figure:
    """The least time a kernel can take on a card, as attainable TFLOP/s over FLOP per byte.

    ``card``: ``name``, ``bandwidth`` in GB/s, ``peak`` in TFLOP/s. A point is a mapping with
    ``label``, ``intensity`` (FLOP per byte) and either ``performance`` in TFLOP/s (measured) or
    nothing: then it is predicted, drawn hollow on the roof and labelled so. ``predicted=True``
    marks a performance that is a prediction. Roof: min(peak, intensity × bandwidth), Williams,
    Waterman and Patterson, 2009.
    """
    bandwidth, peak = float(card["bandwidth"]) / 1e3, float(card["peak"])  # TB/s, TFLOP/s
    ridge = peak / bandwidth
    placed = [_placed(point, bandwidth, peak) for point in points]
    xs = [x for x, _, _, _ in placed] + [ridge / 300, ridge * 12]
    low, high = min(xs) / 1.8, max(xs) * 1.8
    ys = [y for _, y, _, _ in placed] + [low * bandwidth]
    name = neutral(card["name"], 40)
    title = f"{name}: below {ridge:.0f} FLOP a byte, memory sets the pace"
    facts = f"roof: {1e3 * bandwidth:g} GB/s and {peak:g} TFLOP/s"
    if any(hollow for _, _, _, hollow in placed):
        facts += " · hollow points are predicted, not measured"
    with style.look():
        figure = style.new_figure(3.6, title, facts)
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
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_formatter(lambda value, _: f"{value:g}")
        axes.set_xlabel("arithmetic intensity, FLOP per byte of memory traffic")
        axes.set_ylabel("TFLOP/s")
        _points(axes, placed, low, high)
    return figure


def _placed(point: Mapping, bandwidth: float, peak: float) -> tuple[float, float, str, bool]:
    x = float(point["intensity"])
    y = point.get("performance")
    hollow = y is None or bool(point.get("predicted"))
    y = min(peak, x * bandwidth) if y is None else float(y)
    label = neutral(point["label"], 40) + (" (predicted)" if hollow else "")
    return x, y, label, hollow


def _points(
    axes: Axes, placed: list[tuple[float, float, str, bool]], low: float, high: float
) -> None:
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
