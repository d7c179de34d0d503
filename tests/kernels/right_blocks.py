"""Right kernels: reductions, matmuls, descriptors, atomics, locks. Nothing must be found."""

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

from tests.kernels.table import T, right


@triton.jit
def reduced(x, out, width, HOW: tl.constexpr, B: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, B)
    m = i < width
    if HOW == "max":
        r = tl.max(tl.load(x + row * width + i, mask=m, other=-float("inf")), axis=0)
    elif HOW == "sum":
        r = tl.sum(tl.load(x + row * width + i, mask=m, other=0), axis=0)
    elif HOW == "where":
        r = tl.sum(tl.where(m, tl.load(x + row * width + i, mask=m), 0.0), axis=0)
    elif HOW == "softmax":
        v = tl.load(x + row * width + i, mask=m, other=-float("inf"))
        e = tl.exp(v - tl.max(v, axis=0))
        r = tl.max(e / tl.sum(e, axis=0), axis=0)
    elif HOW == "argmax":
        r = tl.argmax(tl.load(x + row * width + i, mask=m, other=-float("inf")), axis=0)
    else:
        v = tl.load(x + row * width + i, mask=m, other=0.0)
        r = tl.max(tl.cumsum(v, axis=0), axis=0)
    tl.store(out + row, r)


for _how, _dtype, _fill in (
    ("max", "float32", "negative"),
    ("sum", "bfloat16", "normal"),
    ("sum", "int64", "normal"),
    ("where", "float32", "normal"),
    ("softmax", "float16", "large"),
    ("softmax", "float32", "minus_infinity"),
    ("argmax", "float32", "normal"),
    ("cumsum", "float32", "normal"),
):

    @right(f"{_how} of rows, {_dtype}, {_fill}", [T(4, 10, dtype=_dtype, fill=_fill), _how])
    def _(x, how):
        out = torch.empty(4, dtype=torch.int32 if how == "argmax" else x.dtype)
        reduced[(4,)](x, out, 10, HOW=how, B=16)
        return out


@triton.jit
def dead_load(x, out, n, B: tl.constexpr):
    i = tl.arange(0, B)
    v = tl.load(x + i, mask=i < n)
    worth = tl.sum(v * v)  # nobody reads it
    if n > 1000:
        tl.store(out, worth)
    tl.store(out + i, v, mask=i < n)


@right("undefined lanes in a sum that nobody uses", [T(10)])
def _(x):
    out = torch.empty(10)
    dead_load[(1,)](x, out, 10, B=16)
    return out


@triton.jit
def scaled(x, w, out, width, B: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, B)
    weight = tl.load(w + i, mask=i < width)
    v = tl.load(x + row * width + i, mask=i < width)
    tl.store(out + row * width + i, v * weight, mask=i < width)


@right("weights read by every program", [T(5, 10), T(10)])
def _(x, w):
    out = torch.empty_like(x)
    scaled[(5,)](x, w, out, 10, B=16)
    return out


@triton.jit
def gather(x, index, out, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    at = tl.load(index + i, mask=i < n, other=0)
    at = ((at % 50) + 50) % 50
    tl.store(out + i, tl.load(x + at), mask=i < n)


@right("a gather whose masked lanes read element 0", [T(50), T(100, dtype="int64")])
def _(x, index):
    out = torch.empty(100)
    gather[(2,)](x, index, out, 100, B=64)
    return out


@triton.jit
def even_odd(x, out, B: tl.constexpr):
    i = 2 * tl.arange(0, B)
    pid = tl.program_id(0)
    tl.store(out + i + pid, tl.load(x + i + pid))


for _dtype in ("float32", "int8"):

    @right(f"programs interleave, {_dtype}", [T(64, dtype=_dtype)])
    def _(x):
        out = torch.empty_like(x)
        even_odd[(2,)](x, out, B=32)
        return out


@triton.jit
def same_value(out, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(out + i // 4, i // 4)


@right("lanes of one program write one value to one cell", [])
def _():
    out = torch.empty(4, dtype=torch.int32)
    same_value[(1,)](out, B=16)
    return out


@triton.jit
def total(x, out, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.atomic_add(out, tl.sum(tl.load(x + i, mask=i < n, other=0.0)))


@right("a sum by atomics", [T(100)])
def _(x):
    out = torch.zeros(1)
    total[(4,)](x, out, 100, B=32)
    return out


@right("atomics, then an ordinary read in the next launch", [T(100)])
def _(x):
    out, copy = torch.zeros(1), torch.zeros(1)
    total[(4,)](x, out, 100, B=32)
    total[(1,)](out, copy, 1, B=16)
    return copy


@triton.jit
def histogram(x, out, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(x + i, mask=i < n, other=0)
    tl.atomic_add(out + v % 8 + tl.where(v % 8 < 0, 8, 0), 1, mask=i < n)


@right("a histogram by atomics", [T(100, dtype="int32")])
def _(x):
    out = torch.zeros(8, dtype=torch.int32)
    histogram[(4,)](x, out, 100, B=32)
    return out


@triton.jit
def largest(x, out, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(x + i, mask=i < n, other=-1000000)
    tl.atomic_max(out + i % 2, v)


@right("a maximum by atomics", [T(100, dtype="int32")])
def _(x):
    out = torch.zeros(2, dtype=torch.int32)
    largest[(4,)](x, out, 100, B=32)
    return out


@triton.jit
def locked(x, out, lock, B: tl.constexpr):
    v = tl.sum(tl.load(x + tl.program_id(0) * B + tl.arange(0, B)))
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    tl.store(out, tl.load(out) + v)
    tl.atomic_xchg(lock, 0)


@right("read and written under one lock", [T(64)])
def _(x):
    out, lock = torch.zeros(1), torch.zeros(1, dtype=torch.int32)
    locked[(4,)](x, out, lock, B=16)
    return out


@triton.jit
def matmul(a, b, c, M, N, K, SPLIT: tl.constexpr, B: tl.constexpr):
    r = tl.program_id(0) * B + tl.arange(0, B)[:, None]
    n = tl.program_id(1) * B + tl.arange(0, B)[None, :]
    ck = tl.arange(0, B)[None, :]
    rk = tl.arange(0, B)[:, None]
    acc = tl.zeros((B, B), tl.float32)
    for k in range(tl.program_id(2) * B, K, B * SPLIT):
        x = tl.load(a + r * K + k + ck, mask=(r < M) & (k + ck < K), other=0.0)
        y = tl.load(b + (k + rk) * N + n, mask=(k + rk < K) & (n < N), other=0.0)
        acc = tl.dot(x, y, acc)
    if SPLIT > 1:
        tl.atomic_add(c + r * N + n, acc, mask=(r < M) & (n < N))
    else:
        tl.store(c + r * N + n, acc, mask=(r < M) & (n < N))


for _split in (1, 2):

    @right(
        f"a matmul, split {_split}",
        [T(20, 40, dtype="float16"), T(40, 24, dtype="float16"), _split],
    )
    def _(a, b, split):
        c = torch.empty(20, 24) if split == 1 else torch.zeros(20, 24)
        matmul[(2, 2, split)](a, b, c, 20, 24, 40, SPLIT=split, B=16)
        return c


@triton.jit
def partial_sums(x, parts, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(parts + tl.program_id(0), tl.sum(tl.load(x + i, mask=i < n, other=0.0)))


@right("a reduction in two launches", [T(100)])
def _(x):
    parts, out = torch.empty(4), torch.empty(1)
    partial_sums[(4,)](x, parts, 100, B=32)
    partial_sums[(1,)](parts, out, 4, B=4)
    return out


@triton.jit
def by_descriptor(x, out, BM: tl.constexpr, BN: tl.constexpr):
    r, c = tl.program_id(0) * BM, tl.program_id(1) * BN
    out.store([r, c], x.load([r, c]))


@right("host descriptors over the edge", [T(10, 20)])
def _(x):
    out = torch.empty(10, 20)
    d, e = (TensorDescriptor(t, [10, 20], [20, 1], [8, 16]) for t in (x, out))
    by_descriptor[(2, 2)](d, e, BM=8, BN=16)
    return out


@triton.jit
def by_device_descriptor(x, out, M, N, BM: tl.constexpr, BN: tl.constexpr):
    d = tl.make_tensor_descriptor(x, shape=[M, N], strides=[N, 1], block_shape=[BM, BN])
    e = tl.make_tensor_descriptor(out, shape=[M, N], strides=[N, 1], block_shape=[BM, BN])
    r, c = tl.program_id(0) * BM, tl.program_id(1) * BN
    e.store([r, c], d.load([r, c]) * 2)


@right("device descriptors over the edge", [T(10, 20)])
def _(x):
    out = torch.empty(10, 20)
    by_device_descriptor[(2, 2)](x, out, 10, 20, BM=8, BN=16)
    return out


@triton.autotune([triton.Config({"B": 32}), triton.Config({"B": 64})], key=["n"])
@triton.heuristics({"EVEN": lambda given: given["n"] % given["B"] == 0})
@triton.jit
def tuned(x, out, n, EVEN: tl.constexpr, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    if EVEN:
        tl.store(out + i, tl.load(x + i))
    else:
        tl.store(out + i, tl.load(x + i, mask=i < n), mask=i < n)


for _n in (100, 128):

    @right(f"autotune and heuristics, {_n}", [T(_n)])
    def _(x):
        out = torch.empty_like(x)
        tuned[lambda meta: (triton.cdiv(x.numel(), meta["B"]),)](x, out, x.numel())
        return out


@triton.jit
def row_of(tensor, stride, width, B: tl.constexpr):
    i = tl.arange(0, B)
    return tensor + tl.program_id(0) * stride + i, i < width


@triton.jit
def by_helpers(x, out, stride, width, B: tl.constexpr):
    p, m = row_of(x, stride, width, B)
    q, _ = row_of(out, width, width, B)
    tl.store(q, tl.load(p, mask=m) + 1.0, mask=m)


@right("helpers that return pointers and masks", [T(4, 10, strides=(16, 1))])
def _(x):
    out = torch.empty(4, 10)
    by_helpers[(4,)](x, out, 16, 10, B=16)
    return out


@triton.jit
def bits(x, out, n, B: tl.constexpr):
    i = tl.arange(0, B)
    v = tl.load(x.to(tl.pointer_type(tl.int32)) + i, mask=i < n, other=0)
    tl.store(out + i, v & 0x7FFFFFFF, mask=i < n)


@right("floats read as int32", [T(10)])
def _(x):
    out = torch.empty(10, dtype=torch.int32)
    bits[(1,)](x, out, 10, B=16)
    return out


@triton.jit
def moved_block(x, out, M, N, B: tl.constexpr):
    p = tl.make_block_ptr(x, (M, N), (N, 1), (tl.program_id(0) * B, 0), (B, B), (1, 0))
    total = tl.zeros((B,), tl.float32)
    for _ in range(0, N, B):
        total += tl.sum(tl.load(p, boundary_check=(0, 1), padding_option="zero"), axis=1)
        p = tl.advance(p, (0, B))
    r = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(out + r, total, mask=r < M)


@right("a block pointer that advances", [T(20, 40)])
def _(x):
    out = torch.empty(20)
    moved_block[(2,)](x, out, 20, 40, B=16)
    return out


@triton.jit
def producer_then_consumer(x, scratch, out, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(scratch + i, tl.load(x + i))
    tl.store(out + i, tl.load(scratch + i) + 1.0)


@right("a program reads back what it wrote", [T(64)])
def _(x):
    scratch, out = torch.empty(64), torch.empty(64)
    producer_then_consumer[(4,)](x, scratch, out, B=16)
    return out
