"""Memory of a launch: buffers with shadow state, windows on them, exact bounds, races, traffic.

A *buffer* is one storage: bytes, and per cell (its smallest element) what wrote it last. A *window*
is one pointer argument of a launch: the exact set of cells that its shape and strides span. A
pointer is a window and an element offset from the window's start, so that an access belongs to one
argument whatever the arithmetic did: no allocation can be reached by running past another one's
end.

Every access checks first and touches memory afterwards; a lane at fault reads poison and writes
nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from autograder.floats import ITEMSIZE, decode, encode, is_float, stored
from autograder.ir.findings import Faults
from autograder.records import Access, CouldNotCheck, Traffic, View

UNINITIALISED, INPUT, CONSTANT, KERNEL, FOREIGN = range(5)
NOBODY, SEVERAL = -1, -2  # in the arrays of program ids
SECTOR = 32  # bytes: the unit in which the card's L2 talks to memory

# Two fills for lanes that a mask switched off and no `other` defines: they are compared.
POISON = {"nan": (np.nan, 0x5A), "large": (6e4, 0x33)}


@dataclass(slots=True)
class Pointer:
    """Pointers of all programs: ``offset`` in elements of ``dtype`` from the window's start.

    ``window`` is the index of one argument, or an array of them where a kernel mixes arguments.
    """

    window: int | np.ndarray
    offset: np.ndarray  # int64, (programs, *shape) with uniform axes of length 1
    dtype: str

    @property
    def shape(self) -> tuple[int, ...]:
        return self.offset.shape

    def reshaped(self, function) -> Pointer:
        window = self.window if isinstance(self.window, int) else function(self.window)
        return Pointer(window, function(self.offset), self.dtype)

    def moved(self, elements: np.ndarray) -> Pointer:
        return Pointer(self.window, self.offset + elements, self.dtype)

    def cast(self, dtype: str) -> Pointer:
        old, new = ITEMSIZE[self.dtype], ITEMSIZE[dtype]
        if new > old and (self.offset % (new // old)).any():
            raise CouldNotCheck("A pointer is cast to a wider type at an unaligned offset.")
        return Pointer(self.window, self.offset * old // new if old != new else self.offset, dtype)

    @staticmethod
    def choose(condition: np.ndarray, a: Pointer, b: Pointer) -> Pointer:
        window = a.window
        if not (isinstance(a.window, int) and a.window == b.window):
            window = np.where(condition, a.window, b.window)
        return Pointer(window, np.where(condition, a.offset, b.offset), a.dtype)

    def merged(self, rows, values, together) -> Pointer:
        """Pointers of disjoint groups of programs as one; ``together`` unites their arrays."""
        window = self.window
        if not all(isinstance(v.window, int) and v.window == window for v in values):
            window = together([np.broadcast_to(v.window, v.offset.shape) for v in values])
        return Pointer(window, together([v.offset for v in values]), self.dtype)

    # Addresses as integers: far-apart ranges, so that arithmetic on them stays in its argument.
    def address(self) -> np.ndarray:
        start = (np.asarray(self.window, np.int64) + 1) << np.int64(44)
        return start + (np.int64(1) << np.int64(43)) + self.offset * ITEMSIZE[self.dtype]

    @staticmethod
    def from_address(address: np.ndarray, dtype: str) -> Pointer:
        window = (address >> np.int64(44)) - 1
        inside = (address & ((np.int64(1) << np.int64(44)) - 1)) - (np.int64(1) << np.int64(43))
        first = int(window.flat[0]) if window.size else 0
        same = bool((window == first).all())
        return Pointer(first if same else window, inside // ITEMSIZE[dtype], dtype)


class Buffer:
    """``nbytes`` of memory in cells of ``unit`` bytes, with the state of every cell."""

    def __init__(self, number: int, nbytes: int, unit: int):
        self.number, self.nbytes, self.unit = number, nbytes, unit
        self.data = np.full(-(-nbytes // 16) * 16 + 16, 0xFF, np.uint8)
        cells = self.cells = -(-nbytes // unit)
        self.state = np.full(cells, UNINITIALISED, np.uint8)
        self.foreign: list[str] = []  # what torch computed into it
        self.writer = self.reader = self.atomic = None
        self.locks: np.ndarray | None = None

    def begin_launch(self, tracked: bool) -> None:
        """Forget who wrote and read; ``tracked`` if this launch may write the buffer."""
        if tracked:
            self.writer = np.full(self.cells, NOBODY, np.int32)
            self.reader = np.full(self.cells, NOBODY, np.int32)
        else:
            self.writer = self.reader = None
        self.atomic = self.locks = None

    def typed(self, dtype: str) -> np.ndarray:
        return self.data.view(stored(dtype))

    def cells_of(self, view: View) -> np.ndarray:
        """Cell numbers of a view's elements' first cells, shape ``view.shape``. Checks the
        range.
        """
        size = ITEMSIZE[view.dtype]
        offsets = np.full((1,) * len(view.shape), view.offset, np.int64)
        for axis, (n, stride) in enumerate(zip(view.shape, view.strides, strict=True)):
            steps = np.arange(n, dtype=np.int64) * stride
            offsets = offsets + steps.reshape(
                [-1 if i == axis else 1 for i in range(len(view.shape))]
            )
        if offsets.size and (offsets.min() < 0 or (offsets.max() + 1) * size > self.nbytes):
            raise CouldNotCheck("The trace names a view that lies outside its buffer.")
        return offsets * (size // self.unit)

    def mark(self, view: View, state) -> None:
        """Set the state of every cell of a view to a number or to an array of the view's shape."""
        cells = self.cells_of(view)
        for part in range(ITEMSIZE[view.dtype] // self.unit):
            self.state[cells + part] = state

    def states(self, view: View) -> np.ndarray:
        return self.state[self.cells_of(view)]

    def read(self, view: View) -> np.ndarray:
        """Held values of a view, without any check."""
        cells = self.cells_of(view) // (ITEMSIZE[view.dtype] // self.unit)
        return decode(self.typed(view.dtype)[cells], view.dtype)

    def write(self, view: View, values: np.ndarray) -> None:
        cells = self.cells_of(view) // (ITEMSIZE[view.dtype] // self.unit)
        self.typed(view.dtype)[cells] = encode(np.broadcast_to(values, view.shape), view.dtype)


class Window:
    """One pointer argument: its name, its view, and what lies inside it."""

    def __init__(self, argument: str, buffer: Buffer, view: View):
        self.argument, self.buffer, self.view = argument, buffer, view
        self.start = view.offset * ITEMSIZE[view.dtype]  # byte
        self.itemsize = ITEMSIZE[view.dtype]
        self.loaded = self.stored = self.masked = self.sectors = 0
        self._reach: dict[str, tuple] = {}

    def reach(self, dtype: str):
        """For elements of ``dtype``: (data from the window's start, bitmap of the cells inside or
        None where all are, number of elements from start to end, cells an element, first cell).
        """
        if dtype not in self._reach:
            size, unit = ITEMSIZE[dtype], self.buffer.unit
            if size % unit or self.start % size:
                raise CouldNotCheck(f"{self.argument} is read as {dtype} at an unaligned address.")
            cells = self.buffer.cells_of(self.view).ravel()
            width = self.itemsize // unit
            first = self.start // unit
            inside = np.zeros(int(cells.max()) + width - first if cells.size else 0, bool)
            for part in range(width):
                inside[cells - first + part] = True
            factor = size // unit
            count = len(inside) // factor
            inside = inside[: count * factor].reshape(count, factor).all(axis=1)
            data = self.buffer.typed(dtype)[self.start // size :][: max(count, 1)]
            self._reach[dtype] = (data, None if inside.all() else inside, count, factor, first)
        return self._reach[dtype]

    @property
    def traffic(self) -> Traffic:
        return Traffic(
            self.argument, self.itemsize, self.loaded, self.stored, self.masked, self.sectors
        )


@dataclass(slots=True)
class Batch:
    """Programs that run together: linear ids and the launch's grid."""

    programs: np.ndarray  # (P,) int32
    grid: tuple[int, int, int]

    def __len__(self) -> int:
        return len(self.programs)


@dataclass(slots=True)
class Memory:
    """The memory of one launch, as its kernel sees it."""

    windows: list[Window]
    faults: Faults
    poison: str = "nan"
    written: frozenset[int] = frozenset()  # numbers of buffers that this kernel may write
    keep: np.ndarray | None = None  # programs whose accesses are kept for pictures
    accesses: list[Access] = field(default_factory=list)
    undefined: dict[tuple, list] = field(default_factory=dict)  # loads without `other` -> lanes
    digest: int = 0  # of everything that undefined lanes could have changed
    step: int = 0
    locks: dict[int, set] = field(default_factory=dict)  # program -> addresses it holds
    locksets: list[frozenset] | None = None  # None: the kernel uses no compare-and-swap

    def begin(self) -> None:
        for window in self.windows:
            window.buffer.begin_launch(window.buffer.number in self.written)

    # ------------------------------------------------------------ the four ways to touch memory

    def load(self, op, pointer: Pointer, mask, other, shape, batch: Batch) -> np.ndarray:
        """Values, (programs or 1, *shape or 1). ``mask`` and ``other`` may be None."""
        result = None
        for window, here in self._windows(pointer, mask):
            part = self._load(op, window, pointer, here, other, shape, batch)
            result = part if result is None else np.where(here, part, result)
        return result

    def _load(self, op, window, pointer, mask, other, shape, batch):
        data, _, _, factor, first = window.reach(pointer.dtype)
        index, active = self._inside(op, "load", window, pointer, mask, shape, batch)
        window.sectors += self._sectors(window, pointer, mask, batch)
        buffer = window.buffer
        if not getattr(window, "defined", False):
            self._check_defined(op, window, index, active, factor, first, shape, batch)
        if buffer.writer is not None:
            self._track_read(op, window, index, active, factor, first, shape, batch)
        values = decode(data.take(index, mode="clip") if data.size else index * 0, pointer.dtype)
        if active is None:
            return values
        if other is None:
            if mask is not None and not mask.all():
                self._note_undefined(op, window, mask, shape, batch)
            number, byte = POISON[self.poison]
            if is_float(pointer.dtype):
                other = values.dtype.type(number)
            elif values.dtype == bool:
                other = self.poison == "nan"
            else:
                other = np.frombuffer(bytes([byte]) * values.itemsize, values.dtype)[0]
        return np.where(active, values, np.asarray(other, values.dtype))

    def store(self, op, pointer: Pointer, value, mask, shape, batch: Batch) -> None:
        for window, here in self._windows(pointer, mask):
            index, programs, value_here = self._flat(
                op, "store", window, pointer, here, shape, batch, value
            )
            if not index.size:
                continue
            data, _, _, factor, first = window.reach(pointer.dtype)
            bits = np.ascontiguousarray(encode(value_here, pointer.dtype))
            buffer = window.buffer
            self._clash(op, window, buffer.writer, index, programs, factor, first, "write")
            self._clash(op, window, buffer.reader, index, programs, factor, first, "read")
            self._clash(op, window, buffer.atomic, index, programs, factor, first, "atomic")
            data[index] = bits
            for part in range(factor):
                cell = first + index * factor + part
                buffer.writer[cell] = programs
                buffer.state[cell] = KERNEL
            self._clash(op, window, buffer.writer, index, programs, factor, first, "write")
            lost = data[index].view(np.uint8) != bits.view(np.uint8)
            if lost.any():
                lanes = lost.reshape(len(index), -1).any(axis=1)
                same = buffer.writer[first + index * factor] == programs
                if (lanes & same).any():
                    self.faults.note_race(
                        op, window, batch, programs, lanes & same, None, "lanes", index
                    )
            self._hold(window, index, factor, first, programs)

    def atomic(self, op, kind: str, pointer: Pointer, value, mask, shape, batch: Batch):
        """Read-modify-write; returns the old values, whole. Lanes happen in lane order."""
        old = np.zeros((len(batch), *shape), encode(np.zeros(1), pointer.dtype).dtype)
        result = decode(old, pointer.dtype).copy()
        for window, here in self._windows(pointer, mask):
            lanes: list = []
            index, programs, operand = self._flat(
                op, "atomic", window, pointer, here, shape, batch, value, lanes
            )
            if not index.size:
                continue
            self._begin_atomic(op, window, pointer, index, programs, batch)
            data, _, _, factor, first = window.reach(pointer.dtype)
            if kind == "exch":
                for program in np.unique(programs).tolist():
                    mine = index[programs == program]
                    self.locks.get(program, set()).difference_update(
                        (window.argument, i) for i in mine.tolist()
                    )
            result.reshape(-1)[lanes[0]] = _modify(kind, data, index, operand, pointer.dtype)
        return result

    def compare_and_swap(self, op, pointer: Pointer, expected, desired, shape, batch: Batch):
        result = decode(np.zeros((len(batch), *shape), stored(pointer.dtype)), pointer.dtype).copy()
        expected = np.broadcast_to(expected, result.shape).reshape(-1)
        for window, here in self._windows(pointer, None):
            lanes: list = []
            index, programs, new = self._flat(
                op, "atomic", window, pointer, here, shape, batch, desired, lanes
            )
            if not index.size:
                continue
            self._begin_atomic(op, window, pointer, index, programs, batch)
            data, *_ = window.reach(pointer.dtype)
            for lane, i, program, value in zip(
                lanes[0].tolist(), index.tolist(), programs.tolist(), new, strict=True
            ):
                old = decode(data[i : i + 1], pointer.dtype)[0]
                result.reshape(-1)[lane] = old
                if old == expected[lane]:
                    data[i] = encode(np.asarray([value]), pointer.dtype)[0]
                    self.locks.setdefault(program, set()).add((window.argument, i))
        return result

    # ------------------------------------------------------------ checks before the access

    def _windows(self, pointer: Pointer, mask):
        """(window, mask of its lanes) for every argument that these pointers belong to."""
        if isinstance(pointer.window, int):
            return [(self._window(pointer.window), mask)]
        found = np.unique(pointer.window).tolist()
        return [
            (self._window(w), (pointer.window == w) & (True if mask is None else mask))
            for w in found
        ]

    def _window(self, number: int) -> Window:
        if not 0 <= number < len(self.windows):
            raise CouldNotCheck("The kernel reads an address that no argument gave it.")
        return self.windows[number]

    def _inside(self, op, verb, window, pointer, mask, shape, batch):
        """Bounds, traffic and pictures of one access.

        Returns (index, active): an index that is safe to use in every lane, and the lanes that
        really touch memory (None: all of them). Both are compact: uniform axes keep length 1.
        """
        _, bitmap, count, _, _ = window.reach(pointer.dtype)
        index = pointer.offset
        ok = index.view(np.uint64) < np.uint64(count)  # negative numbers are huge ones
        clean = bool(ok.all())
        if bitmap is not None and count:
            ok = ok & bitmap.take(index, mode="clip")
            clean = bool(ok.all())
        lanes = len(batch) * math.prod(shape)
        if mask is None:
            requested = lanes
        else:
            requested = int(np.count_nonzero(mask)) * (lanes // mask.size) if mask.size else 0
        if self.undefined:
            total = int(np.sum(index, where=True if mask is None else mask, initial=0))
            self.digest = hash((self.digest, op.line, requested, total))
        if self.keep is not None:
            self._keep(op, verb, window, pointer, mask, ok, shape, batch)
        self.step += 1
        bad = None if clean else ~ok if mask is None else ~ok & mask
        if bad is not None and bad.any():
            self.faults.note_bounds(op, verb, window, pointer, bad, mask, shape, batch)
            # Lanes outside are one fault, not two: they do not count as traffic as well.
            requested -= int(np.count_nonzero(bad)) * (lanes // bad.size)
        moved = requested * ITEMSIZE[pointer.dtype] // window.itemsize
        if verb == "load":
            window.loaded += moved
        else:
            window.stored += moved
        if clean:
            return index, mask
        return np.where(ok, index, 0), ok if mask is None else ok & mask

    def _flat(self, op, verb, window, pointer, mask, shape, batch, value, lanes=None):
        """Like _inside, for writes: flat index, program and value of every lane that may write."""
        if window.buffer.writer is None:
            raise CouldNotCheck(f"The interpreter did not foresee a write to {window.argument}.")
        index, active = self._inside(op, verb, window, pointer, mask, shape, batch)
        window.sectors += self._sectors(window, pointer, mask, batch)
        full = (len(batch), *shape)
        index = np.broadcast_to(index, full).reshape(-1)
        value = np.broadcast_to(value, full).reshape(-1)
        programs = np.repeat(batch.programs, math.prod(shape))
        if active is not None and not active.all():
            chosen = np.flatnonzero(np.broadcast_to(active, full))
            index, value, programs = index[chosen], value[chosen], programs[chosen]
        elif lanes is not None:
            chosen = np.arange(index.size)
        if lanes is not None:
            lanes.append(chosen)
        return index, programs, value

    def _check_defined(self, op, window, index, active, factor, first, shape, batch):
        """Reads of cells that nobody wrote, or that torch computed."""
        buffer = window.buffer
        if not buffer.cells:
            return
        if buffer.writer is None and ((buffer.state == INPUT) | (buffer.state == CONSTANT)).all():
            window.defined = True
            return
        state = buffer.state.take(first + index * factor, mode="clip")
        for kind, value in (("uninitialised", UNINITIALISED), ("torch_computed", FOREIGN)):
            bad = state == value
            if bad.any():
                if active is not None:
                    bad = bad & active
                if bad.any():
                    self.faults.note_state(kind, op, window, bad, index, shape, batch)

    def _track_read(self, op, window, index, active, factor, first, shape, batch):
        full = (len(batch), *shape)
        cell = np.broadcast_to(index, full).reshape(-1)
        programs = np.repeat(batch.programs, math.prod(shape))
        if active is not None and not active.all():
            chosen = np.flatnonzero(np.broadcast_to(active, full))
            cell, programs = cell[chosen], programs[chosen]
        buffer = window.buffer
        self._clash(op, window, buffer.writer, cell, programs, factor, first, "read of write")
        self._clash(op, window, buffer.atomic, cell, programs, factor, first, "read of atomic")
        for part in range(factor):
            self._join(buffer.reader, first + cell * factor + part, programs)
        self._hold(window, cell, factor, first, programs)

    @staticmethod
    def _join(array, cells, programs):
        """Note that these programs touched these cells: one id, or SEVERAL."""
        before = array[cells]
        array[cells] = np.where((before == NOBODY) | (before == programs), programs, SEVERAL)
        mixed = array[cells] != programs
        array[cells[mixed]] = SEVERAL

    def _clash(self, op, window, array, index, programs, factor, first, how):
        if array is None:
            return
        other = array[first + index * factor]
        for part in range(1, factor):
            more = array[first + index * factor + part]
            other = np.where(other == NOBODY, more, other)
        bad = (other != NOBODY) & (other != programs)
        if bad.any() and self.locksets is not None:
            bad &= ~self._ordered(window, index, factor, first, programs)
        if bad.any():
            self.faults.note_race(op, window, None, programs, bad, other, how, index)

    def _begin_atomic(self, op, window, pointer, index, programs, batch):
        buffer = window.buffer
        _, _, _, factor, first = window.reach(pointer.dtype)
        if buffer.atomic is None:
            buffer.atomic = np.full(buffer.cells, NOBODY, np.int32)
        state = buffer.state[first + index * factor]
        if (state == UNINITIALISED).any():
            self.faults.note_flat(
                "uninitialised", op, window, programs, state == UNINITIALISED, index
            )
        self._clash(op, window, buffer.writer, index, programs, factor, first, "atomic of write")
        self._clash(op, window, buffer.reader, index, programs, factor, first, "atomic of read")
        for part in range(factor):
            cell = first + index * factor + part
            self._join(buffer.atomic, cell, programs)
            buffer.state[cell] = KERNEL

    # ------------------------------------------------------------ locks (compare-and-swap)
    # A cell's lockset is the set of locks that every access so far held (Savage et al., Eraser,
    # 1997). Two programs that share a lock are ordered by it. Such kernels run one program at a
    # time.

    def _held(self, program: int) -> frozenset:
        return frozenset(self.locks.get(program, ()))

    def _ordered(self, window, index, factor, first, programs):
        buffer = window.buffer
        if buffer.locks is None:
            return np.zeros(len(index), bool)
        candidate = buffer.locks[first + index * factor]
        held = self._held(int(programs[0]))
        return np.array([c > 0 and bool(self.locksets[c] & held) for c in candidate.tolist()], bool)

    def _hold(self, window, index, factor, first, programs):
        if self.locksets is None or not index.size:
            return
        buffer = window.buffer
        if buffer.locks is None:
            buffer.locks = np.zeros(buffer.cells, np.int32)  # 0: nobody touched it yet
        held = self._held(int(programs[0]))
        cells = first + index * factor
        numbers = {}
        for number in np.unique(buffer.locks[cells]).tolist():
            common = held if number == 0 else self.locksets[number] & held
            if common not in self.locksets[1:]:
                self.locksets.append(common)
            numbers[number] = self.locksets.index(common, 1)
        buffer.locks[cells] = [numbers[n] for n in buffer.locks[cells].tolist()]

    # ------------------------------------------------------------ what is kept beside

    def _note_undefined(self, op, window, mask, shape, batch):
        off = np.broadcast_to(~mask, (len(batch), *shape)).reshape(len(batch), -1).sum(axis=1)
        key = (op.line, window.argument)
        program = int(batch.programs[off > 0].min())
        lanes, first = self.undefined.get(key, (0, program))
        self.undefined[key] = [lanes + int(off.sum()), min(first, program)]

    def _sectors(self, window, pointer, mask, batch) -> int:
        """Distinct 32-byte sectors of one memory operation, summed over the programs."""
        size = ITEMSIZE[pointer.dtype]
        shift = np.int64((SECTOR // size).bit_length() - 1)
        start = np.int64(window.start // size)
        sector = (pointer.offset + start) >> shift if start else pointer.offset >> shift
        if mask is not None and not mask.all():
            sector = np.where(mask, sector, np.iinfo(np.int64).max)
        else:
            mask = None
        copies = len(batch) // len(sector)
        rows = sector.reshape(len(sector), -1)
        if rows.shape[1] == 1:
            distinct = len(rows) if mask is None else int((rows < np.iinfo(np.int64).max).sum())
            return distinct * copies
        step = np.diff(rows, axis=1)
        if (step < 0).any():
            rows = np.sort(rows, axis=1)
            step = np.diff(rows, axis=1)
        distinct = np.count_nonzero(step) + len(rows)
        if mask is not None:  # the sentinel of masked lanes is no sector
            distinct -= int((rows[:, -1] == np.iinfo(np.int64).max).sum())
        return int(distinct) * copies

    def _keep(self, op, verb, window, pointer, mask, ok, shape, batch):
        rows = np.flatnonzero(np.isin(batch.programs, self.keep))
        if not rows.size or len(self.accesses) > 4096:
            return
        full = (len(batch), *shape)
        active = np.ones(full, bool) if mask is None else np.broadcast_to(mask, full)
        self.accesses.append(
            Access(
                self.faults.kernel,
                op.line,
                window.argument,
                verb,
                batch.programs[rows].copy(),
                np.broadcast_to(pointer.offset, full)[rows].copy(),
                active[rows].copy(),
                np.broadcast_to(ok, full)[rows].copy(),
                window.view,
                self.step,
            )
        )


def _modify(kind: str, data, index, operand, dtype):
    """Apply an atomic to every lane in lane order; returns the old values."""
    order = np.argsort(index, kind="stable")
    unique = np.ones(len(index), bool)
    unique[1:] = index[order][1:] != index[order][:-1]
    if unique.all():
        old = decode(data[index], dtype)
        data[index] = encode(_combine(kind, old, operand, dtype), dtype)
        return old
    old = np.empty(len(index), decode(data[:1], dtype).dtype)
    for lane, i in enumerate(index.tolist()):
        old[lane : lane + 1] = decode(data[i : i + 1], dtype)
        new = _combine(kind, old[lane : lane + 1], operand[lane : lane + 1], dtype)
        data[i : i + 1] = encode(new, dtype)
    return old


def _combine(kind: str, old, operand, dtype):
    operand = operand.astype(old.dtype, copy=False)
    if kind in ("umax", "umin"):
        unsigned = old.view("u" + old.dtype.name), operand.view("u" + old.dtype.name)
        return (np.maximum if kind == "umax" else np.minimum)(*unsigned).view(old.dtype)
    functions = {
        "fadd": np.add,
        "add": np.add,
        "max": np.maximum,
        "min": np.minimum,
        "and": np.bitwise_and,
        "or": np.bitwise_or,
        "xor": np.bitwise_xor,
        "exch": lambda a, b: b,
    }
    if kind not in functions:
        raise CouldNotCheck(f"The IR interpreter does not know the atomic operation {kind!r}.")
    return functions[kind](old, operand)
