"""Operations on memory and control flow as data (see `operation_blocks.Sample`)."""

from __future__ import annotations

import numpy as np
import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

from tests.kernels.operation_blocks import SAMPLES, _like, block, line, sample

__all__ = ["SAMPLES"]  # those of blocks and these

P = 6  # programs
PRINT = True  # tl.device_print as well: on a card it floods the terminal


# ---------------------------------------------------------------- atomics


@triton.jit
def atomic_kernel(x_ptr, out_ptr, old_ptr, B: tl.constexpr):
    i = tl.arange(0, B)
    pid = tl.program_id(0)
    x = tl.load(x_ptr + pid * B + i)
    tl.atomic_add(out_ptr + i, x, sem="relaxed")
    tl.atomic_max(out_ptr + B + i, x, scope="gpu")
    tl.atomic_min(out_ptr + 2 * B + i, x)
    tl.atomic_add(out_ptr + i % 4 + 3 * B, x, mask=i < 8, sem="acq_rel", scope="sys")
    old = tl.atomic_xchg(old_ptr + pid * B + i, x)
    tl.store(old_ptr + pid * B + i, old + x)


def _atomics(x):
    rows = x.reshape(P, -1)
    n = rows.shape[1]
    few = np.zeros(n, x.dtype)
    few[:4] = rows[:, :8].reshape(P, 2, 4).sum((0, 1))
    return np.stack([rows.sum(0), rows.max(0).clip(0), rows.min(0).clip(None, 0), few]), x


@sample(
    "atomic_add, max, min, xchg",
    "atomic_add atomic_max atomic_min atomic_xchg program_id",
    lambda g, dtype: line(g, dtype, P * 16),
    _atomics,
    ("float32", "float64", "int32", "int64", "uint32", "uint64"),
)
def atomics(x):
    out = torch.zeros((4, 16), dtype=x.dtype, device=x.device)
    old = torch.zeros_like(x)
    atomic_kernel[(P,)](x, out, old, B=16)
    return out, old


@triton.jit
def atomic_half_kernel(x_ptr, out_ptr, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.atomic_add(out_ptr + i, tl.load(x_ptr + tl.program_id(0) * B + i))


@sample(
    "atomic_add of 16 bits",
    "atomic_add",
    lambda g, dtype: line(g, dtype, P * 16),
    lambda x: x.reshape(P, 16).sum(0),
    ("float16", "bfloat16"),
    terms=P,
)
def atomic_half(x):
    out = torch.zeros(16, dtype=x.dtype, device=x.device)
    atomic_half_kernel[(P,)](x, out, B=16)
    return out


@triton.jit
def atomic_bits_kernel(x_ptr, out_ptr, B: tl.constexpr):
    i = tl.arange(0, B)
    x = tl.load(x_ptr + tl.program_id(0) * B + i)
    tl.atomic_and(out_ptr + i, x)
    tl.atomic_or(out_ptr + B + i, x)
    tl.atomic_xor(out_ptr + 2 * B + i, x)


@sample(
    "atomic_and, or, xor",
    "atomic_and atomic_or atomic_xor",
    lambda g, dtype: line(g, dtype, P * 16),
    lambda x: np.stack(
        [
            np.bitwise_and.reduce(x.reshape(P, 16), 0),
            np.bitwise_or.reduce(x.reshape(P, 16), 0),
            np.bitwise_xor.reduce(x.reshape(P, 16), 0),
        ]
    ),
    ("int32", "int64", "uint32"),
)
def atomic_bits(x):
    out = torch.zeros((3, 16), dtype=x.dtype, device=x.device)
    out[0] = -1 if x.dtype in (torch.int32, torch.int64) else 2**32 - 1
    atomic_bits_kernel[(P,)](x, out, B=16)
    return out


@triton.jit
def lock_kernel(x_ptr, lock_ptr, out_ptr, B: tl.constexpr):
    i = tl.arange(0, B)
    x = tl.load(x_ptr + tl.program_id(0) * B + i)
    while tl.atomic_cas(lock_ptr, 0, 1) == 1:
        pass
    tl.store(out_ptr + i, tl.load(out_ptr + i) + x)
    tl.debug_barrier()
    tl.atomic_xchg(lock_ptr, 0)


@sample(
    "a lock by compare-and-swap",
    "atomic_cas atomic_xchg debug_barrier",
    lambda g, dtype: line(g, dtype, P * 16),
    lambda x: x.reshape(P, 16).sum(0),
    ("float32", "int32"),
)
def lock(x):
    out = torch.zeros(16, dtype=x.dtype, device=x.device)
    held = torch.zeros(1, dtype=torch.int32, device=x.device)
    lock_kernel[(P,)](x, held, out, B=16)
    return out


@triton.jit
def swap_kernel(x_ptr, out_ptr, old_ptr, B: tl.constexpr):
    i = tl.arange(0, B)
    x = tl.load(x_ptr + i)
    tl.store(old_ptr + i, tl.atomic_cas(out_ptr + i, tl.where(i % 2 == 0, x, x + 1), x * 2))


@sample(
    "compare-and-swap of many cells",
    "atomic_cas",
    lambda g, dtype: line(g, dtype, 16),
    lambda x: (np.where(np.arange(16) % 2 == 0, x * 2, x), x),
    ("int32", "int64"),
)
def swap(x):
    out, old = x.clone(), torch.empty_like(x)
    swap_kernel[(1,)](x, out, old, B=16)
    return out, old


# ---------------------------------------------------------------- descriptors, block pointers


@triton.jit
def descriptor_kernel(x_ptr, out_ptr, sum_ptr, M, N, BM: tl.constexpr, BN: tl.constexpr):
    row = tl.program_id(0) * BM
    src = tl.make_tensor_descriptor(x_ptr, [M, N], [N, 1], [BM, BN])
    dst = tl.make_tensor_descriptor(out_ptr, [M, N], [N, 1], [BM, BN])
    total = tl.make_tensor_descriptor(sum_ptr, [BM, N], [N, 1], [BM, BN])
    for col in range(0, N, BN):
        x = tl.load_tensor_descriptor(src, [row, col])
        tl.store_tensor_descriptor(dst, [row, col], x + x)
        total.atomic_add([0, col], src.load([row, col]))


def _descriptors(x):
    rows = np.concatenate([x, np.zeros((16 - len(x) % 16, x.shape[1]), x.dtype)])
    return x + x, rows.reshape(-1, 16, x.shape[1]).sum(0)


@sample(
    "descriptors made in the kernel: load, store, atomic_add past the edges",
    "make_tensor_descriptor load_tensor_descriptor store_tensor_descriptor tensor_descriptor",
    lambda g, dtype: block(g, dtype, (37, 24)),
    _descriptors,
    ("float32", "float16", "int32"),
)
def descriptors(x):
    out = torch.empty_like(x)
    total = torch.zeros((16, x.shape[1]), dtype=x.dtype, device=x.device)
    descriptor_kernel[(3,)](x, out, total, *x.shape, BM=16, BN=16)
    return out, total


@triton.jit
def host_descriptor_kernel(src, dst, BM: tl.constexpr, BN: tl.constexpr):
    at = [tl.program_id(0) * BM, tl.program_id(1) * BN]
    dst.store(at, src.load(at) * 2)


@sample(
    "descriptors made on the host",
    "tensor_descriptor",
    lambda g, dtype: block(g, dtype, (24, 40)),
    lambda x: 2 * x,
    ("float32", "bfloat16"),
)
def host_descriptors(x):
    out = torch.empty_like(x)
    src, dst = (TensorDescriptor.from_tensor(t, [16, 16]) for t in (x, out))
    host_descriptor_kernel[(2, 3)](src, dst, BM=16, BN=16)
    return out


@triton.jit
def block_pointer_kernel(x_ptr, out_ptr, M, N, BM: tl.constexpr, BN: tl.constexpr):
    row = tl.program_id(0) * BM
    src = tl.make_block_ptr(x_ptr, (M, N), (N, 1), (row, 0), (BM, BN), (1, 0))
    dst = tl.make_block_ptr(out_ptr, (N, M), (M, 1), (0, row), (BN, BM), (1, 0))
    for _ in range(0, N, BN):
        x = tl.load(src, boundary_check=(0, 1), padding_option="zero")
        tl.store(dst, tl.trans(x), boundary_check=(0, 1))
        src, dst = tl.advance(src, (0, BN)), tl.advance(dst, (BN, 0))


@sample(
    "block pointers",
    "make_block_ptr advance",
    lambda g, dtype: block(g, dtype, (20, 27)),
    lambda x: x.T,
    ("float32", "int8"),
)
def block_pointers(x):
    m, n = x.shape
    out = _like(x, (n, m))
    block_pointer_kernel[(2,)](x, out, m, n, BM=16, BN=16)
    return out


# ---------------------------------------------------------------- control flow and hints


@triton.jit
def _twice(x):
    return x * 2


@triton.jit
def _collatz(n):
    steps = 0
    while n > 1:
        if n % 2 == 0:
            n = n // 2
        else:
            n = 3 * n + 1
        steps += 1
    return steps


@triton.jit
def _selu(x, y):
    if x > 0:
        return x * y
    else:
        return -x


@triton.jit
def flow_kernel(x_ptr, out_ptr, n, B: tl.constexpr, PRINT: tl.constexpr):
    i = tl.arange(0, B)
    pid = tl.program_id(0)
    tl.assume(pid >= 0)
    tl.static_assert(B > 1)
    if PRINT:
        tl.static_print("blocks of", B)
    at = tl.max_contiguous(tl.multiple_of(pid * B + i, B), B)
    x = tl.max_constancy(tl.load(x_ptr + at), 1)
    if PRINT:
        tl.device_print("x %pid of", pid)
    tl.device_assert(pid < 1000, "too %many programs")
    if pid % 2 == 0:
        if PRINT:
            tl.device_print("an %even one", pid)
        x += _collatz(pid + 1)
    if pid == 3:
        y = x
    else:
        y = -x
    for k in tl.range(0, pid, num_stages=2):
        for f in tl.static_range(2):
            y += k * f
    if pid >= n:
        return
    y = tl.map_elementwise(_selu, y, x)
    tl.store(out_ptr + at, y * tl.num_programs(0) + tl.cdiv(pid, 2))


def _flow(x):
    collatz = (0, 1, 7, 2, 5, 8)
    out = []
    for pid, row in enumerate(x.reshape(P, -1)[: P - 1]):
        row = row + (collatz[pid] if pid % 2 == 0 else 0)
        y = (row if pid == 3 else -row) + sum(range(pid))
        out.append(np.where(y > 0, y * row, -y) * P + (pid + 1) // 2)
    return np.concatenate(out)


@sample(
    "if, while, for, early return, hints, prints",
    "assume static_assert static_print max_contiguous multiple_of max_constancy device_print "
    "device_assert range static_range num_programs cdiv map_elementwise program_id condition",
    lambda g, dtype: line(g, dtype, P * 16),
    _flow,
    ("int32", "float32", "int64"),
)
def flow(x):
    out = _like(x, (P - 1) * 16)
    flow_kernel[(P,)](x, out, P - 1, B=16, PRINT=PRINT)
    return out


@triton.jit
def swizzle_kernel(x_ptr, out_ptr):
    i, j = tl.program_id(0), tl.program_id(1)
    a, b = tl.swizzle2d(i, j, tl.num_programs(0), tl.num_programs(1), 2)
    tl.store(out_ptr + i * tl.num_programs(1) + j, tl.load(x_ptr) * 0 + a * 100 + b)


def _swizzled(x):
    out = []
    for n in range(5 * 4):  # groups of two rows, walked column by column
        group, inside = divmod(n, 2 * 4)
        rows = min(5 - 2 * group, 2)
        out.append((2 * group + inside % rows) * 100 + inside // rows)
    return out


@sample("swizzle2d", "swizzle2d", lambda g, dtype: (np.zeros(1),), _swizzled, ("int32",))
def swizzle(x):
    out = _like(x, 20)
    swizzle_kernel[(5, 4)](x, out)
    return out
