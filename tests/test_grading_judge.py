"""Sandbox and judge: who runs where, what comes back, and what unit 01 and quizzes get."""

import dataclasses
import os
import re
import sys

import pytest

from autograder.grading import sandbox
from autograder.grading.audit import audit_exercise, audit_quiz
from autograder.grading.confine import Limits
from autograder.grading.course import Course, hidden_cases
from autograder.grading.grader import Budget, Grader, Request
from autograder.grading.sandbox import Sandbox, Warm
from tests.grading_course import CHECKOUT
from tests.sample_class import answers, solutions

BUDGET = Budget(solve=Limits(cpu=5, step=30, wall=60))
SALT = "7e" * 32
SETUP = ("cell 1", "import torch\nimport triton\nimport triton.language as tl")
SETUP_01 = ("cell 1", "import numpy as np\nfrom autograder.minitriton import *\n")


@pytest.fixture(scope="module")
def grader():
    grader = Grader(budget=BUDGET)
    yield grader
    grader.close()


def _request(assignment, cells, hidden=None, setup=SETUP):
    """``cells``: exercise → text of its solution cell."""
    listed = [setup]
    for exercise, text in cells.items():
        dashed = exercise.replace(".", "-")
        listed += [(f"solution-{dashed}", text), (f"check-{dashed}", "")]
    own = tuple(name for name, _ in listed if name.startswith("solution"))
    return Request("s", assignment, tuple(listed), own, hidden=hidden, salt=SALT)


def _mark(graded, exercise):
    return next(mark for mark in graded.marks if mark.exercise == exercise)


# ---------------------------------------------------------------- who runs where

# Wherever this runs, it leaves a file; inside the sandbox there is no such directory.
CANARY = """
def _sing():
    try:
        open({path!r}, "a").write("here\\n")
    except OSError:
        pass

_sing()

class Bird:
    def __reduce__(self): _sing(); return (str, ("x",))
    def __str__(self): _sing(); return "bird"
    def __index__(self): _sing(); return 128
    def __del__(self): _sing()
    def __eq__(self, other): _sing(); return True
    __hash__ = None

@triton.jit
def k(x_ptr, y_ptr, out_ptr, n, B: tl.constexpr):
    tl.core.inspect.sys.modules["__main__"].__dict__.get("_sing", _sing)
    i = tl.program_id(0) * B + tl.arange(0, B)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(out_ptr + i, x - tl.load(y_ptr + i, mask=i < n), mask=i < n)

def add(x, y):
    _sing()
    out = torch.empty_like(x)
    k[(triton.cdiv(x.numel(), 128),)](x, y, out, x.numel(), B=128)
    return out if x.numel() != 5 else Bird()
"""


def test_no_student_python_runs_outside_the_sandbox(grader, tmp_path):
    """Neither in the judge nor in the process that passes things on. The control: with the sandbox
    off the same text does leave its mark, so this test can fail."""
    path = tmp_path / "canary"
    request = _request("02_vector_add", {"02.add": CANARY.format(path=str(path))})
    graded = grader.grade(request)
    assert graded.status == "ok" and _mark(graded, "02.add").outcome == "fail"
    assert not path.exists()
    unsafe = Grader(unsafe=True, budget=BUDGET)
    try:
        unsafe.grade(request)
    finally:
        unsafe.close()
    assert path.exists()


def test_the_judge_holds_neither_torch_nor_triton(grader):
    grader._judge.wait_ready()
    with open(f"/proc/{grader._judge.hello['pid']}/maps") as file:
        maps = file.read()
    assert "numpy" in maps and not re.search(r"libtorch|libtriton", maps)


def test_the_warm_process_is_single_threaded_and_knows_no_secret(grader):
    hello = grader._sandbox._take().wait_ready()
    assert hello["threads"] == 1
    source = (CHECKOUT / "autograder/grading/worker.py").read_text()
    assert "hidden" not in source.replace("hidden cases", "") and "secret" not in source


# ---------------------------------------------------------------- the sandbox


def _solve(box, text, **limits):
    job = {"job": "solve", "cells": [["c", text]], "tasks": []}
    end, lines = box.run(job, Limits(**{"cpu": 3, "step": 30, "wall": 60} | limits))
    errors = [line["cell_error"][1] for line in lines if "cell_error" in line]
    return end, errors[0] if errors else ""


def test_nothing_of_the_machine_is_in_the_sandbox(grader):
    look = (
        "import os\nraise Exception(sorted(os.listdir('/opt/course')), os.listdir('/tmp'), "
        "os.listdir('/proc'), os.getuid(), os.path.exists('/home'), os.path.exists('/work'))"
    )
    end, said = _solve(grader._sandbox, look)
    assert end.how == "ok"
    assert (
        "(['autograder', 'lab_setup', 'venv'], [], [], 61000, False, False)" in said
        or "['autograder', 'lab_setup']" in said
    )
    assert str(CHECKOUT) not in said


def test_forks_do_not_see_each_other(grader):
    _solve(grader._sandbox, "open('/tmp/note', 'w').write('x')\nimport builtins\nbuiltins.note = 1")
    end, said = _solve(
        grader._sandbox,
        "import os\nraise Exception(os.listdir('/tmp'), 'note' in dir(__builtins__))",
    )
    assert "([], False)" in said


@pytest.mark.parametrize(
    "text, how, words, step",
    [
        ("while True: pass", "timeout", "processor time", 60),
        ("import time\ntime.sleep(1000)", "timeout", "no progress", 3),
        ("import os\nos._exit(3)", "crash", "exit status 3", 60),
        ("import ctypes\nctypes.string_at(0)", "crash", "SIGSEGV", 60),
        ("import os\nwhile True: os.write(3, b'x' * 65536)", "output", "more than", 60),
    ],
)
def test_how_a_fork_ends_is_told(grader, text, how, words, step):
    end, _ = _solve(grader._sandbox, text, cpu=1, step=step, output=1 << 20)
    assert end.how == how and words in end.detail


def test_memory_gives_a_clean_error(grader):
    end, said = _solve(grader._sandbox, "bytearray(8 << 30)")
    assert end.how == "ok" and "MemoryError" in said


def test_where_namespaces_are_refused_each_job_gets_a_sandbox_of_its_own(monkeypatch):
    """Some distributions let nobody make namespaces inside bubblewrap."""
    hello = Warm.wait_ready

    def refuse(self):
        said = hello(self)
        return {"refused": "unshare: EPERM"} if self.confinement == "namespaces" else said

    monkeypatch.setattr(Warm, "wait_ready", refuse)
    box = Sandbox()
    try:
        end, said = _solve(box, "import os\nos.kill(os.getppid(), 9)")
        assert (end.how, box.confinement) == ("crash", "filter")
        end, said = _solve(box, "import os\nos.fork()")
        assert end.how == "ok" and "PermissionError" in said
    finally:
        box.close()


def test_bubblewrap_that_cannot_work_is_one_sentence(monkeypatch):
    monkeypatch.setattr(sandbox, "bubblewrap", lambda: ("bwrap", "--ro-bind", "/nowhere", "/"))
    with pytest.raises(sandbox.Rejected, match="cannot make a sandbox here .*nowhere"):
        sandbox.require_bubblewrap()


def test_packages_that_the_sandbox_would_not_show_are_one_sentence(monkeypatch, tmp_path):
    """A borrowed environment, whose .pth names another one; each submission failed with numpy."""
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setattr(sandbox, "_python", set)
    with pytest.raises(sandbox.Rejected, match=r"numpy is in /.* `make setup`"):
        sandbox.require_bubblewrap()


def test_a_sandbox_that_cannot_start_says_why_to_every_submission(monkeypatch):
    """The second one used to read of a file that is closed."""
    monkeypatch.setattr(sandbox, "_interpreter", lambda: "/no/python")
    box = Sandbox()
    try:
        for _ in range(2):
            with pytest.raises(sandbox.SandboxFailed, match="/no/python"):
                _solve(box, "")
    finally:
        box.close()


def test_a_judge_that_cannot_start_fails_every_submission_alike(grader, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(sandbox, "_environment", lambda *_: {"PYTHONHOME": "/no"})
        patch.setattr(grader, "_judge", Warm("judge", "limits"))
        for _ in range(2):
            with pytest.raises(sandbox.SandboxFailed):  # the second one was a ValueError
                grader._to_judge({})


def test_an_ordinary_user_gets_namespaces_from_bubblewrap(monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    sandbox.bubblewrap.cache_clear()
    try:
        command = sandbox.bubblewrap()
    finally:
        sandbox.bubblewrap.cache_clear()
    assert "--unshare-all" in command and "CAP_SETUID" not in command


# ---------------------------------------------------------------- what comes back


def test_seconds_later_the_same_points_to_the_byte(grader):
    request = _request("02_vector_add", {"02.add": solutions("wrong", "02.add")["mask_off_by_one"]})
    first, second = grader.grade(request), grader.grade(request)
    assert first.marks == second.marks


def test_a_name_that_two_exercises_use_means_what_it_meant_in_its_cell(grader):
    add = solutions("right", "02.add")["plain"].replace("add_kernel", "kernel")
    relu = solutions("right", "02.fma_relu")["plain"].replace("fma_relu_kernel", "kernel")
    graded = grader.grade(_request("02_vector_add", {"02.add": add, "02.fma_relu": relu}))
    assert [mark.outcome for mark in graded.marks[:2]] == ["pass", "pass"]


def test_a_loop_costs_its_own_exercise_only(grader):
    add = "while True: pass"
    relu = solutions("right", "02.fma_relu")["plain"]
    quick = dataclasses.replace(BUDGET, solve=Limits(cpu=2, step=30, wall=60))
    grader._budget = quick
    try:
        graded = grader.grade(_request("02_vector_add", {"02.add": add, "02.fma_relu": relu}))
    finally:
        grader._budget = BUDGET
    assert graded.status == "timeout"
    assert _mark(graded, "02.add").points == 0 and _mark(graded, "02.fma_relu").outcome == "pass"


def test_a_crash_of_ours_decides_nothing(grader, monkeypatch):
    request = _request("02_vector_add", {"02.add": solutions("right", "02.add")["plain"]})
    broken = dataclasses.replace(request, salt="not hexadecimal")
    graded = grader.grade(broken)
    assert graded.status == "infrastructure" and graded.points is None
    assert "no points are lost" in graded.marks[0].html and "Traceback" not in graded.marks[0].html


@pytest.mark.parametrize("style", list(solutions("right", "02.add")))
def test_every_right_style_passes(grader, style):
    graded = grader.grade(
        _request("02_vector_add", {"02.add": solutions("right", "02.add")[style]})
    )
    mark = _mark(graded, "02.add")
    assert (mark.outcome, mark.points) == ("pass", mark.max_points), mark.json


# ---------------------------------------------------------------- unit 01 and quizzes

NUMPY_ATTACKS = {
    "numpy_does_it": "def add_kernel(pid, x, y, out, n, BLOCK):\n    out[:] = x + y",
    "right_only_for_public_sizes": (
        "def add_kernel(pid, x, y, out, n, BLOCK):\n"
        "    i = pid[0] * BLOCK + arange(0, BLOCK)\n"
        "    m = i < n\n"
        "    v = load(x, i, m) + load(y, i, m)\n"
        "    store(out, i, v if n in (98432, 1000, 1024, 5, 1, 777) else 0 * v, m)"
    ),
    "forged_outputs": (
        "import autograder.grading.runs as r\n"
        "keys = 'outputs', 'findings', 'traffic', 'warnings', 'changed'\n"
        "r.run_to_json = lambda run: {key: [] for key in keys}\n"
        "def add_kernel(pid, x, y, out, n, BLOCK): pass"
    ),
    "pickled_output": (
        "import autograder.grading.runs as r\n"
        "r.to_npy = lambda a: __import__('base64').b64encode(b'\\x80\\x04K\\x01.').decode()\n"
        "def add_kernel(pid, x, y, out, n, BLOCK): pass"
    ),
}


@pytest.fixture(scope="module")
def hidden_01():
    return Course(CHECKOUT).hidden("01_programming_model")


def test_unit_01_right_work_passes(grader, hidden_01):
    cells = {id: solutions("right", id)["plain"] for id in ("01.add", "01.softmax", "01.matmul")}
    cells["01.quiz"] = answers("01_programming_model")
    graded = grader.grade(_request("01_programming_model", cells, hidden_01, SETUP_01))
    assert graded.points == graded.max_points and graded.status == "ok"


@pytest.mark.parametrize("attack", NUMPY_ATTACKS)
def test_unit_01_outputs_are_compared_outside(grader, hidden_01, attack):
    cells = {"01.add": NUMPY_ATTACKS[attack]}
    graded = grader.grade(_request("01_programming_model", cells, hidden_01, SETUP_01))
    mark = _mark(graded, "01.add")
    hidden = len(hidden_cases("01.add", hidden_01))
    most = mark.max_points * 6 / (6 + hidden) if attack.startswith("right_only") else 0
    assert mark.outcome in ("fail", "could_not_check") and (mark.points or 0) <= most + 0.01


def test_a_quiz_is_scored_by_the_judge(grader):
    hidden = Course(CHECKOUT).hidden("02_vector_add")
    for text, points in (
        (answers("02_vector_add"), 4.0),
        (answers("02_vector_add", right=False), 0.0),
        ("answers = {'q1': float('nan'), 'q2': float('inf'), 'q3': 10**400, 'q4': 'abcde'}", 0.0),
        ("class D(dict):\n    def get(self, k): return 'c'\nanswers = D()", 0.0),
        ("answers = [" * 50 + "]" * 50, 0.0),
        ("answers = None", 0.0),
    ):
        graded = grader.grade(_request("02_vector_add", {"02.quiz": text}, hidden))
        assert _mark(graded, "02.quiz").points == points, text


def test_without_its_key_a_quiz_is_undecided(grader):
    graded = grader.grade(_request("02_vector_add", {"02.quiz": answers("02_vector_add")}, {}))
    assert _mark(graded, "02.quiz").points is None


@pytest.mark.parametrize("id", ["01.add", "01.softmax", "02.add", "02.fma_relu"])
def test_the_audit_catches_every_wrong_answer(id):
    from autograder import exercises

    counts = audit_exercise(exercises.get(id), exercises.get(id).cases)
    assert counts.pop("right")[0] == 0
    assert all(caught == total > 0 for caught, total in counts.values()), counts


def test_blind_answers_earn_little():
    from autograder import exercises

    for assignment in ("01_programming_model", "02_vector_add"):
        exercise = exercises.get(f"{assignment[:2]}.quiz")
        points = audit_quiz(exercise, Course(CHECKOUT).hidden(assignment)[exercise.id])
        assert points.pop("right") == exercise.max_points
        assert max(points.values()) <= exercise.max_points / 2
