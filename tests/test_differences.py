"""What wrong values have in common: each sentence on values made to fit it, and on none else."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import triton
import triton.language as tl

from autograder.checking import inspect_call
from autograder.differences import NARROW, told

RIGHT = np.random.default_rng(7).standard_normal((6, 40))


def said(got: np.ndarray, want: np.ndarray = RIGHT) -> str:
    return told(~np.isclose(got, want, rtol=1e-12, atol=0), got, want)


def changed(where, values) -> np.ndarray:
    got = RIGHT.copy()
    got[where] = values
    return got


@pytest.mark.parametrize(
    "where, place",
    [
        (np.s_[:, :], "(every one)"),
        (np.s_[2, :], "(all in [2, :])"),
        (np.s_[1:, :], "(all in [1:, :])"),
        (np.s_[:, 16:], "(all in [:, 16:])"),
        (np.s_[:3, 8:16], "(all in [:3, 8:16])"),
        (np.triu_indices(6, 1, 40), "(all in the upper triangle)"),
        (np.tril_indices(6, 0, 40), "(all in the lower triangle)"),
        ((0, [30, 39]), "(all in [0, 30:])"),
    ],
)
def test_the_smallest_box_is_named(where, place):
    got = RIGHT.copy()
    got[where] += np.random.default_rng(1).random(got[where].shape) + 0.5
    assert f"values are wrong {place}, e.g. [" in said(got)


def test_a_triangle_of_every_matrix_of_a_stack():
    right = np.stack([RIGHT[:, :6], RIGHT[:, 6:12]])
    noise = np.random.default_rng(2).random(right.shape) + 0.5
    assert "(all in the upper triangle)" in said(right + np.triu(noise, 1), right)
    assert "(all in the lower triangle)" in said(right + np.tril(noise), right)
    assert "(all in [:, 0, 5])" in said(right + np.triu(noise, 5), right)


@pytest.mark.parametrize(
    "got, rule",
    [
        (2 * RIGHT, "Each of them is 2 times what it should be."),
        (-RIGHT, "Each of them has the wrong sign."),
        (RIGHT + 3, "Each of them is 3 too large."),
        (RIGHT - 0.25, "Each of them is 0.25 too small."),
        (np.broadcast_to(RIGHT[:1], (6, 40)).copy(), "is what index 0 along axis 0 should hold."),
        (np.roll(RIGHT, -1, 1), "is what should stand one element further on along axis 1."),
        (np.roll(RIGHT, 1, 1), "is what should stand one element further back along axis 1."),
        (np.roll(RIGHT, -1, 0), "is what should stand one element further on along axis 0."),
        (changed(np.s_[:, 8:], 0), "(all in [:, 8:], all are 0)"),
        (changed(np.s_[:, 8:], np.nan), "(all in [:, 8:], all are NaN)"),
        (
            changed(np.s_[:, 8:], 0) * np.where(np.arange(40) < 8, 2, 1),
            "192 of them are 0, all in [:, 8:]; each of the others is 2 times what it should be.",
        ),
    ],
)
def test_what_all_of_them_have_in_common_is_said(got, rule):
    message = said(got)
    assert rule in message
    assert message.count("should be") == 1 + rule.count("should be") + message.count("; [")


def test_numbers_without_a_rule_get_two_examples_and_no_rule():
    got = RIGHT + np.random.default_rng(3).standard_normal(RIGHT.shape)
    message = said(got)
    assert message.count(", should be ") == 2 and message.endswith(".")
    assert "Each" not in message and "others" not in message


def test_a_few_values_are_no_rule():
    assert "times" not in said(changed(np.s_[0, :4], 2 * RIGHT[0, :4]))


def test_roundings_are_no_factor():
    half = RIGHT.astype(np.float16).astype(np.float64)
    lost = np.where(np.abs(RIGHT) == np.abs(RIGHT).min(), 0, half)  # a zero among them is no rule
    for got in (half, lost, RIGHT * 1.0004):
        assert "times" not in said(got)
        assert said(got).endswith(NARROW)
    assert NARROW not in said(2 * RIGHT)


def test_infinities_and_nan_do_no_harm():
    want = RIGHT.copy()
    want[0, 0], want[1, 0], want[2, 0] = np.inf, -np.inf, np.nan
    with np.errstate(all="raise", under="ignore"):
        for got in (0 * RIGHT + 1, RIGHT[::-1].copy(), 2 * RIGHT, want[:, ::-1].copy()):
            assert "values are wrong" in told(np.ones_like(want, bool), got, want)


def test_one_number_and_a_scalar():
    assert told(np.array(True), np.array(1.0), np.array(2.0)) == (
        "The only value is wrong: [0] is 1, should be 2."
    )
    one = told(np.array([True]), np.ones(1), np.zeros(1), " of lse")
    assert "The only value of lse is wrong" in one


# ---------------------------------------------------------------- what nobody read


def test_a_part_of_an_input_that_no_program_reads_is_named_where_it_is_a_box():
    bad = np.ones(RIGHT.shape, bool)
    got = RIGHT + np.random.default_rng(4).random(RIGHT.shape) + 0.5
    row, corner = np.zeros((4, 9), bool), np.zeros((4, 9), bool)
    row[3], corner[[0, 3], [0, 8]] = True, True
    message = told(bad, got, RIGHT, unread=[("a_ptr", row), ("b_ptr", corner), ("c_ptr", row.T)])
    assert message.endswith(". No program reads a_ptr[3, :] or c_ptr[:, 3].")
    assert "reads" not in told(bad, got, RIGHT, unread=[("b_ptr", corner)])


@triton.jit
def total_kernel(x_ptr, y_ptr, out_ptr, stride, rows, cols, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for row in range(rows):
        total += tl.load(x_ptr + row * stride + lanes, mask=lanes < cols, other=0.0)
    tl.store(out_ptr + lanes, total + tl.load(y_ptr + lanes), mask=lanes < BLOCK)


@pytest.mark.parametrize("copied", [False, True])
def test_a_run_knows_what_it_did_not_read(copied):
    """Rows are padded; a copy of an input counts as read, and what no kernel gets as well."""

    def total(x, y, spare):
        out = torch.empty(8)
        source = x.contiguous() if copied else x
        total_kernel[(1,)](source, y, out, source.stride(0), 2, 5, BLOCK=8)
        return out

    x = torch.arange(24.0).reshape(3, 8)[:, :6]
    run = inspect_call(total, x, torch.ones(8), torch.ones(3))
    unread = dict(run.unread)
    if copied:
        assert unread == {}
    else:
        assert list(unread) == ["x_ptr"]
        assert (unread["x_ptr"] == [[False] * 5 + [True]] * 2 + [[True] * 6]).all()


@pytest.mark.filterwarnings("error")
def test_numbers_too_small_for_a_hundredth_of_them_have_no_factor():
    want = np.zeros((2, 25))
    want[0] = 5e-324 * np.arange(1, 26)
    assert "times what it should be" not in said(want[:, ::-1] + 1e-320, want)
