"""Operations on whole blocks as data: reductions, scans, shapes, dots, memory, random numbers.

A `Sample` is a host function, what it is given and what has to come out. Host functions allocate
where their first tensor lies, so that the same ones run in the interpreter and on a card.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
import triton
import triton.language as tl

R, C = 8, 16  # rows and columns of a block whose shape is fixed


@dataclass(frozen=True)
class Sample:
    name: str
    covers: tuple[str, ...]  # names of triton.language
    run: Callable  # tensors → a tensor or a tuple of them
    given: Callable  # (generator, dtype) → held arrays, one a tensor
    want: Callable  # held arrays (float64 or int64) → arrays
    dtypes: tuple[str, ...] = ("float32",)
    terms: int = 0  # how many roundings a result may carry: a bound in ulp of the largest
    why: str = ""  # why a card may differ


SAMPLES: list[Sample] = []


def sample(name, covers, given, want, dtypes=("float32",), terms=0, why=""):
    def add(run):
        SAMPLES.append(
            Sample(name, tuple(covers.split()), run, given, want, tuple(dtypes), terms, why)
        )
        return run

    return add


def _like(x, shape, dtype=None):
    return torch.empty(shape, dtype=dtype or x.dtype, device=x.device)


def block(generator, dtype, shape=None):
    """Numbers whose sums are exact, of a random shape where none is given."""
    shape = shape or tuple(2 ** generator.integers((1, 2), (5, 6)))
    if dtype.startswith(("int", "uint")):
        low, high = (-9, 10) if dtype.startswith("int") else (0, 20)
        return (generator.integers(low, high, shape).astype(dtype),)
    return (np.round(generator.standard_normal(shape) * 8) / 8,)  # ties, and exact sums


def line(generator, dtype, n=None):
    return block(generator, dtype, (n or 2 ** generator.integers(5, 9),))


def _two(made):
    return made[0], (made[0][::-1] + 1).astype(made[0].dtype)


NUMBERS = ("float32", "float64", "int32", "int64", "int8", "uint8")

# ---------------------------------------------------------------- reductions


@triton.jit
def _product(a, b):
    return a * b


@triton.jit
def _first_largest(a, i, b, j):
    left = (a > b) | ((a == b) & (i < j))
    return tl.where(left, a, b), tl.where(left, i, j)


@triton.jit
def reduce_kernel(x_ptr, out_ptr, at_ptr, R: tl.constexpr, C: tl.constexpr):
    i, j = tl.arange(0, R), tl.arange(0, C)
    x = tl.load(x_ptr + i[:, None] * C + j[None, :])
    tl.store(out_ptr + i, tl.sum(x, 1).to(x.dtype))
    tl.store(out_ptr + R + i, tl.max(x, 1).to(x.dtype))
    tl.store(out_ptr + 2 * R + i, tl.min(x, 1).to(x.dtype))
    tl.store(at_ptr + i, tl.argmax(x, 1))
    tl.store(at_ptr + R + i, tl.argmin(x, 1))
    best, where = tl.max(x, 1, return_indices=True)
    tl.store(at_ptr + 2 * R + i, where)
    columns = tl.broadcast_to(j[None, :], (R, C))
    best, where = tl.reduce((x, columns), 1, _first_largest)
    tl.store(out_ptr + 3 * R + i, best)
    tl.store(at_ptr + 3 * R + i, where)
    tl.store(out_ptr + 4 * R + j, tl.max(x, 0).to(x.dtype))
    tl.store(out_ptr + 4 * R + C, tl.max(x).to(x.dtype))


def _reduced(x):
    values = [x.sum(1), x.max(1), x.min(1), x.max(1), x.max(0), [x.max()]]
    at = [x.argmax(1), x.argmin(1), x.argmax(1), x.argmax(1)]
    return np.concatenate(values), np.concatenate(at)


@sample(
    "reductions, first of equal ones",
    "sum max min argmax argmin reduce broadcast_to",
    block,
    _reduced,
    NUMBERS + ("float16", "bfloat16"),
    terms=32,  # terms of a sum at most
)
def reductions(x):
    R, C = x.shape
    out, at = _like(x, 4 * R + C + 1), _like(x, 4 * R, torch.int32)
    reduce_kernel[(1,)](x, out, at, R=R, C=C)
    return out, at


@triton.jit
def bits_kernel(x_ptr, out_ptr, R: tl.constexpr, C: tl.constexpr):
    i, j = tl.arange(0, R), tl.arange(0, C)
    x = tl.load(x_ptr + i[:, None] * C + j[None, :])
    tl.store(out_ptr + i, tl.xor_sum(x, 1))
    tl.store(out_ptr + R + i, tl.reduce_or(x, 1))
    tl.store(out_ptr + 2 * R + i, tl.reduce(x, 1, _product))


@sample(
    "xor_sum, reduce_or, products",
    "xor_sum reduce_or",
    block,
    lambda x: np.concatenate(
        [np.bitwise_xor.reduce(x, 1), np.bitwise_or.reduce(x, 1), np.multiply.reduce(x, 1)]
    ),
    ("int32", "int64", "uint32"),
)
def bits(x):
    R, C = x.shape
    out = _like(x, 3 * R)
    bits_kernel[(1,)](x, out, R=R, C=C)
    return out


# ---------------------------------------------------------------- scans and sorting


@triton.jit
def _linear(a, b, c, d):  # x ↦ b + a x, one after the other
    return a * c, b * c + d


@triton.jit
def _larger(a, b):
    return tl.maximum(a, b)


@triton.jit
def scan_kernel(x_ptr, out_ptr, R: tl.constexpr, C: tl.constexpr):
    at = tl.arange(0, R)[:, None] * C + tl.arange(0, C)[None, :]
    x = tl.load(x_ptr + at)
    n: tl.constexpr = R * C
    tl.store(out_ptr + at, tl.cumsum(x, 1))
    tl.store(out_ptr + n + at, tl.cumsum(x, 0, reverse=True))
    tl.store(out_ptr + 2 * n + at, tl.cumprod(x * 0 + 1, 1))
    tl.store(out_ptr + 3 * n + at, tl.associative_scan(x, 1, _larger))
    tl.store(out_ptr + 4 * n + at, tl.associative_scan(x, 0, _larger, reverse=True))
    a, b = tl.associative_scan((x * 0 + 1, x), 1, _linear)
    tl.store(out_ptr + 5 * n + at, b)


def _scanned(x):
    largest = np.maximum.accumulate
    return np.stack(
        [
            x.cumsum(1),
            x[::-1].cumsum(0)[::-1],
            np.ones_like(x),
            largest(x, 1),
            largest(x[::-1], 0)[::-1],
            x.cumsum(1),
        ]
    )


@sample(
    "scans, forwards and backwards",
    "cumsum cumprod associative_scan",
    block,
    _scanned,
    ("float32", "float64", "int32", "int64", "float16"),
    terms=32,  # terms of a sum at most
)
def scans(x):
    R, C = x.shape
    out = _like(x, (6, R, C))
    scan_kernel[(1,)](x, out, R=R, C=C)
    return out


@triton.jit
def sort_kernel(x_ptr, out_ptr, top_ptr, R: tl.constexpr, C: tl.constexpr):
    i, j, k = tl.arange(0, R), tl.arange(0, C), tl.arange(0, 4)
    at = i[:, None] * C + j[None, :]
    x = tl.load(x_ptr + at)
    n: tl.constexpr = R * C
    tl.store(out_ptr + at, tl.sort(x))
    tl.store(out_ptr + n + at, tl.sort(x, descending=True))
    tl.store(out_ptr + 2 * n + at, tl.flip(x, 1))
    tl.store(out_ptr + 3 * n + at, tl.flip(x, 0))
    tl.store(top_ptr + i[:, None] * 4 + k[None, :], tl.topk(x, 4))


@sample(
    "sort, flip, topk",
    "sort flip topk",
    block,
    lambda x: (
        np.stack([np.sort(x), np.sort(x)[:, ::-1], x[:, ::-1], x[::-1]]),
        np.sort(x)[:, :-5:-1],
    ),
    ("float32", "float16", "int32", "int16"),
)
def sorting(x):
    R, C = x.shape
    out, top = _like(x, (4, R, C)), _like(x, (R, 4))
    sort_kernel[(1,)](x, out, top, R=R, C=C)
    return out, top


# ---------------------------------------------------------------- shapes


@triton.jit
def shape_kernel(x_ptr, y_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    x, y = tl.load(x_ptr + i), tl.load(y_ptr + i)
    two = tl.arange(0, 2 * N)
    joined = tl.join(x, y)
    tl.store(out_ptr + two, tl.reshape(joined, (2 * N,)))
    tl.store(out_ptr + 2 * N + two, tl.interleave(x, y))
    a, b = tl.split(joined)
    tl.store(out_ptr + 4 * N + i, a - b)
    square = tl.reshape(x, (N // 8, 8))
    tl.store(out_ptr + 5 * N + i, tl.ravel(tl.trans(square)))
    cube = tl.permute(tl.reshape(x, (4, N // 8, 2)), (2, 0, 1))
    tl.store(out_ptr + 6 * N + i, tl.reshape(cube, (N,)))
    tl.store(out_ptr + 7 * N + i, tl.gather(x, (i * 5 + 3) % N, 0))
    tl.store(out_ptr + 8 * N + i, tl.reshape(tl.expand_dims(x, 0), (N,)))
    tl.store(out_ptr + 9 * N + i, tl.full((N,), 3, x.dtype) + tl.zeros_like(x))
    grid = tl.broadcast(tl.load(x_ptr + tl.arange(0, 8))[:, None], tl.zeros((1, N // 8), x.dtype))
    tl.store(out_ptr + 10 * N + i, tl.reshape(grid[0], (N,)))


def _shaped(x, y):
    n = len(x)
    pairs = np.stack([x, y], 1).ravel()
    return np.concatenate(
        [
            pairs,
            pairs,
            x - y,
            x.reshape(-1, 8).T.ravel(),
            x.reshape(4, -1, 2).transpose(2, 0, 1).ravel(),
            x[(np.arange(n) * 5 + 3) % n],
            x,
            np.full(n, 3),
            np.repeat(x[:8], n // 8),
        ]
    )


@sample(
    "join, split, interleave, reshape, trans, permute, gather",
    "join split interleave reshape ravel trans permute gather expand_dims full zeros "
    "zeros_like broadcast arange load store",
    lambda g, dtype: _two(line(g, dtype)),
    _shaped,
    ("float32", "float64", "float16", "bfloat16", "int8", "int64", "uint16"),
)
def shapes(x, y):
    out = _like(x, 11 * x.numel())
    shape_kernel[(1,)](x, y, out, N=x.numel())
    return out


@triton.jit
def view_kernel(x_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out_ptr + i, tl.reshape(tl.view(tl.load(x_ptr + i), (N // 8, 8)), (N,)))


@sample(
    "view",
    "view",
    lambda g, dtype: (line(g, dtype),),
    lambda x: x,
    ("float32", "int64"),
    why="view is a reshape that may reorder, and a card puts the elements in an order of its own",
)
def view(x):
    out = _like(x, x.numel())
    view_kernel[(1,)](x, out, N=x.numel())
    return out


@triton.jit
def cat_kernel(x_ptr, y_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    both = tl.cat(tl.load(x_ptr + i), tl.load(y_ptr + i), can_reorder=True)
    tl.store(out_ptr + tl.arange(0, 2 * N), both)


@sample(
    "cat",
    "cat",
    lambda g, dtype: _two(line(g, dtype)),
    lambda x, y: np.concatenate([x, y]),
    ("float32", "int64"),
    why="with can_reorder a card puts the elements in an order of its own",
)
def cat(x, y):
    out = _like(x, 2 * x.numel())
    cat_kernel[(1,)](x, y, out, N=x.numel())
    return out


@triton.jit
def histogram_kernel(x_ptr, out_ptr, N: tl.constexpr, BINS: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(x_ptr + i)
    bins = tl.arange(0, BINS)
    tl.store(out_ptr + bins, tl.histogram(x, BINS))
    tl.store(out_ptr + BINS + bins, tl.histogram(x, BINS, mask=i % 2 == 0))


@sample(
    "histogram",
    "histogram",
    lambda g, dtype: (g.integers(0, 16, R * C).astype(dtype),),
    lambda x: np.concatenate([np.bincount(v, minlength=16) for v in (x, x[::2])]),
    ("int32",),
)
def histogram(x):
    out = _like(x, 32)
    histogram_kernel[(1,)](x, out, N=R * C, BINS=16)
    return out
