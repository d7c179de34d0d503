"""The judge's process that stays for some jobs: what it says depends on the job alone."""

import dataclasses
import json
import os
import time

import pytest

from autograder.grading import forkserver, judge
from autograder.grading.ahead import warm_job
from autograder.grading.confine import Limits
from autograder.grading.grader import Budget, Grader, Request
from autograder.grading.sandbox import Warm
from tests.sample_class import answers, solutions

ASSIGNMENT = "02_vector_add"
LIMITS = Budget().judge
SETUP = ("cell 1", "import torch\nimport triton\nimport triton.language as tl")


@pytest.fixture(scope="module")
def jobs():
    """Jobs of the judge for right, wrong and tampered work on two exercises."""
    asked = []
    grader = Grader()
    run = grader._judge.run

    def noted(job, limits):
        asked.append(job)
        return run(job, limits)

    grader._judge.run = noted
    styles = [
        *list(solutions("right", "02.add").values())[:3],
        *list(solutions("wrong", "02.add").values())[:3],
        "def add(x, y):\n    return x + y",
        "def add(x, y):\n    raise ValueError('no')",
    ]
    for text in styles:
        cells = (SETUP, ("solution-02-add", text), ("check-02-add", ""))
        cells += (("solution-02-quiz", answers(ASSIGNMENT)), ("check-02-quiz", ""))
        own = ("solution-02-add", "solution-02-quiz")
        grader.grade(Request("s", ASSIGNMENT, cells, own, salt="5a" * 32))
        grader._alike.answers.clear()
    grader.close()
    assert {job.get("exercise") for job in asked} >= {"02.add", "02.quiz"}
    assert {job["job"] for job in asked} == {"kernels", "judge"}
    return asked


@pytest.fixture
def warm():
    process = Warm("judge", "limits")
    yield process
    process.close()


def _said(warm, job, limits=LIMITS):
    end, lines = warm.run(job, limits)
    return end.how, json.dumps(lines)


def test_it_says_what_a_fresh_one_says_in_any_order(jobs, warm):
    stayed = [_said(warm, job) for job in jobs]
    backwards = [_said(warm, job) for job in reversed(jobs)]
    assert backwards[::-1] == stayed
    outcomes = {json.loads(lines)[-1].get("outcome") for _, lines in stayed}
    assert outcomes >= {"pass", "fail"}
    for job, said in zip(jobs, stayed, strict=True):
        assert _in_a_fork_of_its_own(job) == said


def _in_a_fork_of_its_own(job):
    def task(emit, more):
        judge.perform(job, emit, more)

    end, data = forkserver.run_confined(task, LIMITS, "limits")
    lines = [json.loads(line) for line in data.splitlines()]
    return end.how, json.dumps(lines)


def test_inputs_that_stay_cannot_be_changed():
    job = warm_job() | {"salt": "5a"}
    assert judge.ahead(job) and not judge.ahead(job)
    exercise = judge.exercises.get(job["exercise"])
    array = judge.arguments_of(exercise, exercise.cases[0], job, 0)[0]
    with pytest.raises(ValueError, match="read-only"):
        array[0] = 1


def test_a_job_that_ends_it_costs_no_other_job(warm):
    before = _said(warm, warm_job())
    broken = warm_job() | {"exercise": "no such exercise", "lines": None}
    assert before[0] == "ok"
    how, said = _said(warm, broken | {"exercise": "02.add"})
    assert how == "crash" and "error" in said
    assert _said(warm, warm_job()) == before


def test_every_job_has_the_whole_processor_time(warm):
    """A second for each of some jobs that need more together; one that needs more itself ends."""
    small = dataclasses.replace(LIMITS, cpu=1)
    heavy = warm_job()
    heavy["lines"] = heavy["lines"] * 8  # as if it had been tuned: eight records of one case
    spent = 0.0
    while spent < 3:
        end, _ = warm.run(heavy, small)
        assert end.how == "ok"
        spent += end.seconds
    endless = warm_job()
    endless["lines"] = endless["lines"] * 4000
    end, _ = warm.run(endless, small)
    assert (end.how, end.spent) == ("timeout", True)
    assert warm.run(heavy, small)[0].how == "ok"


def test_a_fork_that_closes_its_ends_and_stays_is_stopped():
    limits = Limits(step=1, wall=2)

    def task(emit, more):
        os.closerange(0, 100)
        time.sleep(60)

    end, _ = forkserver.run_confined(task, limits, "limits")
    assert end.how == "timeout" and end.seconds < 30
