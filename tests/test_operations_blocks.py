"""Operations on whole blocks, on every type that a card takes, against NumPy."""

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from autograder.checking import inspect_call
from autograder.floats import UNIT, is_float, rounded
from tests.kernels import operation_library, operation_memory  # noqa: F401 - they add samples
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
