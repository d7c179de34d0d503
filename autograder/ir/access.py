"""Loads, stores and atomics of all programs at once: checked first, then done.

A lane at fault reads a fixed poison and writes nothing. A lane that its mask switched off and no
`other` defines reads the run's own poison, so that runs with different poisons show what depends on
it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from autograder.floats import ITEMSIZE, decode, encode, is_float, stored
from autograder.ir.atomics import modify
from autograder.ir.findings import Faults
from autograder.ir.memory import CONSTANT, FOREIGN, INPUT, UNINITIALISED, Batch, Pointer, Window
from autograder.ir.races import Races
from autograder.records import Access, CouldNotCheck, Rejected, Touch

SECTOR = 32  # bytes: the unit in which the card's L2 talks to memory
_LATER = np.iinfo(np.int64).max  # sorts after every sector

# What undefined lanes hold, by run: a sum sees any of them, a maximum 6e4, a minimum −6e4, a test
# for non-zero the zero. The first makes it visible.
POISONS = {"nan": np.nan, "large": 6e4, "small": -6e4, "zero": 0.0}


@dataclass(slots=True)
class Memory:
    """The memory of one launch, as its kernel sees it."""

    windows: list[Window]
    faults: Faults
    races: Races
    poison: str = "nan"
    poisoned: tuple | None = None  # the one load (line, argument) that `poison` is for; None: all
    written: frozenset[int] = frozenset()  # numbers of buffers that this kernel may write
    keep: np.ndarray | None = None  # programs whose accesses are kept for pictures
    accesses: list[Access] = field(default_factory=list)
    touches: list[Touch] | None = None  # None: nobody asks which sectors were touched
    launch: int = 0  # the launch's number, for touches
    undefined: dict[tuple, list] = field(default_factory=dict)  # loads without `other` -> lanes
    budget: int = 1 << 40  # lanes that may still touch memory, masked ones included
    needed: frozenset[str] | None = None  # count only: values that are loaded all the same
    settled: frozenset[str] = frozenset()  # loads whose undefined lanes are proved to be harmless
    digest: int = 0  # of everything that undefined lanes could have changed
    step: int = 0
    # (first byte, end, window) of tensors that a kernel may find by their addresses, sorted
    addresses: list[tuple[int, int, int]] = field(default_factory=list)
    # Of the access before: offset, mask, what else counts, distinct sectors, rows they are of
    counted: tuple = (None, None, None, 0, 1)

    def begin(self) -> None:
        for window in self.windows if self.needed is None else ():
            window.buffer.begin_launch(window.buffer.number in self.written)

    def found(self, pointer: Pointer) -> Pointer:
        """A pointer made of an integer; one that holds a tensor's own address gets its window."""
        real = np.asarray(pointer.window) < 0
        if not real.any() or not self.addresses:
            return pointer
        starts, ends, numbers = np.array(self.addresses, np.int64).T
        address = pointer.address()
        which = np.searchsorted(starts, address, side="right") - 1
        real = real & (which >= 0) & (address < ends[which])
        inside = (address - starts[which]) // ITEMSIZE[pointer.dtype]
        window = np.where(real, numbers[which], pointer.window)
        same = bool((window == window.flat[0]).all())
        return Pointer(
            int(window.flat[0]) if same else window,
            np.where(real, inside, pointer.offset),
            pointer.dtype,
        )

    # ------------------------------------------------------------ the four ways to touch memory

    def load(self, op, pointer: Pointer, mask, other, shape, batch: Batch) -> np.ndarray:
        """Values, (programs or 1, *shape or 1). ``mask`` and ``other`` may be None."""
        result = None
        if self._counts(op):
            for window, here in self._windows(pointer, mask):
                self._inside(op, "load", window, pointer, here, shape, batch)
            return None
        for window, here in self._windows(pointer, mask):
            part = self._load(op, window, pointer, here, shape, batch)
            result = part if result is None else np.where(here, part, result)
        if mask is None or mask.all():
            return result
        if other is None:
            other = self._undefined(op, pointer, mask, result.dtype, shape, batch)
        return np.where(mask, result, np.asarray(other, result.dtype))

    def _load(self, op, window, pointer, mask, shape, batch):
        reach = window.reach(pointer.dtype)
        index, active = self._inside(op, "load", window, pointer, mask, shape, batch)
        if not window.defined:
            self._check_defined(op, window, reach, index, active, shape, batch)
        if (seen := window.buffer.seen) is not None:
            cells = reach[4] + index * reach[3]
            seen[cells if active is None else np.where(active, cells, -1)] = True
        if window.buffer.writer is not None:
            flat, programs, _ = _flat(index, active, shape, batch)
            self.races.read(op, window, reach, flat, programs)
        data = reach[0]
        values = decode(data.take(index, mode="clip") if data.size else index * 0, pointer.dtype)
        if active is mask:
            return values
        outside = values.dtype.type(np.nan if is_float(pointer.dtype) else 0)
        return np.where(active, values, outside)

    def store(self, op, pointer: Pointer, value, mask, shape, batch: Batch) -> None:
        if self._counts(op):
            for window, here in self._windows(pointer, mask):
                self._inside(op, "store", window, pointer, here, shape, batch)
            return
        for window, here in self._windows(pointer, mask):
            index, programs, lanes = self._write(op, "store", window, pointer, here, shape, batch)
            if not index.size:
                continue
            reach = window.reach(pointer.dtype)
            bits = np.ascontiguousarray(encode(_lanes(value, lanes, shape, batch), pointer.dtype))
            self.races.write(op, window, reach, index, programs)
            data = reach[0]
            data[index] = bits
            lost = data[index].view(np.uint8) != bits.view(np.uint8)
            if lost.any():  # somebody else's value stands there: of this program, or of another
                lost = lost.reshape(len(index), -1).any(axis=1)
                lost &= window.buffer.writer[reach[4] + index * reach[3]] == programs
                if lost.any():
                    self.races.within(op, window, programs, lost, index)

    def atomic(self, op, kind: str, pointer: Pointer, value, mask, shape, batch: Batch):
        """Read-modify-write; returns the old values, whole; None where it is only counted."""
        if self._counts(op):
            for window, here in self._windows(pointer, mask):
                self._inside(op, "atomic", window, pointer, here, shape, batch)
            return None
        result = _nothing(pointer.dtype, shape, batch)
        for window, here in self._windows(pointer, mask):
            index, programs, lanes = self._write(op, "atomic", window, pointer, here, shape, batch)
            if not index.size:
                continue
            reach = window.reach(pointer.dtype)
            # Of two programs that exchange one number, one loses its own: no order, no sum.
            plain = kind == "exch" and is_float(pointer.dtype)
            self._update(op, window, reach, index, programs, plain)
            operand = _lanes(value, lanes, shape, batch)
            old = modify(kind, reach[0], index, operand, pointer.dtype)
            result.reshape(-1)[lanes] = old
            if kind == "exch":
                self.races.exchange(window.argument, index, programs, old, operand)
        return result

    def compare_and_swap(self, op, pointer: Pointer, expected, desired, shape, batch: Batch):
        result = _nothing(pointer.dtype, shape, batch)
        # Bits are compared: NaN is like itself, and −0 is not 0.
        expected = encode(np.broadcast_to(expected, result.shape).reshape(-1), pointer.dtype)
        if expected.dtype.kind == "f":
            expected = expected.view(f"u{expected.itemsize}")
        for window, here in self._windows(pointer, None):
            index, programs, lanes = self._write(op, "atomic", window, pointer, here, shape, batch)
            reach = window.reach(pointer.dtype)
            self._update(op, window, reach, index, programs)
            data, new = reach[0], _lanes(desired, lanes, shape, batch)
            for lane, i, program, value in zip(
                lanes.tolist(), index.tolist(), programs.tolist(), new, strict=True
            ):
                old = decode(data[i : i + 1], pointer.dtype)[0]
                result.reshape(-1)[lane] = old
                if data[i : i + 1].view(expected.dtype)[0] == expected[lane]:
                    data[i] = encode(np.asarray([value]), pointer.dtype)[0]
                    if value != old:  # a lock is taken by changing it
                        self.races.acquire(window.argument, i, program)
        return result

    def _counts(self, op) -> bool:
        """Whether only the traffic of this access is wanted."""
        return self.needed is not None and not any(r in self.needed for r in op.results)

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
        really touch memory (``mask`` itself where all its lanes do). Both are compact: uniform axes
        keep length 1.
        """
        _, bitmap, count, _, _ = window.reach(pointer.dtype)
        index = pointer.offset
        ok = index.view(np.uint64) < np.uint64(count)  # negative numbers are huge ones
        clean = bool(ok.all())
        if bitmap is not None and count:
            ok = ok & bitmap.take(index, mode="clip")
            clean = bool(ok.all())
        for array in (index,) if mask is None else (index, mask):
            extents = zip(array.shape[1:], shape, strict=False)
            if array.ndim - 1 != len(shape) or any(n not in (1, m) for n, m in extents):
                raise CouldNotCheck(f"The IR's types do not fit together (line {op.line}).")
        lanes = len(batch) * math.prod(shape)
        if mask is None:
            requested = lanes
        else:
            requested = int(np.count_nonzero(mask)) * (lanes // mask.size) if mask.size else 0
        window.masked += lanes - requested
        self.budget -= lanes
        if self.budget < 0:
            raise Rejected(
                f"The launch asks for so many lanes ({math.prod(self.faults.grid)} programs of "
                f"{math.prod(shape)} lanes at line {op.line}) that the check stopped counting. Is "
                f"the grid the number of blocks, or the number of elements?",
                "traffic",
                op.line,
                self.faults.kernel,
            )
        if self.undefined:
            total = int(index.sum() if mask is None else (index * mask).sum())
            self.digest = hash((self.digest, op.line, requested, total))
        if self.keep is not None:
            self._keep(op, verb, window, pointer, mask, ok, shape, batch)
        self.step += 1
        bad = None if clean else ~ok if mask is None else ~ok & mask
        if bad is not None and bad.any():
            self.faults.note_bounds(op, verb, window, pointer, bad, mask, shape, batch)
            # Lanes outside are one fault, not two: they do not count as traffic as well.
            requested -= int(np.count_nonzero(bad)) * (lanes // bad.size)
        moved = requested * ITEMSIZE[pointer.dtype]  # bytes, whatever type the pointer was cast to
        if verb == "load":
            window.loaded += moved
        else:
            window.stored += moved
        window.sectors += self._sectors(verb, window, pointer, mask, batch)
        if clean or bad is not None and not bad.any():
            return index if clean else np.where(ok, index, 0), mask
        return np.where(ok, index, 0), ok if mask is None else ok & mask

    def _write(self, op, verb, window, pointer, mask, shape, batch):
        """Like _inside: (element, program and flat lane number) of every lane that may write."""
        if window.buffer.writer is None:
            raise CouldNotCheck(f"The interpreter did not foresee a write to {window.argument}.")
        index, active = self._inside(op, verb, window, pointer, mask, shape, batch)
        return _flat(index, active, shape, batch)

    def _update(self, op, window, reach, index, programs, exchange=False) -> None:
        unknown = window.buffer.state[reach[4] + index * reach[3]] == UNINITIALISED
        if unknown.any():
            self.faults.note_flat("uninitialised", op, window, programs, unknown, index)
        self.races.update(op, window, reach, index, programs, exchange)

    def _check_defined(self, op, window, reach, index, active, shape, batch):
        """Reads of cells that nobody wrote, or that torch computed."""
        buffer = window.buffer
        if not buffer.cells:
            return
        if buffer.writer is None and ((buffer.state == INPUT) | (buffer.state == CONSTANT)).all():
            window.defined = True
            return
        _, _, _, factor, first = reach
        state = buffer.state.take(first + index * factor, mode="clip")
        for kind, value in (("uninitialised", UNINITIALISED), ("torch_computed", FOREIGN)):
            bad = state == value
            if active is not None:
                bad = bad & active
            if bad.any():
                self.faults.note_state(kind, op, window, bad, index, shape, batch)

    # ------------------------------------------------------------ what is kept beside

    def _undefined(self, op, pointer, mask, dtype, shape, batch):
        """Note lanes that no `other` defines; returns what they hold in this run."""
        for window, here in () if op.results[0] in self.settled else self._windows(pointer, None):
            off = ~mask if here is None else ~mask & here
            rows = np.broadcast_to(off, (len(batch), *shape)).reshape(len(batch), -1).sum(axis=1)
            if rows.any():
                key, program = (op.line, window.argument), int(batch.programs[rows > 0].min())
                lanes, first = self.undefined.get(key, (0, program))
                self.undefined[key] = [lanes + int(rows.sum()), min(first, program)]
        site = self.poisoned is None or self.poisoned[0] == op.line
        value = POISONS[self.poison if site else "nan"]
        if dtype.kind == "f":
            return value
        if dtype.kind == "b":
            return value != 0
        limits = np.iinfo(dtype)
        return {"nan": 0x5A, "large": limits.max, "small": limits.min, "zero": 0}[
            self.poison if site else "nan"
        ]

    def _sectors(self, verb, window, pointer, mask, batch) -> int:
        """Distinct 32-byte sectors of one memory operation, summed over the programs."""
        size = ITEMSIZE[pointer.dtype]
        shift = np.int64((SECTOR // size).bit_length() - 1)
        start = np.int64(window.start // size)
        # Of arguments that are used alike, such as x, y and the sum, one is counted.
        within = (int(start) & ((1 << int(shift)) - 1), size)
        offset, where, known, distinct, length = self.counted
        if offset is pointer.offset and where is mask and known == within and self.touches is None:
            return distinct * (len(batch) // length)
        sector = (pointer.offset + start) >> shift if start else pointer.offset >> shift
        masked = mask is not None and not mask.all()
        if masked:
            sector = np.where(mask, sector, _LATER)
        copies = len(batch) // len(sector)
        rows = sector.reshape(len(sector), -1)
        step = np.diff(rows, axis=1)
        if (step < 0).any():
            rows = np.sort(rows, axis=1)
            step = np.diff(rows, axis=1)
        distinct = np.count_nonzero(step) + len(rows)
        if masked:  # what stands for masked lanes is no sector
            distinct -= int((rows[:, -1] == _LATER).sum())
        if self.touches is not None:
            used = np.ones(rows.shape, bool)
            np.not_equal(step, 0, out=used[:, 1:])
            if masked:
                used &= rows != _LATER
            self._touch(verb, window, pointer, mask, rows, used, batch)
        self.counted = pointer.offset, mask, within, int(distinct), len(sector)
        return int(distinct) * copies

    def _touch(self, verb, window, pointer, mask, rows, used, batch) -> None:
        """Note the sectors of one operation: ``rows`` sorted by program, ``used`` their first."""
        size = ITEMSIZE[pointer.dtype]
        offset = pointer.offset if mask is None else np.broadcast_arrays(pointer.offset, mask)[0]
        on = True if mask is None else np.broadcast_to(mask, offset.shape)
        axes = tuple(range(1, offset.ndim))
        first = np.min(offset, axis=axes, initial=_LATER >> 3, where=on) * size // window.itemsize
        last = np.max(offset, axis=axes, initial=-1, where=on) * size // window.itemsize
        copies = len(batch) // len(rows)
        counts = used.sum(axis=1)
        self.touches.append(
            Touch(
                self.launch,
                verb,
                window.view,
                batch.programs,
                np.tile(rows[used], copies),
                np.cumsum(np.tile(counts, copies)),
                np.resize(first, len(batch)),
                np.resize(last, len(batch)),
            )
        )

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


def _flat(index, active, shape, batch: Batch):
    """(element, program, flat lane number) of the active lanes of a whole block."""
    full = (len(batch), *shape)
    index = np.broadcast_to(index, full).reshape(-1)
    programs = np.repeat(batch.programs, math.prod(shape))
    if active is None or active.all():
        return index, programs, np.arange(index.size)
    lanes = np.flatnonzero(np.broadcast_to(active, full))
    return index[lanes], programs[lanes], lanes


def _lanes(value, lanes, shape, batch: Batch):
    flat = np.broadcast_to(value, (len(batch), *shape)).reshape(-1)
    return flat if len(lanes) == flat.size else flat[lanes]


def _nothing(dtype: str, shape, batch: Batch) -> np.ndarray:
    return decode(np.zeros((len(batch), *shape), stored(dtype)), dtype).copy()
