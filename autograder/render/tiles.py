"""Which program computes which tile of an output, and in which order."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from autograder.records import Access
from autograder.render import geometry, style
from autograder.render.neutral import count

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.ticker import Locator

__all__ = ["program_map", "tiles_of"]


def tiles_of(stores: Access | Iterable[Access], shape: tuple[int, int]) -> np.ndarray:
    """Which program writes which tile: int array (tile rows, tile columns), −1 where none does.

    ``stores`` are accesses to one output of two axes; ``shape`` is (rows, columns) of a tile in
    elements. A tile belongs to the program whose active lanes hit its first cell.
    """
    stores = [stores] if isinstance(stores, Access) else list(stores)
    layout = geometry.page(stores[0].view)
    tiles = np.full((-(-layout.rows // shape[0]), -(-layout.columns // shape[1])), -1, np.int64)
    for access in stores:
        used = np.asarray(access.active & access.inside, bool)
        rows, columns = layout.cells(access.offsets[used])
        owner = np.broadcast_to(
            np.reshape(access.programs, (-1,) + (1,) * (used.ndim - 1)), used.shape
        )[used]
        first = (rows % shape[0] == 0) & (columns % shape[1] == 0)
        tiles[rows[first] // shape[0], columns[first] // shape[1]] = owner[first]
    return tiles


def program_map(tiles: np.ndarray, *, at_once: int = 0, title: str = "") -> Figure:
    """Which program computes which tile, and in which order.

    ``tiles`` is an int array (tile rows, tile columns) of linear program ids, −1 where no program
    works. ``at_once`` outlines the programs 0 … at_once − 1: those that a card runs first.
    """
    tiles = np.atleast_2d(np.asarray(tiles))
    rows, columns = tiles.shape
    programs = int(tiles.max()) + 1 if tiles.size else 0
    size = f"{rows} × {columns} tiles"
    title = title or f"{count(programs, 'program')}, {size}: {_order(tiles)}"
    facts = "light to dark: the order of program ids"
    if 0 < at_once < programs:
        facts += f" · outlined: the first {at_once}, which run at the same time"
    with style.look():
        from matplotlib import colormaps

        height = float(np.clip(4.6 * rows / max(columns, 1), 1.2, 4.2))
        figure = style.new_figure(height + 0.3, title, facts)
        axes = figure.subplots()
        shades = colormaps["cividis_r"].with_extremes(bad=style.CELL)
        image = axes.imshow(
            np.ma.masked_less(tiles, 0), cmap=shades, vmin=0, vmax=max(programs - 1, 1) * 1.1
        )
        faces = image.to_rgba(image.get_array())
        axes.set_anchor("W")
        _ticks(axes, rows, columns, "tile row", "tile column")
        if tiles.size <= 320:
            for (r, c), program in np.ndenumerate(tiles):
                text = str(program) if program >= 0 else "–"
                axes.text(c, r, text, color=style.on(*faces[r, c, :3]), **style.IN_CELL)
        elif programs:
            _path(axes, tiles, min(programs, at_once or 64))
        if 0 < at_once < programs:
            _outline(axes, (tiles >= 0) & (tiles < at_once))
    return figure


def _order(tiles: np.ndarray) -> str:
    rows, columns = tiles.shape
    if (tiles < 0).any():
        return f"{count(int((tiles < 0).sum()), 'tile')} without a program"
    by_row = np.arange(tiles.size).reshape(rows, columns)
    if np.array_equal(tiles, by_row):
        return "row by row"
    if np.array_equal(tiles, np.arange(tiles.size).reshape(columns, rows).T):
        return "column by column"
    for group in range(2, rows):
        parts, start = [], 0
        for top in range(0, rows, group):
            high = min(group, rows - top)
            part = np.arange(start, start + high * columns).reshape(columns, high).T
            parts.append(part)
            start += high * columns
        if np.array_equal(tiles, np.concatenate(parts)):
            return f"down {group} rows, then to the right (groups of {group})"
    return "in an order of its own"


def _path(axes: Axes, tiles: np.ndarray, most: int) -> None:
    """A line through the first programs in their order, where numbers would be too small."""
    spots = np.argwhere((tiles >= 0) & (tiles < most))
    spots = spots[np.argsort(tiles[spots[:, 0], spots[:, 1]])]
    axes.plot(spots[:, 1], spots[:, 0], color=style.OUTSIDE, linewidth=1.0)
    axes.plot(*spots[0][::-1], "o", color=style.OUTSIDE, markersize=4)


def _outline(axes: Axes, chosen: np.ndarray) -> None:
    """The border of a set of cells."""
    from matplotlib.collections import LineCollection

    padded = np.pad(chosen, 1)
    lines = []
    for r, c in np.argwhere(padded[1:, 1:-1] != padded[:-1, 1:-1]):
        lines.append([(c - 0.5, r - 0.5), (c + 0.5, r - 0.5)])
    for r, c in np.argwhere(padded[1:-1, 1:] != padded[1:-1, :-1]):
        lines.append([(c - 0.5, r - 0.5), (c - 0.5, r + 0.5)])
    axes.add_collection(LineCollection(lines, colors=style.OUTSIDE, linewidths=2.0))


def _ticks(axes: Axes, rows: int, columns: int, y: str, x: str) -> None:
    from matplotlib.ticker import MaxNLocator

    for spine in axes.spines.values():
        spine.set_visible(False)
    for axis, size in ((axes.yaxis, rows), (axes.xaxis, columns)):
        axis.set_major_locator(MaxNLocator(8, integer=True, min_n_ticks=1) if size > 1 else _one())
    axes.set_ylabel(y)
    axes.set_xlabel(x)


def _one() -> Locator:
    from matplotlib.ticker import FixedLocator

    return FixedLocator([0])
