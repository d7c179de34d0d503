"""Out of bounds: one-dimensional kernels, tails, offsets, loops."""

import torch
import triton
import triton.language as tl

from tests.kernels.table import Fault, T, faulty, unwritten


def bounds(kernel, argument, program, lanes, at="here"):
    return Fault("out_of_bounds", kernel, argument, program, lanes, at)


@triton.jit
def store_unmasked(x, out, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(x + i, mask=i < n, other=0.0)
    tl.store(out + i, v)  # <-- here


@faulty("store without a mask", [T(100)], bounds(store_unmasked, "out", (1,), 28))
def _(x):
    out = torch.empty_like(x)
    store_unmasked[(2,)](x, out, 100, B=64)
    return out


@faulty("store without a mask, one lane too many", [T(63)], bounds(store_unmasked, "out", (0,), 1))
def _(x):
    out = torch.empty_like(x)
    store_unmasked[(1,)](x, out, 63, B=64)
    return out


@triton.jit
def load_unmasked(x, out, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(x + i)  # <-- here
    tl.store(out + i, v, mask=i < n)


@faulty(
    "load without a mask: the numbers are right", [T(100)], bounds(load_unmasked, "x", (1,), 28)
)
def _(x):
    out = torch.empty_like(x)
    load_unmasked[(2,)](x, out, 100, B=64)
    return out


@faulty("x runs into y's part of one storage", [T(200)], bounds(load_unmasked, "x", (0,), 28))
def _(both):
    out = torch.empty(100)
    load_unmasked[(1,)](both[:100], out, 100, B=128)
    return out


@faulty("an empty tensor is read", [T(0)], bounds(load_unmasked, "x", (0,), 16))
def _(x):
    out = torch.empty(16)
    load_unmasked[(1,)](x, out, 16, B=16)
    return out


@triton.jit
def copy_unmasked(x, out, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(x + i)  # <-- load
    tl.store(out + i, v)  # <-- store


DTYPES = ("float16", "bfloat16", "float64", "int8", "int32", "int64", "bool", "float8_e4m3fn")
for _dtype in DTYPES:

    @faulty(
        f"no mask at all, {_dtype}",
        [T(100, dtype=_dtype)],
        bounds(copy_unmasked, "x", (1,), 28, "load"),
        bounds(copy_unmasked, "out", (1,), 28, "store"),
    )
    def _(x):
        out = torch.empty_like(x)
        copy_unmasked[(2,)](x, out, B=64)
        return out


@faulty(
    "one program too many",
    [T(128)],
    bounds(copy_unmasked, "x", (2,), 64, "load"),
    bounds(copy_unmasked, "out", (2,), 64, "store"),
)
def _(x):
    out = torch.empty_like(x)
    copy_unmasked[(3,)](x, out, B=64)
    return out


@triton.jit
def copy_masked(x, out, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(x + i, mask=i < n, other=0.0)  # <-- load
    tl.store(out + i, v, mask=i < n)  # <-- store


@faulty(
    "the mask takes the size of another tensor", [T(60)], bounds(copy_masked, "x", (0,), 40, "load")
)
def _(x):
    out = torch.empty(100)
    copy_masked[(2,)](x, out, 100, B=64)
    return out


@faulty(
    "every second element, read one by one",
    [T(50, strides=(2,))],
    bounds(copy_masked, "x", (0,), 25, "load"),
)
def _(x):
    out = torch.empty(50)
    copy_masked[(1,)](x, out, 50, B=64)
    return out


@faulty("a column taken for contiguous", [T(4, 8)], bounds(copy_masked, "x", (0,), 3, "load"))
def _(x):
    out = torch.empty(4)
    copy_masked[(1,)](x[:, 3], out, 4, B=16)
    return out


@faulty(
    "output is a slice of a larger tensor", [T(64)], bounds(copy_masked, "out", (1,), 24, "store")
)
def _(x):
    whole = torch.zeros(64)
    copy_masked[(2,)](x, whole[:40], 64, B=32)
    return whole[:40]


@triton.jit
def off_by_one_mask(x, out, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(x + i, mask=i <= n, other=0.0)  # <-- load
    tl.store(out + i, v, mask=i <= n)  # <-- store


@faulty(
    "i <= n",
    [T(100)],
    bounds(off_by_one_mask, "x", (1,), 1, "load"),
    bounds(off_by_one_mask, "out", (1,), 1, "store"),
)
def _(x):
    out = torch.empty_like(x)
    off_by_one_mask[(2,)](x, out, 100, B=64)
    return out


@triton.jit
def left_neighbour(x, out, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(x + i - 1, mask=i < n, other=0.0)  # <-- here
    tl.store(out + i, v, mask=i < n)


@faulty("a negative offset in the first program", [T(100)], bounds(left_neighbour, "x", (0,), 1))
def _(x):
    out = torch.empty_like(x)
    left_neighbour[(2,)](x, out, 100, B=64)
    return out


@faulty("a negative offset into the view before", [T(200)], bounds(left_neighbour, "x", (0,), 1))
def _(both):
    out = torch.empty(100)
    left_neighbour[(2,)](both[100:], out, 100, B=64)
    return out


@triton.jit
def right_neighbour(x, out, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    here = i < n
    v = tl.load(x + i, mask=here) + tl.load(x + i + 1, mask=here)  # <-- here
    tl.store(out + i, v, mask=here)


@faulty("the neighbour of the last element", [T(100)], bounds(right_neighbour, "x", (1,), 1))
def _(x):
    out = torch.empty_like(x)
    right_neighbour[(2,)](x, out, 100, B=64)
    return out


@triton.jit
def reverse_off_by_one(x, out, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(x + n - i, mask=i < n, other=0.0)  # <-- here
    tl.store(out + i, v, mask=i < n)


@faulty("reversed, one too high", [T(100)], bounds(reverse_off_by_one, "x", (0,), 1))
def _(x):
    out = torch.empty_like(x)
    reverse_off_by_one[(2,)](x, out, 100, B=64)
    return out


@triton.jit
def backwards(last, out, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(last - i, mask=i < n, other=0.0)  # <-- here
    tl.store(out + i, v, mask=i < n)


@faulty("backwards from a view of the last element", [T(64)], bounds(backwards, "last", (0,), 63))
def _(x):
    out = torch.empty_like(x)
    backwards[(1,)](x[-1:], out, 64, B=64)
    return out


@triton.jit
def every_third(x, out, B: tl.constexpr):
    i = tl.arange(0, B)
    v = tl.load(x + 3 * i)  # <-- here
    tl.store(out + i, v)


@faulty("a gather that strides too far", [T(100)], bounds(every_third, "x", (0,), 30))
def _(x):
    out = torch.empty(64)
    every_third[(1,)](x, out, B=64)
    return out


@triton.jit
def guarded_by_where(x, out, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.where(i < n, tl.load(x + i), 0.0)  # <-- here
    tl.store(out + tl.program_id(0), tl.sum(v))


@faulty("tl.where does not protect a load", [T(100)], bounds(guarded_by_where, "x", (1,), 28))
def _(x):
    out = torch.empty(2)
    guarded_by_where[(2,)](x, out, 100, B=64)
    return out


@triton.jit
def one_past(x, out, n, B: tl.constexpr):
    i = tl.arange(0, B)
    s = tl.sum(tl.load(x + i, mask=i < n, other=0.0))
    tl.store(out + n, s)  # <-- here


@faulty(
    "a scalar stored one past the end",
    [T(10)],
    bounds(one_past, "out", (0,), 1),
    Fault("unwritten", None, "", None, 10),  # what comes back is torch's zeros only
)
def _(x):
    out = torch.zeros(10)
    one_past[(1,)](x, out, 10, B=16)
    return out


@triton.jit
def too_many_bins(out, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.atomic_add(out + i % 16, 1.0)  # <-- here


@faulty("atomic add past the last bin", [], bounds(too_many_bins, "out", (0,), 24))
def _():
    out = torch.zeros(10)
    too_many_bins[(1,)](out, B=64)
    return out


@triton.jit
def row_maximum(x, out, width, B: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, B)
    v = tl.load(x + row * width + i, mask=i < width, other=-1000000)
    tl.atomic_max(out + row + 1, tl.max(v, axis=0))  # <-- here


@faulty(
    "atomic max one row too far", [T(3, 10, dtype="int32")], bounds(row_maximum, "out", (2,), 1)
)
def _(x):
    out = torch.zeros(3, dtype=torch.int32)
    row_maximum[(3,)](x, out, 10, B=16)
    return out


@triton.jit
def overflowing(x, out, stride, B: tl.constexpr):
    i = tl.arange(0, B)
    v = tl.load(x + tl.program_id(0) * stride + i)  # <-- here
    tl.store(out + tl.program_id(0) * B + i, v)


@faulty("program times stride overflows int32", [T(64)], bounds(overflowing, "x", (1,), 32))
def _(x):
    out = torch.empty(48)
    overflowing[(3,)](x, out, 1 << 30, B=16)  # program 2 reads at -2**31
    return out


@triton.jit
def inside(i, n):
    return i <= n


@triton.jit
def load_where(x, i, n):
    return tl.load(x + i, mask=inside(i, n), other=0.0)  # <-- here


@triton.jit
def by_helper(x, out, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(out + i, load_where(x, i, n), mask=i < n)


@faulty(
    "the fault sits in a helper",
    [T(100)],
    Fault("out_of_bounds", by_helper, "x", (1,), 1, marked=load_where),
)
def _(x):
    out = torch.empty_like(x)
    by_helper[(2,)](x, out, 100, B=64)
    return out


@faulty(
    "the second launch is wrong",
    [T(100)],
    unwritten(36),
    bounds(copy_unmasked, "out", (1,), 28, "store"),
)
def _(x):
    first, second = torch.empty_like(x), torch.empty_like(x)
    copy_masked[(1,)](x, first, 100, B=64)
    padded = torch.zeros(128)
    copy_unmasked[(2,)](padded, second, B=64)
    return first, second
