"""What else triton.language exports, as samples: small names, truth values, one version's names."""

from __future__ import annotations

import numpy as np
import torch
import triton
import triton.language as tl

from tests.kernels.operation_blocks import SAMPLES, C, R, _like, block, line, sample

__all__ = ["SAMPLES"]


@triton.jit
def words_kernel(x_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(x_ptr + i)
    tl.store(out_ptr + i, tl.sub(tl.add(x, tl.mul(x, x)), 3))
    if tl.target_info.is_cuda():
        tl.store(out_ptr + N + i, tl.bitonic_merge(tl.where(i < N // 2, i, N - 1 - i).to(x.dtype)))
    n = 0
    while tl.condition(n < 3, disable_licm=True):
        n += 1
    tl.store(out_ptr + 2 * N + i, x + n)


def _words(x):
    n = len(x)
    hill = np.sort(np.minimum(np.arange(n), n - 1 - np.arange(n)))
    return np.concatenate([x + x * x - 3, hill, x + 3])


@sample(
    "add, sub, mul, bitonic_merge, target_info",
    "add sub mul bitonic_merge target_info condition",
    line,
    _words,
    ("float32", "int32", "int64"),
)
def words(x):
    out = _like(x, 3 * x.numel())
    words_kernel[(1,)](x, out, N=x.numel())
    return out


@triton.jit
def _both(a, b):
    return a & b


@triton.jit
def truth_kernel(x_ptr, y_ptr, out_ptr, count_ptr, R: tl.constexpr, C: tl.constexpr):
    i = tl.arange(0, R)
    at = i[:, None] * C + tl.arange(0, C)[None, :]
    x, y = tl.load(x_ptr + at), tl.load(y_ptr + at)
    n: tl.constexpr = R * C
    tl.store(out_ptr + at, x & y)
    tl.store(out_ptr + n + at, x | y)
    tl.store(out_ptr + 2 * n + at, x ^ y)
    tl.store(out_ptr + 3 * n + at, ~x)
    tl.store(out_ptr + 4 * n + at, x == y)
    tl.store(out_ptr + 5 * n + at, x != y)
    tl.store(out_ptr + 6 * n + at, (x.to(tl.int32) - y.to(tl.float32)).to(tl.int1))
    tl.store(count_ptr + i, tl.sum(x, 1))
    tl.store(count_ptr + R + i, tl.reduce(x, 1, _both).to(tl.int32))
    tl.store(count_ptr + 2 * R + i, tl.reduce_or(x, 1).to(tl.int32))
    tl.store(count_ptr + 3 * R + i, tl.xor_sum(x.to(tl.int32), 1))
    tl.store(count_ptr + 4 * R + i, tl.max(tl.cumsum(x.to(tl.int8), 1), 1).to(tl.int32))


def _truth(x, y):
    x, y = x.astype(bool), y.astype(bool)
    out = np.stack([x & y, x | y, x ^ y, ~x, x == y, x != y, x != y])
    counts = [x.sum(1), x.all(1), x.any(1), x.sum(1) & 1, x.sum(1)]
    return out.astype(np.int64), np.concatenate(counts).astype(np.int64)


@sample(
    "truth values",
    "where sum reduce_or int1",
    lambda g, dtype: tuple(g.integers(0, 2, (R, C)).astype(bool) for _ in range(2)),
    _truth,
    ("bool",),
)
def truth(x, y):
    out, counts = _like(x, (7, R, C)), _like(x, 5 * R, torch.int32)
    truth_kernel[(1,)](x, y, out, counts, R=R, C=C)
    return out, counts


@triton.jit
def wrapping_kernel(x_ptr, out_ptr, B: tl.constexpr):
    i = tl.arange(0, B)
    x = tl.load(x_ptr + i)
    tl.store(out_ptr + i, x + x)
    tl.store(out_ptr + B + i, tl.abs(x))
    tl.store(out_ptr + 2 * B + i, x * x)
    tl.store(out_ptr + 3 * B + i, -x)


def _wrapped(x):
    big = x.astype(object)
    return np.concatenate([big + big, abs(big), big * big, -big])


@sample(
    "integers that overflow",
    "abs",
    lambda g, dtype: (np.array([np.iinfo(dtype).min, np.iinfo(dtype).max, -1, 1], dtype),),
    _wrapped,
    ("int8", "int16", "int32", "int64"),
)
def wrapping(x):
    out = _like(x, 16)
    wrapping_kernel[(1,)](x, out, B=4)
    return out


if hasattr(tl, "squeeze"):  # Triton 3.7 and later

    @triton.jit
    def squeeze_kernel(x_ptr, out_ptr, N: tl.constexpr):
        i = tl.arange(0, N)
        x = tl.unsqueeze(tl.load(x_ptr + i), 0)
        tl.store(out_ptr + i, tl.squeeze(x, 0) + tl.to_tensor(1))

    @sample(
        "squeeze, unsqueeze, to_tensor",
        "squeeze unsqueeze to_tensor",
        line,
        lambda x: x + 1,
        ("float32",),
    )
    def squeeze(x):
        out = _like(x, x.numel())
        squeeze_kernel[(1,)](x, out, N=x.numel())
        return out


if hasattr(tl, "expect_zero"):  # Triton 3.8 and later

    @triton.jit
    def expect_kernel(x_ptr, out_ptr, N: tl.constexpr):
        i = tl.arange(0, N)
        tl.store(out_ptr + i, tl.expect_zero(tl.load(x_ptr + i), i < 0))

    @sample("expect_zero", "expect_zero", line, lambda x: x, ("float32",))
    def expect(x):
        out = _like(x, x.numel())
        expect_kernel[(1,)](x, out, N=x.numel())
        return out


if hasattr(tl, "atomic_load"):  # Triton 3.9 and later

    @triton.jit
    def atomic_access_kernel(x_ptr, out_ptr, B: tl.constexpr):
        i = tl.arange(0, B)
        x = tl.atomic_load(x_ptr + i, sem="relaxed")
        tl.atomic_store(out_ptr + i, x + x, mask=i < B // 2)
        tl.atomic_store(out_ptr + B // 2 + i, -x, mask=i >= B // 2)
        ready = tl.atomic_poll(x_ptr, tl.load(x_ptr))
        tl.store(out_ptr + B + B // 2 + i, x, mask=ready & (i >= 0))

    @sample(
        "atomic_load, store, poll",
        "atomic_load atomic_store atomic_poll",
        lambda g, dtype: block(g, dtype, (16,)),
        lambda x: np.concatenate([2 * x[:8], np.zeros(8), -x[8:], x]).astype(np.int64),
        ("int32", "int64"),
    )
    def atomic_access(x):
        out = torch.zeros(40, dtype=x.dtype, device=x.device)
        atomic_access_kernel[(1,)](x, out, B=16)
        return out
