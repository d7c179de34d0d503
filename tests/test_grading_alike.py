"""An answer of the judge that stands for a classmate's: only where nothing that it computes with
differs, and then byte by byte what the judge would have said."""

import copy
import json

import pytest

from autograder import exercises
from autograder.cells import run_cells
from autograder.grading import alike
from autograder.grading.alike import _MOST_KEPT, Alike, _lineless, key_of
from autograder.grading.grader import Grader, Request
from autograder.ir.parse import parse
from autograder.trace.record import record
from autograder.trace.serial import to_json
from tests.sample_class import solutions

SETUP = ("cell 1", "import torch\nimport triton\nimport triton.language as tl")
PLAIN = solutions("right", "02.add")["plain"]
MOVED = "# mine\n\n" + PLAIN.replace("    mask = ", "    # which lanes have work\n    mask = ")


@pytest.fixture
def grader():
    grader = Grader()
    yield grader
    grader.close()


def _grade(grader, text, monkeypatch):
    """The mark of 02.add, and how often the judge was asked about it."""
    cells = (SETUP, ("solution-02-add", text), ("check-02-add", ""))
    request = Request("s", "02_vector_add", cells, ("solution-02-add",), salt="5a" * 32)
    asked, run = [], grader._judge.run

    def counted(job, *rest):
        asked.append(job.get("exercise", "kernels"))
        return run(job, *rest)

    with monkeypatch.context() as patch:
        patch.setattr(grader._judge, "run", counted)
        mark = grader.grade(request).marks[0]
    assert ("kernels" in asked) == ("02.add" in asked)
    return mark, asked.count("02.add")


def test_a_classmate_with_the_same_kernel_gets_the_same_answer_without_a_judge(grader, monkeypatch):
    assert MOVED.count("# which lanes") == 1
    first, asked = _grade(grader, PLAIN, monkeypatch)
    assert (first.outcome, asked) == ("pass", 1)
    second, asked = _grade(grader, MOVED, monkeypatch)
    assert asked == 0
    grader._alike.answers.clear()
    alone, asked = _grade(grader, MOVED, monkeypatch)
    assert asked == 1
    assert second == alone == first


def test_an_answer_that_makes_room_while_it_is_wanted_still_counts(grader, monkeypatch):
    """The judge's answer to 02.add is kept in the place of the one that 02.fma_relu is given."""
    relu = solutions("right", "02.fma_relu")["plain"]

    def marks(add):
        cells = (SETUP, ("solution-02-add", add), ("check-02-add", ""))
        cells += (("solution-02-fma_relu", relu), ("check-02-fma_relu", ""))
        own = ("solution-02-add", "solution-02-fma_relu")
        return grader.grade(Request("s", "02_vector_add", cells, own, salt="5a" * 32)).marks[:2]

    marks(PLAIN)
    answers = grader._alike.answers
    del answers[next(key for key, answer in answers.items() if answer["exercise"] == "02.add")]
    assert [answer["exercise"] for answer in answers.values()] == ["02.fma_relu"]
    monkeypatch.setattr(alike, "_MOST_KEPT", 1)
    for mark in marks(PLAIN):
        assert (mark.outcome, mark.points) == ("pass", mark.max_points)


def test_a_wrong_answer_is_judged_every_time(grader, monkeypatch):
    wrong = PLAIN.replace("x + y", "x - y")
    assert wrong != PLAIN
    assert _grade(grader, PLAIN, monkeypatch)[0].outcome == "pass"
    for _ in range(2):
        mark, asked = _grade(grader, wrong, monkeypatch)
        assert (mark.outcome, asked) == ("fail", 1)


# ---------------------------------------------------------------- what is compared


@pytest.fixture(scope="module")
def job():
    exercise = exercises.get("02.add")
    namespace = {}
    exec(compile(SETUP[1], "<setup>", "exec"), namespace)
    for _ in run_cells([["solution-02-add", PLAIN]], namespace):
        pass
    arguments = exercise.arguments(exercise.cases[0])
    line = {"case": 0, "trace": to_json(record(namespace["add"], arguments))}
    told = {
        "exercise": "02.add",
        "hidden": [],
        "salt": "5a",
        "proof": 1,
        "problem": "",
        "key": None,
    }
    return told | {"lines": [line]}


def _changed(job, change):
    job = copy.deepcopy(job)
    trace = json.loads(job["lines"][0]["trace"])
    change(trace)
    job["lines"][0]["trace"] = json.dumps(trace)
    return job


def _ir(old, new):
    def change(trace):
        ir = trace["kernels"][0]["ir"]
        assert old in ir
        trace["kernels"][0]["ir"] = ir.replace(old, new, 1)

    return change


SAME = {
    "the kernel's line": lambda t: t["kernels"][0].update(line=99),
    "its text": lambda t: t["kernels"][0].update(source="# other"),
    "a launch's line": lambda t: t["events"][-1].update(line=99),
    "a location": _ir('":1', '":2'),
}
OTHER = {
    "an operation": _ir("arith.addf", "arith.subf"),
    "a number": _ir("1024 : i32", "512 : i32"),
    "the grid": lambda t: t["events"][-1]["grid"].__setitem__(0, 7),
    "a binding": lambda t: t["events"][-1]["bindings"][0].update(offset=4),
    "an option": lambda t: t["kernels"][0]["options"].update(num_warps=8),
    "a name": lambda t: t["kernels"][0].update(name="other"),
    "a warning": lambda t: t["warnings"].append("line 7 is slow"),
    "a line that is none": lambda t: t["events"][-1].update(line="7"),
    "a text that is none": lambda t: t["kernels"][0].update(source=["x"]),
    "an output": lambda t: t["outputs"][0].update(offset=4),
}


@pytest.mark.parametrize("change", SAME.values(), ids=SAME)
def test_lines_and_text_are_not_compared(job, change):
    assert key_of(_changed(job, change)) == key_of(_changed(job, lambda trace: None)) is not None


@pytest.mark.parametrize("change", OTHER.values(), ids=OTHER)
def test_all_else_is_compared(job, change):
    assert key_of(_changed(job, change)) != key_of(_changed(job, lambda trace: None))


@pytest.mark.parametrize(
    "change",
    [
        {"salt": "5b"},
        {"key": {"q": 1}},
        {"hidden": [{"label": "x", "sizes": {"n": 3}}]},
        {"proof": 0},
        {"lines": []},
    ],
)
def test_cases_and_secret_are_compared(job, change):
    assert key_of(job | change) != key_of(job)


@pytest.mark.parametrize("trace", ["", "[]", "{}", "[" * 100_000, '{"kernels": [7]}', 7, None])
def test_what_is_no_record_is_for_the_judge(job, trace):
    lines = [{"case": 0, "trace": trace}]
    assert key_of(job | {"lines": lines}) is None
    assert key_of(job | {"problem": "It did not come to an end."}) is None
    assert key_of(job | {"lines": job["lines"] * 300}) is None  # more than a class's worth of text


def test_a_quiz_is_compared_by_answers_and_key(job):
    def key(answers, right):
        told = {"exercise": "02.quiz", "lines": [{"answers": answers}], "key": right}
        return key_of(job | told)

    assert key({"q1": 1}, {"q1": 1}) == key({"q1": 1}, {"q1": 1}) is not None
    assert len({key({"q1": n}, {"q1": m}) for n in (1, True, "1") for m in (1, 2)}) == 6


def _stripped(ir):
    record = {"kernels": [{"ir": ir, "source": "", "file": "", "line": 0}], "events": []}
    return _lineless(json.dumps(record))["kernels"][0]["ir"]


HIDING = [
    '\n#loc9 = loc("a")\u2028%q = arith.addf %x, %x : f32 loc("b")\n',
    '\n#loc9 = loc("tt.atomic_cas")\n',
    ' loc("\\") tail")\n',
    " tt.atomic_ loc(#loc1)cas\n",
]


@pytest.mark.parametrize("text", HIDING)
def test_nothing_hides_behind_a_location(text):
    """Else one text would be judged and another one be graded by it."""
    kept = _stripped(text)
    for word in ("addf", "atomic_cas", "tail", "atomic_ loc"):
        assert (word in kept) == (word in text)


def test_the_interpreter_reads_the_same_program(job):
    ir = json.loads(job["lines"][0]["trace"])["kernels"][0]["ir"]
    plain = _stripped(ir)
    assert "loc(" not in plain and "#loc" not in plain
    assert _operations(parse(plain)) == _operations(parse(ir))


def _operations(function):
    return [(op.name, op.results, op.operands) for op in function.body.ops]


def test_answers_that_tell_of_lines_are_not_kept_and_old_ones_go():
    alike = Alike()
    alike.keep("wrong", {"lineless": False})
    alike.keep(None, {"lineless": True})
    assert not alike.answers
    for number in range(_MOST_KEPT + 3):
        alike.keep(str(number), {"lineless": True})
    assert len(alike.answers) == _MOST_KEPT and "2" not in alike.answers
