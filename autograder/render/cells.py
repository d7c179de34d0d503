"""What pictures of lanes share: the words of their headline, and cells as rectangles."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from autograder.records import Access
from autograder.render import geometry, style
from autograder.render.geometry import Lanes
from autograder.render.neutral import count, neutral, spaced
from autograder.render.style import BEYOND, MASKED, NEXT_ROW

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["CELLS", "FEW", "GAP", "PREPOSITION", "closer", "describe", "paint", "ticks"]

GAP = "\u202f"  # narrow no-break space between thousands
FEW = 40  # so many cells a side are few: they stand apart, with numbers, and are shown whole
CELLS = 16  # on a page, up to so many cells a side stand apart
_MOST = 3000  # rectangles of one tensor
PREPOSITION = {"load": "load from", "store": "store to", "atomic": "atomic on"}


def describe(access: Access, placed: Lanes) -> tuple[str, str]:
    """Title and subtitle: the point, and where it is."""
    lanes = placed.states.size
    outside, wrapped = placed.how_many(BEYOND), placed.how_many(NEXT_ROW)
    masked = placed.how_many(MASKED)
    what = f"{PREPOSITION[access.operation]} {neutral(access.argument, 40)}"
    if outside:
        bad = placed.states == BEYOND
        faulty = np.unique(placed.programs[bad.any(axis=1)])
        who = f"program {faulty[0]}" if len(faulty) == 1 else count(len(faulty), "program")
        theirs = placed.states[np.isin(placed.programs, faulty)]
        on = int(np.count_nonzero(theirs != MASKED))
        lanes = "lanes" if on == theirs.size else "unmasked lanes"
        point = f"{what}, {who}: {spaced(outside, GAP)} of {spaced(on, GAP)} {lanes} are outside"
        if wrapped:
            point += f", {spaced(wrapped, GAP)} in the next row"
    elif wrapped:
        point = f"{what}: {count(wrapped, 'lane')} of {spaced(lanes, GAP)} end up in the next row"
    elif masked == lanes:
        point = f"{what}: every lane is masked off"
    elif masked:
        point = (
            f"{what}: all in bounds; the mask stops {spaced(masked, GAP)} of {count(lanes, 'lane')}"
        )
    else:
        point = f"{what}: {'all ' if lanes > 1 else ''}{count(lanes, 'lane')} in bounds"
    shape = " × ".join(spaced(size, GAP) for size in access.view.shape) or "1"
    facts = [neutral(access.kernel, 40), f"line {access.line}" if access.line > 0 else ""]
    facts.append(f"{neutral(access.argument, 40)} has {shape} elements")
    layout = geometry.page(access.view)
    if not layout.flat and layout.pitch != layout.columns * layout.step:
        facts.append(f"a row starts every {spaced(layout.pitch, GAP)} elements")
    shown = (
        placed.offsets[placed.states == BEYOND]
        if outside
        else placed.offsets[placed.states != MASKED]
    )
    if shown.size:
        facts.append(("outside: " if outside else "") + f"offsets {_range(shown)}")
    return point, " · ".join(fact for fact in facts if fact)


def _range(values: np.ndarray) -> str:
    low, high = int(values.min()), int(values.max())
    return spaced(low, GAP) if low == high else f"{spaced(low, GAP)}…{spaced(high, GAP)}"


def paint(
    axes: Axes,
    states: np.ndarray,
    origin: tuple[float, float] = (0, 0),
    scale: tuple[float, float] = (1, 1),
    looks: dict | None = None,
    gap: float = 0.0,
) -> set[int]:
    """Draw an array of states as rectangles; returns the states that occur.

    ``origin`` and ``scale`` are (row, column) of the first cell and the size of a cell. With a
    ``gap`` every cell stands alone, without it equal neighbours melt into one rectangle, and a
    picture of thousands of rectangles is drawn coarser.
    """
    from matplotlib.collections import PatchCollection
    from matplotlib.patches import Rectangle

    looks = looks or style.STATES
    boxes = _boxes(states, looks, gap)
    while not gap and sum(map(len, boxes.values())) > _MOST:  # lanes scattered without a pattern
        states, *per = geometry.binned(states, [-(-size // 2) for size in states.shape])
        scale = (scale[0] * per[0], scale[1] * per[1])
        boxes = _boxes(states, looks, gap)
    for state, found in boxes.items():
        look = looks[state]
        patches = [
            Rectangle(
                (origin[1] + (c + gap / 2) * scale[1], origin[0] + (r + gap / 2) * scale[0]),
                (w - gap) * scale[1],
                (h - gap) * scale[0],
            )
            for r, c, h, w in found
        ]
        hatched = bool(look.get("hatch"))
        # Neighbouring rectangles without a line would show a seam if their edges were smoothed.
        collection = PatchCollection(
            patches, linewidth=0.6 if hatched else 0.0, antialiased=hatched or gap > 0, **look
        )
        collection.set_gid(f"state-{state}")
        axes.add_collection(collection, autolim=False)
    return set(boxes)


def _boxes(states: np.ndarray, looks: dict, gap: float) -> dict[int, list]:
    """The rectangles of every state that occurs."""
    boxes = {}
    for state in looks:
        if gap:
            found = [(int(r), int(c), 1, 1) for r, c in np.argwhere(states == state)]
        else:
            found = geometry.merged(states, state)
        if found:
            boxes[state] = found
    return boxes


def closer(low: int, high: int, first: int, last: int) -> tuple[int, int]:
    """The part of ``low … high`` around ``first … last``, where these would be a mere hairline."""
    size = last - first
    if 40 * size >= high - low:
        return low, high
    margin = max(18 - size // 2, size // 2)
    return max(low, first - margin), min(high, last + margin)


def ticks(wishes: list[int], low: float, high: float, apart: float) -> list[int]:
    """Those of the wished-for ticks that fit between low and high, the first ones first.

    ``apart`` is the least distance between two, as a share of the axis.
    """
    chosen: list[int] = []
    for tick in wishes:
        near = any(abs(tick - other) <= apart * (high - low) for other in chosen)
        if low <= tick <= high and not near:
            chosen.append(tick)
    return chosen
