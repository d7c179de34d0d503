"""Operations that move values without changing them; most treat pointers alike."""

from __future__ import annotations

import numpy as np

from autograder.floats import held
from autograder.ir.memory import Pointer
from autograder.ir.ops_table import alike, operation, whole
from autograder.records import CouldNotCheck


def _structural(function):
    """Shape operations treat values and pointers alike."""

    def apply(op, arguments):
        if isinstance(arguments[0], Pointer):
            return arguments[0].reshaped(lambda a: function(op, [a]))
        return function(op, arguments)

    return apply


@operation("tt.splat", "tt.unsplat")
@_structural
def _splat(op, arguments):
    (a,) = arguments
    return a.reshape(a.shape[0], *[1] * len(op.result_types[-1].shape))


@operation("tt.broadcast")
@_structural
def _broadcast(op, arguments):
    return arguments[0]  # length-1 axes are uniform already


@operation("tt.expand_dims")
@_structural
def _expand_dims(op, arguments):
    return np.expand_dims(arguments[0], int(op.attribute("axis")) + 1)


@operation("tt.reshape")
@_structural
def _reshape(op, arguments):
    (a,) = arguments
    if a[0].size == 1:
        return a.reshape(a.shape[0], *[1] * len(op.result_types[-1].shape))
    a = whole(a, op.types[0].shape)
    return a.reshape(a.shape[0], *op.result_types[-1].shape)


@operation("tt.trans")
@_structural
def _transpose(op, arguments):
    return np.transpose(arguments[0], [0, *(axis + 1 for axis in op.integers("order"))])


def _together(function):
    """Operations on several values (or pointers) of one shape, each whole."""

    def apply(op, arguments):
        if not isinstance(arguments[0], Pointer):
            return function([whole(a, op.types[0].shape) for a in arguments])
        parts = [p.offset for p in arguments]
        windows = [np.broadcast_to(p.window, p.offset.shape) for p in arguments]
        offset, window = (
            function([whole(a, op.types[0].shape) for a in each]) for each in (parts, windows)
        )
        first = arguments[0].window
        same = isinstance(first, int) and all(
            isinstance(p.window, int) and p.window == first for p in arguments
        )
        return Pointer(first if same else window, offset, arguments[0].dtype)

    return apply


operation("tt.join")(_together(lambda parts: np.stack(alike(parts), axis=-1)))
operation("tt.cat")(_together(lambda parts: np.concatenate(alike(parts), axis=1)))


@operation("tt.split")
def _split(op, arguments):
    (a,) = arguments
    if isinstance(a, Pointer):
        return [a.reshaped(lambda x, i=i: whole(x, op.types[0].shape)[..., i]) for i in (0, 1)]
    a = whole(a, op.types[0].shape)
    return [a[..., 0], a[..., 1]]


@operation("tt.make_range")
def _make_range(op, arguments):
    if op.cache is None:
        start, end = int(op.attribute("start")), int(op.attribute("end"))
        op.cache = np.arange(start, end, dtype=np.int32)[None]
    return op.cache


@operation("tt.gather")
def _gather(op, arguments):
    axis = int(op.attribute("axis")) + 1
    source, index = alike([whole(a, t.shape) for a, t in zip(arguments, op.types, strict=False)])
    if index.size and (index.min() < 0 or index.max() >= source.shape[axis]):
        raise CouldNotCheck(
            f"tl.gather (line {op.line}) is given an index outside 0…{source.shape[axis] - 1}, "
            f"the length of its source along that axis; a card gives any number there."
        )
    return np.take_along_axis(source, index.astype(np.int64), axis)


@operation("tt.histogram")
def _histogram(op, arguments):
    values, *mask = alike([whole(a, op.types[0].shape) for a in arguments])
    bins, count = op.result_types[-1].shape[0], len(values)
    keep = (values >= 0) & (values < bins) & (mask[0] if mask else True)
    rows = np.broadcast_to(np.arange(count)[:, None], values.shape)
    flat = np.bincount((rows * bins + values)[keep].astype(np.int64), minlength=count * bins)
    return flat.reshape(count, bins).astype(held(op.result_types[-1].dtype))
