"""The record of a mini-Triton launch: which program touched which number, and where they clash.

``recorded()`` listens to ``minitriton.WATCHERS``. Bounds, races, coverage, traffic and pictures are
all read off this one record, as they are for real kernels, where the IR interpreter keeps it.
"""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from autograder import minitriton
from autograder.records import Access, Traffic, View

_SECTOR = 32  # bytes
_NOBODY, _MANY = -1, -2
_NOT_STUDENTS = tuple(
    os.path.dirname(os.path.abspath(m.__file__)) + os.sep for m in (minitriton, np)
)


@contextmanager
def recorded(poisoned: Sequence[np.ndarray] = ()) -> Iterator[Recorder]:
    """Record what launches inside the block touch; ``STATS`` starts at 0 and is put back after.

    ``poisoned``: arrays whose numbers nobody has written yet.
    """
    record = Recorder()
    for array in poisoned:
        record.cells(array).written[:] = False
    stats = dict(minitriton.STATS)
    minitriton.STATS.update(loads=0, stores=0)
    minitriton.WATCHERS.append(record)
    try:
        yield record
    finally:
        minitriton.WATCHERS.remove(record)
        minitriton.STATS.update(stats)


@cache
def is_students(filename: str) -> bool:
    """Whether this file is the student's: neither this package's nor NumPy's."""
    return not os.path.abspath(filename).startswith(_NOT_STUDENTS)


@dataclass(frozen=True)
class Event:
    """One load or store of one program. ``offsets``, ``active``, ``inside`` have one shape."""

    launch: int
    step: int  # counts the loads and stores of this program
    kernel: str
    line: int
    argument: str
    operation: str
    program: tuple[int, ...]
    array: np.ndarray
    offsets: np.ndarray
    active: np.ndarray
    inside: np.ndarray


@dataclass(frozen=True)
class Fault:
    """The first event of a fault, and how many lanes it hit at this line in the whole run.

    ``offset`` is where the first of them hit; ``other`` the program it clashed with, if one, and
    ``wrote`` whether that one writes there or only reads.
    """

    kind: str
    event: Event
    lanes: int
    offset: int
    other: tuple[int, ...] | None = None
    wrote: bool = False


class Cells:
    """The shadow of one array's memory: who wrote and who read each number in this launch."""

    def __init__(self, owner: np.ndarray):
        self.owner = owner  # kept alive, so that no other array gets its addresses
        self.name = ""  # what the kernel calls it
        self.low = np.lib.array_utils.byte_bounds(owner)[0]
        count = owner.nbytes // owner.itemsize
        self.writer = np.full(count, _NOBODY)
        self.reader = np.full(count, _NOBODY)
        self.loaded = np.zeros(count, bool)  # by a load, in any launch
        self.stored = np.zeros(count, bool)  # by a store, likewise
        self.written = np.ones(count, bool)  # by anybody: inputs are, fresh arrays of NaN are not

    def at(self, array: np.ndarray, offsets: np.ndarray) -> np.ndarray:
        """Cells of flat ``offsets`` of ``array``, a view of the owner."""
        flat = array.reshape(-1)
        return self._cell(flat, offsets * flat.strides[0])

    def all_of(self, array: np.ndarray) -> np.ndarray:
        """Cells of all elements of ``array``, any view of the owner, in its shape."""
        places = np.indices(array.shape)
        return self._cell(array, sum(p * s for p, s in zip(places, array.strides, strict=True)))

    def _cell(self, array: np.ndarray, distance: np.ndarray) -> np.ndarray:
        start = array.__array_interface__["data"][0] - self.low
        return (start + distance) // self.owner.itemsize


class Recorder:
    """Listens to the mini-Triton: ``events`` is all that happened, ``faults`` what was wrong."""

    def __init__(self):
        self.events: list[Event] = []
        self.given: list[np.ndarray] = []  # arrays that a launch passed to a kernel, each once
        self._faults: dict[tuple, Fault] = {}
        self._cells: dict[int, Cells] = {}
        self._kernel = ""
        self._grids: list[tuple[int, ...]] = []
        self._numbers: dict[tuple, int] = {}  # program -> running number in this launch
        self._steps: dict[tuple, int] = {}

    # ---- called by the mini-Triton

    def launch(self, kernel, grid, args, named) -> None:
        """A launch begins: forget who touched what, learn the kernel's names for its arrays."""
        self._kernel = getattr(kernel, "__name__", type(kernel).__name__)
        self._grids.append(tuple(grid))
        self._numbers, self._steps = {}, {}
        for cells in self._cells.values():
            cells.writer[:] = cells.reader[:] = _NOBODY
        try:
            bound = inspect.signature(kernel).bind(None, *args, **named).arguments
        except (TypeError, ValueError):
            return  # the call that follows will say what is wrong with it
        for name, value in bound.items():
            if isinstance(value, np.ndarray):
                self.cells(value).name = name
                if not any(value is array for array in self.given):
                    self.given.append(value)

    def access(self, operation, program, array, offsets, active, values) -> None:
        """A load or a store is about to happen."""
        program = program if isinstance(program, tuple) else ()
        step = self._steps[program] = self._steps.get(program, -1) + 1
        event = Event(
            launch=len(self._grids) - 1,
            step=step,
            kernel=self._kernel,
            line=_line(),
            argument=self.name(array),
            operation=operation,
            program=program,
            array=array,
            offsets=offsets.copy(),
            active=active.copy(),
            inside=(offsets >= 0) & (offsets < array.size),
        )
        self.events.append(event)
        outside = active & ~event.inside
        if outside.any():
            self._fault("out_of_bounds", event, event.offsets, outside)
        if operation == "load":
            self._shadow_load(event)
        else:
            self._shadow_store(event, values)

    # ---- read by the check and by pictures

    @property
    def faults(self) -> tuple[Fault, ...]:
        """out_of_bounds, uninitialised and race, one a kind, kernel, argument and line."""
        return tuple(self._faults.values())

    def cells(self, array: np.ndarray) -> Cells:
        while isinstance(array.base, np.ndarray):
            array = array.base
        if id(array) not in self._cells:
            self._cells[id(array)] = Cells(array)
        return self._cells[id(array)]

    def name(self, array: np.ndarray) -> str:
        return self.cells(array).name or "an array"

    def traffic(self) -> tuple[Traffic, ...]:
        """Numbers requested, by argument, over all launches."""
        by_argument: dict[str, list[Event]] = {}
        for event in self.events:
            by_argument.setdefault(event.argument, []).append(event)
        return tuple(_traffic(name, events) for name, events in by_argument.items())

    def accesses(self) -> tuple[Access, ...]:
        """The events, with the programs of a launch that did the same step stacked."""
        groups: dict[tuple, list[Event]] = {}
        for e in self.events:
            where = (e.launch, e.step, e.kernel, e.line, e.argument, e.operation, e.offsets.shape)
            groups.setdefault(where, []).append(e)
        return tuple(self.stacked(events) for events in groups.values())

    def stacked(self, events: Sequence[Event]) -> Access:
        """Events of one line and launch as one Access, a row a program."""
        first = events[0]
        grid = self._grids[first.launch] if first.launch >= 0 else ()
        weights = np.cumprod((1, *grid))[: len(first.program)]  # axis 0 counts fastest
        strides = tuple(stride // first.array.itemsize for stride in first.array.strides)
        return Access(
            kernel=first.kernel,
            line=first.line,
            argument=first.argument,
            operation=first.operation,
            programs=np.array([int(np.dot(e.program, weights)) for e in events]),
            offsets=np.stack([e.offsets for e in events]),
            active=np.stack([e.active for e in events]),
            inside=np.stack([e.inside for e in events]),
            view=View(0, 0, first.array.shape, strides, first.array.dtype.name),
            step=first.step,
        )

    # ---- inside

    def _shadow_load(self, event: Event) -> None:
        me, shadow, offsets, cells = self._touched(event)
        # What NumPy wrote past store is there to be read: only the NaN of fresh arrays is nothing.
        nothing = ~shadow.written[cells]
        if nothing.any():
            nothing &= np.isnan(event.array.reshape(-1)[offsets])
        self._fault("uninitialised", event, offsets, nothing)
        writer, reader = shadow.writer[cells], shadow.reader[cells]
        clash = (writer != _NOBODY) & (writer != me)
        self._fault("race", event, offsets, clash, writer, clash)
        shadow.reader[cells] = np.where((reader == _NOBODY) | (reader == me), me, _MANY)
        shadow.loaded[cells] = True

    def _shadow_store(self, event: Event, values) -> None:
        me, shadow, offsets, cells = self._touched(event)
        writer, reader = shadow.writer[cells], shadow.reader[cells]
        wrote = (writer != _NOBODY) & (writer != me)
        who = np.where(wrote, writer, reader)
        self._fault("race", event, offsets, (who != _NOBODY) & (who != me), who, wrote)
        # Two lanes of this program with different values for one number: neighbours once sorted.
        wanted = np.broadcast_to(values, event.offsets.shape)[event.active & event.inside]
        order = np.argsort(cells, kind="stable")
        twice = np.diff(cells[order]) == 0
        differ = np.append(twice & (wanted[order][1:] != wanted[order][:-1]), False)
        if cells.size:
            self._fault("race", event, offsets[order], differ, np.full(cells.size, me))
        shadow.writer[cells] = me
        shadow.stored[cells] = shadow.written[cells] = True

    def _touched(self, event: Event) -> tuple[int, Cells, np.ndarray, np.ndarray]:
        """The program's number, and shadow, offsets and cells of the lanes that are on, inside."""
        me = self._numbers.setdefault(event.program, len(self._numbers))
        offsets = event.offsets[event.active & event.inside]
        shadow = self.cells(event.array)
        return me, shadow, offsets, shadow.at(event.array, offsets)

    def _fault(self, kind, event, offsets, where, others=None, wrote=None) -> None:
        """Note a fault where ``where`` holds; later ones at the same line only add lanes."""
        if not where.any():
            return
        key = (kind, event.kernel, event.argument, event.line)
        lanes = int(where.sum())
        if key in self._faults:
            self._faults[key] = replace(self._faults[key], lanes=self._faults[key].lanes + lanes)
            return
        other = None
        if others is not None:
            number = others[where][0]
            other = next((pid for pid, n in self._numbers.items() if n == number), None)
        writes = wrote is not None and bool(wrote[where][0])
        self._faults[key] = Fault(kind, event, lanes, int(offsets[where][0]), other, writes)


def _traffic(argument: str, events: list[Event]) -> Traffic:
    size = events[0].array.itemsize
    touched = [e.offsets[e.active & e.inside] for e in events]
    moved = np.array([offsets.size for offsets in touched])
    loads = np.array([e.operation == "load" for e in events])
    sectors = np.concatenate(touched) * size // _SECTOR
    pairs = np.repeat(np.arange(len(events)), moved) * (sectors.max(initial=0) + 1) + sectors
    return Traffic(
        argument,
        size,
        loaded=int(moved[loads].sum()),
        stored=int(moved[~loads].sum()),
        masked=sum(int(np.count_nonzero(~e.active)) for e in events),
        sectors=int(np.unique(pairs).size),
    )


def _line() -> int:
    """The line of the student's code that runs; 0 if there is none."""
    frame = sys._getframe(1)
    while frame and not is_students(frame.f_code.co_filename):
        frame = frame.f_back
    return frame.f_lineno if frame else 0
