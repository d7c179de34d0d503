"""Pictures of what kernels do, one function each; all return a matplotlib Figure.

Jupyter shows the figures as SVG in the ink of the page. The lanes stand in ``lanes``,
pictures of whole tensors in ``maps``; those of speed in ``roofs``; here
are those of memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from autograder.floats import ITEMSIZE
from autograder.records import Access
from autograder.render import style
from autograder.render.cells import GAP
from autograder.render.lanes import lanes_over_array
from autograder.render.maps import counts_of, coverage, error_map
from autograder.render.neutral import count, neutral, spaced
from autograder.render.roofs import roofline
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
