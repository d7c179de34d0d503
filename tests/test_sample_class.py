"""The corpus has what every exercise needs, and the sample class hands it in where it belongs."""

from __future__ import annotations

import ast

import pytest

from autograder import exercises
from autograder.records import Exercise
from course import demo
from course.demo import _MISTAKES
from tests.sample_class import a_class, cell, solutions

CODING = [exercises.get(id) for id in exercises.ids() if exercises.get(id).machine != "quiz"]
ASSIGNMENTS = sorted({exercises.assignment(exercise.id[:2]) for exercise in CODING})


def defined(text: str) -> set[str]:
    """Names that a file defines at its top level, by ``def``, ``class`` or ``=``."""
    names = set()
    for node in ast.parse(text).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, ast.Assign):
            names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return names


@pytest.mark.parametrize("exercise", CODING, ids=lambda exercise: exercise.id)
def test_every_exercise_has_right_work_in_four_styles_and_twelve_mistakes(exercise: Exercise):
    right = solutions("right", exercise.id)
    assert len(right) >= 4 and len(solutions("wrong", exercise.id)) >= 12
    for style, text in right.items():
        assert set(exercise.names) <= defined(text), style


@pytest.mark.parametrize("assignment", ASSIGNMENTS)
def test_a_class_hands_in_every_file_in_its_own_cell(assignment):
    students = list(a_class(assignment))
    names = [student for student, _ in students]
    assert len(set(names)) == len(names)
    handed = [text for _, cells in students for text in cells.values()]
    for exercise in exercises.of_assignment(assignment):
        for text in solutions("wrong", exercise.id).values():
            assert handed.count(text) >= 1
        for student, cells in students:
            if student.startswith("right") and exercise.machine != "quiz":
                assert set(exercise.names) <= defined(cells[cell(exercise.id)]), student


@pytest.mark.parametrize("assignment", ASSIGNMENTS)
def test_the_demo_shows_typical_mistakes_of_every_exercise(assignment):
    """The demo names one whose page is worth a look: a mask that is missing."""
    shown = [student for student, _ in a_class(assignment) if student in _MISTAKES]
    assert any("_missing_" in student for student in shown)
    for exercise in exercises.of_assignment(assignment):
        short = exercise.id[3:] + "_"
        assert any(student.startswith(short) for student in shown), exercise.id


@pytest.mark.parametrize("user, flag", [(0, True), (1000, False)])
def test_the_demo_names_a_jupyterlab_that_starts(monkeypatch, capsys, user, flag):
    """Jupyter refuses root without the flag, and containers often are root."""
    monkeypatch.setattr(demo, "course_directory", lambda *_: None)
    monkeypatch.setattr(demo, "hand_in", lambda *_: ["right_1"])
    monkeypatch.setattr(demo, "_run", lambda *_: None)
    monkeypatch.setattr(demo.os, "geteuid", lambda: user)
    assert demo.main(["02"]) == 0
    (line,) = [line for line in capsys.readouterr().out.splitlines() if "-m jupyterlab" in line]
    assert line.endswith(" --allow-root") == flag
