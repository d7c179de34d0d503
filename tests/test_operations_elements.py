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
        if off > (entry.double if result == "float64" and entry.double else entry.cpu):
            far[entry.name] = off
    assert not far


GROUPS = list(tables.groups())


@pytest.mark.parametrize("number", range(len(GROUPS)), ids=[g[0] for g in GROUPS])
@FEW
@given(seed=st.integers(0, 2**32 - 1))
def test_elements(number, seed):
    _, entries, types, result = GROUPS[number]
    check(entries, types, result, seed)
