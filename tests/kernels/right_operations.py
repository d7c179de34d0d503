"""Right kernels: synchronising atomics, host-side tensors, and a tour of Triton's operations."""

import torch
import triton
import triton.language as tl

from tests.kernels.table import T, right


@triton.jit
def tickets(x, counter, out, B: tl.constexpr):
    t = tl.atomic_add(counter, 1)
    i = t * B + tl.arange(0, B)
    tl.store(out + i, tl.load(x + i))


@right("tiles handed out by an atomic counter", [T(64)])
def _(x):
    counter, out = torch.zeros(1, dtype=torch.int32), torch.empty_like(x)
    tickets[(4,)](x, counter, out, B=16)
    return out


@triton.jit
def own_cell(x, out, result, B: tl.constexpr):
    pid = tl.program_id(0)
    tl.store(out + pid, 0.0)
    tl.atomic_add(out + pid, tl.sum(tl.load(x + pid * B + tl.arange(0, B))))
    tl.store(result + pid, tl.load(out + pid))


@right("plain and atomic accesses of one program's own cell", [T(64)])
def _(x):
    out, result = torch.empty(4), torch.empty(4)
    own_cell[(4,)](x, out, result, B=16)
    return result


@triton.jit
def only_first_stores(x, out, B: tl.constexpr):
    v = tl.max(tl.load(x + tl.arange(0, B)), axis=0)
    tl.store(out, v, mask=tl.program_id(0) == 0)


@right("one program stores the common result", [T(16)])
def _(x):
    out = torch.empty(1)
    only_first_stores[(5,)](x, out, B=16)
    return out


@triton.jit
def add_in_place(x, value, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(x + i, tl.load(x + i, mask=i < n) + value, mask=i < n)


@right("in place on a clone", [T(100)])
def _(x):
    out = x.clone()
    add_in_place[(2,)](out, 1.5, 100, B=64)
    return out


@right("in place on a filled tensor", [T(1)])
def _(x):
    out = torch.empty(100)
    out.fill_(3.0)
    add_in_place[(2,)](out, 1.5, 100, B=64)
    return out


@right("rows of a padded, filled output", [T(1)])
def _(x):
    out = torch.full((4, 16), 2.0)[:, :10]
    for row in out:
        add_in_place[(1,)](row, 1.0, 10, B=16)
    return out


@right("the same tensor under two types", [T(10)])
def _(x):
    out = torch.zeros(10)
    add_in_place[(1,)](out.view(torch.int32), 7, 10, B=16)
    add_in_place[(1,)](out, 1.0, 10, B=16)
    return out


@triton.jit
def moving_pointers(a, out, K, B: tl.constexpr):
    p = a + tl.arange(0, B)[:, None] * K + tl.arange(0, B)[None, :]
    total = tl.zeros((B, B), tl.float32)
    for k in range(0, K, B):
        total += tl.load(p, mask=tl.arange(0, B)[None, :] < K - k, other=0.0)
        p += B
    tl.store(out + tl.arange(0, B), tl.sum(total, axis=1))


@right("pointers that move along K", [T(16, 40, dtype="float16")])
def _(a):
    out = torch.empty(16)
    moving_pointers[(1,)](a, out, 40, B=16)
    return out


@triton.jit
def chosen_pointer(x, y, out, n, m, B: tl.constexpr):
    pid = tl.program_id(0)
    i = tl.arange(0, B)
    if pid == 0:
        p, size = x, n
    else:
        p, size = y, m
    tl.store(out + pid * B + i, tl.load(p + i, mask=i < size, other=0.0))


@right("a branch chooses pointer and size", [T(16), T(10)])
def _(x, y):
    out = torch.empty(32)
    chosen_pointer[(2,)](x, y, out, 16, 10, B=16)
    return out


@triton.jit
def larger(a, b):
    return tl.where(a > b, a, b)


@triton.jit
def tour(x, out, seed, B: tl.constexpr):
    i = tl.arange(0, B)
    v = tl.load(x + i)
    half = tl.reshape(v, (2, B // 2))
    a, b = tl.split(tl.trans(half, (1, 0)))
    v = tl.reshape(tl.join(a, b), (B,)) + tl.interleave(a, b)
    v += tl.sort(v) + tl.flip(v, 0) + tl.gather(v, (i + 1) % B, 0)
    v += tl.reduce(v, 0, larger) + tl.associative_scan(v, 0, larger)
    v += tl.rand(seed, i) + tl.cast(i, tl.float32) + tl.erf(v) + tl.sqrt(tl.abs(v)) + tl.sigmoid(v)
    v = tl.clamp(v, -10.0, 10.0) + tl.fma(v, v, v) + tl.math.rsqrt(v * v + 1.0)
    v += tl.sum(tl.histogram(i % 8, 8).to(tl.float32))
    tl.store(out + i, v)


@right("a tour of operations", [T(32)])
def _(x):
    out = torch.empty(32)
    tour[(1,)](x, out, 42, B=32)
    return out


@triton.jit
def unrolled(x, out, n, COUNT: tl.constexpr, B: tl.constexpr):
    for j in tl.static_range(COUNT):
        i = (tl.program_id(0) * COUNT + j) * B + tl.arange(0, B)
        tl.store(out + i, tl.load(x + i, mask=i < n), mask=i < n)


@right("several blocks a program, unrolled", [T(100)])
def _(x):
    out = torch.empty_like(x)
    unrolled[(2,)](x, out, 100, COUNT=4, B=16)
    return out


@triton.jit
def nested(x, out, rows, width, B: tl.constexpr):
    for r in tl.range(tl.program_id(0), rows, tl.num_programs(0), num_stages=2):
        k = 0
        total = 0.0
        while k < width:
            i = k + tl.arange(0, B)
            if k + B > width:
                total += tl.sum(tl.load(x + r * width + i, mask=i < width, other=0.0))
            else:
                total += tl.sum(tl.load(x + r * width + i))
            k += B
        tl.store(out + r, total)


@right("a while and a branch inside a persistent loop", [T(5, 40)])
def _(x):
    out = torch.empty(5)
    nested[(2,)](x, out, 5, 40, B=16)
    return out


@triton.jit
def quarters(x, out, B: tl.constexpr):
    pid = tl.program_id(0)
    if pid == 0:
        tl.store(out + tl.arange(0, B), tl.load(x + tl.arange(0, B)))
    elif pid == 1:
        tl.store(out + B + tl.arange(0, B), 1.0)
    else:
        if pid > 3:
            return
        tl.store(out + pid * B + tl.arange(0, B), 2.0 * pid)


@right("nested branches and a return inside one", [T(16)])
def _(x):
    out = torch.empty(64)
    quarters[(6,)](x, out, B=16)
    return out


@triton.jit
def spinlock(x, out, lock, B: tl.constexpr):
    v = tl.sum(tl.load(x + tl.program_id(0) * B + tl.arange(0, B)))
    while tl.atomic_xchg(lock, 1) == 1:
        pass
    tl.store(out, tl.load(out) + v)
    tl.atomic_xchg(lock, 0)


@right("a lock by exchange", [T(64)])
def _(x):
    out, lock = torch.zeros(1), torch.zeros(1, dtype=torch.int32)
    spinlock[(4,)](x, out, lock, B=16)
    return out


@triton.jit
def two_locks(x, out, lock, B: tl.constexpr):
    pid = tl.program_id(0)
    v = tl.load(x + pid * B + tl.arange(0, B))
    half = pid % 2
    while tl.atomic_cas(lock + half, 0, 1) == 1:
        pass
    p = out + half * B + tl.arange(0, B)
    tl.store(p, tl.load(p) + v)
    tl.atomic_xchg(lock + half, 0)


@right("two locks, each with its rows", [T(64)])
def _(x):
    out, lock = torch.zeros(32), torch.zeros(2, dtype=torch.int32)
    two_locks[(4,)](x, out, lock, B=16)
    return out
