"""Unit 01: one fault is told once, and what a student's own arrays hold is no matter of luck."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from autograder import minitriton
from autograder.checking import check_functions, load_solution
from autograder.exercises.unit01 import ADD, MATMUL, SOFTMAX
from autograder.judging import values_of
from autograder.minitriton import arange, cdiv, launch, load, store
from autograder.records import Case
from autograder.trace.plain import inspect_launch, run_plain

WRONG = Path(__file__).parent / "submissions/wrong"


def _check(exercise, name: str):
    return check_functions(exercise, load_solution(str(WRONG / f"{name}.py")))


@pytest.mark.parametrize(
    "name",
    ["missing_all_masks", "missing_load_mask", "missing_store_mask", "mask_on_lane_number"]
    + ["mask_off_by_one", "catches_the_error"],
)
def test_lanes_outside_cost_the_points_for_bounds_and_no_others(name):
    result = _check(ADD, f"01_add_{name}")
    assert {finding.kind for finding in result.findings} == {"out_of_bounds"}
    scores = {aspect.name: (aspect.status, aspect.points) for aspect in result.aspects}
    assert scores.pop("bounds")[0] == "fail"
    assert scores == {
        "values": ("pass", 2.0),
        "races": ("pass", 1.0),
        "traffic": ("pass", 1.0),
    }


def test_a_lane_outside_reads_nan_and_writes_nothing():
    def kernel(pid, x, out):
        store(out, arange(0, 4) - 1, load(x, arange(0, 4)))

    x, out = np.ones(3), np.zeros(4)
    run = inspect_launch(kernel, (1,), x, out)
    assert [(f.kind, f.argument, f.lanes) for f in run.findings] == [
        ("out_of_bounds", "x", 1),
        ("out_of_bounds", "out", 1),
    ]
    assert np.array_equal(out, [1, 1, np.nan, 0], equal_nan=True)
    assert [(t.loaded, t.stored) for t in run.traffic] == [(3, 0), (0, 3)]


def test_outside_a_check_the_mini_triton_and_numpy_are_as_they_were():
    found = minitriton._lanes, np.empty, np.empty_like

    def kernel(pid, x):
        load(x, 5)
        raise KeyError("the student's")

    with pytest.raises(KeyError):
        inspect_launch(kernel, (1,), np.ones(3))
    assert (minitriton._lanes, np.empty, np.empty_like) == found
    with pytest.raises(IndexError):
        load(np.ones(3), 5)


def test_parts_that_numpy_imports_late_find_what_they_ask_for():
    """np.unique imports numpy.ma, which asks NumPy's functions for their names and docstrings."""
    asked = np.empty, np.empty_like
    found = []

    def kernel(pid, x):
        found.extend((make.__name__, make.__doc__) for make in (np.empty, np.empty_like))
        store(x, np.unique(pid), 1.0)

    inspect_launch(kernel, (1,), np.ones(3))
    assert found == [(make.__name__, make.__doc__) for make in asked]


def test_adding_into_np_empty_is_told_as_reading_what_nobody_wrote():
    result = _check(MATMUL, "01_matmul_adds_into_empty")
    first = result.findings[0]
    assert (first.kind, first.argument) == ("uninitialised", "C")
    assert "np.empty" in MATMUL.notes["uninitialised"]


def test_what_numpy_filled_may_be_read():
    def matmul_kernel(pid, A, B, C, M, N, K, BM, BN, BK):
        rows, cols = pid[0] * BM + arange(0, BM), pid[1] * BN + arange(0, BN)
        offs = rows[:, None] * N + cols
        a, b = load(A, rows[:, None] * K + arange(0, K)), load(B, arange(0, K)[:, None] * N + cols)
        store(C, offs, load(C, offs) + a @ b)

    def triton_matmul(A, B, BM, BN, BK):
        (M, K), N = A.shape, B.shape[1]
        C = np.empty_like(A, shape=(M, N))
        C[:] = 0
        launch(matmul_kernel, (cdiv(M, BM), cdiv(N, BN)), A, B, C, M, N, K, BM, BN, BK)
        return C

    case = Case("even", {"M": 32, "N": 32, "K": 16, "BM": 16, "BN": 16, "BK": 16})
    functions = {"matmul_kernel": matmul_kernel, "triton_matmul": triton_matmul}
    run = run_plain(MATMUL, functions, values_of(case, MATMUL.arguments(case)))
    assert run.findings == ()


def test_a_loop_that_ends_early_is_a_matter_of_values_and_numpy_is_not_blamed():
    result = _check(MATMUL, "01_matmul_k_loop_counts_steps")
    assert {finding.kind for finding in result.findings} == {"values"}
    assert "the loop along k" in MATMUL.notes["values"]


def test_reading_past_load_is_named_where_the_numbers_are_right():
    (finding,) = _check(ADD, "01_add_own_load").findings
    assert finding.kind == "torch_computed" and "read 0 of the 1200" in finding.message


def test_the_lowest_score_of_the_text_does_not_do_for_minus_infinity():
    result = _check(SOFTMAX, "01_softmax_tail_read_as_minus_10000")
    failed = [case.case.label for case in result.cases if case.status == "fail"]
    assert "every score near −1e4" in failed


def test_a_race_says_what_the_other_program_does():
    def kernel(pid, x, out):
        load(x, 1 - pid[0])
        store(x, pid[0], 1.0)
        store(out, 0, 1.0)

    run = inspect_launch(kernel, (2,), np.ones(2), np.zeros(1))
    said = [finding.message for finding in run.findings if finding.kind == "race"]
    assert any("program 1 reads offset 0 of x, which program 0 writes (" in m for m in said)
    assert any("program 1 writes offset 1 of x, which program 0 reads (" in m for m in said)
    assert any("program 1 writes offset 0 of out, which program 0 writes too (" in m for m in said)
