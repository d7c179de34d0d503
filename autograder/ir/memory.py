"""What a launch can touch: buffers with shadow state, windows on them, pointers into windows.

A *buffer* is one storage: bytes, and per cell (its smallest element) what wrote it last. A *window*
is one pointer argument of a launch: the exact set of cells that its shape and strides span. A
pointer is a window and an element offset from the window's start, so that an access belongs to one
argument whatever the arithmetic did: no allocation can be reached by running past another one's
end.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from autograder.floats import ITEMSIZE, decode, encode, stored
from autograder.records import CouldNotCheck, Traffic, View

UNINITIALISED, INPUT, CONSTANT, KERNEL, FOREIGN = range(5)
MAX_ELEMENTS = 1 << 28  # of a view, also where strides are 0
NOBODY, SEVERAL = -1, -2  # in the arrays of program ids
_FIRST = 16  # × 2^44 bytes: no machine gives a process addresses of more than 48 bits


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

    # Addresses as integers: far-apart ranges, so that arithmetic on them stays in its argument,
    # above those that a process uses. Of a process's own, ``window`` comes out negative.
    def address(self) -> np.ndarray:
        start = (np.asarray(self.window, np.int64) + _FIRST) << np.int64(44)
        return start + (np.int64(1) << np.int64(43)) + self.offset * ITEMSIZE[self.dtype]

    @staticmethod
    def from_address(address: np.ndarray, dtype: str) -> Pointer:
        window = (address >> np.int64(44)) - _FIRST
        inside = (address & ((np.int64(1) << np.int64(44)) - 1)) - (np.int64(1) << np.int64(43))
        first = int(window.flat[0]) if window.size else 0
        same = bool((window == first).all())
        return Pointer(first if same else window, inside // ITEMSIZE[dtype], dtype)


class Buffer:
    """``nbytes`` of memory in cells of ``unit`` bytes, with the state of every cell.

    Fresh memory is ``poisoned`` (floats are NaN); memory that is only counted holds zeros, which
    cost nothing: pages that do not exist until somebody writes. ``data``, bytes, is memory that is
    there already.
    """

    def __init__(
        self,
        number: int,
        nbytes: int,
        unit: int,
        poisoned: bool = True,
        data: np.ndarray | None = None,
    ):
        self.number, self.nbytes, self.unit = number, nbytes, unit
        if data is None:
            room = -(-nbytes // 16) * 16 + 16
            data = np.full(room, 0xFF, np.uint8) if poisoned else np.zeros(room, np.uint8)
        self.data = data
        self.cells = -(-nbytes // unit)
        self.state = np.zeros(self.cells, np.uint8)  # UNINITIALISED
        self.foreign: list[str] = []  # what torch computed into it
        self.writer = self.reader = self.atomic = None
        self.locks: np.ndarray | None = None
        self.seen: np.ndarray | None = None  # of an input: the cells that somebody has loaded

    def watch(self) -> None:
        """From now on remember which cells are loaded; one cell more is for lanes that are off."""
        self.seen = np.zeros(self.cells + 1, bool)

    def unseen(self, view: View) -> np.ndarray:
        """Which elements of the view nobody loaded."""
        return ~self._through(self.seen, view, ITEMSIZE[view.dtype] // self.unit)

    def begin_launch(self, tracked: bool) -> None:
        """Forget who wrote and read; ``tracked`` if this launch may write the buffer."""
        if tracked:
            self.writer = np.full(self.cells, NOBODY, np.int32)
            self.reader = np.full(self.cells, NOBODY, np.int32)
        else:
            self.writer = self.reader = None
        self.atomic = self.locks = None

    def typed(self, dtype: str) -> np.ndarray:
        whole = len(self.data) // ITEMSIZE[dtype] * ITEMSIZE[dtype]
        return self.data[:whole].view(stored(dtype))

    def refine(self, unit: int) -> None:
        """Cells of ``unit`` bytes from now on, if those are smaller."""
        if unit < self.unit:
            self.state = np.repeat(self.state, self.unit // unit)[: -(-self.nbytes // unit)]
            self.unit, self.cells = unit, len(self.state)

    def check(self, view: View) -> None:
        """Raises CouldNotCheck unless the view lies in this buffer, on whole cells."""
        size = ITEMSIZE[view.dtype]
        fits = len(view.shape) == len(view.strides) and size % self.unit == 0
        if not fits or min((view.offset, *view.shape, *view.strides)) < 0:
            raise CouldNotCheck("The trace names a view that no tensor can have.")
        if 0 not in view.shape:
            steps = zip(view.shape, view.strides, strict=True)
            last = view.offset + sum((n - 1) * stride for n, stride in steps)
            if (last + 1) * size > self.nbytes or math.prod(view.shape) > MAX_ELEMENTS:
                raise CouldNotCheck("The trace names a view that lies outside its buffer.")

    def _through(self, array: np.ndarray, view: View, factor: int) -> np.ndarray:
        """``array`` (``factor`` items an element) as the view sees it: its first items,
        writable.
        """
        self.check(view)
        item = array.itemsize * factor
        start = min(view.offset * factor, len(array))
        strides = [stride * item for stride in view.strides]
        return np.lib.stride_tricks.as_strided(array[start:], view.shape, strides)

    def mark(self, view: View, state) -> None:
        """Set the state of every cell of a view to a number or to an array of the view's shape."""
        factor = ITEMSIZE[view.dtype] // self.unit
        for part in range(factor):
            self._through(self.state[part:], view, factor)[...] = state

    def states(self, view: View) -> np.ndarray:
        return self._through(self.state, view, ITEMSIZE[view.dtype] // self.unit).copy()

    def read(self, view: View) -> np.ndarray:
        """Held values of a view, a copy, without any check of states."""
        return decode(self._through(self.typed(view.dtype), view, 1).copy(), view.dtype)

    def write(self, view: View, values: np.ndarray) -> None:
        bits = encode(np.broadcast_to(values, view.shape), view.dtype)
        self._through(self.typed(view.dtype), view, 1)[...] = bits


class Window:
    """One pointer argument: its name, its view, and what lies inside it."""

    def __init__(self, argument: str, buffer: Buffer, view: View):
        self.argument, self.buffer, self.view = argument, buffer, view
        self.start = view.offset * ITEMSIZE[view.dtype]  # byte
        self.itemsize = ITEMSIZE[view.dtype]
        self.home = self.itemsize  # bytes of the tensor's own elements; a view may claim others
        self.loaded = self.stored = 0  # bytes
        self.masked = self.sectors = 0
        self.defined = False  # known to hold no cell that nobody wrote
        self._reach: dict[str, tuple] = {}

    def reach(self, dtype: str):
        """For elements of ``dtype``: (data from the window's start, bitmap of the cells inside or
        None where all are, number of elements from start to end, cells an element, first cell).
        """
        if dtype not in self._reach:
            size, unit = ITEMSIZE[dtype], self.buffer.unit
            if size % unit or self.start % size:
                raise CouldNotCheck(f"{self.argument} is read as {dtype} at an unaligned address.")
            self.buffer.check(self.view)
            width, factor, first = self.itemsize // unit, size // unit, self.start // unit
            view = self.view
            steps = zip(view.shape, view.strides, strict=True)
            span = 0 if 0 in view.shape else 1 + sum((n - 1) * stride for n, stride in steps)
            count = span * width // factor
            bitmap = None
            if span != math.prod(view.shape):  # gaps, or an axis of stride 0
                inside = np.zeros((span, width), bool)
                strides = [stride * width for stride in view.strides]
                np.lib.stride_tricks.as_strided(inside[:, 0], view.shape, strides)[...] = True
                inside[:, 1:] = inside[:, :1]
                inside = inside.reshape(-1)[: count * factor].reshape(count, factor).all(axis=1)
                bitmap = None if inside.all() else inside
            data = self.buffer.typed(dtype)[self.start // size :][: max(count, 1)]
            self._reach[dtype] = (data, bitmap, count, factor, first)
        return self._reach[dtype]

    @property
    def nbytes(self) -> int:
        """From the first byte of the view to the end of its last element."""
        steps = zip(self.view.shape, self.view.strides, strict=True)
        last = sum((n - 1) * stride for n, stride in steps)
        return 0 if 0 in self.view.shape else (1 + last) * self.itemsize

    @property
    def traffic(self) -> Traffic:
        return Traffic(
            self.argument,
            self.home,
            -(-self.loaded // self.home),
            -(-self.stored // self.home),
            self.masked,
            self.sectors,
        )


@dataclass(slots=True)
class Batch:
    """Programs that run together: linear ids and the launch's grid."""

    programs: np.ndarray  # (P,) int32
    grid: tuple[int, int, int]

    def __len__(self) -> int:
        return len(self.programs)
