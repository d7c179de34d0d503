"""Unit 06: right and wrong work gets the verdict it deserves, and the tables mean what they say."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from autograder import exercises
from autograder.checking import check_functions
from autograder.differences import NARROW
from autograder.exercises import quiz
from autograder.floats import rounded
from autograder.records import FINDING_KINDS
from autograder.render.explain import faults
from autograder.render.html import verdict_html
from autograder.render.text import verdict_text
from autograder.solutions import load_solution
from tests.submitted import (
    SUBMISSIONS,
    arrays,
    assert_right,
    assert_wrong,
    exercise_of,
    expected_of,
    files,
    hidden,
    hidden_cases,
    judged,
)

NAME = "06_flash_attention"
KERNELS = ("06.flash_strong", "06.flash_boss", "06.flash_backward", "06.flash_gqa")


# ---------------------------------------------------------------- submissions


@pytest.mark.parametrize("path", files("06", "right"))
def test_right_work_has_full_marks(path):
    assert_right(path, judged(path))


@pytest.mark.parametrize("id", KERNELS)
def test_right_work_has_full_marks_on_hidden_cases(id):
    path = SUBMISSIONS / "right" / f"{id.replace('.', '_')}_plain.py"
    result = judged(path, hidden_cases(NAME, id), proof=False)
    assert result.points == result.max_points and not result.findings


# Where mistakes show: ragged ends, blocks of unequal sides, other layouts, size, narrow types.
TELLING = {
    "06.flash_strong": (0, 2, 4, 5, 8),
    "06.flash_boss": (0, 2, 3, 7, 8, 10, 11),
    "06.flash_backward": (0, 1, 4),
    "06.flash_gqa": (0, 2, 4),
}


@pytest.mark.parametrize("path", files("06", "wrong"))
def test_wrong_work_is_named(path):
    kind, _ = expected_of(path)
    exercise = exercise_of(path)
    cases = [exercise.cases[i] for i in TELLING[exercise.id]]
    # Whether other mistakes compile as well is not asked here, and takes long.
    assert_wrong(path, cases, proof=kind == "compile")


def test_blocks_right_of_the_diagonal_pass_values_and_fail_traffic():
    path = SUBMISSIONS / "wrong" / "06_flash_boss_blocks_right_of_the_diagonal.py"
    result = judged(path)
    assert {a.name for a in result.aspects if a.status == "fail"} == {"traffic"}
    assert {f.kind for f in result.findings} == {"traffic"}
    assert "2D·keys" in result.findings[0].message


@pytest.mark.parametrize("how", ["without_the_maximum", "in_base_two", "is_the_sum", "unscaled"])
def test_a_wrong_lse_with_the_right_o_is_told_of_lse_only(how):
    path = SUBMISSIONS / "wrong" / f"06_flash_boss_lse_{how}.py"
    cases = exercises.get("06.flash_boss").cases[:2]
    result = judged(path, cases, proof=False)
    assert [f.kind for f in result.findings] == ["values"]
    assert " values of lse are wrong" in result.findings[0].message
    easier = replace(exercises.get("06.flash_strong"), compiled=None)
    strong = check_functions(easier, load_solution(str(path)))
    assert strong.verdict == "pass"  # on the first level nobody asks what lse is


@pytest.mark.parametrize("level", ["strong", "boss"])
@pytest.mark.parametrize("how", ["in_float16", "in_the_tensors_type"])
def test_a_narrow_accumulator_fails_with_the_sentence_that_explains_it(level, how):
    exercise = exercises.get(f"06.flash_{level}")
    near_one = next(c for c in exercise.cases if c.label == "values near one in float16")
    path = SUBMISSIONS / "wrong" / f"06_flash_{level}_accumulator_{how}.py"
    result = judged(path, [near_one], proof=False)
    (finding,) = result.findings
    assert finding.kind == "values" and "values of o are wrong" in finding.message
    assert finding.message.endswith(NARROW)
    shown = " ".join(verdict_text(result, exercise).split())
    assert finding.message in shown and finding.message in verdict_html(result, exercise)


# ---------------------------------------------------------------- tables


def all_cases() -> list:
    return [
        pytest.param(exercises.get(id), case, id=f"{id} {case.label}")
        for id in KERNELS
        for case in (*exercises.get(id).cases, *hidden_cases(NAME, id))
    ]


def forward(q, k, v, causal, block, dtype, base_two=False, scale_q=False, wide_p=False):
    """FlashAttention as kernels do it: float32, p in the tensors' type for the second product."""
    f = np.float32
    q, k, v = (x.astype(f) for x in (q, k, v))
    k, v = (np.repeat(x, q.shape[1] // x.shape[1], axis=1) for x in (k, v))
    t, scale = q.shape[2], f(q.shape[3] ** -0.5)
    scale = scale * f(1.4426950408889634) if base_two else scale
    if scale_q:
        q, scale = rounded(q * scale, dtype).astype(f), f(1)
    exp, log = (np.exp2, np.log2) if base_two else (np.exp, np.log)
    m = np.full((*q.shape[:3], 1), -np.inf, f)
    total, acc = np.zeros_like(m), np.zeros_like(q)
    rows = np.arange(t)[:, None]
    for at in range(0, t, block):
        cols = np.arange(at, min(at + block, t))[None, :]
        s = q @ k[:, :, at : at + block].swapaxes(-1, -2) * scale
        s = np.where(cols <= rows, s, -np.inf).astype(f) if causal else s
        new_m = np.maximum(m, s.max(-1, keepdims=True))
        shift = np.where(np.isinf(new_m), f(0), new_m)
        p, shrink = exp(s - shift), exp(m - shift)
        total = total * shrink + p.sum(-1, keepdims=True)
        narrow = p if wide_p else rounded(p, dtype).astype(f)
        acc = acc * shrink + narrow @ v[:, :, at : at + block]
        m = new_m
    lse = (m + log(total)) * (f(0.6931471805599453) if base_two else f(1))
    return rounded(acc / total, dtype), lse[..., 0]


def backward(q, k, v, causal, do, dtype):
    """Gradients as kernels compute them: from the stored o and lse, dS and P in narrow types."""
    f = np.float32
    o, lse = forward(q, k, v, causal, 64, dtype)
    q, k, v, do, o = (x.astype(f) for x in (q, k, v, do, o))
    scale = f(q.shape[3] ** -0.5)
    s = q @ k.swapaxes(-1, -2) * scale
    p = np.exp(s - lse[..., None])
    p = np.where(np.tril(np.ones(p.shape[-2:], bool)), p, f(0)) if causal else p
    ds = p * (do @ v.swapaxes(-1, -2) - (do * o).sum(-1, keepdims=True))
    narrow_p, narrow_ds = (rounded(x, dtype).astype(f) for x in (p, ds))
    dq, dk = narrow_ds @ k * scale, narrow_ds.swapaxes(-1, -2) @ q * scale
    dv = narrow_p.swapaxes(-1, -2) @ do
    return (rounded(o, dtype), *(rounded(x, dtype) for x in (dq, dk, dv)))


@pytest.mark.parametrize("exercise, case", all_cases())
def test_tolerance_has_room_for_every_honest_rounding(exercise, case):
    held, wide = arrays(exercise, case)
    expected = exercise.reference(*wide)
    allowed = exercise.tolerance(case, wide, expected)
    dtype = case.sizes["dtype"]
    if exercise.backward:
        honest = [backward(*held, dtype)]
    else:
        block = case.sizes.get("BLOCK_N", 64)
        ways = ({}, {"base_two": True}, {"scale_q": True}, {"wide_p": True})
        honest = [forward(*held[:4], block, dtype, **way) for way in ways]
    for outputs in honest:
        for got, want, bound in zip(outputs, expected, allowed, strict=True):
            assert (np.abs(got.astype(np.float64) - want) <= bound).all()


@pytest.mark.parametrize("exercise, case", all_cases())
def test_zeros_constants_inputs_and_shuffled_answers_fail(exercise, case):
    _, wide = arrays(exercise, case)
    expected = exercise.reference(*wide)
    allowed = exercise.tolerance(case, wide, expected)
    one = case.sizes["T"] == 1  # then o is v, and the gradients of q and k are 0
    for number, (want, bound) in enumerate(zip(expected, allowed, strict=True)):
        if np.isinf(bound).all() or one and number:
            continue
        wrong = [0 * want, 0 * want + 1]
        if not one:
            wrong += [x for x in wide[:3] if np.shape(x) == want.shape]
            wrong.append(np.roll(want, 1, axis=-1))
        for answer in wrong:
            assert (np.abs(answer - want) > bound).any()


def test_the_limit_counts_the_blocks_that_a_causal_kernel_needs():
    exercise = exercises.get("06.flash_boss")
    for case in exercise.cases:
        s = case.sizes
        m, n = s.get("BLOCK_M", 64), s.get("BLOCK_N", 64)
        keys = 0
        for start in range(0, s["T"], m):
            last = min(start + m, s["T"]) - 1
            for at in range(0, s["T"], n):
                if at <= last or not s["causal"]:
                    keys += min(n, s["T"] - at)
        form = s["B"] * s["H"] * (2 * s["T"] * s["D"] + s["T"] + 2 * s["D"] * keys)
        assert form <= exercise.limit(case) <= 1.05 * form


@pytest.mark.parametrize("id", KERNELS)
def test_hidden_cases_are_other_cases_and_their_labels_tell_no_size(id):
    public = {json.dumps(dict(case.sizes), sort_keys=True) for case in exercises.get(id).cases}
    for case in hidden_cases(NAME, id):
        assert json.dumps(dict(case.sizes), sort_keys=True) not in public
        assert not any(character.isdigit() for character in case.label.replace("float16", ""))


def test_hints_and_notes_speak_to_students():
    for id in KERNELS:
        exercise = exercises.get(id)
        assert len(exercise.hints) == 3
        assert set(exercise.notes) == set(FINDING_KINDS)
        for kind, note in exercise.notes.items():
            assert len(note) <= 240, f"the note on {kind} would be cut"
        labels = {case.label for case in exercise.cases}
        for clue in exercise.clues:
            assert clue.kind in FINDING_KINDS and len(clue.question) <= 240
            assert {clue.wrong, clue.right or clue.wrong} <= labels


@pytest.mark.parametrize(
    "name, words",
    [
        ("strong_keys_beyond_the_end_count", "wrong where they end within it"),
        ("strong_scale_forgotten", "Is a score q·k / √D"),
        ("strong_values_not_rescaled", "wrong with several"),
        ("strong_no_maximum", "until scores are large"),
        ("boss_always_causal", "Causal it is right, otherwise not"),
        ("boss_ends_a_block_too_early", "One block holding all is right"),
        ("boss_mask_half_open", "Not causal it is right"),
        ("boss_mask_after_the_softmax", "Not causal it is right"),
        ("boss_values_not_rescaled", "rescaled"),
        ("boss_lse_without_the_maximum", "If it is o: does the mask"),
        ("boss_no_maximum", "until scores are large"),
        ("backward_causal_forgotten", "Not causal it is right"),
        ("backward_mask_half_open_in_backward", "Not causal it is right"),
        ("backward_delta_forgotten", "dv needs only P and do"),
    ],
)
def test_the_question_on_values_fits_what_the_cases_say(name, words):
    path = SUBMISSIONS / "wrong" / f"06_flash_{name}.py"
    exercise = exercise_of(path)
    labels = {label for clue in exercise.clues for label in (clue.wrong, clue.right)}
    cases = [case for case in exercise.cases if case.label in labels]
    told = faults(judged(path, cases, proof=False), exercise)
    asked = [fault.note for fault in told if fault.finding.kind == "values"]
    assert asked and words in asked[0]


def test_the_quiz_key_gives_full_marks_and_nothing_else_does():
    exercise, key = exercises.get("06.quiz"), hidden(NAME)["06.quiz"]
    right = {name: row["answer"] for name, row in key.items()}
    assert all(answer.right for answer in quiz.score(exercise, right, key))
    everything = right | {"q4": ["a", "b", "c", "d", "e"]}
    assert sum(a.points for a in quiz.score(exercise, everything, key)) < exercise.max_points
    assert sum(a.points for a in quiz.score(exercise, dict.fromkeys(right), key)) == 0


def test_the_quiz_answers_follow_from_their_questions():
    key = hidden(NAME)["06.quiz"]
    blocks = 4096 // 64
    assert key["q1"]["answer"] == blocks * (blocks + 1) // 2
    assert key["q3"]["answer"] == pytest.approx(np.exp(1 - 3), rel=key["q3"]["tolerance"])
    assert key["q5"]["answer"] == pytest.approx(16 * 16384**2 * 2 / 1e9, rel=key["q5"]["tolerance"])
