"""Public and hidden cases in forks of their own; whose fault an end is; what may be read at all."""

import json
import os
import signal
import tracemalloc

import pytest

from autograder import exercises
from autograder.checking import check_functions
from autograder.grading.confine import Limits
from autograder.grading.forkserver import End, _ending
from autograder.grading.frames import Passing, read_frame, write_frame
from autograder.grading.grader import Grader, Request
from autograder.grading.parts import NO_END, STOPPED
from autograder.grading.sandbox import _lines
from autograder.grading.solving import Said
from autograder.solutions import load_solution
from tests.sample_class import solutions

SETUP = ("cell 1", "import torch\nimport triton\nimport triton.language as tl")
HIDDEN = {"02.add": [{"label": "hidden length", "sizes": {"n": 3137, "dtype": "float32"}}]}
PUBLIC = {case.sizes["n"] for case in exercises.get("02.add").cases} | {
    exercises.get("02.add").compiled.sizes["n"]
}
PLAIN = solutions("right", "02.add")["plain"]


@pytest.fixture(scope="module")
def grader():
    grader = Grader()
    yield grader
    grader.close()


@pytest.fixture(autouse=True)
def _nothing_known(grader):
    """What the judge said in another test is not taken for an answer here."""
    grader._alike.answers.clear()


def _grade(grader, text):
    cells = (SETUP, ("solution-02-add", text), ("check-02-add", ""))
    return grader.grade(
        Request("s", "02_vector_add", cells, ("solution-02-add",), hidden=HIDDEN, salt="5a" * 32)
    )


def _on_hidden_sizes(statement):
    """The right answer, but for sizes that no public case has."""
    return PLAIN + (
        f"\n_add = add\ndef add(x, y):\n    n = x.numel()\n    if n not in {sorted(PUBLIC)}:\n"
        f"        {statement}\n    return _add(x, y)\n"
    )


def _everything(graded):
    mark = graded.marks[0]
    return mark.html + mark.message + graded.message + repr(dict(mark.json))


LEAKS = {
    "an error's words": "raise ValueError(f'n is {n}')",
    "an error's kind": "raise type(f'N{n}', (Exception,), {})('x')",
    "the place of an error": (
        "exec(compile('\\n' * (n - 1) + 'raise ValueError', '<solution-02-add>', 'exec'))"
    ),
    "the end of the process": "__import__('os')._exit(n % 251)",
    "a line of the worker's kind": (
        '__import__(\'os\').write(3, b\'{"exercise": "02.add", "missing": "%d"}\\n\' % n)'
    ),
}


@pytest.mark.parametrize("leak", LEAKS)
def test_nothing_said_on_a_hidden_case_is_shown(grader, leak):
    text = _on_hidden_sizes(LEAKS[leak]) + "\n" * 3200  # so that line 3137 stands in the text
    graded = _grade(grader, text)
    mark, said = graded.marks[0], _everything(graded)
    assert mark.outcome == "fail" and mark.points < mark.max_points
    assert "3137" not in said and f"status {3137 % 251}" not in said, said
    assert STOPPED in said or NO_END in said or "hidden length" in said


def test_honest_work_needs_one_fork(grader, monkeypatch):
    run, jobs = grader._sandbox.run, []
    monkeypatch.setattr(grader._sandbox, "run", lambda *a: jobs.append(a[0]["job"]) or run(*a))
    mark = _grade(grader, PLAIN).marks[0]
    assert mark.points == mark.max_points and jobs.count("solve") == 1


def test_names_mean_on_hidden_cases_what_they_meant_at_the_check_cell(grader):
    """Two exercises may use one name for a constant or a helper."""
    text = PLAIN.replace("add", "_add") + "\nsize = 3\ndef add(x, y):\n    assert size == 3\n"
    text += "    return _add(x, y)\n"
    own = ("solution-02-add", "solution-02-fma_relu")
    cells = (SETUP, (own[0], text), ("check-02-add", ""), (own[1], "size, _add = 4, None"))
    request = Request("s", "02_vector_add", cells, own, hidden=HIDDEN, salt="5a" * 32)
    mark = grader.grade(request).marks[0]
    assert mark.points == mark.max_points, mark.message


def test_who_asks_for_hidden_cases_too_early_gets_none(grader):
    text = (
        "import os\nos.write(3, b'{\"more\": true}\\n')\nsaid = os.read(5, 1 << 16)\n"
        "def add(x, y):\n    raise ValueError(repr(said))\n"
    )
    graded = _grade(grader, text)
    assert graded.marks[0].points == 0 and "3137" not in _everything(graded)


def test_what_passes_to_a_fork_is_not_kept():
    jobs, end = os.pipe()
    given, taken = os.pipe()
    write_frame(taken, b"3137" * 10_000)
    passing = Passing(given)
    while passing.left:
        passing.some(end)
    passing.drop()
    assert read_frame(jobs, 1 << 20) == b"3137" * 10_000
    assert not any(passing._buffer)
    for number in (jobs, end, given, taken):
        os.close(number)


def test_a_public_cases_error_is_told_in_its_own_words(grader):
    graded = _grade(grader, "def add(x, y):\n    raise ValueError('mine')\n")
    assert "raised ValueError: mine" in _everything(graded)


def test_a_fault_on_a_hidden_case_still_says_its_line_and_argument(grader):
    text = PLAIN.replace("mask=offsets < n", "mask=offsets < n + (n == 3137)")
    if text == PLAIN:
        text = PLAIN.replace("< n", "< n + (n == 3137)")
    assert text != PLAIN
    faults = _grade(grader, text).marks[0].json["faults"]
    outside = [fault for fault in faults if fault["kind"] == "out_of_bounds"]
    assert outside and all(fault["line"] and fault["argument"] for fault in outside), faults


# ---------------------------------------------------------------- whose fault it is


def test_an_honest_students_judge_may_be_killed(grader, monkeypatch):
    """As the kernel does when somebody else fills the memory: never a zero."""
    run = grader._judge.run
    killed = End("crash", "SIGKILL", cpu=1.0)

    def kill(kind, times):
        left = [times]

        def instead(job, limits):
            if job["job"] == kind and left[0]:
                left[0] -= 1
                return killed, []
            return run(job, limits)

        monkeypatch.setattr(grader._judge, "run", instead)
        grader._alike.answers.clear()
        return _grade(grader, PLAIN).marks[0]

    for kind in ("judge", "kernels"):
        mark = kill(kind, 1)
        assert (mark.status, mark.points) == ("ok", mark.max_points)
    assert kill("judge", 2).status == "infrastructure"
    mark = kill("kernels", 2)
    assert (mark.outcome, mark.points) == ("could_not_check", None)


def test_an_honest_students_fork_may_be_killed_once(grader, monkeypatch):
    run, killed = grader._sandbox.run, [End("crash", "SIGKILL", cpu=0.1)]

    def kill(*job):
        return (killed.pop(), []) if killed else run(*job)

    monkeypatch.setattr(grader._sandbox, "run", kill)
    mark = _grade(grader, PLAIN).marks[0]
    assert not killed and (mark.status, mark.points) == ("ok", mark.max_points)


@pytest.mark.parametrize(
    "end, error, status",
    [
        (End("timeout", "no progress in 240 s"), "", "infrastructure"),
        (End("timeout", "more than 60 s of processor time", spent=True), "", "timeout"),
        (End("crash", "exit status 70"), "MemoryError: no", "memory"),
        (End("crash", "exit status 70"), "IndexError: 3137 is out of bounds", "infrastructure"),
    ],
)
def test_only_a_limit_of_the_judges_own_fork_is_a_zero(grader, end, error, status):
    mark = grader._not_judged(exercises.get("02.add"), end, error)
    assert (mark.status, mark.points) == (status, None if status == "infrastructure" else 0.0)
    assert "3137" not in mark.message


@pytest.mark.parametrize(
    "number, milliseconds, how, spent",
    [
        (signal.SIGXCPU, 990, "timeout", True),
        (signal.SIGKILL, 2100, "timeout", True),
        (signal.SIGKILL, 300, "crash", False),
    ],
)
def test_what_a_signal_proves(number, milliseconds, how, spent):
    end = _ending(b"", "", 1.0, Limits(cpu=2), number, 0, milliseconds / 1000)
    assert (end.how, end.spent) == (how, spent)
    assert os.WTERMSIG(number) == number


def test_check_and_judge_give_one_share_to_work_that_raises_in_a_later_case(grader, tmp_path):
    text = PLAIN + (
        "\n_add = add\ndef add(x, y):\n    if x.dtype == torch.float16:\n"
        "        raise ValueError('no')\n    return _add(x, y)\n"
    )
    (tmp_path / "solution.py").write_text(f"{SETUP[1]}\n{text}")
    exercise = exercises.get("02.add")
    checked = check_functions(exercise, load_solution(str(tmp_path / "solution.py")))
    cells = (SETUP, ("solution-02-add", text), ("check-02-add", ""))
    mark = grader.grade(
        Request("s", "02_vector_add", cells, ("solution-02-add",), salt="5a")
    ).marks[0]
    assert 0 < mark.points < mark.max_points
    assert mark.points == sum(aspect.points for aspect in checked.aspects)


# ---------------------------------------------------------------- the compile proof


def test_a_compiler_that_is_stopped_from_outside_decides_nothing(grader, monkeypatch):
    run = grader._sandbox.run

    def stopped(job, *rest):
        killed = End("crash", "SIGKILL", cpu=0.1), []
        return killed if job["job"] == "compile" else run(job, *rest)

    monkeypatch.setattr(grader._sandbox, "run", stopped)
    monkeypatch.setattr(grader._proof, "known", {})
    mark = _grade(grader, PLAIN).marks[0]
    assert (mark.outcome, mark.points) == ("could_not_check", None)


@pytest.mark.parametrize("of_proof", [[], [{"case": 0, "rejected": {"message": "no"}}]])
def test_a_compile_case_that_the_code_refuses_is_not_earned(grader, monkeypatch, of_proof):
    jobs = []
    monkeypatch.setattr(grader, "_to_judge", lambda job, *_: jobs.append(job) or (End("crash"), []))
    said = Said([*of_proof, {"case": 1, "trace": "{}"}])
    grader._marks([exercises.get("02.add")], Request("s", "02_vector_add"), {"02.add": said})
    assert [job["job"] for job in jobs] == ["judge"] and jobs[0]["facts"][0]["error"]


# ---------------------------------------------------------------- what is read at all


def test_a_line_of_nothing_but_structure_is_not_read():
    unit = b'{"":{}},'
    line = b'{"exercise":"02.add","case":0,"x":[' + unit * 900_000 + b"0]}\n"
    strings = b'{"x":[' + b'"",' * 2_000_000 + b"0]}\n"
    tracemalloc.start()
    try:
        assert list(_lines(line + strings + b'{"x": "' + b"y" * (9 << 20) + b'"}\n')) == []
        assert tracemalloc.get_traced_memory()[1] < 100 << 20
    finally:
        tracemalloc.stop()


def test_a_long_trace_is_read():
    trace = json.dumps({"ir": 'tt.func @k "a\\b"\n' * 100_000})
    line = json.dumps({"case": 0, "trace": trace}).encode() + b"\n"
    assert [said["trace"] for said in _lines(line * 3)] == [trace] * 3
