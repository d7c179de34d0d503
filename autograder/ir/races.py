"""Who touched which cell in this launch: races between programs, and within one.

Programs run in any order and at the same time, so two of them must not touch one cell unless both
only read, or both update it atomically, or a lock orders them. Buffers keep, cell by cell, the
program that wrote, the one that read and the one that updated atomically (or SEVERAL). Lanes are
reported once an access, whatever they clash with.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from autograder.ir.findings import Faults
from autograder.ir.memory import KERNEL, NOBODY, SEVERAL, Window


@dataclass(slots=True)
class Races:
    """``locksets`` is None unless the kernel uses compare-and-swap; then programs run one by
    one.
    """

    faults: Faults
    locksets: list[frozenset] | None = None
    locks: dict[int, set] = field(default_factory=dict)  # program -> (argument, element) it holds

    def read(self, op, window: Window, reach, index, programs) -> None:
        buffer, cells = window.buffer, _cells(reach, index)
        self._report(
            op,
            window,
            reach,
            index,
            programs,
            ("read of write", *_clash(buffer.writer, cells, programs)),
            ("read of atomic", *_clash(buffer.atomic, cells, programs)),
        )
        for cell in cells:
            _join(buffer.reader, cell, programs)
        self._hold(window, cells, programs)

    def write(self, op, window: Window, reach, index, programs) -> None:
        buffer, cells = window.buffer, _cells(reach, index)
        earlier = [
            ("write", *_clash(buffer.writer, cells, programs)),
            ("read", *_clash(buffer.reader, cells, programs)),
            ("atomic", *_clash(buffer.atomic, cells, programs)),
        ]
        for cell in cells:
            buffer.writer[cell] = programs
            buffer.state[cell] = KERNEL
        earlier.append(("write", *_twice(buffer.writer[cells[0]], cells[0], programs)))
        self._report(op, window, reach, index, programs, *earlier)
        self._hold(window, cells, programs)

    def update(self, op, window: Window, reach, index, programs, exchange=False) -> None:
        """An atomic read-modify-write. ``exchange``: one that overwrites what others put there."""
        buffer, cells = window.buffer, _cells(reach, index)
        if buffer.atomic is None:
            buffer.atomic = np.full(buffer.cells, NOBODY, np.int32)
        self._report(
            op,
            window,
            reach,
            index,
            programs,
            ("atomic of write", *_clash(buffer.writer, cells, programs)),
            ("atomic of read", *_clash(buffer.reader, cells, programs)),
            ("exchange", *(_clash(buffer.atomic, cells, programs) if exchange else (None, None))),
        )
        for cell in cells:
            _join(buffer.atomic, cell, programs)
            buffer.state[cell] = KERNEL

    def within(self, op, window: Window, programs, lanes, index) -> None:
        """Lanes of one program that wrote different values to one cell."""
        self.faults.note_race(op, window, programs, lanes, None, "lanes", index)

    def _report(self, op, window, reach, index, programs, *checks) -> None:
        checks = [c for c in checks if c[1] is not None]
        if not checks:
            return
        bad = np.zeros(len(index), bool)
        for _, lanes, _ in checks:
            bad |= lanes
        if self.locksets is not None:
            bad &= ~self._ordered(window, _cells(reach, index)[0], programs)
        if not bad.any():
            return
        first = bad & (programs == programs[bad].min())
        how, _, other = next(c for c in checks if (c[1] & first).any())
        self.faults.note_race(op, window, programs, bad, other, how, index)

    # ------------------------------------------------------------ locks
    # A cell's lockset is the set of locks that every access so far held (Savage et al., Eraser,
    # 1997). Two programs that share a lock are ordered by it.

    def exchange(self, argument: str, index, programs, old, new) -> None:
        """An exchange takes a lock where it finds 0 and leaves more; any other gives it back."""
        if self.locksets is None:
            return
        taken = (old == 0) & (new != 0)
        for program, i, mine in zip(programs.tolist(), index.tolist(), taken.tolist(), strict=True):
            if mine:
                self.acquire(argument, i, program)
            else:
                self.locks.get(program, set()).discard((argument, i))

    def acquire(self, argument: str, i: int, program: int) -> None:
        self.locks.setdefault(program, set()).add((argument, i))

    def _held(self, programs) -> frozenset:
        return frozenset(self.locks.get(int(programs[0]), ()))

    def _ordered(self, window, cell, programs) -> np.ndarray:
        table = window.buffer.locks
        if table is None:
            return np.zeros(len(cell), bool)
        held = self._held(programs)
        return np.array([n > 0 and bool(self.locksets[n] & held) for n in table[cell].tolist()])

    def _hold(self, window, cells, programs) -> None:
        if self.locksets is None or not len(programs):
            return
        buffer = window.buffer
        if buffer.locks is None:
            buffer.locks = np.zeros(buffer.cells, np.int32)  # 0: nobody touched it yet
        held, numbers = self._held(programs), {0: 0}
        for number in np.unique(buffer.locks[cells[0]]).tolist():
            common = held if number == 0 else self.locksets[number] & held
            if common not in self.locksets[1:]:
                self.locksets.append(common)
            numbers[number] = self.locksets.index(common, 1)
        chosen = [numbers[n] for n in buffer.locks[cells[0]].tolist()]
        for cell in cells:
            buffer.locks[cell] = chosen


def _cells(reach, index) -> list[np.ndarray]:
    """The cells of elements: one array for each cell that an element has."""
    _, _, _, factor, first = reach
    return [first + index * factor + part for part in range(factor)]


def _clash(array, cells, programs):
    """(lanes whose cell another program touched, that program by lane), or (None, None)."""
    if array is None:
        return None, None
    other = array[cells[0]]
    for cell in cells[1:]:
        more = array[cell]
        other = np.where((other == NOBODY) | (other == programs), more, other)
    bad = (other != NOBODY) & (other != programs)
    return (bad, other) if bad.any() else (None, None)


def _twice(writer, cell, programs):
    """Lanes of one store whose cell an earlier program of the same store writes as well."""
    if (writer == programs).all():
        return None, None
    order = np.argsort(cell, kind="stable")  # programs keep their order within a cell
    sorted_cells = cell[order]
    starts = np.flatnonzero(np.r_[True, sorted_cells[1:] != sorted_cells[:-1]])
    first = np.repeat(programs[order][starts], np.diff(np.r_[starts, len(order)]))
    other = np.empty_like(programs)
    other[order] = first
    return other != programs, other


def _join(array, cells, programs) -> None:
    """Note that these programs touched these cells: one id, or SEVERAL."""
    before = array[cells]
    array[cells] = np.where((before == NOBODY) | (before == programs), programs, SEVERAL)
    mixed = array[cells] != programs
    array[cells[mixed]] = SEVERAL
