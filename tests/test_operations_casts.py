"""Conversions between all types, and rows through descriptors."""

import ml_dtypes
import numpy as np
import pytest
import torch
import triton
import triton.language as tl
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from triton.tools.tensor_descriptor import TensorDescriptor

from autograder.checking import inspect_call
from autograder.floats import is_float, stored
from tests.kernels import operation_casts as casts
from tests.kernels import operation_numbers as numbers

FEW = settings(derandomize=True, max_examples=3, deadline=None, phases=(Phase.generate,))
SEEDS = st.integers(0, 2**32 - 1)
SMALL = {
    "bfloat16": ml_dtypes.bfloat16,
    "float8_e4m3fn": ml_dtypes.float8_e4m3fn,
    "float8_e5m2": ml_dtypes.float8_e5m2,
}


def converted(x, source, to):
    """What a card makes of ``x``: rounded once, saturated where PTX says so."""
    with np.errstate(all="ignore"):
        if is_float(to):
            wide = numbers.wide(x, source) if is_float(source) else x
            if to == "bfloat16" and not is_float(source):
                wide = x.astype(np.float32)
            if to.startswith("float8"):
                most = float(ml_dtypes.finfo(SMALL[to]).max)
                wide = np.clip(wide, -most, most)
            if to in SMALL:
                return wide.astype(np.float32).astype(SMALL[to]).astype(np.float32)
            return wide.astype(to)
        if not is_float(source):
            return numbers.wrapped(x.astype(object), to)
    by = {"int8": "int16", "uint8": "uint16"}.get(to, to)
    low, high = np.iinfo(by).min, np.iinfo(by).max
    top = 1 << (8 * np.dtype(by).itemsize - 1)
    odd = top if source == "float64" or np.dtype(by).itemsize == 8 else 0
    whole = [
        odd if np.isnan(v) else high if v >= high else low if v <= low else int(v)
        for v in x.astype(np.float64)
    ]
    return numbers.wrapped(np.array(whole, object), to)


@pytest.mark.parametrize("source", [*casts.INTEGERS, *casts.FLOATS, "float8_e4m3fn", "float8_e5m2"])
@FEW
@given(seed=SEEDS)
def test_conversions(source, seed):
    x = numbers.operand(np.random.default_rng(seed), "any", source)
    run = inspect_call(casts.casts, numbers.tensor(x, source), keep_accesses=False)
    assert not run.findings
    for to, output in zip(casts.targets(source), run.outputs, strict=True):
        want = converted(x, source, to)
        got = output.values if is_float(to) else numbers.wrapped(output.values, to)
        np.testing.assert_array_equal(got.astype(want.dtype), want, err_msg=to)


@pytest.mark.parametrize(
    "dtype", ["float64", "float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"]
)
@FEW
@given(seed=SEEDS)
def test_bitcasts(dtype, seed):
    x = numbers.operand(np.random.default_rng(seed), (-9.0, 9.0), dtype)
    tensor = numbers.tensor(x, dtype)
    run = inspect_call(casts.bitcasts, tensor, keep_accesses=False)
    bits = tensor.view(getattr(torch, run.outputs[0].dtype)).numpy()
    np.testing.assert_array_equal(run.outputs[0].values, bits)
    np.testing.assert_array_equal(run.outputs[1].values, x)


@pytest.mark.parametrize("to", ["float16", "bfloat16", "float8_e5m2"])
@FEW
@given(seed=SEEDS)
def test_roundings(to, seed):
    x = numbers.operand(np.random.default_rng(seed), (-90.0, 90.0), "float32")
    run = inspect_call(casts.roundings(to), numbers.tensor(x, "float32"), keep_accesses=False)
    near, zero = (o.values.astype(np.float64) for o in run.outputs)
    kind = np.dtype(SMALL.get(to, to))
    np.testing.assert_array_equal(near, x.astype(kind).astype(np.float64))
    # Towards zero: not beyond x, and the next number outwards is.
    assert (np.abs(zero) <= np.abs(x)).all()
    bits = zero.astype(kind).view(stored(to)).view(f"u{kind.itemsize}")
    outward = (bits + bits.dtype.type(1)).view(kind).astype(np.float64)
    assert (np.abs(outward) > np.abs(x)).all()


@triton.jit
def rows_kernel(src, dst, rows_ptr, column, N: tl.constexpr):
    rows = tl.load(rows_ptr + tl.arange(0, N))
    dst.scatter(src.gather(rows, column) * 2, rows + 1, column)


@FEW
@given(seed=SEEDS)
def test_rows_through_a_descriptor(seed):
    """A gather outside the tensor reads 0, a scatter there writes nothing (cards from 10.0 on)."""
    generator = np.random.default_rng(seed)
    x = generator.standard_normal((20, 24)).astype(np.float32)
    rows = generator.permutation(24)[:16].astype(np.int32) - 2

    def run(x, rows):
        out = torch.zeros((20, 24))
        src, dst = (TensorDescriptor.from_tensor(t, [1, 16]) for t in (x, out))
        rows_kernel[(1,)](src, dst, rows, 16, N=16)
        return out

    tensors = (torch.from_numpy(x), torch.from_numpy(rows))
    run = inspect_call(run, *tensors, keep_accesses=False)
    assert not run.findings, run.findings
    want = np.zeros_like(x)
    for row in rows:
        if 0 <= row + 1 < 20:
            want[row + 1, 16:] = 2 * x[row, 16:] if 0 <= row < 20 else 0
    np.testing.assert_array_equal(run.outputs[0].values, want)
