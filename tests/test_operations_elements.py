"""Element-wise operations of `tl` and libdevice, on every type, against exact values."""

import numpy as np
import pytest
import torch
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from autograder.checking import inspect_call
from autograder.floats import is_float
from tests.kernels import operation_numbers as numbers
from tests.kernels import operation_tables as tables
from tests.kernels.operations import launch

FEW = settings(derandomize=True, max_examples=3, deadline=None, phases=(Phase.generate,))
SEEDS = st.integers(0, 2**32 - 1)
FLOATS = ("float64", "float32", "float16", "bfloat16")
SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")


def check(entries, types, result, seed):
    """One launch of all entries, each row against its reference."""
    entries = tuple(e for e in entries if not e.only or types[0] in e.only)
    given = numbers.operands(seed, entries, types)
    tensors = [numbers.tensor(x, t) for x, t in zip(given, types, strict=True)]
    run = inspect_call(
        lambda *xs: launch(entries, getattr(torch, result), *xs), *tensors, keep_accesses=False
    )
    assert not run.findings, run.findings
    far = {}
    for f, (entry, got) in enumerate(zip(entries, run.outputs[0].values, strict=True)):
        with np.errstate(all="ignore"):
            want = entry.want(*(numbers.wide(x[f], t) for x, t in zip(given, types, strict=True)))
        if not is_float(result):
            want = numbers.wrapped(want, result)
        off = numbers.distance(got, want, result)
        if off > entry.cpu:
            far[entry.name] = off
    assert not far


@FEW
@given(SEEDS)
@pytest.mark.parametrize("dtype", FLOATS)
def test_float_arithmetic(dtype, seed):
    check(tables.ARITHMETIC, (dtype, dtype), dtype, seed)


@FEW
@given(SEEDS)
@pytest.mark.parametrize("dtype", FLOATS)
def test_float_comparisons(dtype, seed):
    check(tables.COMPARISONS, (dtype, dtype), "int32", seed)


@FEW
@given(SEEDS)
@pytest.mark.parametrize("dtype", FLOATS)
def test_three_floats(dtype, seed):
    check(tables.THREE, (dtype,) * 3, dtype, seed)


@FEW
@given(SEEDS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_functions(dtype, seed):
    check(tables.FUNCTIONS, (dtype,), dtype, seed)


@FEW
@given(SEEDS)
@pytest.mark.parametrize("dtype", SIGNED + UNSIGNED)
def test_integers(dtype, seed):
    check(tables.INTEGERS, (dtype, dtype), dtype, seed)
    check(tables.ONE_INTEGER, (dtype,), dtype, seed)


@FEW
@given(SEEDS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_libdevice_of_floats(dtype, seed):
    for count, entries in enumerate(
        (tables.LIB_ONE, tables.LIB_TWO, tables.LIB_THREE, tables.LIB_FOUR), 1
    ):
        check(entries, (dtype,) * count, dtype, seed)
