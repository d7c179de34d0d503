"""Levels of an assignment: in the check's words, in the grader's table, in the export."""

from __future__ import annotations

import csv
import io
import json

import pytest
from rich.console import Console

from autograder import exercises
from autograder.exercises import levels
from autograder.grading.driver import Row
from autograder.grading.grader import Graded, Mark
from autograder.grading.report import as_json, summary_table
from autograder.grading.solving import check_id, exercise_id
from autograder.render.html import feedback_html, verdict_html
from autograder.render.text import verdict_text
from autograder.verdict import verdict
from tests.grading_course import make_course

FLASH = exercises.of_assignment("06")
STRONG, BOSS, BACKWARD, GQA, QUIZ = (exercise.id for exercise in FLASH)
NAME = "06_flash_attention"


def points(*full: str) -> dict[str, float | None]:
    """Full points in some exercises, half of them in the others."""
    return {e.id: e.max_points if e.id in full else e.max_points / 2 for e in FLASH}


@pytest.mark.parametrize(
    ("full", "level"),
    [
        ((), ""),
        ((QUIZ,), ""),
        ((STRONG,), "Strong"),
        ((STRONG, BOSS), "Boss"),
        ((BOSS,), "Boss"),  # who does the causal one has done more than the one below it
        ((STRONG, BOSS, GQA), "Boss"),
        ((STRONG, BACKWARD), "Strong"),
        ((STRONG, BOSS, BACKWARD, GQA), "Legend"),
    ],
)
def test_the_level_reached_is_the_highest_with_full_points(full, level):
    assert levels.reached(FLASH, points(*full)) == level


def test_what_nobody_decided_reaches_nothing():
    assert levels.reached(FLASH, points(STRONG) | {BOSS: None}) == "Strong"
    assert levels.reached(FLASH, {}) == ""
    plain = exercises.of_assignment("05")
    assert levels.reached(plain, {e.id: e.max_points for e in plain}) == ""


@pytest.mark.parametrize("exercise", FLASH[:-1], ids=lambda exercise: exercise.id)
def test_check_and_feedback_name_the_level(exercise):
    result = verdict(exercise, [])
    said = f"level {exercise.level}"
    assert said in verdict_text(result, exercise).splitlines()[0]
    for page in (verdict_html(result, exercise), feedback_html(result, exercise)):
        assert said in page[: page.index("</b>")]


def test_no_other_exercise_has_a_level():
    named = {id: exercises.get(id).level for id in exercises.ids() if exercises.get(id).level}
    assert named == {STRONG: "Strong", BOSS: "Boss", BACKWARD: "Legend", GQA: "Legend"}


def row(*full: str) -> Row:
    given = points(*full)
    marks = tuple(Mark(e.id, "ok", given[e.id], e.max_points, "pass") for e in FLASH)
    return Row(Graded("ada", NAME, "ok", marks=marks))


def test_the_graders_table_and_json_have_the_level():
    rows = [row(STRONG, BOSS)]
    (told,) = as_json(NAME, rows)["submissions"]
    assert told["level"] == "Boss"
    page = Console(file=io.StringIO(), width=200)
    page.print(summary_table(FLASH, rows))
    assert "level" in page.file.getvalue() and "Boss" in page.file.getvalue()
    plain = summary_table(exercises.of_assignment("05"), [])
    assert "level" not in [column.header for column in plain.columns]


def test_the_export_has_the_level_also_by_points_that_a_person_gave(tmp_path):
    from nbgrader.api import Gradebook

    from autograder.grading.export import GradesWithStatus

    course = make_course(tmp_path / "course", NAME)
    with Gradebook(f"sqlite:///{course}/gradebook.db") as gradebook:
        for student in ("ada", "ben", "cleo"):
            gradebook.add_student(student)
            submission = gradebook.add_submission(NAME, student)
            for grade in submission.notebooks[0].grades:
                grade.auto_score = points(STRONG)[exercise_id(grade.name)]
                if student == "ada" and grade.name == check_id(BOSS):
                    grade.manual_score = exercises.get(BOSS).max_points
                if student == "cleo" and grade.name == check_id(STRONG):
                    grade.auto_score = None
            path = course / "autograded" / student / NAME / f"{NAME}.ipynb"
            path.parent.mkdir(parents=True)
            path.write_text(json.dumps({"metadata": {}}))
        gradebook.db.commit()
        GradesWithStatus(to=str(course / "grades.csv"), root=str(course)).export(gradebook)
    with open(course / "grades.csv", newline="") as file:
        found = {line["student_id"]: line for line in csv.DictReader(file)}
    assert found["ada"]["level"] == "Boss" and found["ben"]["level"] == "Strong"
    assert (found["cleo"]["level"], found["cleo"]["score"]) == ("", "")  # a person has to look
