"""Unit 04: right and wrong work gets the verdict it deserves; the tables mean what they say."""

from __future__ import annotations

from dataclasses import replace
from itertools import accumulate

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

KERNELS = ("04.rmsnorm", "04.layernorm", "04.rmsnorm_backward")


def all_cases() -> list[tuple]:
    return [
        pytest.param(exercises.get(id), case, id=f"{id} {case.label}")
        for id in KERNELS
        for case in (*exercises.get(id).cases, *hidden_cases("04_norms", id))
    ]


def elements(case: Case) -> int:
    return case.sizes["M"] * case.sizes["N"]


# ---------------------------------------------------------------- submissions


@pytest.mark.parametrize("path", files("04", "right"))
def test_right_work_has_full_marks(path):
    plain = path.stem.endswith("plain")
    cases = None if plain else [c for c in exercise_of(path).cases if elements(c) < 100_000]
    assert_right(path, judged(path, cases, proof=plain))


@pytest.mark.parametrize("id", KERNELS)
def test_right_work_has_full_marks_on_hidden_cases(id):
    path = SUBMISSIONS / "right" / f"{id.replace('.', '_')}_plain.py"
    result = judged(path, hidden_cases("04_norms", id), proof=False)
    assert result.points == result.max_points and not result.findings


@pytest.mark.parametrize("path", files("04", "wrong"))
def test_wrong_work_is_named(path):
    cases = [c for c in exercise_of(path).cases if elements(c) < 40_000]
    assert_wrong(path, cases)


def test_every_exercise_has_many_wrong_and_several_right_solutions():
    for id in KERNELS:
        for verdict, least in (("right", 4), ("wrong", 12)):
            mine = [p for p in files("04", verdict) if exercise_of(p.values[0]).id == id]
            assert len(mine) >= least, f"{id} has {len(mine)} {verdict} submissions"


def test_a_row_that_is_read_twice_fails_on_traffic_alone():
    for name in ("rmsnorm", "layernorm"):
        path = SUBMISSIONS / "wrong" / f"04_{name}_reads_the_row_twice.py"
        cases = [c for c in exercise_of(path).cases if elements(c) < 40_000]
        result = judged(path, cases, proof=False)
        assert {f.kind for f in result.findings} == {"traffic"}


def test_the_bug_in_layernorm_is_left_to_find_and_the_kernel_as_given_earns_nothing():
    path = SUBMISSIONS / "wrong" / "04_layernorm_as_given.py"
    exercise = exercises.get("04.layernorm")
    result = judged(path, proof=False)
    assert {f.kind for f in result.findings} == {"values"} and result.points == 0
    # The first check leaves the hunt to do; the last hint ends it.
    assert "mean" not in exercise.notes["values"] and "tl.where(mask" in exercise.hints[-1]
    assert judged(path, hidden_cases("04_norms", "04.layernorm"), proof=False).points == 0


# ---------------------------------------------------------------- tables


def one_by_one(x, axis=-1):
    """The sum in float32, one number after the other."""
    x = np.moveaxis(x, axis, 0).astype(np.float32)
    *_, total = accumulate(x)
    return np.expand_dims(total, axis)


def in_a_tree(x, axis=-1):
    return np.add.reduce(x, axis=axis, keepdims=True, dtype=np.float32)


def honest_rmsnorm(x, w, eps, add):
    r = 1 / np.sqrt(add(x * x) / np.float32(x.shape[-1]) + np.float32(eps))
    return x * r * w, r


def honest_layernorm(x, w, b, eps, add):
    n = np.float32(x.shape[-1])
    centered = x - add(x) / n
    return centered / np.sqrt(add(centered * centered) / n + np.float32(eps)) * w + b


def welford(x, w, b, eps, add):
    mean, m2 = np.zeros((len(x), 1), np.float32), np.zeros((len(x), 1), np.float32)
    for i in range(x.shape[-1]):
        delta = x[:, i : i + 1] - mean
        mean = mean + delta / np.float32(i + 1)
        m2 = m2 + delta * (x[:, i : i + 1] - mean)
    root = np.sqrt(m2 / np.float32(x.shape[-1]) + np.float32(eps))
    return (x - mean) / root * w + b


def honest_backward(x, w, eps, dy, add):
    y, r = honest_rmsnorm(x, w, eps, add)
    normed = x * r
    n = np.float32(x.shape[-1])
    if add is one_by_one:  # the longest form
        dx = r * (w * dy) - x * (r * r * r) * (add(w * dy * x) / n)
    else:
        dx = r * (w * dy - normed * (add(w * dy * normed) / n))
    return y, dx, add(dy * normed, axis=0)[0]


@pytest.mark.parametrize("exercise, case", all_cases())
@pytest.mark.parametrize("add", [one_by_one, in_a_tree])
def test_tolerance_has_room_for_every_honest_rounding(exercise, case, add):
    case = replace(case, sizes={**case.sizes, "M": min(case.sizes["M"], 300)}, seed=1)
    if not elements(case):
        return
    dtype = case.sizes["dtype"]
    x, w, *rest = (
        a.astype(np.float32) if isinstance(a, np.ndarray) else a for a in arrays(exercise, case)[0]
    )
    eps = case.sizes.get("eps", 1e-5 if exercise.id == "04.layernorm" else 1e-6)
    if exercise.id == "04.rmsnorm":
        forms = [honest_rmsnorm(x, w, eps, add)[:1]]
    elif exercise.id == "04.layernorm":
        forms = [(f(x, w, rest[0], eps, add),) for f in (honest_layernorm, welford)]
    else:
        forms = [honest_backward(x, w, eps, rest[1], add)]
    for outputs in forms:
        result = answered(exercise, case, [rounded(o, dtype) for o in outputs])
        assert not result.findings, [f.message for f in result.findings]


@pytest.mark.parametrize("exercise, case", all_cases())
def test_zeros_constants_inputs_and_shuffled_answers_fail(exercise, case):
    if not elements(case):
        return
    right = right_answers(exercise, case)
    assert not answered(exercise, case, right).findings
    given = [a for a in arrays(exercise, case)[1] if isinstance(a, np.ndarray)]
    wrong = {
        "zeros": [np.zeros_like(r) for r in right],
        "ones": [np.ones_like(r) for r in right],
        "NaN": [np.full_like(r, np.nan) for r in right],
        "right but for the last row": [np.concatenate([r[:-1], r[-1:] + 0.1]) for r in right],
    }
    for i, array in enumerate(given):
        if all(array.ndim < 2 or r.ndim < 2 or array.shape == r.shape for r in right):
            copies = [
                np.broadcast_to(array[-1] if r.ndim < array.ndim else array, r.shape) for r in right
            ]
            wrong[f"input {i}"] = copies
    shuffled = [np.roll(r, 1) for r in right]
    if any((s != r).any() for s, r in zip(shuffled, right, strict=True)):
        wrong["shuffled"] = shuffled
    for name, outputs in wrong.items():
        assert answered(exercise, case, outputs).findings, name


@pytest.mark.parametrize("output", [1, 2])
@pytest.mark.parametrize("exercise, case", all_cases())
def test_each_gradient_counts_by_itself(exercise, case, output):
    if not exercise.backward:
        return
    outputs = list(right_answers(exercise, case))
    outputs[output] = np.zeros_like(outputs[output])
    (found,) = answered(exercise, case, outputs).findings
    assert exercise.results[output] in found.message


def test_the_references_are_torchs():
    x = torch.randn(6, 30, dtype=torch.float64) + 3
    w, b = torch.randn(2, 30, dtype=torch.float64)
    x.requires_grad_(), w.requires_grad_()
    dy = torch.randn(6, 30, dtype=torch.float64)
    y = torch.nn.functional.rms_norm(x, (30,), w, 1e-3)
    gradients = torch.autograd.grad(y, (x, w), dy)
    plain = [t.detach().numpy() for t in (x, w, b, dy)]
    ours = exercises.get("04.rmsnorm_backward").reference(plain[0], plain[1], 1e-3, plain[3])
    for mine, theirs in zip(ours, (y, *gradients), strict=True):
        np.testing.assert_allclose(mine, theirs.detach().numpy(), rtol=1e-10, atol=1e-12)
    (ours,) = exercises.get("04.layernorm").reference(*plain[:3])
    theirs = torch.nn.functional.layer_norm(x, (30,), w, b)
    np.testing.assert_allclose(ours, theirs.detach().numpy(), rtol=1e-10, atol=1e-12)


def test_limits_are_the_closed_forms_with_five_percent():
    forms = {
        "04.rmsnorm": ("3MN", lambda m, n: 3 * m * n),
        "04.layernorm": ("4MN", lambda m, n: 4 * m * n),
        "04.rmsnorm_backward": ("8MN + 2M + 80N", lambda m, n: 8 * m * n + 2 * m + 80 * n),
    }
    for id, (text, form) in forms.items():
        exercise = exercises.get(id)
        assert exercise.limit_text == text
        for case in (*exercise.cases, *hidden_cases("04_norms", id)):
            exact = form(case.sizes["M"], case.sizes["N"])
            assert exact <= exercise.limit(case) <= 1.05 * exact


@pytest.mark.parametrize("id", KERNELS)
def test_cases_meet_what_the_stub_promises(id):
    exercise = exercises.get(id)
    public = {repr(sorted(case.sizes.items())) for case in exercise.cases}
    for case in (*exercise.cases, *hidden_cases("04_norms", id)):
        m, n = case.sizes["M"], case.sizes["N"]
        strides = exercise.arguments(case)[0].strides
        assert strides is None or (strides[1] == 1 and strides[0] >= n)
        if (
            id == "04.layernorm" and m
        ):  # so that the bug shows: a tail, a mean, more than one number
            assert n > 1 and max(128, 1 << (n - 1).bit_length()) > n
            assert case.sizes["fill"] != "normal"
        if id == "04.rmsnorm_backward":
            assert m and "eps" in case.sizes
        if case.hidden:
            assert repr(sorted(case.sizes.items())) not in public
            assert not any(str(size) in case.label for size in (m, n) if size > 9)


def test_hints_and_notes_speak_to_students():
    for id in KERNELS:
        exercise = exercises.get(id)
        assert len(exercise.hints) == 3
        assert set(exercise.notes) == set(FINDING_KINDS)
        for kind, note in exercise.notes.items():
            assert len(note) <= 240, f"the note of {id} on {kind} would be cut"


def test_the_quiz_key_gives_full_marks_and_nothing_else_does():
    exercise, key = exercises.get("04.quiz"), hidden("04_norms")["04.quiz"]
    right = {name: row["answer"] for name, row in key.items()}
    assert all(answer.right for answer in quiz.score(exercise, right, key))
    everything = right | {"q3": ["a", "b", "c", "d"]}
    assert sum(a.points for a in quiz.score(exercise, everything, key)) < exercise.max_points
    assert sum(a.points for a in quiz.score(exercise, dict.fromkeys(right), key)) == 0


def test_the_quiz_answers_follow_from_their_questions():
    key = hidden("04_norms")["04.quiz"]
    block = np.array([2.0, 4, 6, 0])
    assert key["q2"]["answer"] == ((block - block.sum() / 3) ** 2).sum() / 3
    assert key["q4"]["answer"] == 2 * 4096 * 896 + 4096 // 4 * 896
    *_, stuck = accumulate(np.full(5000, 4, np.float16))
    assert key["q5"]["answer"] == stuck
