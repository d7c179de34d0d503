"""Right work gets full marks through the sandbox and the judge, in every exercise of the course.

Other tests judge answers in their own process; here the same files go the way a class goes, where a
fork has an empty /proc and hard limits.
"""

import nbformat
import pytest

from autograder import exercises
from autograder.grading.course import Course
from autograder.grading.grader import Grader, Request
from autograder.grading.preprocessors import code_cells
from tests.grading_course import CHECKOUT
from tests.sample_class import solutions

SETUP = "import torch\nimport triton\nimport triton.language as tl"
SETUP_01 = "import numpy as np\nfrom autograder.minitriton import *\n"
ASSIGNMENTS = sorted({exercises.assignment(id[:2]) for id in exercises.ids()})
# They convert a float32 tensor with .to(), which makes torch look for the processor in /proc.
CONVERT = ("plain", "computes_r_again", "several_rows")


@pytest.fixture(scope="module")
def grader():
    grader = Grader()
    yield grader
    grader.close()


def _graded(grader, assignment, cells):
    own = tuple(name for name, _ in cells if name.startswith("solution"))
    hidden = Course(CHECKOUT).hidden(assignment)
    return grader.grade(Request("s", assignment, tuple(cells), own, hidden=hidden, salt="4c" * 32))


def _marks(grader, assignment, texts):
    cells = [("cell 1", SETUP_01 if assignment.startswith("01") else SETUP)]
    for id, text in texts.items():
        dashed = id.replace(".", "-")
        cells += [(f"solution-{dashed}", text), (f"check-{dashed}", "")]
    return {mark.exercise: mark for mark in _graded(grader, assignment, cells).marks}


def _notebook(folder, assignment):
    path = CHECKOUT / folder / assignment / f"{assignment}.ipynb"
    return code_cells(nbformat.read(path, as_version=4))


def _full(mark) -> bool:
    return (mark.status, mark.outcome, mark.points) == ("ok", "pass", mark.max_points)


@pytest.mark.parametrize("assignment", ASSIGNMENTS)
def test_one_right_file_of_every_exercise_gets_full_marks(grader, assignment):
    asked = [e.id for e in exercises.of_assignment(assignment) if e.machine != "quiz"]
    right = {id: solutions("right", id) for id in asked}
    texts = {id: found.get("plain") or next(iter(found.values())) for id, found in right.items()}
    marks = _marks(grader, assignment, texts)
    for id in asked:
        assert _full(marks[id]), (id, marks[id].points, marks[id].message, marks[id].json)


@pytest.mark.parametrize("assignment", ASSIGNMENTS)
def test_the_source_gets_full_marks_and_the_release_none(grader, assignment):
    """Cell by cell, as a student would hand it in: the GPU cells and all redefinitions included."""
    asked = exercises.of_assignment(assignment)
    full = _graded(grader, assignment, _notebook("source", assignment))
    assert [(m.exercise, m.points) for m in full.marks] == [(e.id, e.max_points) for e in asked]
    none = _graded(grader, assignment, _notebook("release", assignment))
    assert [(m.exercise, m.points) for m in none.marks] == [(e.id, 0.0) for e in asked]


@pytest.mark.parametrize("style", CONVERT)
def test_a_tensor_may_be_converted_in_a_call(grader, style):
    text = solutions("right", "04.rmsnorm_backward")[style]
    mark = _marks(grader, exercises.assignment("04"), {"04.rmsnorm_backward": text})[
        "04.rmsnorm_backward"
    ]
    assert _full(mark), (mark.points, mark.json)
