"""Unit 08: broken kernels fail with a finding that leads to the line, make-up fails as well."""

from __future__ import annotations

import json
from dataclasses import replace

import nbformat
import numpy as np
import pytest

from autograder import exercises
from autograder.checking import check_functions, load_solution
from autograder.differences import NARROW
from autograder.exercises import quiz
from autograder.floats import rounded
from autograder.records import FINDING_KINDS, Case, Exercise
from autograder.render.text import verdict_text
from tests.submitted import (
    ROOT,
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

NAME = "08_debugging"
KERNELS = tuple(f"08.{letter}" for letter in "abcdefgh")
RELEASE = ROOT.parent / "release" / NAME / f"{NAME}.ipynb"

# Cases on which every mistake of the corpus shows, by their place in the table.
TELLING = {
    "08.a": (0, 2),
    "08.b": (0, 4),
    "08.c": (0, 3),
    "08.d": (0, 3),
    "08.e": (2, 5),
    "08.f": (0, 4),
    "08.g": (0,),
    "08.h": (5,),
}


def telling(exercise: Exercise) -> list[Case]:
    return [exercise.cases[i] for i in TELLING[exercise.id]]


def all_cases() -> list:
    return [
        pytest.param(exercises.get(id), case, id=f"{id} {case.label}")
        for id in KERNELS
        for case in (*exercises.get(id).cases, *hidden_cases(NAME, id))
    ]


# ---------------------------------------------------------------- as handed out

# The first finding, and the line of the cell that it names, or what its message says.
HANDED_OUT = {
    "08.a": ("out_of_bounds", "x = tl.load(x_ptr + offs)", "1019 of 1024 lanes past the end"),
    "08.b": ("values", "", "all are 0"),
    "08.c": ("out_of_bounds", "x = tl.load(x_ptr + row * n_cols + cols, mask=mask)", "128, 1"),
    "08.d": ("race", "tl.store(out_ptr, so_far + tl.sum(x, axis=0))", "element 0 of out_ptr"),
    "08.e": ("values", "", NARROW),
    "08.f": ("values", "", "[0, 0] is nan, should be 1"),
    "08.g": ("compile", "for start in range(0, SEQ_LEN, BLOCK_N):", "`SEQ_LEN` is not defined"),
    "08.h": ("race", "tl.store(c_ptr + rows * N, tl.sum(acc, axis=1), mask=rows < M)", "c_ptr"),
}


@pytest.fixture(scope="module")
def released():
    """What the released notebook defines, and the lines of its solution cells."""
    cells = nbformat.read(RELEASE, as_version=4).cells
    texts = {c.metadata.get("nbgrader", {}).get("grade_id"): c.source for c in cells}
    return load_solution(str(RELEASE)), texts


@pytest.mark.parametrize("id", KERNELS)
def test_a_kernel_as_handed_out_fails_with_the_finding_that_leads_to_its_line(released, id):
    functions, texts = released
    exercise = exercises.get(id)
    kind, line, said = HANDED_OUT[id]
    result = check_functions(replace(exercise, compiled=None), functions)
    first = result.findings[0]
    assert first.kind == kind and said in first.message
    if line:
        lines = texts[f"solution-{id.replace('.', '-')}"].splitlines()
        assert lines[first.line - 1].strip() == line
    shown = [r.case.label for r in result.cases if r.findings]
    assert kind == "compile" or shown == [case.label for case in exercise.cases]
    assert result.points == 0
    told = replace(exercise, compiled=None)
    assert check_functions(told, functions, hidden_cases(NAME, id)).points == 0


def test_one_fault_of_a_template_does_not_hide_the_other():
    for name, kind in (("g_only_the_length", "values"), ("h_whole_tile_stored", "race")):
        result = judged(SUBMISSIONS / "wrong" / f"08_{name}.py", proof=False)
        assert result.findings[0].kind == kind


# ---------------------------------------------------------------- submissions


@pytest.mark.parametrize("path", files("08", "right"))
def test_right_repairs_have_full_marks(path):
    plain = path.stem.endswith("plain")
    exercise = exercise_of(path)
    assert_right(path, judged(path, None if plain else telling(exercise), proof=plain))


@pytest.mark.parametrize("id", KERNELS)
def test_right_repairs_have_full_marks_on_hidden_cases(id):
    path = SUBMISSIONS / "right" / f"{id.replace('.', '_')}_plain.py"
    result = judged(path, hidden_cases(NAME, id), proof=False)
    assert result.points == result.max_points and not result.findings


@pytest.mark.parametrize("path", files("08", "wrong"))
def test_wrong_repairs_are_named(path):
    assert_wrong(path, telling(exercise_of(path)))


# Values are right here, and the fault is hidden, not gone.
MADE_UP = (
    "a_clamped_lanes",
    "a_pads_the_result_too",
    "a_where_behind_the_load",
    "b_clamped_lanes",
    "b_pads_with_minus_infinity_on_the_host",
    "c_contiguous_copy",
    "c_copied_by_a_kernel",
    "d_one_program",
    "d_first_program_does_it_all",
    "d_one_launch_after_the_other",
    "e_converted_on_the_host",
    "h_not_split_any_more",
)


@pytest.mark.parametrize("name", MADE_UP)
def test_a_fault_that_is_only_hidden_earns_nothing_though_all_numbers_are_right(name):
    path = SUBMISSIONS / "wrong" / f"08_{name}.py"
    exercise = exercise_of(path)
    cases = [exercise.cases[0]]
    result = judged(path, cases, proof=False)
    assert result.points == 0 and not {f.kind for f in result.findings} & {"values", "unwritten"}
    values = next(a for a in result.aspects if a.name == "values")
    assert values.status == "not_reached" and "only hidden" in values.note
    free = replace(exercise, repairs=(), compiled=None)
    assert check_functions(free, load_solution(str(path)), cases).points > 0


def test_a_length_that_is_a_constant_fails_however_large_the_constant_is(tmp_path):
    text = (SUBMISSIONS / "wrong" / "08_g_length_as_a_constant.py").read_text()
    path = tmp_path / "08_g_constant.py"
    attention = exercises.get("08.g")
    for length, cases in ((1024, attention.cases), (2048, hidden_cases(NAME, "08.g"))):
        path.write_text(text.replace("tl.constexpr(64)", f"tl.constexpr({length})"))
        result = check_functions(replace(attention, compiled=None), load_solution(str(path)), cases)
        assert [r.case.label for r in result.cases if r.findings] == [cases[-1].label]


def said(name: str) -> str:
    """What the check tells on a submission, without the proof of compilation."""
    path = SUBMISSIONS / "wrong" / f"{name}.py"
    return verdict_text(judged(path, proof=False), exercise_of(path))


def test_questions_fit_the_mistake_that_is_there():
    for mistake in ("g_length_of_one_block", "g_values_by_the_queries_rows"):
        text = " ".join(said(f"08_{mistake}").split())
        assert "One block of tokens comes out right" in text, mistake
        assert "load at all" not in text, mistake
    assert "load at all" in " ".join(said("08_g_only_the_length").split())
    assert "a cell of its own" in " ".join(said("08_h_row_sums_added_atomically").split())


def test_one_number_and_one_lane_are_told_in_the_singular():
    text = " ".join(said("08_d_as_given").split())
    assert "The only value is wrong: [0] is" in text and "1 of 1" not in text


def test_programs_count_where_they_read_whatever_the_grid_says():
    for name in ("one_program", "first_program_does_it_all", "one_launch_after_the_other"):
        result = judged(SUBMISSIONS / "wrong" / f"08_d_{name}.py", proof=False)
        said = [f.message for f in result.findings if f.kind == "race"]
        assert said == [m for m in said if m.startswith("At most 1 program reads the inputs")]
        assert said, name


# ---------------------------------------------------------------- tables


def honest(exercise: Exercise, case: Case) -> list[np.ndarray]:
    """Right answers computed in float32, in different orders, before they are stored."""
    held = arrays(exercise, case)[0]
    x, *rest = (a.astype(np.float32) if isinstance(a, np.ndarray) else a for a in held)
    if exercise.id == "08.a":
        return [np.float32(rest[0]) * x]
    if exercise.id == "08.b":
        return [x.max(axis=1)]
    if exercise.id == "08.c":
        return [x + rest[0]]
    if exercise.id in ("08.d", "08.e"):
        orders = [np.cumsum(y, axis=0, dtype=np.float32)[-1] for y in (x, x[::-1])]
        return [np.reshape(o, right_answers(exercise, case)[0].shape) for o in orders]
    if exercise.id == "08.f":
        s = np.where(np.tril(np.ones(x.shape, bool)), x, -np.inf).astype(np.float32)
        m = s.max(axis=1, keepdims=True)
        e = np.exp(s - m)
        total = np.cumsum(e, axis=1, dtype=np.float32)[:, -1:]
        return [e / total, np.exp(s - (m + np.log(total)))]
    if exercise.id == "08.g":
        k, v = rest
        s = (x @ k.swapaxes(-1, -2)) * np.float32(x.shape[-1] ** -0.5)
        p = np.exp(s - s.max(axis=-1, keepdims=True))
        return [rounded(p, case.sizes["dtype"]) @ v / p.sum(axis=-1, keepdims=True)]
    b, parts = rest
    whole = [np.zeros((len(x), b.shape[1]), np.float32) for _ in range(2)]
    for i in range(len(b)):
        for out, j in zip(whole, (i, len(b) - 1 - i), strict=True):
            out += x[:, j : j + 1] * b[j]
    split = sum(x[:, i::parts] @ b[i::parts] for i in range(parts))
    return [*whole, split]


@pytest.mark.parametrize("exercise, case", all_cases())
def test_tolerance_has_room_for_every_honest_rounding(exercise, case):
    (asked,) = exercise.outputs(case)
    with np.errstate(all="ignore"):
        computed = honest(exercise, case)
    for answer in computed:
        result = answered(exercise, case, [rounded(answer, asked.dtype)])
        assert not result.findings, [f.message for f in result.findings]


@pytest.mark.parametrize("exercise, case", all_cases())
def test_zeros_constants_inputs_and_shuffled_answers_fail(exercise, case):
    right = right_answers(exercise, case)
    assert not answered(exercise, case, right).findings
    (r,) = right
    wrong = {"zeros": np.zeros_like(r), "constant": np.full_like(r, 0.5), "minus": -r}
    if r.size > 1 and not (r == r.flat[0]).all():
        wrong["shuffled"] = np.roll(r, 1, axis=-1 if r.shape[-1] > 1 else 0)
    for i, given in enumerate(a for a in arrays(exercise, case)[1] if isinstance(a, np.ndarray)):
        if given.shape == r.shape and case.label != "one token":  # which attends to its own v
            wrong[f"input {i}"] = given
    for name, outputs in wrong.items():
        assert answered(exercise, case, [outputs]).findings, name


@pytest.mark.parametrize("id", KERNELS)
def test_hidden_cases_are_other_cases_and_their_labels_tell_no_size(id):
    def sizes(case: Case) -> str:
        return json.dumps(dict(case.sizes), sort_keys=True)

    public = {sizes(case) for case in exercises.get(id).cases}
    for case in hidden_cases(NAME, id):
        assert sizes(case) not in public
        numbers = [v for v in case.sizes.values() if isinstance(v, int) and v > 9]
        assert not any(str(number) in case.label for number in numbers)


def test_hints_and_notes_speak_to_students():
    for id in KERNELS:
        exercise = exercises.get(id)
        assert len(exercise.hints) == 3
        assert set(exercise.notes) == set(FINDING_KINDS)
        assert set(exercise.repairs) <= set(exercise.points)
        for kind, note in exercise.notes.items():
            assert len(note) <= 240, f"the note of {id} on {kind} would be cut"


def test_the_quiz_key_gives_full_marks_and_nothing_else_does():
    exercise, key = exercises.get("08.quiz"), hidden(NAME)["08.quiz"]
    right = {name: row["answer"] for name, row in key.items()}
    assert all(answer.right for answer in quiz.score(exercise, right, key))
    everything = right | {"q2": ["a", "b", "c", "d", "e"]}
    assert sum(a.points for a in quiz.score(exercise, everything, key)) < exercise.max_points
    assert sum(a.points for a in quiz.score(exercise, dict.fromkeys(right), key)) == 0


def test_the_quiz_answers_follow_from_their_questions():
    key = hidden(NAME)["08.quiz"]
    assert key["q1"]["answer"] == (3 * 5 + 2) % 8
    loaded = np.zeros(97)  # all load before the first one stores
    assert key["q3"]["answer"] == (loaded + 1)[-1]
