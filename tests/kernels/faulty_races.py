"""Races: programs that meet in one cell, and lanes of one program that disagree.

Lanes at fault are those that come second: a lane that writes a cell which a program before it, in
the order of programs, wrote in the same operation; and any lane that touches a cell which another
program touched in an earlier operation. A lane counts once, however many ways it clashes. All
programs of a launch do an operation before any does the next one, so in a load that is followed by
a store every storing lane comes second.
"""

import torch
import triton
import triton.language as tl

from tests.kernels.table import Fault, T, faulty, unwritten


def race(kernel, argument, program, lanes, at="here", marked=None):
    return Fault("race", kernel, argument, program, lanes, at, marked)


@triton.jit
def everybody_writes(out, B: tl.constexpr):
    tl.store(out, tl.program_id(0))  # <-- here


@faulty("every program writes one cell", [], race(everybody_writes, "out", (1,), 3))
def _():
    out = torch.empty(1, dtype=torch.int32)
    everybody_writes[(4,)](out, B=1)
    return out


@triton.jit
def same_flag(out):
    tl.store(out, 7)  # <-- here


@faulty("every program writes the same value", [], race(same_flag, "out", (1,), 2))
def _():
    out = torch.empty(1, dtype=torch.int64)
    same_flag[(3,)](out)
    return out


@triton.jit
def sum_without_atomic(x, out, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    old = tl.load(out)
    tl.store(out, old + tl.sum(tl.load(x + i)))  # <-- here


@faulty("a sum without an atomic", [T(64)], race(sum_without_atomic, "out", (0,), 4))
def _(x):
    out = torch.zeros(1)
    sum_without_atomic[(4,)](x, out, B=16)
    return out


@triton.jit
def overlapping(x, out, n, step, B: tl.constexpr):
    i = tl.program_id(0) * step + tl.arange(0, B)
    v = tl.load(x + i, mask=i < n, other=0.0)
    tl.store(out + i, v, mask=i < n)  # <-- here


@faulty("blocks that overlap, equal values", [T(160)], race(overlapping, "out", (1,), 32))
def _(x):
    out = torch.empty_like(x)
    overlapping[(3,)](x, out, 160, 48, B=64)
    return out


@faulty(
    "step 0: every program works on the first block",
    [T(32)],
    race(overlapping, "out", (1,), 48),
    unwritten(16),
)
def _(x):
    out = torch.empty_like(x)
    overlapping[(4,)](x, out, 32, 0, B=16)
    return out


@triton.jit
def clamped_block(x, out, last, B: tl.constexpr):
    pid = tl.minimum(tl.program_id(0), last)
    i = pid * B + tl.arange(0, B)
    tl.store(out + i, tl.load(x + i))  # <-- here


@faulty("a surplus program repeats the last block", [T(64)], race(clamped_block, "out", (4,), 16))
def _(x):
    out = torch.empty_like(x)
    clamped_block[(5,)](x, out, 3, B=16)
    return out


@triton.jit
def wrong_axis(x, out, B: tl.constexpr):
    i = tl.program_id(1) * B + tl.arange(0, B)
    tl.store(out + i, tl.load(x + i))  # <-- here


@faulty("program_id of the wrong axis", [T(64)], race(wrong_axis, "out", (1,), 48), unwritten(48))
def _(x):
    out = torch.empty_like(x)
    wrong_axis[(4,)](x, out, B=16)
    return out


@triton.jit
def add_left(x, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    left = tl.load(x + i - 1, mask=(i > 0) & (i < n), other=0.0)
    here = tl.load(x + i, mask=i < n, other=0.0)
    tl.store(x + i, here + left, mask=i < n)  # <-- here


@faulty("a stencil in place", [T(96)], race(add_left, "x", (0,), 2))
def _(x):
    add_left[(3,)](x, 96, B=32)
    return x


@triton.jit
def reverse_in_place(x, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(x + n - 1 - i)
    tl.store(x + i, v)  # <-- here


@faulty("reversed in place", [T(64)], race(reverse_in_place, "x", (0,), 64))
def _(x):
    reverse_in_place[(2,)](x, 64, B=32)
    return x


@triton.jit
def shift(x, out, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(out + i, tl.load(x + i))  # <-- here


@faulty("input and output overlap in one storage", [T(96)], race(shift, "out", (0,), 32))
def _(both):
    shift[(2,)](both[:64], both[32:], B=32)
    return both[32:]


@triton.jit
def reads_the_total(x, total, out, B: tl.constexpr):
    pid = tl.program_id(0)
    tl.atomic_add(total, tl.sum(tl.load(x + pid * B + tl.arange(0, B))))
    tl.store(out + pid, tl.load(total))  # <-- here


@faulty("a plain read of an atomic cell", [T(64)], race(reads_the_total, "total", (0,), 4))
def _(x):
    total, out = torch.zeros(1), torch.empty(4)
    reads_the_total[(4,)](x, total, out, B=16)
    return out


@triton.jit
def resets_the_total(x, total, B: tl.constexpr):
    pid = tl.program_id(0)
    if pid == 0:
        tl.store(total, 0.0)
    tl.atomic_add(total, tl.sum(tl.load(x + pid * B + tl.arange(0, B))))  # <-- here


@faulty(
    "program 0 resets what the others add to", [T(64)], race(resets_the_total, "total", (1,), 3)
)
def _(x):
    total = torch.empty(1)
    resets_the_total[(4,)](x, total, B=16)
    return total


@triton.jit
def halves(x, out, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(out + i // 2, tl.load(x + i))  # <-- here


@faulty("two lanes, one cell, different values", [T(16)], race(halves, "out", (0,), 8))
def _(x):
    out = torch.empty(8)
    halves[(1,)](x, out, B=16)
    return out


@triton.jit
def wraps(out, B: tl.constexpr):
    pid = tl.program_id(0)
    i = tl.arange(0, B)
    tl.store(out + pid * 8 + i % 8, i)  # <-- here


@faulty("lanes that wrap around", [], race(wraps, "out", (0,), 48))
def _():
    out = torch.empty(16, dtype=torch.int32)
    wraps[(2,)](out, B=32)
    return out


@triton.jit
def column_sums(x, out, width, B: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, B)
    old = tl.load(out + i, mask=i < width, other=0.0)
    v = tl.load(x + row * width + i, mask=i < width, other=0.0)
    tl.store(out + i, old + v, mask=i < width)  # <-- here


@faulty("columns summed by a program a row", [T(5, 10)], race(column_sums, "out", (0,), 50))
def _(x):
    out = torch.zeros(10)
    column_sums[(5,)](x, out, 10, B=16)
    return out


@triton.jit
def every_tile(x, out, tiles, B: tl.constexpr):
    for t in range(tl.program_id(0), tiles):
        i = t * B + tl.arange(0, B)
        tl.store(out + i, tl.load(x + i))  # <-- here


@faulty("a grid-stride loop without the stride", [T(64)], race(every_tile, "out", (0,), 48))
def _(x):
    out = torch.empty_like(x)
    every_tile[(2,)](x, out, 4, B=16)
    return out


@triton.jit
def split_k(a, b, c, K, B: tl.constexpr):
    r = tl.arange(0, B)[:, None]
    n = tl.arange(0, B)[None, :]
    k = tl.program_id(1) * B
    row = tl.program_id(0) * B + r
    x = tl.load(a + row * K + k + n)
    y = tl.load(b + (k + r) * B + n)
    tl.store(c + row * B + n, tl.dot(x, y))  # <-- here


@faulty(
    "split-K that stores instead of adding",
    [T(32, 32, dtype="float16"), T(32, 16, dtype="float16")],
    race(split_k, "c", (0, 1), 512),
)
def _(a, b):
    c = torch.empty(32, 16)
    split_k[(2, 2)](a, b, c, 32, B=16)
    return c


@triton.jit
def first_writes_all_read(x, scratch, out, B: tl.constexpr):
    pid = tl.program_id(0)
    i = tl.arange(0, B)
    if pid == 0:
        tl.store(scratch + i, tl.load(x + i))
    tl.store(out + pid * B + i, tl.load(scratch + i))  # <-- here


@faulty(
    "program 0 writes, the others hope", [T(16)], race(first_writes_all_read, "scratch", (1,), 32)
)
def _(x):
    scratch, out = torch.zeros(16), torch.empty(48)
    first_writes_all_read[(3,)](x, scratch, out, B=16)
    return out


@triton.jit
def histogram(x, out, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    bin = tl.program_id(0) % 2
    count = tl.load(out + bin)
    tl.store(out + bin, count + tl.sum(tl.load(x + i)))  # <-- here


@faulty("two bins, two programs each", [T(64, dtype="int32")], race(histogram, "out", (0,), 4))
def _(x):
    out = torch.zeros(2, dtype=torch.int32)
    histogram[(4,)](x, out, 64, B=16)
    return out


@triton.jit
def maximum(x, out, B: tl.constexpr):
    m = tl.max(tl.load(x + tl.program_id(0) * B + tl.arange(0, B)), axis=0)
    if m > tl.load(out):
        tl.store(out, m)  # <-- here


@faulty("compare, then store", [T(48, fill="uniform")], race(maximum, "out", (0,), 3))
def _(x):
    out = torch.zeros(1)
    maximum[(3,)](x, out, B=16)
    return out


@triton.jit
def half_locked(x, out, lock, B: tl.constexpr):
    v = tl.sum(tl.load(x + tl.program_id(0) * B + tl.arange(0, B)))
    old = tl.load(out)  # <-- load
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    tl.store(out, old + v)  # <-- store
    tl.atomic_xchg(lock, 0)


@faulty(
    "read before the lock, written under it",
    [T(64)],
    race(half_locked, "out", (1,), 3, "load"),
    race(half_locked, "out", (1,), 3, "store"),
)
def _(x):
    out, lock = torch.zeros(1), torch.zeros(1, dtype=torch.int32)
    half_locked[(4,)](x, out, lock, B=16)
    return out


@triton.jit
def locked_apart(x, out, lock, B: tl.constexpr):
    pid = tl.program_id(0)
    v = tl.sum(tl.load(x + pid * B + tl.arange(0, B)))
    while tl.atomic_cas(lock + pid, 0, 1) == 1:
        pass
    old = tl.load(out)  # <-- load
    tl.store(out, old + v)  # <-- store
    tl.atomic_xchg(lock + pid, 0)


@faulty(
    "a lock for every program",
    [T(64)],
    race(locked_apart, "out", (1,), 3, "load"),
    race(locked_apart, "out", (1,), 3, "store"),
)
def _(x):
    out, lock = torch.zeros(1), torch.zeros(4, dtype=torch.int32)
    locked_apart[(4,)](x, out, lock, B=16)
    return out


@triton.jit
def add_to(out, v):
    tl.store(out, tl.load(out) + v)  # <-- here


@triton.jit
def helper_adds(x, out, B: tl.constexpr):
    add_to(out, tl.sum(tl.load(x + tl.program_id(0) * B + tl.arange(0, B))))


@faulty("the race sits in a helper", [T(32)], race(helper_adds, "out", (0,), 2, marked=add_to))
def _(x):
    out = torch.zeros(1)
    helper_adds[(2,)](x, out, B=16)
    return out
