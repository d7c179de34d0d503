"""Unit 01 judged for real: right work passes, typical mistakes are named, nothing cheap passes."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from autograder import minitriton
from autograder.checking import check, check_functions, load_solution
from autograder.exercises import quiz
from autograder.exercises.unit01 import ADD, EXERCISES, MATMUL, QUIZ, SOFTMAX
from autograder.judging import values_of
from autograder.minitriton import STATS, arange, cdiv, launch, load, store
from autograder.records import Case, CouldNotCheck, Output, Rejected
from autograder.trace.plain import run_plain
from autograder.verdict import judge_case, verdict

HERE = Path(__file__).parent
BY_ID = {exercise.id: exercise for exercise in EXERCISES}
HIDDEN = json.loads((HERE.parent / "course/hidden/01_programming_model.json").read_text())
GRADED = (ADD, SOFTMAX, MATMUL)


def _files(kind: str) -> list:
    files = sorted((HERE / "submissions" / kind).glob("01_*.py"))
    return [pytest.param(file, id=file.stem[3:]) for file in files]


def _exercise(file: Path):
    return BY_ID[f"01.{file.stem.split('_')[1]}"]


def _hidden(exercise) -> tuple[Case, ...]:
    return tuple(Case(row["label"], row["sizes"], hidden=True) for row in HIDDEN[exercise.id])


def _right(exercise) -> dict:
    name = f"{exercise.id.replace('.', '_')}_plain.py"
    return load_solution(str(HERE / "submissions/right" / name))


def _run(exercise, solution, case):
    return run_plain(exercise, solution, values_of(case, exercise.arguments(case)))


# ---------------------------------------------------------------- submissions


@pytest.mark.parametrize("file", _files("right"))
def test_right_work_of_every_style_passes(file):
    exercise = _exercise(file)
    cases = exercise.cases + _hidden(exercise)
    result = check_functions(exercise, load_solution(str(file)), cases, salt=b"test")
    assert [finding.message for finding in result.findings] == []
    assert result.verdict == "pass" and result.points == exercise.max_points


@pytest.mark.parametrize("file", _files("wrong"))
def test_every_typical_mistake_is_named(file):
    exercise = _exercise(file)
    kind, *aspects = file.read_text().splitlines()[0].removeprefix("# expect: ").split()
    try:
        result = check_functions(exercise, load_solution(str(file)))
    except Rejected as error:
        assert kind == "interface" and len(str(error).splitlines()) == 1
        return
    assert result.verdict == "fail" and result.points < result.max_points
    kinds = {finding.kind for finding in result.findings}
    assert kind in kinds
    if kind in ("traffic", "values", "interface"):  # nothing else is held against it
        assert kinds <= {kind, "traffic"} or file.stem in _SEVERAL
    failed = {aspect.name for aspect in result.aspects if aspect.status == "fail"}
    assert set(aspects) <= failed
    for finding in result.findings:
        assert "\n" not in finding.message and len(finding.message) < 300


# Wrong strides also leave the array for some sizes, and a loop that is too short reads too little.
_SEVERAL = {
    "01_matmul_row_stride_is_the_tile",
    "01_matmul_k_loop_too_short",
    "01_matmul_writes_into_a",  # which other programs read: a race, and wrong values
}


def test_a_missing_mask_is_told_with_argument_program_line_and_lanes():
    def add_kernel(pid, x, y, out, n, BLOCK):
        offs = pid[0] * BLOCK + arange(0, BLOCK)
        store(out, offs, load(x, offs, offs < n) + load(y, offs), offs < n)

    run = _run(ADD, {"add_kernel": add_kernel}, Case("ragged", {"n": 1000, "BLOCK": 256}))
    fault = run.findings[0]
    assert (fault.kind, fault.kernel, fault.argument) == ("out_of_bounds", "add_kernel", "y")
    assert (fault.program, fault.lanes) == ((3,), 24)
    assert fault.line == add_kernel.__code__.co_firstlineno + 2
    assert fault.message == (
        "load from y: 24 of 256 lanes outside it "
        "(program 3: offsets 1000…1023, y has 1000 numbers)."
    )
    assert fault.access.offsets.shape == (1, 256) and int((~fault.access.inside).sum()) == 24


def test_a_race_names_both_programs():
    def add_kernel(pid, x, y, out, n, BLOCK):
        store(out, arange(0, 4), 0.0)

    run = _run(ADD, {"add_kernel": add_kernel}, Case("two blocks", {"n": 8, "BLOCK": 4}))
    race = run.findings[0]
    assert (race.kind, race.argument, race.program, race.lanes) == ("race", "out", (1,), 4)
    assert "program 1 writes offset 0 of out, which program 0 writes too" in race.message


def test_reading_what_another_program_writes_is_a_race():
    def add_kernel(pid, x, y, out, n, BLOCK):
        offs = pid[0] * BLOCK + arange(0, BLOCK)
        if pid[0]:
            load(out, offs - BLOCK)
        store(out, offs, load(x, offs) + load(y, offs))

    run = _run(ADD, {"add_kernel": add_kernel}, Case("two blocks", {"n": 8, "BLOCK": 4}))
    assert [(f.kind, f.program, f.lanes) for f in run.findings] == [("race", (1,), 4)]


def test_two_lanes_with_different_values_for_one_number_are_a_race():
    def add_kernel(pid, x, y, out, n, BLOCK):
        store(out, np.array([0, 1, 1, 2]), np.array([1, 2, 3, 4]))

    run = _run(ADD, {"add_kernel": add_kernel}, Case("a block", {"n": 3, "BLOCK": 4}))
    race = run.findings[0]
    assert (race.kind, race.lanes) == ("race", 1)
    assert "two lanes of program 0 write different values to offset 1 of out" in race.message


def test_launches_do_not_race_with_each_other():
    def half(pid, x, y, out, n, BLOCK):
        offs = arange(0, n)
        store(out, offs, load(x, offs))

    def rest(pid, x, y, out, n, BLOCK):
        offs = arange(0, n)
        store(out, offs, load(out, offs) + load(y, offs))

    def drive(solution, arguments):
        launch(half, (1,), *arguments)
        launch(rest, (1,), *arguments)
        return (arguments[2],)

    exercise = replace(ADD, drive=drive)
    run = _run(exercise, {"add_kernel": half}, Case("two launches", {"n": 8, "BLOCK": 8}))
    assert run.findings == () and run.elements == 5 * 8


# ---------------------------------------------------------------- traffic


def test_matmul_moves_exactly_what_the_closed_form_says_on_even_sizes():
    m, n, k, bm, bn, bk = 64, 96, 128, 32, 16, 32
    case = Case("even", {"M": m, "N": n, "K": k, "BM": bm, "BN": bn, "BK": bk})
    run = _run(MATMUL, _right(MATMUL), case)
    assert sum(t.loaded for t in run.traffic) == m * n * k / bm + m * n * k / bn
    assert sum(t.stored for t in run.traffic) == m * n
    STATS.update(loads=0, stores=0)
    _right(MATMUL)["triton_matmul"](np.ones((m, k)), np.ones((k, n)), bm, bn, bk)
    assert {"loads": m * n * k // bm + m * n * k // bn, "stores": m * n} == STATS


@pytest.mark.parametrize("exercise, passes", [(ADD, 3), (SOFTMAX, 2)], ids=["add", "softmax"])
def test_the_limit_lies_between_the_closed_form_and_one_more_pass(exercise, passes):
    for case in exercise.cases + _hidden(exercise):
        size = case.sizes.get("n") or case.sizes["M"] * case.sizes["N"]
        assert passes * size <= exercise.limit(case) < (passes + 1) * size
        assert _run(exercise, _right(exercise), case).elements == passes * size


def test_a_check_leaves_the_students_counters_alone():
    STATS.update(loads=5, stores=7)
    check_functions(ADD, _right(ADD), ADD.cases[:1])
    assert STATS == {"loads": 5, "stores": 7}


# ---------------------------------------------------------------- self-test of the graders

_CHEAP = {
    "zeros": lambda right, inputs: np.zeros_like(right),
    "a constant": lambda right, inputs: np.full_like(right, right.mean()),
    "the input itself": lambda right, inputs: np.resize(inputs[0], right.shape),
    "shuffled": lambda right, inputs: np.roll(right, 1),
    "not a number": lambda right, inputs: np.full_like(right, np.nan),
    "a little too large": lambda right, inputs: right * np.float32(1 + 1e-3),
}


@pytest.mark.parametrize("exercise", GRADED, ids=lambda e: e.title)
@pytest.mark.parametrize("cheap", _CHEAP)
def test_cheap_answers_fail(exercise, cheap):
    results = []
    cases = exercise.cases + _hidden(exercise)
    for case in cases:
        arguments = values_of(case, exercise.arguments(case))
        run = _run(exercise, _right(exercise), case)
        values = run.outputs[0].values
        inputs = [a for a in arguments if isinstance(a, np.ndarray)]
        wrong = _CHEAP[cheap](values, inputs).astype(np.float32)
        run = replace(run, outputs=(Output(wrong, "float32"),))
        results.append(judge_case(exercise, case, run, arguments))
    result = verdict(exercise, results)
    assert result.verdict == "fail"
    if cheap == "a little too large":  # exp of 1e4 is no place for a test of three digits
        return
    # One number shuffled is itself; everything else fails on every case.
    passed = [r.case.label for r in results if r.status == "pass"]
    assert set(passed) <= {"one number"} and result.points <= exercise.max_points / len(cases)


def test_every_input_is_random_and_none_equals_another():
    for exercise in GRADED:
        for case in exercise.cases:
            arrays = [
                a for a in values_of(case, exercise.arguments(case)) if isinstance(a, np.ndarray)
            ]
            assert len({a.tobytes() for a in arrays}) == len(arrays)


# ---------------------------------------------------------------- hidden cases, quiz, no torch


def test_hidden_cases_are_others_than_the_public_ones():
    for exercise in GRADED:
        public = {json.dumps(dict(c.sizes), sort_keys=True) for c in exercise.cases}
        hidden = {json.dumps(dict(c.sizes), sort_keys=True) for c in _hidden(exercise)}
        assert len(hidden) >= 6 and not hidden & public


def test_the_key_fits_the_quiz_and_the_package_does_not_hold_it():
    key = HIDDEN["01.quiz"]
    right = {name: entry["answer"] for name, entry in key.items()}
    assert all(answer.right for answer in quiz.score(QUIZ, right, key))
    assert all(entry["explain"] for entry in key.values())
    for file in (HERE.parent / "autograder").rglob("*.py"):
        assert not any(entry["explain"] in file.read_text() for entry in key.values()), file


def test_quiz_form_is_checked_and_says_nothing_about_right_or_wrong():
    blank = dict.fromkeys(QUIZ.notes)
    assert quiz.check_format(QUIZ, blank) == ()
    assert quiz.open_questions(QUIZ, blank) == tuple(QUIZ.notes)
    messages = {
        f.message
        for f in quiz.check_format(
            QUIZ, {"q1": "10", "q2": "C", "q3": ["b"], "q4": True, "q5": "a", "q7": 1}
        )
    }
    assert messages == {
        "q6 is missing from answers.",
        "q1 wants a number, such as 12 or 0.5, not '10'.",
        "q2 wants one letter out of a, b, c, d, such as \"a\", not 'C'.",
        "q3 wants one letter out of a, b, c, d, such as \"a\", not ['b'].",
        "q4 wants a number, such as 12 or 0.5, not True.",
        'q5 wants a list of letters out of a, b, c, d, e, such as ["a", "e"], not \'a\'.',
        "answers has 'q7', but the quiz asks q1, q2, q3, q4, q5, q6.",
    }
    wrong = {"q1": "10", "q2": "C"} | dict.fromkeys(("q3", "q4", "q5", "q6"))
    assert [f.argument for f in quiz.check_format(QUIZ, wrong)] == ["q1", "q2"]  # told apart
    (fault,) = quiz.check_format(QUIZ, [10])
    assert fault.message.startswith("answers is [10]; it wants a dict")


@pytest.mark.parametrize(
    "given, points",
    [
        (["b", "d"], 1.0),
        (("d", "b"), 1.0),
        (["b"], 0.5),
        (["b", "a"], 0.0),
        (["a", "b", "c", "d", "e"], 0.0),
        (["b", "b"], 0.0),
        ("bd", 0.0),
        (None, 0.0),
        ([["b"]], 0.0),
    ],
)
def test_several_choices_earn_by_right_minus_wrong(given, points):
    several = quiz.quiz("x", "x", {"q": "some of a b c d e"})
    (answer,) = quiz.score(several, {"q": given}, {"q": {"answer": ["b", "d"]}})
    assert answer.points == points


@pytest.mark.parametrize(
    "given, right",
    [(10, True), (10.0, True), (10.05, True), (10.2, False), (float("nan"), False)]
    + [(float("inf"), False), (10**400, False), ("10", False), (True, False), ([10], False)],
)
def test_numbers_are_right_within_the_keys_tolerance(given, right):
    number = quiz.quiz("x", "x", {"q": "number"})
    (answer,) = quiz.score(number, {"q": given}, {"q": {"answer": 10, "tolerance": 0.01}})
    assert answer.right == right


def test_a_key_that_does_not_fit_is_our_fault():
    for key in ({}, {"q": {"answer": "z"}}, {"q": {}}, {"p": {"answer": "a"}}):
        with pytest.raises(CouldNotCheck, match="hidden key of x"):
            quiz.score(quiz.quiz("x", "x", {"q": "one of a b"}), {"q": "a"}, key)
    with pytest.raises(ValueError, match="no form of question"):
        quiz.quiz("x", "x", {"q": "text"})


def test_unit_01_works_where_torch_and_triton_are_missing():
    code = (
        "import sys; sys.modules['torch'] = sys.modules['triton'] = None\n"
        "from autograder.checking import check_file\n"
        f"sys.exit(check_file('01.add', {str(HERE / 'submissions/right/01_add_plain.py')!r}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=HERE.parent
    )
    assert done.returncode == 0, done.stderr
    assert "01.add" in done.stdout and done.stderr == ""


@pytest.mark.parametrize("mask", ["offs >= 0 and offs < n", "0 <= offs < n"])
def test_masks_joined_as_python_joins_are_told_to_use_an_ampersand(tmp_path, mask):
    text = (HERE / "submissions/right/01_add_plain.py").read_text()
    assert text.count("offs < n") == 1
    (tmp_path / "a.py").write_text(text.replace("offs < n", mask))
    said = check_functions(ADD, load_solution(str(tmp_path / "a.py"))).findings[0].message
    assert "Join masks by & and |" in said and "a.any()" not in said


def test_right_numbers_past_load_and_store_are_not_called_wrong():
    def add_kernel(pid, x, y, out, n, BLOCK):
        out[:] = x + y

    text = repr(check("01.add", add_kernel))
    assert "not by load and store, on 6 of 6 cases" in text
    assert "not the numbers asked for" not in text


def test_a_fault_of_ours_is_never_the_students():
    code = "def drive(solution, arguments): raise KeyError('ours')"
    names = {}
    exec(compile(code, minitriton.__file__, "exec"), names)
    exercise = replace(ADD, drive=names["drive"])
    result = check_functions(exercise, _right(ADD), ADD.cases[:1])
    assert result.verdict == "could_not_check"


def test_the_limit_allows_whole_tiles_at_the_edges_and_not_a_tile_twice():
    case = Case("even", {"M": 32, "N": 32, "K": 32, "BM": 16, "BN": 16, "BK": 16})
    exact = 2 * 32 * 32 * 32 // 16 + 32 * 32
    assert exact <= MATMUL.limit(case) < exact + 32 * 32 * 32 // 16
    assert cdiv(33, 16) * 16 == 48
