"""Memory nobody wrote: uninitialised reads, unwritten outputs, undefined lanes."""

import torch
import triton
import triton.language as tl

from tests.kernels.table import Fault, T, faulty, unwritten


def uninitialised(kernel, argument, program, lanes, at="here"):
    return Fault("uninitialised", kernel, argument, program, lanes, at)


def undefined(kernel, argument, program, lanes, at="here"):
    return Fault("undefined_lane", kernel, argument, program, lanes, at)


# ---------------------------------------------------------------- read before anybody wrote


@triton.jit
def accumulate(x, out, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    m = i < n
    old = tl.load(out + i, mask=m, other=0.0)  # <-- here
    tl.store(out + i, old + tl.load(x + i, mask=m, other=0.0), mask=m)


@faulty("accumulates into torch.empty", [T(100)], uninitialised(accumulate, "out", (0,), 100))
def _(x):
    out = torch.empty_like(x)
    accumulate[(2,)](x, out, 100, B=64)
    return out


@triton.jit
def add_atomically(x, out, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(x + i, mask=i < n, other=0.0)
    tl.atomic_add(out + i, v, mask=i < n)  # <-- here


@faulty("atomic add into torch.empty", [T(100)], uninitialised(add_atomically, "out", (0,), 100))
def _(x):
    out = torch.empty_like(x)
    add_atomically[(2,)](x, out, 100, B=64)
    return out


@triton.jit
def copy(x, out, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(x + i, mask=i < n, other=0)  # <-- load
    tl.store(out + i, v, mask=i < n)


@faulty("scratch half written", [T(100)], uninitialised(copy, "x", (0,), 50, "load"))
def _(x):
    scratch, out = torch.empty_like(x), torch.empty_like(x)
    copy[(1,)](x, scratch, 50, B=64)
    copy[(2,)](scratch, out, 100, B=64)
    return out


@faulty("launches in the wrong order", [T(100)], uninitialised(copy, "x", (0,), 100, "load"))
def _(x):
    scratch, out = torch.empty_like(x), torch.empty_like(x)
    copy[(2,)](scratch, out, 100, B=64)
    copy[(2,)](x, scratch, 100, B=64)
    return out


@faulty(
    "reads the output instead of the input",
    [T(100, dtype="int32")],
    uninitialised(copy, "x", (0,), 100, "load"),
)
def _(x):
    out = torch.empty_like(x)
    copy[(2,)](out, out, 100, B=64)
    return out


@triton.jit
def whole_scratch(x, scratch, out, width, B: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, B)
    tl.store(scratch + row * B + i, tl.load(x + row * width + i, mask=i < width), mask=i < width)
    v = tl.load(scratch + row * B + i)  # <-- here
    tl.store(out + row, tl.sum(tl.where(i < width, v, 0.0)))


@faulty(
    "scratch read wider than written", [T(4, 10)], uninitialised(whole_scratch, "scratch", (0,), 24)
)
def _(x):
    scratch, out = torch.empty(4, 16), torch.empty(4)
    whole_scratch[(4,)](x, scratch, out, 10, B=16)
    return out


@triton.jit
def scaled(x, w, out, width, B: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, B)
    weight = tl.load(w + i)  # <-- here
    v = tl.load(x + row * width + i)
    tl.store(out + row * width + i, v * weight)


@faulty("weights that nobody filled", [T(3, 16)], uninitialised(scaled, "w", (0,), 48))
def _(x):
    w, out = torch.empty(16), torch.empty_like(x)
    scaled[(3,)](x, w, out, 16, B=16)
    return out


@triton.jit
def even_programs(x, out, B: tl.constexpr):
    pid = tl.program_id(0)
    i = pid * B + tl.arange(0, B)
    if pid % 2 == 0:
        tl.store(out + i, tl.load(x + i))


@faulty("only even programs wrote", [T(64)], uninitialised(copy, "x", (1,), 32, "load"))
def _(x):
    scratch, out = torch.empty_like(x), torch.empty_like(x)
    even_programs[(4,)](x, scratch, B=16)
    copy[(4,)](scratch, out, 64, B=16)
    return out


# ---------------------------------------------------------------- never written


@faulty("n // BLOCK programs", [T(100)], unwritten(36))
def _(x):
    out = torch.empty_like(x)
    copy[(100 // 64,)](x, out, 100, B=64)
    return out


@faulty("the mask ends one early", [T(100, dtype="bfloat16")], unwritten(1))
def _(x):
    out = torch.empty_like(x)
    copy[(2,)](x, out, 99, B=64)
    return out


@faulty("every second program returns", [T(64, dtype="int64")], unwritten(32))
def _(x):
    out = torch.empty_like(x)
    even_programs[(4,)](x, out, B=16)
    return out


@faulty("an output that no kernel touches", [T(100)], unwritten(100))
def _(x):
    scratch, out = torch.empty_like(x), torch.empty_like(x)
    copy[(2,)](x, scratch, 100, B=64)
    return out


@triton.jit
def sum_of_two(x, total, largest, width, B: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, B)
    v = tl.load(x + row * width + i, mask=i < width, other=0.0)
    tl.store(total + row, tl.sum(v))
    if row == 0:
        tl.store(largest + row, tl.max(v, axis=0))


@faulty("the second output is written by one program only", [T(8, 10)], unwritten(7))
def _(x):
    total, largest = torch.empty(8), torch.empty(8)
    sum_of_two[(8,)](x, total, largest, 10, B=16)
    return total, largest


@triton.jit
def spread(x, out, n, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(out + 2 * i, tl.load(x + i, mask=i < n), mask=2 * i < n)


@faulty("written with stride two", [T(100)], unwritten(50))
def _(x):
    out = torch.empty_like(x)
    spread[(1,)](x, out, 100, B=64)
    return out


@triton.jit
def whole_chunks(x, out, width, B: tl.constexpr):
    row = tl.program_id(0)
    for k in range(width // B):
        at = row * width + k * B + tl.arange(0, B)
        tl.store(out + at, tl.load(x + at))


@faulty("the ragged end of every row", [T(3, 40, dtype="float16")], unwritten(24))
def _(x):
    out = torch.empty_like(x)
    whole_chunks[(3,)](x, out, 40, B=16)
    return out


# ---------------------------------------------------------------- masked lanes without other, used


@triton.jit
def reduced(x, out, width, HOW: tl.constexpr, B: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, B)
    v = tl.load(x + row * width + i, mask=i < width)  # <-- here
    if HOW == "max":
        r = tl.max(v, axis=0)
    elif HOW == "min":
        r = tl.min(v, axis=0)
    elif HOW == "sum":
        r = tl.sum(v, axis=0)
    elif HOW == "squares":
        r = tl.sum(v * v, axis=0)
    elif HOW == "softmax":
        r = tl.sum(tl.exp(v - tl.max(v, axis=0)), axis=0)
    elif HOW == "positive":
        r = tl.sum(tl.where(v > 0, 1.0, 0.0), axis=0)
    elif HOW == "negative":
        r = tl.sum(tl.where(v < 0, 1.0, 0.0), axis=0)
    elif HOW == "nonzero":
        r = tl.sum(tl.where(v != 0, 1.0, 0.0), axis=0)
    else:
        r = tl.max(tl.cumsum(v, axis=0), axis=0)
    tl.store(out + row, r)


for _how, _dtype, _fill in (
    ("max", "float32", "negative"),
    ("max", "int32", "negative"),
    ("min", "float32", "normal"),
    ("min", "float16", "uniform"),
    ("min", "int32", "negative"),
    ("max", "int64", "uniform"),
    ("sum", "float32", "normal"),
    ("sum", "bfloat16", "normal"),
    ("sum", "int64", "normal"),
    ("squares", "float16", "normal"),
    ("softmax", "float32", "normal"),
    ("positive", "float32", "negative"),
    ("negative", "float32", "uniform"),
    ("nonzero", "int32", "normal"),
    ("cumsum", "float32", "normal"),
):

    @faulty(
        f"undefined lanes in {_how}, {_dtype}",
        [T(4, 10, dtype=_dtype, fill=_fill), _how],
        undefined(reduced, "x", (0,), 24),
    )
    def _(x, how):
        out = torch.empty(4, dtype=x.dtype)
        reduced[(4,)](x, out, 10, HOW=how, B=16)
        return out


@triton.jit
def one_harmless(x, y, out, total, n, B: tl.constexpr):
    i = tl.arange(0, B)
    a = tl.load(x + i, mask=i < n)
    b = tl.load(y + i, mask=i < n)  # <-- here
    tl.store(out + i, a, mask=i < n)
    tl.store(total, tl.sum(b))


@faulty("one harmless load, one that is not", [T(10), T(10)], undefined(one_harmless, "y", (0,), 6))
def _(x, y):
    out, total = torch.empty(10), torch.empty(1)
    one_harmless[(1,)](x, y, out, total, 10, B=16)
    return out, total


@triton.jit
def padded_rows(x, out, width, B: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, B)
    v = tl.load(x + row * width + i, mask=i < width)  # <-- here
    tl.store(out + row * B + i, v)


@faulty("undefined lanes stored as padding", [T(4, 10)], undefined(padded_rows, "x", (0,), 24))
def _(x):
    out = torch.empty(4, 16)
    padded_rows[(4,)](x, out, 10, B=16)
    return out


@triton.jit
def flagged(flag, out, n, B: tl.constexpr):
    pid = tl.program_id(0)
    f = tl.load(flag + pid, mask=pid < n)  # <-- here
    if f > 100:
        tl.store(out + pid, 1.0)
    else:
        tl.store(out + pid, 2.0)


@faulty(
    "an undefined value decides a branch",
    [T(2, fill="uniform")],
    undefined(flagged, "flag", (2,), 2),
)
def _(flag):
    out = torch.empty(4)
    flagged[(4,)](flag, out, 2, B=16)
    return out


@triton.jit
def added_everywhere(x, out, n, B: tl.constexpr):
    i = tl.arange(0, B)
    v = tl.load(x + i, mask=i < n)  # <-- here
    tl.atomic_add(out + i % 8, v)


@faulty("undefined lanes added atomically", [T(10)], undefined(added_everywhere, "x", (0,), 6))
def _(x):
    out = torch.zeros(8)
    added_everywhere[(1,)](x, out, 10, B=16)
    return out


@triton.jit
def ragged_dot(a, b, c, K, B: tl.constexpr):
    r = tl.arange(0, B)[:, None]
    n = tl.arange(0, B)[None, :]
    x = tl.load(a + r * K + n, mask=n < K)  # <-- a
    y = tl.load(b + r * B + n, mask=r < K, other=0.0)
    tl.store(c + r * B + n, tl.dot(x, y))


@faulty(
    "0 times undefined in a dot",
    [T(16, 10, dtype="float16"), T(10, 16, dtype="float16")],
    undefined(ragged_dot, "a", (0,), 96, "a"),
)
def _(a, b):
    c = torch.empty(16, 16)
    ragged_dot[(1,)](a, b, c, 10, B=16)
    return c


@triton.jit
def unpadded_block(x, out, n, B: tl.constexpr):
    p = tl.make_block_ptr(x, (n,), (1,), (tl.program_id(0) * B,), (B,), (0,))
    v = tl.load(p, boundary_check=(0,))  # <-- here
    tl.store(out + tl.program_id(0), tl.sum(v))


@faulty(
    "a boundary check without padding, summed", [T(100)], undefined(unpadded_block, "x", (1,), 28)
)
def _(x):
    out = torch.empty(2)
    unpadded_block[(2,)](x, out, 100, B=64)
    return out
