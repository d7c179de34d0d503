"""Unit 03: right and wrong work gets the verdict it deserves; the tables mean what they say."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from autograder import exercises
from autograder.exercises import quiz
from autograder.floats import rounded
from autograder.records import FINDING_KINDS, Case
from tests.submitted import (
    SUBMISSIONS,
    answered,
    arrays,
    assert_right,
    assert_wrong,
    exercise_of,
    files,
    hidden,
    hidden_cases,
    judged,
    right_answers,
)

KERNELS = ("03.softmax", "03.softmax_backward", "03.softmax_long")
PASSES = {"03.softmax": 2, "03.softmax_backward": 5, "03.softmax_long": 3}
QUICK = 100_000  # elements of a case that every submission can be tried on


def all_cases() -> list[tuple]:
    return [
        pytest.param(exercises.get(id), case, id=f"{id} {case.label}")
        for id in KERNELS
        for case in (*exercises.get(id).cases, *hidden_cases("03_softmax", id))
    ]


def elements(case: Case) -> int:
    return case.sizes["M"] * case.sizes["N"]


# ---------------------------------------------------------------- submissions


@pytest.mark.parametrize("path", files("03", "right"))
def test_right_work_has_full_marks(path):
    plain = path.stem.endswith("plain")
    cases = None if plain else [c for c in exercise_of(path).cases if elements(c) < QUICK]
    assert_right(path, judged(path, cases, proof=plain))


@pytest.mark.parametrize("id", KERNELS)
def test_right_work_has_full_marks_on_hidden_cases(id):
    path = SUBMISSIONS / "right" / f"{id.replace('.', '_')}_plain.py"
    result = judged(path, hidden_cases("03_softmax", id), proof=False)
    assert result.points == result.max_points and not result.findings


@pytest.mark.parametrize("path", files("03", "wrong"))
def test_wrong_work_is_named(path):
    cases = [c for c in exercise_of(path).cases if elements(c) < 25_000]
    if "block_of_1024" in path.stem or "whole_row_in_one_block" in path.stem:
        cases = [c for c in exercise_of(path).cases if c.sizes["N"] > 10_000]
    assert_wrong(path, cases)


def test_every_exercise_has_many_wrong_and_several_right_solutions():
    for id in KERNELS:
        for verdict, least in (("right", 4), ("wrong", 12)):
            mine = [p for p in files("03", verdict) if exercise_of(p.values[0]).id == id]
            assert len(mine) >= least, f"{id} has {len(mine)} {verdict} submissions"


def test_a_row_that_is_read_twice_fails_on_traffic_alone():
    path = SUBMISSIONS / "wrong" / "03_softmax_reads_the_row_twice.py"
    result = judged(path, [c for c in exercises.get("03.softmax").cases if elements(c) < QUICK])
    assert {f.kind for f in result.findings} == {"traffic"}
    assert [a.name for a in result.aspects if a.status != "pass"] == ["traffic"]


def test_a_matrix_without_rows_earns_nothing_by_itself():
    """zeros are a right answer to it, so only work that is right elsewhere too may count it."""
    for name in ("stores_zeros", "last_row_forgotten", "torch"):
        path = SUBMISSIONS / "wrong" / f"03_softmax_{name}.py"
        cases = [c for c in exercises.get("03.softmax").cases if c.label in ("no rows", "one row")]
        result = judged(path, cases, proof=False)
        assert result.points == 0, name


# ---------------------------------------------------------------- tables


def single(x, *, exp2=False, chunk=0, tree=False, log=False):
    """softmax in float32 as a kernel may do it; sums one number after the other, or in a tree."""
    x = x.astype(np.float32)
    add = (
        (lambda e: np.add.reduce(e, axis=-1, keepdims=True, dtype=np.float32))
        if tree
        else (lambda e: np.cumsum(e, axis=-1, dtype=np.float32)[..., -1:])
    )
    log2e = np.float32(1.4426950408889634)
    scaled = x * log2e if exp2 else x
    exp = np.exp2 if exp2 else np.exp
    if not chunk:
        m = scaled.max(axis=-1, keepdims=True, initial=-np.inf)
        e = exp(scaled - m)
        return exp(scaled - (m + np.log(add(e)))) if log else e / add(e)
    m = np.full((*x.shape[:-1], 1), -np.inf, np.float32)
    s = np.zeros_like(m)
    for start in range(0, x.shape[-1], chunk):
        part = scaled[..., start : start + chunk]
        new_m = np.maximum(m, part.max(axis=-1, keepdims=True))
        shift = np.where(new_m == -np.inf, np.float32(0), new_m)
        s = s * exp(m - shift) + add(exp(part - shift))
        m = new_m
    return exp(scaled - m) / s


FORMS = {
    "plain": {},
    "tree": {"tree": True},
    "exp2": {"exp2": True},
    "log": {"log": True},
    "online": {"chunk": 64},
    "online exp2": {"chunk": 50, "exp2": True, "tree": True},
}


@pytest.mark.parametrize("exercise, case", all_cases())
@pytest.mark.parametrize("form", FORMS)
def test_tolerance_has_room_for_every_honest_rounding(exercise, case, form):
    if case.sizes["N"] > 20_000:
        case = replace(case, sizes={**case.sizes, "N": 20_000})
    case = replace(case, sizes={**case.sizes, "M": min(case.sizes["M"], 60)}, seed=1)
    dtype = case.sizes["dtype"]
    held, _ = arrays(exercise, case)
    with np.errstate(all="ignore"):
        wide_y = single(held[0], **FORMS[form])
        y = rounded(wide_y, dtype)
        outputs = [y]
        if exercise.backward:
            dy = held[1].astype(np.float32)
            saved = y.astype(np.float32) if form != "tree" else wide_y  # or computed again
            d = np.cumsum(dy * saved, axis=-1, dtype=np.float32)[..., -1:]
            dx = saved * dy - saved * d if form == "exp2" else saved * (dy - d)
            outputs.append(rounded(dx, dtype))
    result = answered(exercise, case, outputs)
    assert not result.findings, [f.message for f in result.findings]


@pytest.mark.parametrize("exercise, case", all_cases())
def test_zeros_constants_inputs_and_shuffled_answers_fail(exercise, case):
    if not elements(case):
        return
    right = right_answers(exercise, case)
    assert not answered(exercise, case, right).findings
    x = arrays(exercise, case)[0][0]
    wrong = {
        "zeros": [0 * np.ones_like(r) for r in right],
        "ones": [np.ones_like(r) for r in right],
        "NaN": [np.full_like(r, np.nan) for r in right],
        "x": [x.astype(np.float64)] * len(right),
        "uniform": [np.full_like(r, 1 / case.sizes["N"]) for r in right],
        "shuffled": [np.roll(r, 1).reshape(r.shape) for r in right],
        "right but for the last row": [np.concatenate([r[:-1], 0 * r[-1:] - 1]) for r in right],
    }
    for name, outputs in wrong.items():
        assert answered(exercise, case, outputs).findings, name


@pytest.mark.parametrize("exercise, case", all_cases())
def test_a_gradient_of_zeros_fails_wherever_the_gradient_is_not_zero(exercise, case):
    if not exercise.backward or not elements(case):
        return
    y, dx = right_answers(exercise, case)
    assert answered(exercise, case, (y, 0 * np.ones_like(dx))).findings


def test_the_reference_is_torchs():
    x = torch.randn(7, 30, dtype=torch.float64, requires_grad=True)
    dy = torch.randn(7, 30, dtype=torch.float64)
    y = torch.softmax(x, dim=1)
    (dx,) = torch.autograd.grad(y, x, dy)
    ours = exercises.get("03.softmax_backward").reference(x.detach().numpy(), dy.numpy())
    np.testing.assert_allclose(ours[0], y.detach().numpy(), rtol=1e-13)
    np.testing.assert_allclose(ours[1], dx.numpy(), rtol=1e-10, atol=1e-15)
    bottom = np.full((1, 5), -np.inf)
    with np.errstate(invalid="ignore"):
        (nothing,) = exercises.get("03.softmax").reference(bottom)
    assert np.isnan(nothing).all() and torch.softmax(torch.from_numpy(bottom), 1).isnan().all()


@pytest.mark.parametrize("id", KERNELS)
def test_limits_are_the_closed_forms_with_five_percent(id):
    exercise, passes = exercises.get(id), PASSES[id]
    assert exercise.limit_text == f"{passes}MN"
    for case in (*exercise.cases, *hidden_cases("03_softmax", id)):
        limit = exercise.limit(case)
        assert passes * elements(case) <= limit <= 1.05 * passes * elements(case)


@pytest.mark.parametrize("id", KERNELS)
def test_cases_meet_what_the_stub_promises(id):
    exercise = exercises.get(id)
    public = {repr(sorted(case.sizes.items())) for case in exercise.cases}
    for case in (*exercise.cases, *hidden_cases("03_softmax", id)):
        (x, *rest) = exercise.arguments(case)
        if x.strides and id != "03.softmax_long":
            assert x.strides[1] == 1 and x.strides[0] >= x.shape[1]
        if rest:
            assert rest[0] & (rest[0] - 1) == 0, "a block is a power of two"
        if case.hidden:
            assert repr(sorted(case.sizes.items())) not in public
            assert not any(
                str(size) in case.label for size in (case.sizes["M"], case.sizes["N"]) if size > 9
            )


def test_hints_and_notes_speak_to_students():
    for id in KERNELS:
        exercise = exercises.get(id)
        assert len(exercise.hints) == 3
        assert set(exercise.notes) == set(FINDING_KINDS)
        for kind, note in exercise.notes.items():
            assert len(note) <= 240, f"the note of {id} on {kind} would be cut"


def test_the_quiz_key_gives_full_marks_and_nothing_else_does():
    exercise, key = exercises.get("03.quiz"), hidden("03_softmax")["03.quiz"]
    right = {name: row["answer"] for name, row in key.items()}
    assert all(answer.right for answer in quiz.score(exercise, right, key))
    everything = right | {"q3": ["a", "b", "c", "d", "e"]}
    assert sum(a.points for a in quiz.score(exercise, everything, key)) < exercise.max_points
    assert sum(a.points for a in quiz.score(exercise, dict.fromkeys(right), key)) == 0


def test_the_quiz_answers_follow_from_their_questions():
    key = hidden("03_softmax")["03.quiz"]
    assert key["q2"]["answer"] == 8 / 2
    assert abs(key["q4"]["answer"] - np.exp(3 - 5)) < 1e-4
    assert key["q5"]["answer"] == 65536 // (4 * 32) and 2**15 < 40_000 < 2**16
