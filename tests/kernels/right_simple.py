"""Right kernels: masks, strides, types, views, control flow. The interpreter must find nothing."""

import torch
import triton
import triton.language as tl

from tests.kernels.table import T, right


@triton.jit
def copy(x, out, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(out + i, tl.load(x + i, mask=i < n), mask=i < n)


for _dtype in (
    "float32",
    "float16",
    "bfloat16",
    "float64",
    "int8",
    "int32",
    "int64",
    "bool",
    "float8_e4m3fn",
    "float8_e5m2",
):

    @right(f"a load without other under a masked store, {_dtype}", [T(100, dtype=_dtype)])
    def _(x):
        out = torch.empty_like(x)
        copy[(2,)](x, out, 100, B=64)
        return out


@right("two views of one storage", [T(200)])
def _(both):
    out = torch.empty(100)
    copy[(2,)](both[:100], both[100:], 100, B=64)
    copy[(1,)](both[100:], out, 100, B=128)
    return out


@right("an empty tensor", [T(0)])
def _(x):
    out = torch.empty_like(x)
    copy[(1,)](x, out, 0, B=16)
    return out


@right("no program at all", [T(0)])
def _(x):
    out = torch.empty_like(x)
    copy[(triton.cdiv(x.numel(), 16),)](x, out, 0, B=16)
    return out


@right("in place", [T(100)])
def _(x):
    copy[(2,)](x, x, 100, B=64)
    return x


@right("scratch written by one launch and read by the next", [T(100)])
def _(x):
    scratch, out = torch.empty_like(x), torch.empty_like(x)
    copy[(2,)](x, scratch, 100, B=64)
    copy[(4,)](scratch, out, 100, B=32)
    return out


@right("two launches write one output, half each", [T(100)])
def _(x):
    out = torch.empty_like(x)
    copy[(1,)](x, out, 50, B=64)
    copy[(1,)](x[50:], out[50:], 50, B=64)
    return out


@right("a lambda grid", [T(100)])
def _(x):
    out = torch.empty_like(x)
    copy[lambda meta: (triton.cdiv(100, meta["B"]),)](x, out, 100, B=32)
    return out


@triton.jit
def strided(x, out, M, N, xr, xc, outr, outc, BM: tl.constexpr, BN: tl.constexpr):
    r = tl.program_id(0) * BM + tl.arange(0, BM)[:, None]
    c = tl.program_id(1) * BN + tl.arange(0, BN)[None, :]
    m = (r < M) & (c < N)
    v = tl.load(x + r * xr + c * xc, mask=m, other=0.0)
    tl.store(out + r * outr + c * outc, v, mask=m)


for _label, _strides in (
    ("contiguous", (10, 1)),
    ("padded rows", (16, 1)),
    ("transposed", (1, 5)),
    ("transposed and padded", (1, 8)),
    ("broadcast by a zero stride", (0, 1)),
    ("every second column", (20, 2)),
):

    @right(f"a two-dimensional grid, {_label}", [T(5, 10, strides=_strides)])
    def _(x):
        out = torch.empty(5, 10)
        strided[(3, 2)](x, out, 5, 10, *x.stride(), *out.stride(), BM=2, BN=8)
        return out


@right("written transposed", [T(5, 10)])
def _(x):
    out = torch.empty(10, 5)
    strided[(2, 1)](x, out.T, 5, 10, *x.stride(), *out.T.stride(), BM=4, BN=16)
    return out


@triton.jit
def reverse(x, out, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(out + i, tl.load(x + (n - 1) - i, mask=i < n), mask=i < n)


@right("backwards from the last element", [T(100)])
def _(x):
    out = torch.empty_like(x)
    reverse[(2,)](x, out, 100, B=64)
    return out


@triton.jit
def wild_but_masked(x, out, n, far, B: tl.constexpr):
    i = tl.arange(0, B)
    at = tl.where(i < n, i, i * far - far)
    tl.store(out + at, tl.load(x + at, mask=i < n, other=0.0), mask=i < n)


@right("wild addresses in masked lanes", [T(10)])
def _(x):
    out = torch.empty_like(x)
    wild_but_masked[(1,)](x, out, 10, -1000000, B=16)
    return out


@triton.jit
def clamped(x, out, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(x + tl.minimum(i, n - 1))
    tl.store(out + i, v, mask=i < n)


@right("addresses clamped instead of masked", [T(100)])
def _(x):
    out = torch.empty_like(x)
    clamped[(2,)](x, out, 100, B=64)
    return out


@triton.jit
def long_offsets(x, out, stride, n, B: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    i = tl.arange(0, B)
    v = tl.load(x + row * stride + i, mask=(i < n) & (row == 0), other=1.0)
    tl.store(out + row * n + i, v, mask=i < n)


@right("int64 offsets, masked where nothing is", [T(10)])
def _(x):
    out = torch.empty(3, 10)
    long_offsets[(3,)](x, out, 1 << 40, 10, B=16)
    return out


@triton.jit
def third_dimension(x, out, width, B: tl.constexpr):
    i = tl.arange(0, B)
    start = (tl.program_id(2) * tl.num_programs(1) + tl.program_id(1)) * width
    tl.store(out + start + i, tl.load(x + start + i, mask=i < width), mask=i < width)


@right("a three-dimensional grid", [T(2, 3, 20)])
def _(x):
    out = torch.empty_like(x)
    third_dimension[(1, 3, 2)](x, out, 20, B=32)
    return out


@triton.jit
def returns_early(x, out, tiles, B: tl.constexpr):
    pid = tl.program_id(0)
    if pid >= tiles:
        return
    i = pid * B + tl.arange(0, B)
    tl.store(out + i, tl.load(x + i))


@right("surplus programs return early", [T(64)])
def _(x):
    out = torch.empty_like(x)
    returns_early[(7,)](x, out, 4, B=16)
    return out


@triton.jit
def last_is_masked(x, out, n, B: tl.constexpr):
    pid = tl.program_id(0)
    i = pid * B + tl.arange(0, B)
    if pid == tl.num_programs(0) - 1:
        tl.store(out + i, tl.load(x + i, mask=i < n), mask=i < n)
    else:
        tl.store(out + i, tl.load(x + i))


@right("only the last program masks", [T(100)])
def _(x):
    out = torch.empty_like(x)
    last_is_masked[(4,)](x, out, 100, B=32)
    return out


@triton.jit
def persistent(x, out, n, B: tl.constexpr):
    for t in range(tl.program_id(0), tl.cdiv(n, B), tl.num_programs(0)):
        i = t * B + tl.arange(0, B)
        tl.store(out + i, tl.load(x + i, mask=i < n), mask=i < n)


@right("a grid-stride loop", [T(100)])
def _(x):
    out = torch.empty_like(x)
    persistent[(3,)](x, out, 100, B=16)
    return out


@triton.jit
def triangle(x, out, B: tl.constexpr):
    pid = tl.program_id(0)
    k = 0
    total = 0.0
    while k <= pid:
        total += tl.sum(tl.load(x + k * B + tl.arange(0, B)))
        k += 1
    tl.store(out + pid, total)


@right("while loops of different lengths", [T(48)])
def _(x):
    out = torch.empty(3)
    triangle[(3,)](x, out, B=16)
    return out


@triton.jit
def block_pointer(x, out, n, CHECK: tl.constexpr, B: tl.constexpr):
    pid = tl.program_id(0)
    p = tl.make_block_ptr(x, (n,), (1,), (pid * B,), (B,), (0,))
    q = tl.make_block_ptr(out, (n,), (1,), (pid * B,), (B,), (0,))
    if CHECK:
        v = tl.load(p, boundary_check=(0,), padding_option="zero")
        tl.store(q, v, boundary_check=(0,))
    else:
        tl.store(q, tl.load(p))


for _n, _check in ((100, True), (128, False)):

    @right(f"block pointers over {_n} elements", [T(_n), _n, _check])
    def _(x, n, check):
        out = torch.empty_like(x)
        block_pointer[(2,)](x, out, n, CHECK=check, B=64)
        return out
