"""Dots and random numbers as data (see `operation_blocks.Sample`)."""

from __future__ import annotations

import numpy as np
import torch
import triton
import triton.language as tl

from tests.kernels.operation_blocks import SAMPLES, C, R, _like, sample

__all__ = ["SAMPLES"]

# ---------------------------------------------------------------- dots


@triton.jit
def dot_kernel(a_ptr, b_ptr, out_ptr, P: tl.constexpr, N: tl.constexpr):
    i, j = tl.arange(0, N), tl.arange(0, N)
    at = i[:, None] * N + j[None, :]
    a, b = tl.load(a_ptr + at), tl.load(b_ptr + at)
    out = tl.dot(a, b, input_precision=P, out_dtype=out_ptr.dtype.element_ty)
    tl.store(out_ptr + at, out)


N = 32


def _dot(precision):
    def run(a, b):
        to = {torch.int8: torch.int32, torch.float64: torch.float64}.get(a.dtype, torch.float32)
        out = _like(a, (N, N), to)
        dot_kernel[(1,)](a, b, out, P=precision, N=N)
        return out

    return run


def _matrices(g, dtype):
    if dtype == "int8":
        return tuple(g.integers(-128, 128, (N, N)).astype(dtype) for _ in range(2))
    return tuple(g.standard_normal((N, N)) for _ in range(2))


sample(
    "dot",
    "dot",
    _matrices,
    lambda a, b: a @ b,
    ("float16", "bfloat16", "int8", "float8_e4m3fn", "float8_e5m2"),
    terms=N,
)(_dot("ieee"))
sample("dot, ieee", "dot", _matrices, lambda a, b: a @ b, ("float32", "float64"), terms=N)(
    _dot("ieee")
)
for _precision in ("tf32", "tf32x3", "bf16x3", "bf16x6"):
    sample(
        f"dot, {_precision}",
        "dot",
        _matrices,
        lambda a, b: a @ b,
        ("float32",),
        terms=N,
    )(_dot(_precision))


@triton.jit
def batched_dot_kernel(a_ptr, b_ptr, c_ptr, out_ptr, G: tl.constexpr, N: tl.constexpr):
    g, i, j = tl.arange(0, G), tl.arange(0, N), tl.arange(0, N)
    at = g[:, None, None] * N * N + i[None, :, None] * N + j[None, None, :]
    acc = tl.load(c_ptr + at)
    acc = tl.dot(tl.load(a_ptr + at), tl.load(b_ptr + at), acc)
    tl.store(out_ptr + at, acc)


@sample(
    "dot of three axes, with a sum to go on from",
    "dot",
    lambda g, dtype: tuple(g.standard_normal((4, N, N)) for _ in range(3)),
    lambda a, b, c: a @ b + c,
    ("float16",),
    terms=N,
)
def batched_dot(a, b, c):
    c = c.to(torch.float32)
    out = _like(a, (4, N, N), torch.float32)
    batched_dot_kernel[(1,)](a, b, c, out, G=4, N=N)
    return out


# ---------------------------------------------------------------- random numbers


@triton.jit
def random_kernel(u_ptr, f_ptr, seed, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(u_ptr + i, tl.randint(seed, i).to(tl.int32, bitcast=True))
    a, b, c, d = tl.randint4x(seed, i)
    tl.store(u_ptr + N + i, (a ^ b ^ c ^ d).to(tl.int32, bitcast=True))
    zero = (i * 0).to(tl.uint32)
    a, b, c, d = tl.philox(seed, i.to(tl.uint32), zero, zero, zero)
    tl.store(u_ptr + 2 * N + i, (a + b + c + d).to(tl.int32, bitcast=True))
    tl.store(f_ptr + i, tl.rand(seed, i))
    a, b, c, d = tl.rand4x(seed, i)
    tl.store(f_ptr + N + i, a + b + c + d)
    tl.store(f_ptr + 2 * N + i, tl.uint_to_uniform_float(tl.randint(seed, i)))
    tl.store(f_ptr + 3 * N + i, tl.randn(seed, i))
    a, b, c, d = tl.randn4x(seed, i)
    tl.store(f_ptr + 4 * N + i, d)


def philox(seed: int, counters: np.ndarray) -> np.ndarray:
    """Philox 4x32-10 (Salmon et al., SC 2011): (4, n) words for counters (c, 0, 0, 0)."""
    c = np.zeros((4, len(counters)), np.uint64)
    c[0] = counters
    low, word = np.uint64(0xFFFFFFFF), np.uint64(32)
    k0, k1 = np.uint64(seed & 0xFFFFFFFF), np.uint64(seed >> 32)
    for _ in range(10):
        p0, p1 = np.uint64(0xD2511F53) * c[0], np.uint64(0xCD9E8D57) * c[2]
        c = np.stack([(p1 >> word) ^ c[1] ^ k0, p1 & low, (p0 >> word) ^ c[3] ^ k1, p0 & low])
        k0, k1 = (k0 + np.uint64(0x9E3779B9)) & low, (k1 + np.uint64(0xBB67AE85)) & low
    return c


def uniform(words: np.ndarray) -> np.ndarray:
    """Words to floats in [0, 1) as Triton does it: the sign bit folds the upper half over."""
    x = words.astype(np.uint32).view(np.int32)
    return np.where(x < 0, -x - 1, x).astype(np.float32) * np.float32(4.6566127342e-10)


SEED = 123456789


def _random(x):
    n = R * C
    words = philox(SEED, np.arange(n))
    u = [uniform(w) for w in words]

    def normal(a, b, function):
        a = np.maximum(a, np.float32(1e-7)).astype(np.float64)
        return np.sqrt(-2 * np.log(a)) * function(2 * np.pi * b.astype(np.float64))

    ints = [words[0], np.bitwise_xor.reduce(words), words.sum(0)]
    ints = [w.astype(np.uint32).view(np.int32) for w in ints]
    floats = [u[0], u[0] + u[1] + u[2] + u[3], u[0], normal(u[0], u[1], np.cos)]
    return np.concatenate(ints), np.concatenate([*floats, normal(u[2], u[3], np.sin)])


@sample(
    "random numbers",
    "rand randn randint rand4x randn4x randint4x philox uint_to_uniform_float philox_impl "
    "pair_uniform_to_normal",
    lambda g, dtype: (np.zeros(1),),
    _random,
    ("float32",),
    terms=16,
)
def random(x):
    u, f = _like(x, 3 * R * C, torch.int32), _like(x, 5 * R * C)
    random_kernel[(1,)](u, f, SEED, N=R * C)
    return u, f
