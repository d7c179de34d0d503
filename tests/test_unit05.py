"""Unit 05: right and wrong work gets the verdict it deserves, and the tables mean what they say."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from autograder import exercises
from autograder.checking import check_functions
from autograder.differences import NARROW
from autograder.exercises import quiz
from autograder.exercises.inputs import make
from autograder.floats import rounded
from autograder.records import ASPECT_OF_KIND, FINDING_KINDS, Case, Exercise, Rejected, Verdict
from autograder.render.explain import faults
from autograder.solutions import load_solution
from tests.submitted import assert_right

ROOT = Path(__file__).resolve().parent
SUBMISSIONS = ROOT / "submissions"
HIDDEN = json.loads((ROOT.parent / "course" / "hidden" / "05_matmul.json").read_text())
KERNELS = ("05.matmul_bias_gelu", "05.matmul", "05.grouping")  # longer names first


def files(verdict: str) -> list:
    paths = sorted((SUBMISSIONS / verdict).glob("05_*.py"))
    assert paths, f"no submissions in {verdict}/"
    return [pytest.param(path, id=path.stem) for path in paths]


def exercise_of(path: Path) -> Exercise:
    return exercises.get(next(i for i in KERNELS if path.stem.startswith(i.replace(".", "_"))))


def hidden_cases(id: str) -> list[Case]:
    return [Case(row["label"], row["sizes"], hidden=True) for row in HIDDEN[id]]


def judged(path: Path, cases=None, exercise: Exercise | None = None) -> Verdict:
    exercise = exercise or exercise_of(path)
    return check_functions(exercise, load_solution(str(path)), cases)


# ---------------------------------------------------------------- submissions


@pytest.mark.parametrize("path", files("right"))
def test_right_work_has_full_marks(path):
    assert_right(path, judged(path))


@pytest.mark.parametrize("name", ["matmul", "matmul_bias_gelu", "grouping"])
def test_right_work_has_full_marks_on_hidden_cases(name):
    result = judged(SUBMISSIONS / "right" / f"05_{name}_plain.py", hidden_cases(f"05.{name}"))
    assert result.points == result.max_points and not result.findings


def expected_of(path: Path) -> tuple[str, set[str], bool]:
    """``# expect: kind aspect …`` in the first line; ``# cases: hidden`` in the second."""
    first, second = path.read_text().splitlines()[:2]
    assert first.startswith("# expect: "), f"{path.name} does not say what to expect"
    kind, *aspects = first.removeprefix("# expect: ").split()
    assert kind in FINDING_KINDS
    return kind, set(aspects) or {ASPECT_OF_KIND[kind]}, second == "# cases: hidden"


# Where mistakes show: ragged edges, an empty loop, strides that are no row length, narrow types.
TELLING = (
    "sizes that divide nothing",
    "an empty K",
    "a transposed",
    "b transposed",
    "every second column",
    "±10 000",
    "float16, positive numbers",
    "float16",
    "bfloat16",
)


@pytest.mark.parametrize("path", files("wrong"))
def test_wrong_work_is_named(path):
    kind, aspects, hidden = expected_of(path)
    exercise = exercise_of(path)
    if kind != "compile":  # whether it compiles as well is not asked here, and takes long
        exercise = replace(exercise, compiled=None)
    if hidden:
        cases = hidden_cases(exercise.id)
    elif exercise.id == "05.grouping":
        cases = None
    else:
        cases = [case for case in exercise.cases if case.label in TELLING]
    try:
        result = judged(path, cases, exercise)
    except Rejected as error:  # the file itself is at fault
        assert kind == "interface" and str(error).count("\n") == 0
        return
    assert result.verdict == "fail", result.message
    assert result.findings[0].kind == kind, [f.message for f in result.findings]
    assert {a.name for a in result.aspects if a.status == "fail"} >= aspects
    assert result.points < result.max_points
    assert all(len(f.message) < 500 and "Traceback" not in f.message for f in result.findings)


@pytest.mark.parametrize("mask, argument", [("m_mask", "a_ptr"), ("n_mask", "b_ptr")])
def test_a_missing_mask_is_found_though_the_numbers_are_right(mask, argument):
    path = SUBMISSIONS / "wrong" / f"05_matmul_missing_{mask}.py"
    result = judged(path, [exercises.get("05.matmul").cases[0]])
    aspects = {a.name: a.status for a in result.aspects}
    assert (aspects["values"], aspects["bounds"]) == ("pass", "fail")
    assert [(f.kind, f.argument) for f in result.findings] == [("out_of_bounds", argument)]


@pytest.mark.parametrize("mask, argument", [("k_mask_of_a", "a_ptr"), ("k_mask_of_b", "b_ptr")])
def test_zeros_in_the_other_tile_do_not_replace_a_mask_in_k(mask, argument):
    """On a card the numbers mostly come out right: what lies beyond K is multiplied by 0."""
    path = SUBMISSIONS / "wrong" / f"05_matmul_missing_{mask}.py"
    result = judged(path, [exercises.get("05.matmul").cases[0]])
    assert (result.findings[0].kind, result.findings[0].argument) == ("out_of_bounds", argument)


def test_row_major_order_passes_matmul_and_fails_grouping():
    path = SUBMISSIONS / "wrong" / "05_grouping_row_major.py"
    assert judged(path, exercise=exercises.get("05.matmul")).verdict == "pass"
    result = judged(path)
    assert [f.kind for f in result.findings] == ["traffic"]
    assert "groups of 8 rows" in result.findings[0].message
    assert {a.name for a in result.aspects if a.status == "fail"} == {"traffic"}


def test_the_right_order_of_one_configuration_does_not_cover_for_another():
    result = judged(SUBMISSIONS / "wrong" / "05_grouping_one_config_row_major.py")
    assert "(autotune configuration 1, counted from 0" in result.findings[0].message


def test_counting_alone_earns_nothing():
    """Counted cases compute no values, so a kernel that stores zeros must not earn by them."""
    path = SUBMISSIONS / "wrong" / "05_matmul_stores_zeros.py"
    result = judged(path, exercise=exercises.get("05.grouping"))
    assert result.verdict == "fail" and result.points == 0


def test_programs_that_leave_tiles_out_are_found_by_counting_too():
    exercise = exercises.get("05.grouping")
    counted = [case for case in exercise.cases if case.sizes.get("counted")]
    path = SUBMISSIONS / "wrong" / "05_matmul_grid_of_rows_only.py"
    result = judged(path, counted[1:], exercise)
    assert [f.kind for f in result.findings] == ["unwritten"]
    assert "65536 elements, the result has 1048576" in result.findings[0].message


# ---------------------------------------------------------------- tables


def computed_cases(id: str) -> list[Case]:
    cases = (*exercises.get(id).cases, *hidden_cases(id))
    return [case for case in cases if not case.sizes.get("counted")]


def all_cases() -> list:
    return [
        pytest.param(exercises.get(id), case, id=f"{id} {case.label}")
        for id in KERNELS
        for case in computed_cases(id)
    ]


def made(exercise: Exercise, case: Case) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Inputs in their held type, and in float64."""
    held = [make(case, tensor, i) for i, tensor in enumerate(exercise.arguments(case))]
    return held, [x.astype(np.float64) for x in held]


def products(a: np.ndarray, b: np.ndarray) -> list[np.ndarray]:
    """a b in float32: one product after the other, from the end, in steps of 32, by NumPy."""
    a, b = a.astype(np.float32), b.astype(np.float32)
    m, k, n = *a.shape, b.shape[1]
    forward, backward, steps = (np.zeros((m, n), np.float32) for _ in range(3))
    for i in range(k):
        forward += a[:, i : i + 1] * b[i]
        backward += a[:, k - 1 - i, None] * b[k - 1 - i]
    for i in range(0, k, 32):
        steps += a[:, i : i + 32] @ b[i : i + 32]
    return [forward, backward, steps, a @ b]


def gelus(z: np.ndarray) -> list[np.ndarray]:
    """Three ways to write the tanh form, in float32."""
    one, root = np.float32(1), np.float32(0.7978845608028654)
    w = root * (z + np.float32(0.044715) * z * z * z)
    other = root * z * (one + np.float32(0.044715) * z * z)
    return [
        z / (one + np.exp(-2 * w)),
        np.float32(0.5) * z * (one + np.tanh(other)),
        np.float32(0.5) * z * (one + (2 / (one + np.exp(-2 * w)) - one)),
    ]


@pytest.mark.parametrize("exercise, case", all_cases())
@pytest.mark.parametrize("seed", range(2))
def test_tolerance_has_room_for_every_honest_rounding(exercise, case, seed):
    case = replace(case, seed=seed)
    held, wide = made(exercise, case)
    (expected,) = exercise.reference(*wide)
    (allowed,) = exercise.tolerance(case, wide, (expected,))
    with np.errstate(over="ignore"):
        honest = products(*held[:2])
        if len(held) == 3:
            honest = [g for p in honest for g in gelus(p + held[2].astype(np.float32))]
    for computed in honest:
        error = np.abs(rounded(computed, case.sizes["dtype"]).astype(np.float64) - expected)
        assert (error <= allowed).all()


@pytest.mark.parametrize("exercise, case", all_cases())
def test_zeros_constants_inputs_and_shuffled_answers_fail(exercise, case):
    _, wide = made(exercise, case)
    (expected,) = exercise.reference(*wide)
    (allowed,) = exercise.tolerance(case, wide, (expected,))
    wrong = [0 * expected + 1]
    if case.sizes["K"] or len(wide) == 3:
        wrong.append(0 * expected)
        wrong += [x for x in wide if x.shape == expected.shape]
        if expected.size > 1:
            wrong.append(np.roll(expected, 1, axis=-1 if expected.shape[1] > 1 else 0))
    for answer in wrong:
        assert (np.abs(answer - expected) > allowed).any()


def test_the_limit_is_the_closed_form_with_whole_tiles_and_five_percent():
    for id in KERNELS:
        for case in exercises.get(id).cases:
            s, limit = case.sizes, exercises.get(id).limit(case)
            m, n = (-(-max(s[x], 64) // 32) * 32 for x in ("M", "N"))
            form = m * n * s["K"] * (1 / 32 + 1 / 32) + s["M"] * s["N"]
            form += m * n / 32 * (id == "05.matmul_bias_gelu")
            assert form <= limit <= 1.05 * form


@pytest.mark.parametrize("id", KERNELS)
def test_hidden_cases_are_other_cases_and_their_labels_tell_no_size(id):
    def sizes(case: Case) -> str:
        return json.dumps(dict(case.sizes), sort_keys=True)

    public = {sizes(case) for case in exercises.get(id).cases}
    for case in hidden_cases(id):
        assert sizes(case) not in public
        assert not any(str(case.sizes[x]) in case.label for x in ("M", "N") if case.sizes[x] > 9)


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


def notes_of(path: Path, id: str) -> dict[str, str]:
    """The question that is asked on each kind of finding."""
    exercise = replace(exercises.get(id), compiled=None)
    asked: dict[str, str] = {}
    for fault in faults(judged(path, exercise=exercise), exercise):
        asked.setdefault(fault.finding.kind, fault.note)
    return asked


@pytest.mark.parametrize(
    "name, kind, words",
    [
        ("05_matmul_sum_starts_anew", "values", "where the loop has one step"),
        ("05_matmul_last_step_forgotten", "values", "wrong at ragged edges"),
        ("05_matmul_strides_of_a_ignored", "values", "right where rows lie one behind the other"),
        ("05_matmul_strides_of_a_swapped", "out_of_bounds", "How far apart do neighbours lie"),
        ("05_matmul_empty_k_unwritten", "unwritten", "K = 0 asks for zeros"),
        ("05_matmul_programs_swapped", "unwritten", "along which axis of the grid"),
        ("05_matmul_missing_k_mask", "out_of_bounds", "Which of M, N and K belong in the mask of"),
        ("05_matmul_sum_in_float16", "values", ""),  # the finding itself says "kept in a type …"
        ("05_matmul_contiguous_copies", "traffic", ""),
        ("05_grouping_last_group_full", "unwritten", "3 × 2 tiles"),
        ("05_matmul_bias_gelu_bias_by_row", "values", "z is the bias alone"),
    ],
)
def test_the_question_fits_what_the_cases_say(name, kind, words):
    id = next(i for i in KERNELS if name.startswith(i.replace(".", "_")))
    asked = notes_of(SUBMISSIONS / "wrong" / f"{name}.py", id)[kind]
    assert (words in asked) if words else asked == ""


@pytest.mark.parametrize("label", ["a transposed", "b transposed", "every second column"])
def test_a_copy_of_an_input_fails_wherever_there_is_one(label):
    cases = [case for case in exercises.get("05.matmul").cases if case.label == label]
    result = judged(SUBMISSIONS / "wrong" / "05_matmul_contiguous_copies.py", cases)
    assert [f.kind for f in result.findings] == ["traffic"]
    assert "torch copied" in result.findings[0].message


def test_a_wrong_formula_is_not_taken_for_a_narrow_type():
    """gelu by erf differs by less than 1 % of the largest value, and where values are small."""
    exercise = replace(exercises.get("05.matmul_bias_gelu"), compiled=None)
    result = judged(
        SUBMISSIONS / "wrong" / "05_matmul_bias_gelu_erf_form.py", exercise.cases[:1], exercise
    )
    assert [f.kind for f in result.findings] == ["values"]
    assert NARROW not in result.findings[0].message


def test_the_quiz_key_gives_full_marks_and_nothing_else_does():
    exercise, key = exercises.get("05.quiz"), HIDDEN["05.quiz"]
    right = {name: row["answer"] for name, row in key.items()}
    assert all(answer.right for answer in quiz.score(exercise, right, key))
    everything = right | {"q4": ["a", "b", "c", "d", "e"]}
    assert sum(a.points for a in quiz.score(exercise, everything, key)) < exercise.max_points
    assert sum(a.points for a in quiz.score(exercise, dict.fromkeys(right), key)) == 0


def test_the_quiz_answers_follow_from_their_questions():
    key = HIDDEN["05.quiz"]
    assert key["q1"]["answer"] == (1024 // 128) ** 2
    assert key["q3"]["answer"] == 2 * 64 * 64 / (2 * (64 + 64))
    assert key["q5"]["answer"] == 8 + 80 // 8
