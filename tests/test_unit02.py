"""Unit 02: right and wrong work gets the verdict it deserves, and the tables mean what they say."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from autograder import exercises
from autograder.checking import check_functions, load_solution
from autograder.exercises import quiz
from autograder.exercises.inputs import make
from autograder.floats import rounded
from autograder.records import FINDING_KINDS, Case, Exercise, Rejected, Verdict
from tests.submitted import assert_right

ROOT = Path(__file__).resolve().parent
SUBMISSIONS = ROOT / "submissions"
HIDDEN = json.loads((ROOT.parent / "course" / "hidden" / "02_vector_add.json").read_text())
KERNELS = ("02.add", "02.fma_relu")


def files(verdict: str) -> list:
    paths = sorted((SUBMISSIONS / verdict).glob("02_*.py"))
    assert paths, f"no submissions in {verdict}/"
    return [pytest.param(path, id=path.stem) for path in paths]


def exercise_of(path: Path) -> Exercise:
    return exercises.get("02.fma_relu" if path.stem.startswith("02_fma_relu") else "02.add")


def hidden_cases(id: str) -> list[Case]:
    return [Case(row["label"], row["sizes"], hidden=True) for row in HIDDEN[id]]


def judged(path: Path, cases=None) -> Verdict:
    exercise = exercise_of(path)
    return check_functions(exercise, load_solution(str(path)), cases)


# ---------------------------------------------------------------- submissions


@pytest.mark.parametrize("path", files("right"))
def test_right_work_has_full_marks(path):
    assert_right(path, judged(path))


@pytest.mark.parametrize("id", KERNELS)
def test_right_work_has_full_marks_on_hidden_cases(id):
    name = id.replace(".", "_")
    result = judged(SUBMISSIONS / "right" / f"{name}_plain.py", hidden_cases(id))
    assert result.points == result.max_points and not result.findings


def expected_of(path: Path) -> tuple[str, set[str], bool]:
    """``# expect: kind aspect …`` in the first line; ``# cases: hidden`` in the second."""
    first, second = path.read_text().splitlines()[:2]
    assert first.startswith("# expect: "), f"{path.name} does not say what to expect"
    kind, *aspects = first.removeprefix("# expect: ").split()
    assert kind in FINDING_KINDS
    return kind, set(aspects), second == "# cases: hidden"


# Where mistakes show: a ragged end, a vector shorter than a block, a narrow type.
TELLING = ("the lesson's length", "five elements", "a prime length", "float16")


@pytest.mark.parametrize("path", files("wrong"))
def test_wrong_work_is_named(path):
    kind, aspects, hidden = expected_of(path)
    exercise = exercise_of(path)
    if hidden:
        cases = hidden_cases(exercise.id)
    else:
        cases = [case for case in exercise.cases if case.label in TELLING]
    try:
        result = judged(path, cases)
    except Rejected as error:  # the file itself is at fault
        assert kind == "interface" and str(error).count("\n") == 0
        return
    assert result.verdict == "fail", result.message
    assert result.findings[0].kind == kind, [f.message for f in result.findings]
    assert {a.name for a in result.aspects if a.status == "fail"} >= aspects
    assert result.points < result.max_points
    assert all(len(f.message) < 500 and "Traceback" not in f.message for f in result.findings)


def test_where_no_kernel_works_that_is_the_cause_however_a_later_case_ends():
    """NumPy has no bfloat16, so that case ends in an error, which is not what is to be mended."""
    result = judged(SUBMISSIONS / "wrong" / "02_add_numpy.py")
    assert [f.kind for f in result.findings] == ["torch_computed", "interface"]


def test_a_missing_load_mask_is_found_though_the_numbers_are_right():
    path = SUBMISSIONS / "wrong" / "02_add_missing_load_mask.py"
    case = exercises.get("02.add").cases[0]
    result = judged(path, [case])
    found = {f.argument: f for f in result.findings if f.kind == "out_of_bounds"}
    assert set(found) == {"x_ptr", "y_ptr"}
    assert found["x_ptr"].program[0] == 96 and found["x_ptr"].lanes == 896
    line = path.read_text().splitlines()[found["x_ptr"].line - 1]
    assert "tl.load(x_ptr + offsets)" in line
    assert {a.name: a.status for a in result.aspects}["values"] == "pass"


def test_the_grid_of_97_passes_the_public_cases():
    """So it is the hidden cases that catch it."""
    assert judged(SUBMISSIONS / "wrong" / "02_add_grid_of_97.py").verdict == "pass"


# ---------------------------------------------------------------- tables


def all_cases() -> list:
    return [
        pytest.param(exercises.get(id), case, id=f"{id} {case.label}")
        for id in KERNELS
        for case in (*exercises.get(id).cases, *hidden_cases(id))
    ]


def made(exercise: Exercise, case: Case) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Inputs in their held type, and in float64."""
    held = [make(case, tensor, i) for i, tensor in enumerate(exercise.arguments(case))]
    return held, [x.astype(np.float64) for x in held]


@pytest.mark.parametrize("exercise, case", all_cases())
@pytest.mark.parametrize("seed", range(2))
def test_tolerance_has_room_for_every_honest_rounding(exercise, case, seed):
    case = replace(case, seed=seed)
    held, wide = made(exercise, case)
    single = [x.astype(np.float32) for x in held]
    dtype = case.sizes["dtype"]
    narrow_product = rounded(held[0] * held[1], dtype)
    honest = {
        "02.add": [held[0] + held[1], single[0] + single[1]],
        "02.fma_relu": [
            np.maximum(rounded(narrow_product + held[-1], dtype), 0),
            np.maximum(single[0] * single[1] + single[-1], 0),
            np.maximum(wide[0] * wide[1] + wide[-1], 0),  # contracted: one rounding
        ],
    }[exercise.id]
    (expected,) = exercise.reference(*wide)
    (allowed,) = exercise.tolerance(case, wide, (expected,))
    for computed in honest:
        error = np.abs(rounded(computed, dtype).astype(np.float64) - expected)
        assert (error <= allowed).all()


@pytest.mark.parametrize("exercise, case", all_cases())
def test_zeros_constants_inputs_and_shuffled_answers_fail(exercise, case):
    _, wide = made(exercise, case)
    (expected,) = exercise.reference(*wide)
    (allowed,) = exercise.tolerance(case, wide, (expected,))
    wrong = [0 * expected, 0 * expected + 1, *wide]
    if len(expected) > 1:
        wrong.append(np.roll(expected, 1))
    for answer in wrong:
        assert (np.abs(answer - expected) > allowed).any()


@pytest.mark.parametrize("id, passes", [("02.add", 3), ("02.fma_relu", 4)])
def test_limits_are_the_closed_forms_with_five_percent(id, passes):
    exercise = exercises.get(id)
    assert exercise.limit_text == f"{passes}n"
    for case in exercise.cases:
        n, limit = case.sizes["n"], exercise.limit(case)
        assert passes * n <= limit <= 1.05 * passes * n < (passes + 1) * n


@pytest.mark.parametrize("id", KERNELS)
def test_hidden_cases_are_other_cases_and_their_labels_tell_no_size(id):
    public = {tuple(sorted(case.sizes.items())) for case in exercises.get(id).cases}
    for case in hidden_cases(id):
        assert tuple(sorted(case.sizes.items())) not in public
        assert str(case.sizes["n"]) not in case.label


def test_hints_and_notes_speak_to_students():
    for id in KERNELS:
        exercise = exercises.get(id)
        assert len(exercise.hints) == 3
        assert set(exercise.notes) == set(FINDING_KINDS)
        for kind, note in exercise.notes.items():
            assert len(note) <= 240, f"the note on {kind} would be cut"


def test_the_quiz_key_gives_full_marks_and_nothing_else_does():
    exercise, key = exercises.get("02.quiz"), HIDDEN["02.quiz"]
    right = {name: row["answer"] for name, row in key.items()}
    assert all(answer.right for answer in quiz.score(exercise, right, key))
    everything = right | {"q4": ["a", "b", "c", "d", "e"]}
    assert sum(a.points for a in quiz.score(exercise, everything, key)) < exercise.max_points
    assert sum(a.points for a in quiz.score(exercise, dict.fromkeys(right), key)) == 0


def test_the_quiz_answers_follow_from_their_questions():
    key = HIDDEN["02.quiz"]
    assert key["q2"]["answer"] == -(-1_000_000 // 4096) * 4096 - 1_000_000
    assert key["q3"]["answer"] == 2 / (4 * 2)
    multiples = {"a": 98433 % 16 == 0, "b": 98448 % 16 == 0}  # 98432 is one
    assert multiples == {"a": False, "b": True} and 98432 % 16 == 0
