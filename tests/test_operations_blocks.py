"""Operations on whole blocks, on every type that a card takes, against NumPy."""

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from autograder.checking import inspect_call
from autograder.floats import UNIT, is_float, rounded
from autograder.grading.corpus import refusals
from autograder.records import Rejected
from autograder.trace.record import record
from autograder.trace.replay import replay
from tests.kernels import operation_dots, operation_library, operation_memory  # noqa: F401
from tests.kernels import operation_numbers as numbers
from tests.kernels.operation_blocks import SAMPLES

FEW = settings(derandomize=True, max_examples=3, deadline=None, phases=(Phase.generate,))
CASES = [(s, d) for s in SAMPLES for d in s.dtypes]


def exact(values, dtype):
    return rounded(values, dtype).astype(np.float64 if is_float(dtype) else np.int64)


@pytest.mark.parametrize("sample, dtype", CASES, ids=[f"{s.name}, {d}" for s, d in CASES])
@FEW
@given(seed=st.integers(0, 2**32 - 1))
def test_blocks(sample, dtype, seed):
    given = [rounded(v, dtype) for v in sample.given(np.random.default_rng(seed), dtype)]
    tensors = [numbers.tensor(v, dtype) for v in given]
    if words := refusals().get(sample.name):
        with pytest.raises(Rejected, match=words):
            inspect_call(sample.run, *tensors)
        return
    run = inspect_call(sample.run, *tensors, keep_accesses=False)
    assert not run.findings, run.findings
    want = sample.want(*(exact(v, dtype) for v in given))
    for output, w in zip(run.outputs, want if isinstance(want, tuple) else (want,), strict=True):
        got = output.values.ravel()
        if not is_float(output.dtype):
            np.testing.assert_array_equal(got, numbers.wrapped(w, output.dtype).ravel())
            continue
        w = np.ravel(w)
        bound = sample.terms * 2 * UNIT[output.dtype] * np.abs(w).max()
        assert (np.abs(got.astype(np.float64) - w) <= bound).all()


# Bits of fraction that the parts of a number keep together.
@pytest.mark.parametrize(
    "precision, bits", [("tf32", 10), ("tf32x3", 21), ("bf16x3", 15), ("bf16x6", 23)]
)
@FEW
@given(seed=st.integers(0, 2**32 - 1))
def test_dots_of_rounded_inputs(precision, bits, seed):
    """On request fp32 dots err as a card's do: by no more than the format allows, and by some."""
    sample = next(s for s in SAMPLES if s.name == f"dot, {precision}")
    a, b = (rounded(v, "float32") for v in sample.given(np.random.default_rng(seed), "float32"))
    tensors = [numbers.tensor(v, "float32") for v in (a, b)]
    trace = record(sample.run, tuple(tensors), values=tensors)
    exact_, split = (replay(trace, [a, b], tf32=t).outputs[0].values for t in (False, True))
    a, b = a.astype(np.float64), b.astype(np.float64)
    terms = np.abs(a) @ np.abs(b)
    summed = len(a) * 2.0**-24 * terms  # the additions, once for every product of parts
    assert (np.abs(exact_ - a @ b) <= summed).all()
    cut = 2 * 2.0**-bits + 2.0 ** (-2 * bits)  # an operand cut off after so many bits
    assert (np.abs(split - a @ b) <= cut * terms + 6 * summed).all()
    if precision == "tf32":
        assert (np.abs(split - a @ b) > summed).any()
