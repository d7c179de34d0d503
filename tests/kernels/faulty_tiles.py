"""Out of bounds: strides, tiles, block pointers, descriptors, grids and control flow."""

import torch
import triton
import triton.language as tl

from tests.kernels.table import Fault, T, faulty, unwritten


def bounds(kernel, argument, program, lanes, at="here"):
    return Fault("out_of_bounds", kernel, argument, program, lanes, at)


@triton.jit
def whole_rows(x, out, stride, width, B: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, B)
    v = tl.load(x + row * stride + i)  # <-- here
    tl.store(out + row * width + i, v, mask=i < width)


@faulty(
    "a row overruns into its padding",
    [T(4, 10, strides=(16, 1))],
    bounds(whole_rows, "x", (0,), 24),
)
def _(x):
    out = torch.empty(4, 10)
    whole_rows[(4,)](x, out, x.stride(0), 10, B=16)
    return out


@faulty("the last row overruns the tensor", [T(4, 10)], bounds(whole_rows, "x", (3,), 6))
def _(x):
    out = torch.empty(4, 10)
    whole_rows[(4,)](x, out, 10, 10, B=16)
    return out


@triton.jit
def rows(x, out, x_stride, out_stride, width, B: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, B)
    v = tl.load(x + row * x_stride + i, mask=i < width, other=0.0)  # <-- load
    tl.store(out + row * out_stride + i, v, mask=i < width)  # <-- store


@faulty(
    "width taken for the row stride",
    [T(4, 10, strides=(16, 1))],
    bounds(rows, "x", (1,), 12, "load"),
)
def _(x):
    out = torch.empty(4, 10)
    rows[(4,)](x, out, 10, 10, 10, B=16)
    return out


@faulty(
    "the input's stride used for the output",
    [T(4, 10, strides=(16, 1))],
    bounds(rows, "out", (2,), 12, "store"),
    unwritten(12),
)
def _(x):
    out = torch.empty(4, 10)
    rows[(4,)](x, out, 16, 16, 10, B=16)
    return out


@faulty(
    "a zero-stride broadcast read by rows",
    [T(4, 16, strides=(0, 1))],
    bounds(rows, "x", (1,), 48, "load"),
)
def _(x):
    out = torch.empty(4, 16)
    rows[(4,)](x, out, 16, 16, 16, B=16)
    return out


@triton.jit
def tile_rows_only(x, out, M, N, stride, B: tl.constexpr):
    r = tl.arange(0, B)[:, None]
    c = tl.arange(0, B)[None, :]
    v = tl.load(x + r * stride + c, mask=(r < M) & (c < B), other=0.0)  # <-- here
    tl.store(out + r * N + c, v, mask=(r < M) & (c < N))


@faulty("a tile masked in rows only", [T(10, 10)], bounds(tile_rows_only, "x", (0,), 6))
def _(x):
    out = torch.empty(10, 10)
    tile_rows_only[(1,)](x, out, 10, 10, 10, B=16)
    return out


@faulty(
    "a transposed, padded view read by rows",
    [T(6, 8, strides=(1, 10))],
    bounds(tile_rows_only, "x", (0,), 36),
)
def _(x):
    out = torch.empty(6, 8)
    tile_rows_only[(1,)](x, out, 6, 8, 8, B=16)
    return out


@triton.jit
def third_dimension(x, out, width, B: tl.constexpr):
    i = tl.arange(0, B)
    start = (tl.program_id(2) * tl.num_programs(1) + tl.program_id(1)) * width
    v = tl.load(x + start + i, mask=i < width, other=0.0)  # <-- load
    tl.store(out + start + i, v, mask=i < width)  # <-- store


@faulty(
    "one batch too many in the third dimension of the grid",
    [T(2, 3, 20)],
    bounds(third_dimension, "x", (0, 0, 2), 60, "load"),
    bounds(third_dimension, "out", (0, 0, 2), 60, "store"),
)
def _(x):
    out = torch.empty_like(x)
    third_dimension[(1, 3, 3)](x, out, 20, B=32)
    return out


@triton.jit
def rows_and_blocks(x, out, width, B: tl.constexpr):
    i = tl.program_id(1) * B + tl.arange(0, B)
    at = tl.program_id(0) * width + i
    tl.store(out + at, tl.load(x + at))  # <-- here


@faulty(
    "rows and columns of the grid swapped",
    [T(2, 48)],
    bounds(rows_and_blocks, "x", (2, 0), 32),
    bounds(rows_and_blocks, "out", (2, 0), 32),
    unwritten(32),
)
def _(x):
    out = torch.empty_like(x)
    rows_and_blocks[(3, 2)](x, out, 48, B=16)
    return out


@triton.jit
def row_sums(x, out, width, B: tl.constexpr):
    row = tl.program_id(0)
    total = 0.0
    for start in range(0, width, B):
        v = tl.load(x + row * width + start + tl.arange(0, B))  # <-- here
        total += tl.sum(v)
    tl.store(out + row, total)


@faulty(
    "the tail of a loop, seen in the last row only", [T(2, 100)], bounds(row_sums, "x", (1,), 12)
)
def _(x):
    out = torch.empty(2)
    row_sums[(2,)](x, out, 100, B=16)
    return out


@triton.jit
def one_chunk_more(x, out, n, B: tl.constexpr):
    k = 0
    total = tl.zeros((B,), tl.float32)
    while k <= n:
        total += tl.load(x + k + tl.arange(0, B))  # <-- here
        k += B
    tl.store(out + tl.arange(0, B), total)


@faulty("a while loop that goes once too often", [T(64)], bounds(one_chunk_more, "x", (0,), 16))
def _(x):
    out = torch.empty(16)
    one_chunk_more[(1,)](x, out, 64, B=16)
    return out


@triton.jit
def triangle(x, out, B: tl.constexpr):
    pid = tl.program_id(0)
    total = 0.0
    for k in range(pid + 1):
        total += tl.sum(tl.load(x + k * B + tl.arange(0, B)))  # <-- here
    tl.store(out + pid, total)


@faulty("trip counts that grow with the program", [T(40)], bounds(triangle, "x", (2,), 8))
def _(x):
    out = torch.empty(3)
    triangle[(3,)](x, out, B=16)
    return out


@triton.jit
def returns_too_late(x, out, tiles, B: tl.constexpr):
    pid = tl.program_id(0)
    if pid > tiles:
        return
    i = pid * B + tl.arange(0, B)
    tl.store(out + i, tl.load(x + i))  # <-- here


@faulty(
    "an early return that lets one program through",
    [T(64)],
    bounds(returns_too_late, "x", (4,), 16),
    bounds(returns_too_late, "out", (4,), 16),
)
def _(x):
    out = torch.empty_like(x)
    returns_too_late[(6,)](x, out, 4, B=16)
    return out


@triton.jit
def only_last_is_masked(x, out, n, B: tl.constexpr):
    pid = tl.program_id(0)
    i = pid * B + tl.arange(0, B)
    if pid == tl.num_programs(0) - 1:
        tl.store(out + i, tl.load(x + i))  # <-- here
    else:
        tl.store(out + i, tl.load(x + i, mask=i < n), mask=i < n)


@faulty(
    "the mask in the wrong branch",
    [T(100)],
    bounds(only_last_is_masked, "x", (3,), 28),
    bounds(only_last_is_masked, "out", (3,), 28),
)
def _(x):
    out = torch.empty_like(x)
    only_last_is_masked[(4,)](x, out, 100, B=32)
    return out


@triton.jit
def matmul_without_k_mask(a, b, c, K, B: tl.constexpr):
    r = tl.arange(0, B)[:, None]
    n = tl.arange(0, B)[None, :]
    acc = tl.zeros((B, B), tl.float32)
    for k in range(0, K, B):
        x = tl.load(a + r * K + k + n)  # <-- a
        y = tl.load(b + (k + r) * B + n)  # <-- b
        acc = tl.dot(x, y, acc)
    tl.store(c + r * B + n, acc)


@faulty(
    "a matmul without a mask in K",
    [T(16, 20, dtype="float16"), T(20, 16, dtype="float16")],
    bounds(matmul_without_k_mask, "a", (0,), 12, "a"),
    bounds(matmul_without_k_mask, "b", (0,), 192, "b"),
)
def _(a, b):
    c = torch.empty(16, 16)
    matmul_without_k_mask[(1,)](a, b, c, 20, B=16)
    return c


@triton.jit
def block_pointer(x, out, size, n, CHECK: tl.constexpr, B: tl.constexpr):
    pid = tl.program_id(0)
    p = tl.make_block_ptr(x, (size,), (1,), (pid * B,), (B,), (0,))
    if CHECK:
        v = tl.load(p, boundary_check=(0,), padding_option="zero")  # <-- checked
    else:
        v = tl.load(p)  # <-- unchecked
    i = pid * B + tl.arange(0, B)
    tl.store(out + i, v, mask=i < n)


@faulty(
    "a block pointer without boundary check",
    [T(100)],
    bounds(block_pointer, "x", (1,), 28, "unchecked"),
)
def _(x):
    out = torch.empty_like(x)
    block_pointer[(2,)](x, out, 100, 100, CHECK=False, B=64)
    return out


@faulty(
    "a block pointer over a shape that is too large",
    [T(100)],
    bounds(block_pointer, "x", (1,), 28, "checked"),
)
def _(x):
    out = torch.empty_like(x)
    block_pointer[(2,)](x, out, 128, 100, CHECK=True, B=64)
    return out


@triton.jit
def checks_rows_only(x, out, M, N, B: tl.constexpr):
    p = tl.make_block_ptr(x, (M, N), (N, 1), (0, 0), (B, B), (1, 0))
    v = tl.load(p, boundary_check=(0,), padding_option="zero")  # <-- here
    q = tl.make_block_ptr(out, (M, N), (N, 1), (0, 0), (B, B), (1, 0))
    tl.store(q, v, boundary_check=(0, 1))


@faulty(
    "a block pointer that checks rows only", [T(10, 10)], bounds(checks_rows_only, "x", (0,), 6)
)
def _(x):
    out = torch.empty(10, 10)
    checks_rows_only[(1,)](x, out, 10, 10, B=16)
    return out


@triton.jit
def device_descriptor(x, out, M, N, B: tl.constexpr):
    d = tl.make_tensor_descriptor(x, shape=[M, N], strides=[N, 1], block_shape=[B, B])
    v = d.load([0, 0])  # <-- here
    r = tl.arange(0, B)[:, None]
    c = tl.arange(0, B)[None, :]
    tl.store(out + r * N + c, v, mask=(r < 8) & (c < N))


@faulty(
    "a descriptor of a shape that is too large",
    [T(8, 16)],
    bounds(device_descriptor, "x", (0,), 128),
)
def _(x):
    out = torch.empty(8, 16)
    device_descriptor[(1,)](x, out, 16, 16, B=16)
    return out
