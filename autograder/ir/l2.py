"""A model of the L2 cache: how many bytes a launch has to fetch from memory.

Programs start in the order of their ids, as many at a time as the card has multiprocessors (one
program each). They go in lockstep, one memory operation after the other, and the next wave starts
when this one has ended. The cache drops what has not been touched for longest (LRU). A store takes
room in it and fetches nothing.

On one H200 (132 multiprocessors, 50 MB of L2; Nsight Compute, matmul in bf16, n = 4096, 6144 and
8192, two tiles, six orders) the bytes read from memory lay within 0.90 to 1.07 of such a model in
all thirty cases, with 30 MB for the cache. ``EFFECTIVE`` is that ratio; for other cards it is a
guess.

A model is fed with what a replay touched (``programs_of``) or, for sizes that nobody wants to walk
lane by lane, with a description in tiles (``matmul_programs``).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, zip_longest

import numpy as np

from autograder.records import Finding, ProgramOrder, Run, Touch, View

__all__ = [
    "EFFECTIVE",
    "Step",
    "fetched",
    "grouped",
    "matmul_programs",
    "order_finding",
    "programs_of",
]

EFFECTIVE = 30 / 50  # of a card's L2, where one launch has it to itself
SECTOR = 32  # bytes

Box = tuple[int, int, int, int]  # first row, first column, last row, last column


@dataclass(frozen=True, slots=True)
class Step:
    """One memory operation of one program: the pieces that it touches as (name, bytes).

    Two steps touch the same memory where they name the same piece. ``box`` is the part of a matrix
    that a store covers.
    """

    pieces: tuple[tuple[Hashable, int], ...]
    stores: bool = False
    box: Box | None = None


def fetched(programs: Iterable[Sequence[Step]], at_once: int, capacity: float) -> int:
    """Bytes that a cache of ``capacity`` bytes, empty at first, fetches from memory.

    ``programs`` in the order in which they start, ``at_once`` of them at a time.
    """
    cache: OrderedDict[Hashable, int] = OrderedDict()
    used = total = 0
    waiting = iter(programs)
    while wave := list(islice(waiting, at_once)):
        for together in zip_longest(*wave):
            for step in together:
                for name, size in step.pieces if step is not None else ():
                    if name in cache:
                        cache.move_to_end(name)
                        continue
                    cache[name] = size
                    used += size
                    if not step.stores:
                        total += size
                    while used > capacity:
                        used -= cache.popitem(last=False)[1]
    return total


# ---------------------------------------------------------------- a description in tiles


def grouped(rows: int, columns: int, group: int) -> Iterator[tuple[int, int]]:
    """Tiles (row, column) in program order: down ``group`` rows, then one column to the right."""
    for top in range(0, rows, group):
        for column in range(columns):
            for row in range(top, min(top + group, rows)):
                yield row, column


def matmul_programs(
    m: int,
    n: int,
    k: int,
    order: Iterable[tuple[int, int]],
    tile: tuple[int, int, int] = (128, 128, 64),
    itemsize: int = 2,
) -> Iterator[list[Step]]:
    """The programs of C = A B (M×K, K×N), one a tile of C, whose tiles come in ``order``.

    ``tile`` is (rows, columns, depth of a step). A longer step than the kernel's own is a coarser
    model, and faster: the programs of a wave walk along K together, so it changes little.
    """
    bm, bn, bk = tile
    for i, j in order:
        rows, columns = min(bm, m - i * bm), min(bn, n - j * bn)
        steps = []
        for at in range(0, k, bk):
            depth = min(bk, k - at)
            steps.append(Step(((("a", i, at), rows * depth * itemsize),)))
            steps.append(Step(((("b", at, j), depth * columns * itemsize),)))
        c = ((("c", i, j), rows * columns * itemsize),)
        steps.append(Step(c, True, (i * bm, j * bn, i * bm + rows - 1, j * bn + columns - 1)))
        yield steps


# ---------------------------------------------------------------- what a replay touched


def programs_of(touches: Sequence[Touch]) -> list[list[list[Step]]]:
    """Launches, each a list of programs in the order of their ids, each a list of Steps.

    Sectors that are always touched together are one piece, so a tile is one, whatever its shape.
    """
    launches: dict[int, list[Touch]] = {}
    for touch in touches:
        launches.setdefault(touch.launch, []).append(touch)
    return [_programs(launches[number]) for number in sorted(launches)]


def _programs(touches: Sequence[Touch]) -> list[list[Step]]:
    """The programs of one launch. A row is one memory operation of one program."""
    counts = [np.diff(touch.ends, prepend=0) for touch in touches]
    row_of = np.repeat(np.arange(sum(map(len, counts))), np.concatenate(counts))
    which, total = _numbered(touches)
    # The same rows touch two sectors exactly if the rows' random numbers sum up to the same.
    labels = np.random.default_rng(0).integers(0, 2**63, row_of[-1] + 1 if len(row_of) else 0)
    sums = np.zeros(total, np.int64)
    np.add.at(sums, which, labels[row_of])
    _, first, piece, sizes = np.unique(
        sums, return_index=True, return_inverse=True, return_counts=True
    )
    chosen = np.zeros(total, bool)
    chosen[first] = True  # one sector speaks for its piece
    speaks = np.flatnonzero(chosen[which])
    pieces: dict[int, list[tuple[int, int]]] = {}
    for row, number in zip(row_of[speaks].tolist(), piece[which[speaks]].tolist(), strict=True):
        pieces.setdefault(row, []).append((number, int(sizes[number]) * SECTOR))
    programs: dict[int, list[Step]] = {}
    row = 0
    for touch in touches:
        stores = touch.operation != "load"
        for i, program in enumerate(touch.programs.tolist()):
            box = _box(touch.view, int(touch.first[i]), int(touch.last[i])) if stores else None
            step = Step(tuple(pieces.get(row, ())), stores, box)
            programs.setdefault(program, []).append(step)
            row += 1
    return [programs[program] for program in sorted(programs)]


def _numbered(touches: Sequence[Touch]) -> tuple[np.ndarray, int]:
    """The touched sectors of a launch by a number each, and how many numbers there are.

    Buffers mostly are touched all over, so a sector's place will do; numbers that nobody has cost
    room only. Sorting finds the others.
    """
    spans: dict[int, list[int]] = {}
    for touch in touches:
        if len(touch.sectors):
            low, high = spans.setdefault(touch.view.buffer, [1 << 62, 0])
            spans[touch.view.buffer] = [
                min(low, int(touch.sectors.min())),
                max(high, int(touch.sectors.max()) + 1),
            ]
    bases, total = {}, 0
    for buffer, (low, high) in spans.items():
        bases[buffer] = total - low
        total += high - low
    which = np.concatenate(
        [t.sectors.astype(np.int64) + bases.get(t.view.buffer, 0) for t in touches]
    )
    if total > 4 * len(which) + 1024:
        sectors, which = np.unique(which, return_inverse=True)
        total = len(sectors)
    return which, total


def _box(view: View, first: int, last: int) -> Box | None:
    """The corners between two elements of a matrix (of the last two axes of more)."""
    if first > last or len(view.shape) < 2:
        return None
    top, end = _place(view, first), _place(view, last)
    return (*top, *end)


def _place(view: View, offset: int) -> tuple[int, int]:
    at = [0] * len(view.shape)
    for axis in sorted(range(len(view.shape)), key=lambda axis: -view.strides[axis]):
        if view.strides[axis] and view.shape[axis] > 1:
            at[axis], offset = divmod(offset, view.strides[axis])
    return at[-2], at[-1]


# ---------------------------------------------------------------- the order of programs, judged


def order_finding(run: Run, order: ProgramOrder) -> Finding | None:
    """A finding where the run's launches fetch more than their own tiles in groups of rows would,
    and in groups of columns, which is as good where a matrix is as wide as it is high.

    ``run.touches`` must be there. The tiles are what the programs store, whatever the kernel does;
    a program that makes several tiles is taken apart between them.
    """
    taken, launches = 0, []
    said = ""
    for programs in programs_of(run.touches):
        items = [item for program in programs for item in _items(program)]
        boxes = [box for box, _ in items if box is not None]
        if not boxes:
            continue
        rows = 1 + max(bottom - top for top, _, bottom, _ in boxes)
        columns = 1 + max(right - left for _, left, _, right in boxes)
        capacity = order.bytes_per_element * rows * columns
        said = f"of {capacity / 1024:g} KB (for tiles of {rows} × {columns})"
        taken += fetched(programs, order.at_once, capacity)
        launches.append((items, rows, columns, capacity))

    def grouped(by_columns: bool) -> int:
        """Bytes that the same tiles fetch in groups."""
        total = 0
        for items, rows, columns, capacity in launches:
            items.sort(key=lambda item: _rank(item[0], rows, columns, order.group, by_columns))
            total += fetched((steps for _, steps in items), order.at_once, capacity)
        return total

    best = grouped(by_columns=False)
    if taken <= best * order.slack or taken <= grouped(by_columns=True) * order.slack:
        return None
    return Finding(
        "traffic",
        f"In this order of programs an L2 cache {said} has to fetch {taken / 1024:.0f} KB from "
        f"memory; for the same tiles in groups of {order.group} rows it is {best / 1024:.0f} KB "
        f"({order.at_once} programs run at a time).",
    )


def _items(program: Sequence[Step]) -> list[tuple[Box | None, list[Step]]]:
    """A program cut after the stores of each tile: (the tile's box, its steps)."""
    items: list[tuple[Box | None, list[Step]]] = [(None, [])]
    ended = False
    for step in program:
        if ended and not step.stores:
            items.append((None, []))
            ended = False
        box, steps = items[-1]
        steps.append(step)
        if step.stores:
            ended = True
            items[-1] = (_united(box, step.box), steps)
    if len(items) > 1 and items[-1][0] is None:  # loads behind the last store
        items[-2][1].extend(items.pop()[1])
    return items


def _united(a: Box | None, b: Box | None) -> Box | None:
    if a is None or b is None:
        return a or b
    return (min(a[0], b[0]), min(a[1], b[1]), max(a[2], b[2]), max(a[3], b[3]))


def _rank(
    box: Box | None, rows: int, columns: int, group: int, by_columns: bool
) -> tuple[int, int, int]:
    """Where a tile stands in grouped order; tiles that nobody stores come first."""
    if box is None:
        return (-1, 0, 0)
    row, column = box[0] // rows, box[1] // columns
    if by_columns:
        row, column = column, row
    return (row // group, column, row)
