"""Block pointers and tensor descriptors: a base, a shape, strides, and where the block stands.

Both turn into ordinary lanes with a mask: a descriptor checks every axis, a block pointer those
that `boundary_check` names. The memory then checks the lanes against the argument like any others,
so a shape that claims more than the tensor holds is found.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from autograder.floats import ITEMSIZE
from autograder.ir.memory import Pointer
from autograder.records import CouldNotCheck


@dataclass(frozen=True, slots=True)
class Tile:
    """``sizes``, ``strides`` and ``offsets``: one int64 array (programs or 1,) an axis."""

    base: Pointer
    sizes: tuple[np.ndarray, ...]
    strides: tuple[np.ndarray, ...]
    offsets: tuple[np.ndarray, ...]
    block: tuple[int, ...]
    padding: str | None = "zero"

    @property
    def shape(self):
        return self.base.shape

    @property
    def aligned(self) -> bool:
        """Whether every stride but the last is a multiple of 16 bytes, as a card's TMA needs."""
        size = ITEMSIZE[self.base.dtype]
        return all(not (s * size % 16).any() for s in self.strides[:-1])

    def at(self, offsets) -> Tile:
        """The same descriptor, with the block at these element offsets (int32 arrays)."""
        return replace(self, offsets=tuple(np.asarray(o, np.int64) for o in offsets))

    def advanced(self, steps) -> Tile:
        moved = tuple(o + s for o, s in zip(self.offsets, steps, strict=True))
        return replace(self, offsets=moved)

    def lanes(self, checked: tuple[int, ...]):
        """Pointers of the block's lanes, and the mask of the checked axes (None if there is
        none).
        """
        rank = len(self.block)
        offset = _spread(self.base.offset, rank)
        mask = None
        for axis, n in enumerate(self.block):
            lane = np.arange(n, dtype=np.int64).reshape(
                [-1 if a == axis else 1 for a in range(rank)]
            )
            at = _spread(self.offsets[axis], rank) + lane
            offset = offset + at * _spread(self.strides[axis], rank)
            if axis in checked:
                inside = (at >= 0) & (at < _spread(self.sizes[axis], rank))
                mask = inside if mask is None else mask & inside
        return Pointer(self.base.window, offset, self.base.dtype), mask

    def rows(self, rows: np.ndarray, column: np.ndarray, shape: tuple[int, int]):
        """Pointers and mask of whole rows by number, from ``column`` on: a gather or a scatter.
        ``rows``: (programs or 1, rows); ``column``: (programs or 1,)."""
        down = np.asarray(rows, np.int64)[:, :, None]
        across = _spread(np.asarray(column, np.int64), 2) + np.arange(shape[1], dtype=np.int64)
        sizes, strides = ([_spread(a, 2) for a in each] for each in (self.sizes, self.strides))
        offset = _spread(self.base.offset, 2) + down * strides[0] + across * strides[1]
        mask = (down >= 0) & (down < sizes[0]) & (across >= 0) & (across < sizes[1])
        return Pointer(self.base.window, offset, self.base.dtype), mask

    def load(self, memory, op, batch, checked, padding) -> np.ndarray:
        pointer, mask = self.lanes(checked)
        other = {"zero": 0, "nan": np.nan}.get(padding)
        return memory.load(op, pointer, mask, other, self.block, batch)

    def store(self, memory, op, batch, value, checked) -> None:
        pointer, mask = self.lanes(checked)
        memory.store(op, pointer, value, mask, self.block, batch)

    # Regions separate and reunite programs: every array goes along.
    def reshaped(self, function) -> Tile:
        def each(arrays):
            return tuple(function(a) for a in arrays)

        return replace(
            self,
            base=self.base.reshaped(function),
            sizes=each(self.sizes),
            strides=each(self.strides),
            offsets=each(self.offsets),
        )

    def merged(self, rows, values, together) -> Tile:
        def each(pick):
            return tuple(together(list(column)) for column in zip(*map(pick, values), strict=True))

        return replace(
            self,
            base=self.base.merged(rows, [v.base for v in values], together),
            sizes=each(lambda v: v.sizes),
            strides=each(lambda v: v.strides),
            offsets=each(lambda v: v.offsets),
        )


def _spread(array: np.ndarray, rank: int) -> np.ndarray:
    return array.reshape(array.shape[0], *[1] * rank)


def make(op, values) -> Tile:
    """``tt.make_tensor_ptr base, [shape], [strides], [offsets]`` or ``tt.make_tensor_descriptor
    base, [shape], [strides]``."""
    base, *rest = (values[o] for o in op.operands)
    block = op.result_types[-1].shape
    rank = len(block)
    groups = 3 if op.name == "tt.make_tensor_ptr" else 2
    if len(rest) != groups * rank:
        raise CouldNotCheck(f"The IR interpreter cannot read {op.name} {op.text.strip()[:60]}.")
    columns = [
        tuple(np.asarray(a, np.int64) for a in rest[i * rank : (i + 1) * rank])
        for i in range(groups)
    ]
    zero = tuple(np.zeros(1, np.int64) for _ in block)
    padding = {"1": "zero", "2": "nan"}.get(op.attribute("padding", "1"), "zero")
    return Tile(base, columns[0], columns[1], columns[2] if groups == 3 else zero, block, padding)
