"""``nbgrader export``: grades with a status, and blanks where nothing was decided.

nbgrader's own plug-in writes 0.0 for work that was never handed in, never graded, or could not be
read, which looks like a real zero.
"""

from __future__ import annotations

import csv
import json
from pathlib import Path

from nbgrader.api import Gradebook, MissingEntry
from nbgrader.plugins import ExportPlugin
from traitlets import Unicode

from autograder import exercises
from autograder.exercises import levels
from autograder.grading.preprocessors import KEY
from autograder.grading.solving import exercise_id
from autograder.records import Rejected

COLUMNS = (
    "assignment", "duedate", "timestamp", "student_id", "last_name", "first_name", "email",
    "status", "raw_score", "late_submission_penalty", "score", "max_score", "level",
)  # fmt: skip


class GradesWithStatus(ExportPlugin):
    """CSV, one line a student and assignment, in the order of names; equal grades, equal bytes."""

    root = Unicode("", help="the course directory, where autograded/ is").tag(config=True)

    def export(self, gradebook: Gradebook) -> None:
        path = self.to or "grades.csv"
        chosen = [str(name) for name in self.assignment]
        students = [str(name) for name in self.student]
        with open(path, "w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
            writer.writeheader()
            for assignment in sorted(gradebook.assignments, key=lambda a: a.name):
                if chosen and assignment.name not in chosen:
                    continue
                for student in sorted(gradebook.students, key=lambda s: s.id):
                    if not students or student.id in students:
                        writer.writerow(self._row(gradebook, assignment, student))
        self.log.info("Wrote %s", path)

    def _row(self, gradebook: Gradebook, assignment, student) -> dict:
        row = {
            "assignment": assignment.name,
            "duedate": assignment.duedate,
            "student_id": student.id,
            "last_name": student.last_name,
            "first_name": student.first_name,
            "email": student.email,
            "max_score": assignment.max_score,
            "status": "not handed in",
        }
        try:
            submission = gradebook.find_submission(assignment.name, student.id)
        except MissingEntry:
            return _texts(row)
        row["timestamp"] = submission.timestamp
        row["status"] = self._status(assignment.name, student.id)
        open_grades = [g for n in submission.notebooks for g in n.grades if g.score is None]
        waiting = [
            g for n in submission.notebooks for g in n.grades
            if g.auto_score is None and g.manual_score is None
        ]  # fmt: skip
        if row["status"] == "not graded" or waiting or open_grades:
            return _texts(row)
        penalty = submission.late_submission_penalty or 0.0
        row["raw_score"] = round(submission.score, 4)
        row["late_submission_penalty"] = round(penalty, 4)
        row["score"] = round(max(0.0, submission.score - penalty), 4)
        row["level"] = _level(assignment.name, submission)
        return _texts(row)

    def _status(self, assignment: str, student: str) -> str:
        """What the judge noted in the autograded notebook."""
        root = Path(self.root or self._course_root())
        path = root / "autograded" / student / assignment / f"{assignment}.ipynb"
        try:
            notebook = json.loads(path.read_text(encoding="utf-8"))
        except (FileNotFoundError, ValueError):
            return "not graded"
        return notebook.get("metadata", {}).get(KEY, {}).get("status", "ok")

    def _course_root(self) -> str:
        coursedir = getattr(self.parent, "coursedir", None)
        return coursedir.root if coursedir is not None else "."


def _level(assignment: str, submission) -> str:
    """The level that the grades reach, also where a person gave them; "" without levels."""
    try:
        asked = exercises.of_assignment(assignment)
    except Rejected:  # an assignment that is not of this course
        return ""
    points = {exercise_id(g.name): g.score for n in submission.notebooks for g in n.grades}
    return levels.reached(asked, points)


def _texts(row: dict) -> dict:
    """Blank for None; a text that a spreadsheet would run as a formula gets an apostrophe."""
    texts = {name: "" if row.get(name) is None else str(row[name]) for name in COLUMNS}
    for name in ("last_name", "first_name", "email", "student_id"):
        if texts[name].startswith(("=", "+", "-", "@", "\t")):
            texts[name] = "'" + texts[name]
    return texts
