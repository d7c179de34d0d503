"""Pointers on unusual ways: carried through loops, chosen by branches, passed in tuples, read from
memory, wrapped in descriptors, used in helpers; faults must still name argument, line and lanes."""

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

from tests.kernels.table import Fault, T, faulty, unwritten

# Where Triton places a call over several lines: at its first argument, from 3.8 on where it begins.
VERSION = tuple(int(part) for part in triton.__version__.split(".")[:2])
PLACE = "argument" if VERSION < (3, 8) else "call"


def bounds(kernel, argument, program, lanes, at="here", marked=None):
    return Fault("out_of_bounds", kernel, argument, program, lanes, at, marked)


def race(kernel, argument, program, lanes, at="here"):
    return Fault("race", kernel, argument, program, lanes, at)


@triton.jit
def moving_pointer(x, out, n, B: tl.constexpr):
    p = x + tl.arange(0, B)
    total = tl.zeros((B,), tl.float32)
    for _ in range(tl.cdiv(n, B)):
        total += tl.load(p)  # <-- here
        p += B
    tl.store(out + tl.arange(0, B), total)


@faulty("a pointer that moves past the tail", [T(100)], bounds(moving_pointer, "x", (0,), 28))
def _(x):
    out = torch.empty(64)
    moving_pointer[(1,)](x, out, 100, B=64)
    return out


@triton.jit
def chosen_pointer(x, y, out, B: tl.constexpr):
    pid = tl.program_id(0)
    p = x
    if pid % 2 == 1:
        p = y
    i = tl.arange(0, B)
    v = tl.load(p + i)  # <-- here
    tl.store(out + pid * B + i, v)


@faulty(
    "a branch chooses the pointer",
    [T(16), T(10)],
    bounds(chosen_pointer, "y", (1,), 12),
)
def _(x, y):
    out = torch.empty(64)
    chosen_pointer[(4,)](x, y, out, B=16)
    return out


@triton.jit
def selected_pointers(x, y, out, B: tl.constexpr):
    i = tl.arange(0, B)
    v = tl.load(tl.where(i < 8, x + i, y + i))  # <-- here
    tl.store(out + i, v)


@faulty(
    "tl.where chooses pointers by lane",
    [T(6), T(12)],
    bounds(selected_pointers, "x", (0,), 2),
    bounds(selected_pointers, "y", (0,), 4),
)
def _(x, y):
    out = torch.empty(16)
    selected_pointers[(1,)](x, y, out, B=16)
    return out


@triton.jit
def from_a_tuple(xs, out, n, B: tl.constexpr):
    i = tl.arange(0, B)
    v = tl.load(xs[0] + i, mask=i < n, other=0.0)
    w = tl.load(xs[1] + i)  # <-- here
    tl.store(out + i, v + w, mask=i < n)


@faulty("a tuple of tensors", [T(10), T(10)], bounds(from_a_tuple, "xs.1", (0,), 6))
def _(x, y):
    out = torch.empty(10)
    from_a_tuple[(1,)]((x, y), out, 10, B=16)
    return out


@triton.jit(noinline=True)
def sum_from(x, start):
    return tl.sum(tl.load(x + start + tl.arange(0, 64)))  # <-- here


@triton.jit
def calls(x, out, B: tl.constexpr):
    pid = tl.program_id(0)
    tl.store(out + pid, sum_from(x, pid * B))


@faulty(
    "a helper that is called, not inlined",
    [T(100)],
    bounds(calls, "x", (1,), 28, marked=sum_from),
)
def _(x):
    out = torch.empty(2)
    calls[(2,)](x, out, B=64)
    return out


@triton.jit
def over_several_lines(x, out, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(  # <-- call
        x + i,  # <-- argument
        mask=i <= n,
        other=0.0,
    )
    tl.store(out + i, v, mask=i < n)


@faulty("a call that spans lines", [T(100)], bounds(over_several_lines, "x", (1,), 1, at=PLACE))
def _(x):
    out = torch.empty_like(x)
    over_several_lines[(2,)](x, out, 100, B=64)
    return out


@triton.jit
def nobody_uses_it(x, out, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.load(x + i + n)  # <-- here
    tl.store(out + i, tl.load(x + i, mask=i < n), mask=i < n)


@faulty("a load whose value nobody uses", [T(64)], bounds(nobody_uses_it, "x", (0,), 64))
def _(x):
    out = torch.empty_like(x)
    nobody_uses_it[(1,)](x, out, 64, B=64)
    return out


@triton.jit
def make_index(index, factor, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(index + i, i * factor)


@triton.jit
def gather(x, index, out, n, B: tl.constexpr):
    i = tl.arange(0, B)
    at = tl.load(index + i, mask=i < n)  # <-- index
    v = tl.load(x + at, mask=i < n)  # <-- value
    tl.store(out + i, v, mask=i < n)


@faulty("an index that points outside", [T(20)], bounds(gather, "x", (0,), 9, "value"))
def _(x):
    index, out = torch.empty(16, dtype=torch.int32), torch.empty(16)
    make_index[(1,)](index, 3, B=16)
    gather[(1,)](x, index, out, 16, B=16)
    return out


@triton.jit
def scatter(x, index, out, B: tl.constexpr):
    i = tl.arange(0, B)
    at = tl.load(index + i)
    tl.store(out + at, tl.load(x + i))  # <-- here


@faulty("a scatter with a negative index", [T(16)], bounds(scatter, "out", (0,), 15), unwritten(15))
def _(x):
    index, out = torch.empty(16, dtype=torch.int64), torch.empty(16)
    make_index[(1,)](index, -1, B=16)
    scatter[(1,)](x, index, out, B=16)
    return out


@triton.jit
def unguarded_gather(x, index, out, n, B: tl.constexpr):
    i = tl.arange(0, B)
    at = tl.load(index + i, mask=i < n)  # <-- index
    v = tl.load(x + at)  # <-- value
    tl.store(out + i, v, mask=i < n)


@faulty(
    "undefined lanes become addresses",
    [T(16)],
    Fault("undefined_lane", unguarded_gather, "index", (0,), 6, "index"),
    bounds(unguarded_gather, "x", (0,), 6, "value"),
)
def _(x):
    index, out = torch.empty(16, dtype=torch.int32), torch.empty(10)
    make_index[(1,)](index, 1, B=16)
    unguarded_gather[(1,)](x, index, out, 10, B=16)
    return out


@triton.jit
def mask_from_memory(keep, x, out, n, B: tl.constexpr):
    i = tl.arange(0, B)
    m = tl.load(keep + i, mask=i < n)  # <-- here
    tl.store(out + i, tl.load(x + i), mask=m)


@faulty(
    "undefined lanes become a mask",
    [T(16, dtype="bool"), T(16)],
    Fault("undefined_lane", mask_from_memory, "keep", (0,), 6),
)
def _(keep, x):
    out = torch.zeros(16)
    mask_from_memory[(1,)](keep, x, out, 10, B=16)
    return out


@triton.jit
def tiles_by_descriptor(x, out, step, B: tl.constexpr):
    r = tl.program_id(0) * step
    out.store([r, 0], x.load([r, 0]))  # <-- here


@faulty("descriptor tiles that overlap", [T(40, 16)], race(tiles_by_descriptor, "out", (1,), 384))
def _(x):
    out = torch.empty(40, 16)
    d, e = (TensorDescriptor(t, [40, 16], [16, 1], [16, 16]) for t in (x, out))
    tiles_by_descriptor[(4,)](d, e, 8, B=16)
    return out


@faulty(
    "a descriptor over memory that nobody wrote",
    [],
    Fault("uninitialised", tiles_by_descriptor, "x", (0,), 160),
)
def _():
    x, out = torch.empty(10, 16), torch.empty(10, 16)
    d, e = (TensorDescriptor(t, [10, 16], [16, 1], [16, 16]) for t in (x, out))
    tiles_by_descriptor[(1,)](d, e, 16, B=16)
    return out


@triton.jit
def block_store(x, out, n, B: tl.constexpr):
    pid = tl.program_id(0)
    v = tl.load(tl.make_block_ptr(x, (n,), (1,), (pid * B,), (B,), (0,)), boundary_check=(0,))
    tl.store(tl.make_block_ptr(out, (n,), (1,), (pid * B,), (B,), (0,)), v)  # <-- here


@faulty("a block pointer that stores unchecked", [T(100)], bounds(block_store, "out", (1,), 28))
def _(x):
    out = torch.empty_like(x)
    block_store[(2,)](x, out, 100, B=64)
    return out


@triton.jit
def fill_rows(out, stride, B: tl.constexpr):
    row = tl.program_id(0)
    tl.store(out + row * stride + tl.arange(0, B), 1.0)  # <-- here


@faulty("rows of a padded output", [], bounds(fill_rows, "out", (0,), 24))
def _():
    out = torch.empty(4, 16)[:, :10]
    fill_rows[(4,)](out, 16, B=16)
    return out


@triton.jit
def many_programs(out, last, B: tl.constexpr):
    pid = tl.program_id(0)
    block = tl.where(pid == last, 0, pid)
    tl.store(out + block * B + tl.arange(0, B), 1.0)  # <-- here


@faulty(
    "the last of 1500 programs repeats the first block",
    [],
    race(many_programs, "out", (1499,), 1024),
    unwritten(1024),
)
def _():
    out = torch.empty(1500 * 1024)
    many_programs[(1500,)](out, 1499, B=1024)
    return out
