"""The IR interpreter's operations and control flow, against NumPy, kernel by kernel.

Findings have a table of their own (test_findings.py); here every kernel is right and its values
count.
"""

import numpy as np
import pytest
import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice

from autograder.checking import inspect_call
from autograder.ir.parse import _Locations
from autograder.records import CouldNotCheck, Rejected


def values(function, *arguments):
    """Outputs of a call that must be free of findings."""
    run = inspect_call(function, *arguments, keep_accesses=False)
    assert not run.findings, run.findings
    return [o.values for o in run.outputs]


def numbers(*shape, seed=0):
    return torch.from_numpy(np.random.default_rng(seed).standard_normal(shape).astype(np.float32))


# ---------------------------------------------------------------- control flow


@triton.jit
def branches(x_ptr, out_ptr, n, B: tl.constexpr):
    pid = tl.program_id(0)
    at = pid * B + tl.arange(0, B)
    x = tl.load(x_ptr + at)
    if pid % 2 == 0:
        if pid == 2:
            x = x * 10
        else:
            x = x + 1
    else:
        x = -x
    rounds = 0
    total = x
    while rounds < pid:
        for k in range(pid, pid + 2):
            total += k
        rounds += 1
    if pid >= n:
        return
    tl.store(out_ptr + at, total)


def test_programs_that_go_different_ways():
    def run(x):
        out = torch.empty(3 * 16)
        branches[(5,)](x, out, 3, B=16)
        return out

    x = numbers(5 * 16)
    want = x.numpy().reshape(5, 16).copy()
    for pid in range(5):
        row = want[pid]
        row[:] = (row * 10 if pid == 2 else row + 1) if pid % 2 == 0 else -row
        row += pid * (2 * pid + 1)
    (got,) = values(run, x)
    np.testing.assert_allclose(got, want[:3].ravel(), rtol=1e-6)


@triton.jit
def early_return_in_a_helper(x):
    if tl.max(x, 0) < 0:
        return x * 0
    return x + 1


@triton.jit
def calls(x_ptr, out_ptr, B: tl.constexpr):
    at = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(out_ptr + at, early_return_in_a_helper(tl.load(x_ptr + at)))


def test_a_helper_that_returns_early():
    def run(x):
        out = torch.empty_like(x)
        calls[(4,)](x, out, B=8)
        return out

    x = numbers(32)
    x[8:16] = -x[8:16].abs() - 0.1
    want = x.numpy().copy() + 1
    want[8:16] = 0
    for pid in (0, 2, 3):
        part = slice(8 * pid, 8 * pid + 8)
        if x.numpy()[part].max() < 0:
            want[part] = 0
    (got,) = values(run, x)
    np.testing.assert_array_equal(got, want)


@triton.jit(noinline=True)
def apart(x, y):
    return x * 2 + y


@triton.jit
def calls_noinline(x_ptr, out_ptr):
    pid = tl.program_id(0)
    tl.store(out_ptr + pid, apart(tl.load(x_ptr + pid), 1.0))


def test_a_function_that_stays_a_call():
    def run(x):
        out = torch.empty_like(x)
        calls_noinline[(16,)](x, out)
        return out

    x = numbers(16)
    np.testing.assert_array_equal(values(run, x)[0], x.numpy() * 2 + 1)


@triton.jit
def three_axes(out_ptr, X: tl.constexpr, Y: tl.constexpr):
    x, y, z = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    n = tl.num_programs(0) * 100 + tl.num_programs(1) * 10 + tl.num_programs(2)
    tl.store(out_ptr + x + X * (y + Y * z), n * 1000 + x * 100 + y * 10 + z)


def test_three_dimensional_grids():
    def run():
        out = torch.empty(24, dtype=torch.int32)
        three_axes[(4, 3, 2)](out, X=4, Y=3)
        return out

    want = [432000 + x * 100 + y * 10 + z for z in range(2) for y in range(3) for x in range(4)]
    assert values(run)[0].tolist() == want


# ---------------------------------------------------------------- reductions and scans


@triton.jit
def _smaller_product(a, i, b, j):
    return a * b, tl.minimum(i, j)


@triton.jit
def reductions(x_ptr, f_ptr, i_ptr, R: tl.constexpr, C: tl.constexpr):
    rows, cols = tl.arange(0, R), tl.arange(0, C)
    x = tl.load(x_ptr + rows[:, None] * C + cols[None, :])
    tl.store(f_ptr + rows, tl.sum(x, 1))
    tl.store(f_ptr + R + rows, tl.max(x, 1))
    tl.store(f_ptr + 2 * R + rows, tl.min(x, 1))
    tl.store(i_ptr + rows, tl.argmax(x, 1))
    tl.store(i_ptr + R + rows, tl.argmin(x, 1))
    index = tl.broadcast_to(cols[None, :], (R, C))
    product, least = tl.reduce((x, index + rows[:, None]), 1, _smaller_product)
    tl.store(f_ptr + 3 * R + rows, product)
    tl.store(i_ptr + 2 * R + rows, least)
    tl.store(i_ptr + 3 * R + rows, tl.xor_sum(index, 1))


def test_reductions():
    R, C = 8, 32

    def run(x):
        f, i = torch.empty(4 * R), torch.empty(4 * R, dtype=torch.int32)
        reductions[(1,)](x, f, i, R=R, C=C)
        return f, i

    x = numbers(R, C)
    a = x.numpy().astype(np.float64)
    f, i = values(run, x)
    want = np.concatenate([a.sum(1), a.max(1), a.min(1), a.prod(1)])
    np.testing.assert_allclose(f, want, rtol=1e-5, atol=1e-6)
    xor = np.bitwise_xor.reduce(np.arange(C))
    want_i = [*a.argmax(1), *a.argmin(1), *range(R), *[xor] * R]
    assert i.tolist() == want_i


@triton.jit
def scans(x_ptr, out_ptr, n: tl.constexpr):
    i = tl.arange(0, n)
    x = tl.load(x_ptr + i)
    tl.store(out_ptr + i, tl.cumsum(x, 0))
    tl.store(out_ptr + n + i, tl.cumprod(x, 0))
    tl.store(out_ptr + 2 * n + i, tl.cumsum(x, 0, reverse=True))
    tl.store(out_ptr + 3 * n + i, tl.sort(x))
    tl.store(out_ptr + 4 * n + i, tl.flip(x, 0))


def test_scans_sort_and_flip():
    n = 32

    def run(x):
        out = torch.empty(5 * n)
        scans[(1,)](x, out, n=n)
        return out

    x = numbers(n)
    a = x.numpy().astype(np.float64)
    want = [np.cumsum(a), np.cumprod(a), np.cumsum(a[::-1])[::-1], np.sort(a), a[::-1]]
    np.testing.assert_allclose(values(run, x)[0], np.concatenate(want), rtol=1e-4, atol=1e-6)


# ---------------------------------------------------------------- integers


@triton.jit
def integers(a_ptr, b_ptr, out_ptr, u_ptr, B: tl.constexpr):
    i = tl.arange(0, B)
    a, b = tl.load(a_ptr + i), tl.load(b_ptr + i)
    tl.store(out_ptr + i, a // b)
    tl.store(out_ptr + B + i, a % b)
    tl.store(out_ptr + 2 * B + i, a * b)
    tl.store(out_ptr + 3 * B + i, a >> 3)
    tl.store(out_ptr + 4 * B + i, (a ^ b) | (a & b))
    tl.store(out_ptr + 5 * B + i, tl.cdiv(a, b))
    ua, ub = a.to(tl.uint32, bitcast=True), b.to(tl.uint32, bitcast=True)
    tl.store(u_ptr + i, (ua // ub).to(tl.int64))
    tl.store(u_ptr + B + i, (ua % ub).to(tl.int64))
    tl.store(u_ptr + 2 * B + i, (ua >> 3).to(tl.int64))
    tl.store(u_ptr + 3 * B + i, tl.where(ua > ub, 1, 0).to(tl.int64))
    tl.store(u_ptr + 4 * B + i, tl.umulhi(ua, ub).to(tl.int64))


def test_integers_wrap_and_divide_as_on_the_card():
    B = 32
    generator = np.random.default_rng(0)
    a = generator.integers(-(2**31), 2**31, B).astype(np.int32)
    b = generator.integers(-50000, 50000, B).astype(np.int32)
    b[b == 0] = 7

    def run(a, b):
        out = torch.empty(6 * B, dtype=torch.int32)
        u = torch.empty(5 * B, dtype=torch.int64)
        integers[(1,)](a, b, out, u, B=B)
        return out, u

    out, u = values(run, torch.from_numpy(a), torch.from_numpy(b))
    wide, by = a.astype(np.int64), b.astype(np.int64)
    quotient = np.trunc(wide / by).astype(np.int64)
    ceil = np.trunc((wide + by - 1).astype(np.int32).astype(np.int64) / by)
    want = [quotient, wide - quotient * by, wide * by, wide >> 3, wide | by, ceil]
    np.testing.assert_array_equal(out, np.concatenate(want).astype(np.int64).astype(np.int32))
    ua, ub = a.view(np.uint32).astype(np.uint64), b.view(np.uint32).astype(np.uint64)
    want_u = [ua // ub, ua % ub, ua >> np.uint64(3), ua > ub, (ua * ub) >> np.uint64(32)]
    np.testing.assert_array_equal(u, np.concatenate(want_u).astype(np.int64))


@triton.jit
def overflow(out_ptr, big, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(out_ptr + i, big * (i + 1))


def test_int32_overflows_and_int64_does_not():
    def run(dtype, big):
        out = torch.empty(4, dtype=dtype)
        overflow[(1,)](out, big, B=4)
        return out

    got = values(run, torch.int32, 2**30)[0]
    assert got.tolist() == [2**30, -(2**31), -(2**30), 0]
    got = values(run, torch.int64, 2**40)[0]
    assert got.tolist() == [2**40 * k for k in (1, 2, 3, 4)]


# ---------------------------------------------------------------- numbers


@triton.jit
def functions(x_ptr, out_ptr, B: tl.constexpr):
    i = tl.arange(0, B)
    x = tl.load(x_ptr + i)
    p = tl.abs(x) + 0.5
    tl.store(out_ptr + i, tl.exp(x))
    tl.store(out_ptr + B + i, tl.exp2(x))
    tl.store(out_ptr + 2 * B + i, tl.log(p))
    tl.store(out_ptr + 3 * B + i, tl.log2(p))
    tl.store(out_ptr + 4 * B + i, tl.sqrt(p))
    tl.store(out_ptr + 5 * B + i, tl.rsqrt(p))
    tl.store(out_ptr + 6 * B + i, tl.sin(x))
    tl.store(out_ptr + 7 * B + i, tl.cos(x))
    tl.store(out_ptr + 8 * B + i, tl.erf(x))
    tl.store(out_ptr + 9 * B + i, tl.floor(x * 3))
    tl.store(out_ptr + 10 * B + i, tl.ceil(x * 3))
    tl.store(out_ptr + 11 * B + i, libdevice.tanh(x))
    tl.store(out_ptr + 12 * B + i, tl.sigmoid(x))
    tl.store(out_ptr + 13 * B + i, tl.fma(x, x, p))
    tl.store(out_ptr + 14 * B + i, tl.clamp(x, -0.5, 0.5))
    tl.store(out_ptr + 15 * B + i, tl.where(x > 0, x, 0.01 * x))


def test_functions():
    import math

    B = 64

    def run(x):
        out = torch.empty(16 * B)
        functions[(1,)](x, out, B=B)
        return out

    x = numbers(B)
    a = x.numpy().astype(np.float64)
    p = np.abs(a) + 0.5
    erf = np.array([math.erf(v) for v in a])
    want = [
        np.exp(a), np.exp2(a), np.log(p), np.log2(p), np.sqrt(p), 1 / np.sqrt(p), np.sin(a),
        np.cos(a), erf, np.floor(a * 3), np.ceil(a * 3), np.tanh(a), 1 / (1 + np.exp(-a)),
        a * a + p, np.clip(a, -0.5, 0.5), np.where(a > 0, a, 0.01 * a),
    ]  # fmt: skip
    got = values(run, x)[0]
    np.testing.assert_allclose(got, np.concatenate(want), rtol=2e-6, atol=2e-7)


@triton.jit
def casts(x_ptr, half_ptr, brain_ptr, e4_ptr, e5_ptr, int_ptr, B: tl.constexpr):
    i = tl.arange(0, B)
    x = tl.load(x_ptr + i)
    tl.store(half_ptr + i, x.to(tl.float16))
    tl.store(brain_ptr + i, x.to(tl.bfloat16) * 3 + x.to(tl.bfloat16))
    tl.store(e4_ptr + i, x.to(tl.float8e4nv))
    tl.store(e5_ptr + i, x.to(tl.float8e5))
    tl.store(int_ptr + i, (x * 1000).to(tl.int8))


def test_casts_round_as_torch_does():
    B = 128
    kinds = (torch.float16, torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2, torch.int8)

    def run(x):
        outs = tuple(torch.empty(B, dtype=d) for d in kinds)
        casts[(1,)](x, *outs, B=B)
        return outs

    x = numbers(B) * 4
    got = values(run, x)
    brain = x.to(torch.bfloat16)
    brain = (brain * 3) + brain
    want = [x.half(), brain, x.to(torch.float8_e4m3fn), x.to(torch.float8_e5m2)]
    for g, w in zip(got[:4], want, strict=True):
        np.testing.assert_array_equal(g.astype(np.float32), w.float().numpy())
    assert set(got[4].tolist()) <= set(range(-128, 128))


@triton.jit
def dots(a_ptr, b_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    a = tl.load(a_ptr + i[:, None] * N + i[None, :])
    b = tl.load(b_ptr + i[:, None] * N + i[None, :])
    c = tl.dot(a, tl.trans(b), out_dtype=out_ptr.dtype.element_ty)
    tl.store(out_ptr + i[:, None] * N + i[None, :], c)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.int8])
def test_dots(dtype):
    N = 32
    integral = dtype == torch.int8

    def run(a, b):
        out = torch.empty((N, N), dtype=torch.int32 if integral else torch.float32)
        dots[(1,)](a, b, out, N=N)
        return out

    a, b = numbers(N, N) * 10, numbers(N, N, seed=1) * 10
    a, b = a.to(dtype), b.to(dtype)
    want = (a.double() @ b.double().T).numpy()
    got = values(run, a, b)[0]
    if integral:
        np.testing.assert_array_equal(got, want)
    else:  # K roundings of a sum whose terms add up to |a| @ |b|
        bound = N * 2.0**-24 * (a.double().abs() @ b.double().T.abs()).numpy()
        assert (np.abs(got - want) <= bound).all()


# ---------------------------------------------------------------- shapes and other operations


@triton.jit
def shapes(x_ptr, out_ptr, count_ptr, B: tl.constexpr):
    i = tl.arange(0, B)
    x = tl.load(x_ptr + i)
    joined = tl.join(x, x + 1)
    a, b = tl.split(joined)
    tl.store(out_ptr + i, a * 2 + b)
    tl.store(out_ptr + B + tl.arange(0, 2 * B), tl.ravel(joined))
    tl.store(out_ptr + 3 * B + i, tl.gather(x, i ^ 3, 0))
    grid = tl.trans(tl.reshape(x, (B // 4, 4)))
    tl.store(out_ptr + 4 * B + tl.arange(0, 4)[:, None] * (B // 4) + tl.arange(0, B // 4), grid)
    tl.store(out_ptr + 5 * B + tl.arange(0, 2 * B), tl.interleave(x, -x))
    tl.store(count_ptr + tl.arange(0, 8), tl.histogram(i % 5, 8))


def test_shapes():
    B = 32

    def run(x):
        out, count = torch.empty(7 * B), torch.empty(8, dtype=torch.int32)
        shapes[(1,)](x, out, count, B=B)
        return out, count

    x = numbers(B)
    a = x.numpy()
    pairs = np.stack([a, a + 1], 1).ravel()
    crossed = np.stack([a, -a], 1).ravel()
    want = [a * 2 + (a + 1), pairs, a[np.arange(B) ^ 3], a.reshape(B // 4, 4).T.ravel(), crossed]
    got, count = values(run, x)
    np.testing.assert_array_equal(got, np.concatenate(want))
    assert count.tolist() == np.bincount(np.arange(B) % 5, minlength=8).tolist()


@triton.jit
def random_numbers(out_ptr, seed, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(out_ptr + i, tl.rand(seed, i))
    tl.store(out_ptr + B + i, tl.randn(seed, i))


def test_random_numbers_are_plausible_and_repeat():
    def run():
        out = torch.empty(2048)
        random_numbers[(1,)](out, 7, B=1024)
        return out

    got = values(run)[0]
    np.testing.assert_array_equal(got, values(run)[0])
    uniform, normal = got[:1024], got[1024:]
    assert uniform.min() >= 0 and uniform.max() < 1 and abs(uniform.mean() - 0.5) < 0.05
    assert abs(normal.mean()) < 0.15 and abs(normal.std() - 1) < 0.1


@triton.jit
def atomics(x_ptr, sum_ptr, ext_ptr, bits_ptr, B: tl.constexpr):
    pid = tl.program_id(0)
    x = tl.load(x_ptr + pid * B + tl.arange(0, B))
    tl.atomic_add(sum_ptr + tl.arange(0, B), x)
    tl.atomic_max(ext_ptr, tl.max(x, 0))
    tl.atomic_min(ext_ptr + 1, tl.min(x, 0))
    tl.atomic_or(bits_ptr, 1 << pid)
    tl.atomic_add(bits_ptr + 1 + tl.zeros((B,), tl.int32), 1)


def test_atomics():
    B = 16

    def run(x):
        total = torch.zeros(B)
        ext = torch.tensor([-100.0, 100.0])
        bits = torch.zeros(2, dtype=torch.int32)
        atomics[(5,)](x, total, ext, bits, B=B)
        return total, ext, bits

    x = numbers(5 * B)
    a = x.numpy().reshape(5, B)
    total, ext, bits = values(run, x)
    np.testing.assert_allclose(total, a.astype(np.float64).sum(0), rtol=1e-5, atol=1e-6)
    assert ext.tolist() == [a.max(), a.min()]
    assert bits.tolist() == [31, 5 * B]


@triton.jit
def tiles(x_ptr, out_ptr, M, N, BM: tl.constexpr, BN: tl.constexpr):
    row = tl.program_id(0) * BM
    src = tl.make_tensor_descriptor(x_ptr, [M, N], [N, 1], [BM, BN])
    dst = tl.make_tensor_descriptor(out_ptr, [M, N], [N, 1], [BM, BN])
    for col in range(0, N, BN):
        dst.store([row, col], src.load([row, col]) * 2)


def test_device_descriptors_clip_at_every_edge():
    def run(x):
        out = torch.empty_like(x)
        m, n = x.shape
        tiles[(triton.cdiv(m, 16),)](x, out, m, n, BM=16, BN=16)
        return out

    x = numbers(37, 20)
    np.testing.assert_array_equal(values(run, x)[0], x.numpy() * 2)


@triton.jit
def pick_pointer(x_ptr, y_ptr, out_ptr, B: tl.constexpr):
    pid = tl.program_id(0)
    i = tl.arange(0, B)
    p = tl.where(i % 2 == 0, x_ptr + i, y_ptr + i)
    if pid == 0:
        q = x_ptr
    else:
        q = y_ptr
    tl.store(out_ptr + pid * B + i, tl.load(p) + tl.load(q + i))


def test_pointers_of_two_arguments_mix():
    def run(x, y):
        out = torch.empty(64)
        pick_pointer[(2,)](x, y, out, B=32)
        return out

    x, y = numbers(32), numbers(32, seed=1)
    mixed = np.where(np.arange(32) % 2 == 0, x.numpy(), y.numpy())
    want = np.concatenate([mixed + x.numpy(), mixed + y.numpy()])
    np.testing.assert_array_equal(values(run, x, y)[0], want)


@pytest.mark.parametrize("order", ["forward", "reversed", "shuffled"])
def test_the_order_of_programs_changes_nothing(order):
    from autograder.trace.record import record
    from autograder.trace.replay import replay
    from tests.kernels.course import KERNELS

    function, arguments = KERNELS["softmax"]
    shape = (37, 50)
    trace = record(function, (type(arguments[0])(shape),))
    x = numbers(*shape).numpy()
    got = replay(trace, [x], order=order).outputs[0].values
    np.testing.assert_array_equal(got, replay(trace, [x]).outputs[0].values)


@triton.jit
def endless(out_ptr, n):
    i = 0
    while i < n:
        tl.store(out_ptr, i)


def test_a_loop_without_end_is_said_so():
    def run():
        out = torch.empty(1, dtype=torch.int32)
        endless[(1,)](out, 5)
        return out

    with pytest.raises(Rejected, match="did not end"):
        inspect_call(run)


@triton.jit
def assembly(x_ptr, out_ptr, B: tl.constexpr):
    i = tl.arange(0, B)
    y = tl.inline_asm_elementwise(
        "add.f32 $0, $1, $1;", "=r,r", [tl.load(x_ptr + i)], dtype=tl.float32, is_pure=True, pack=1
    )
    tl.store(out_ptr + i, y)


def test_an_unknown_operation_is_named_and_is_no_verdict():
    def run(x):
        out = torch.empty_like(x)
        assembly[(1,)](x, out, B=16)
        return out

    with pytest.raises(CouldNotCheck, match="elementwise_inline_asm"):
        inspect_call(run, numbers(16))


def test_counting_sees_what_computing_sees():
    from autograder.trace.record import record
    from autograder.trace.replay import replay
    from tests.kernels.course import KERNELS

    small = {
        "add": (1000,),
        "softmax": (20, 33),
        "matmul": (70, 70),
        "flash causal": (1, 2, 70, 32),
    }
    for name, shape in small.items():
        function, arguments = KERNELS[name]
        tensor = type(arguments[0])
        given = tuple(tensor(shape) if isinstance(a, tensor) else a for a in arguments)
        trace = record(function, given)
        inputs = [numbers(*shape).numpy() for a in given if isinstance(a, tensor)]
        full, counted = replay(trace, inputs), replay(trace, [], count_only=True)
        assert counted.traffic == full.traffic
        assert counted.operations == full.operations
        assert not counted.findings and not counted.outputs


@triton.jit
def indirect(index_ptr, x_ptr, out_ptr, n, B: tl.constexpr):
    i = tl.arange(0, B)
    at = tl.load(index_ptr + i)
    tl.store(out_ptr + i, tl.load(x_ptr + at, mask=at < n, other=0.0))


def test_counting_loads_what_addresses_depend_on():
    from autograder.records import Tensor
    from autograder.trace.record import record
    from autograder.trace.replay import replay

    def run(index, x):
        out = torch.empty(16)
        indirect[(1,)](index, x, out, 20, B=16)
        return out

    trace = record(run, (Tensor((16,), "int32"), Tensor((20,))))
    index = np.arange(16, dtype=np.int32) * 2
    counted = replay(trace, [index], count_only=True)
    assert {t.argument: t.loaded for t in counted.traffic} == {
        "index_ptr": 16, "x_ptr": 10, "out_ptr": 0,
    }  # fmt: skip


@triton.jit
def column_sums(x_ptr, sums_ptr, n, B: tl.constexpr):
    at = tl.arange(0, B)
    total = 0.0
    for row in range(tl.program_id(0), n, 2):
        total += tl.sum(tl.load(x_ptr + row * B + at), axis=0)
    for row in range(tl.program_id(0), n, 2):  # names of values come again in a second loop
        shift = tl.where(total == -float("inf"), 0.0, total)
        x = tl.load(x_ptr + row * B + at, mask=at < n, other=0.0)
        tl.atomic_add(sums_ptr + at, x - shift, mask=at < n)


def test_atomics_and_names_that_come_again_are_counted_without_values():
    from autograder.records import Tensor
    from autograder.trace.record import record
    from autograder.trace.replay import replay

    def run(x):
        sums = torch.zeros(16)
        column_sums[(2,)](x, sums, 6, B=16)
        return sums

    trace = record(run, (Tensor((6, 16)),))
    full = replay(trace, [np.ones((6, 16), np.float32)])
    counted = replay(trace, [], count_only=True)
    assert counted.traffic == full.traffic and counted.operations == full.operations
    assert {t.argument: (t.loaded, t.stored) for t in counted.traffic}["sums_ptr"][1] == 36


def test_a_dot_of_fp32_and_a_descriptor_that_other_cards_refuse_are_told():
    from tests.kernels.course import matmul

    run = inspect_call(matmul, numbers(40, 40), numbers(40, 40), keep_accesses=False)
    assert any("TF32" in w for w in run.warnings)
    run = inspect_call(matmul, numbers(40, 40).half(), numbers(40, 40).half(), keep_accesses=False)
    assert not run.warnings

    def clip(x):
        out = torch.empty_like(x)
        tiles[(triton.cdiv(x.shape[0], 16),)](x, out, *x.shape, BM=16, BN=16)
        return out

    for columns, told in ((20, False), (21, True)):
        run = inspect_call(clip, numbers(16, columns), keep_accesses=False)
        assert any("16 bytes" in w for w in run.warnings) == told


def test_a_table_of_lines_that_doubles_at_every_step_is_followed_once():
    """2^40 look-ups otherwise; and no file has a line of four hundred digits."""
    table = "\n".join(f"#loc{i} = loc(callsite(#loc{i + 1} at #loc{i + 1}))" for i in range(60))
    assert _Locations(table).where("#loc0") == (0, "")
    assert _Locations("").where('"a.py":17:4') == (17, "")
    assert _Locations("").where(f'"a.py":{"9" * 400}:4') == (0, "")
