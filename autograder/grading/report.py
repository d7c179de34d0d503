"""The ``grade`` command: progress bar, summary table, JSON."""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from autograder import exercises
from autograder.exercises import levels
from autograder.grading import course as course_directory
from autograder.grading.driver import Options, Row, grade_class
from autograder.records import Exercise, Rejected
from autograder.render.neutral import neutral

_COLOURS = {"ok": "green", "invalid": "yellow", "infrastructure": "bold red"}


def grade_command(options: argparse.Namespace) -> int:
    """0 when every submission is graded and recorded, else 1. Raises Rejected."""
    course = course_directory.find(options.course)
    assignment = exercises.assignment(options.assignment)
    if options.workers is not None and options.workers < 1:
        raise Rejected("--workers takes a number from 1 on.")
    console = Console(stderr=options.json)
    hidden = course.hidden(assignment)
    if hidden is None:
        console.print(
            f"[yellow]course/hidden/{assignment}.json is missing: graded on public cases only, "
            "and a quiz stays undecided."
        )
    elif bare := [e.id for e in exercises.of_assignment(assignment) if not hidden.get(e.id)]:
        console.print(
            f"[yellow]course/hidden/{assignment}.json has nothing for {', '.join(bare)}: graded on "
            "public cases only, and a quiz stays undecided."
        )
    if options.unsafe_no_sandbox:
        console.print("[bold red]No sandbox: students' code runs with your rights on this machine.")
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TimeElapsedColumn(), console=console) as bar:
        task = bar.add_task(f"Grading {assignment}", total=None)

        def progress(done: int, total: int, student: str) -> None:
            bar.update(task, completed=done, total=total)

        rows = grade_class(
            course,
            assignment,
            Options(
                students=tuple(options.student),
                regrade=options.regrade,
                workers=options.workers,
                scheduler=options.scheduler,
                feedback=options.feedback,
                unsafe=options.unsafe_no_sandbox,
            ),
            progress,
        )
    if options.json:
        json.dump(as_json(assignment, rows), sys.stdout, indent=1)
        print()
    else:
        console.print(summary_table(exercises.of_assignment(assignment), rows))
        console.print(closing_words(assignment, rows, options.feedback))
    open_ends = any(row.problem or row.graded.status == "infrastructure" for row in rows)
    return 1 if open_ends else 0


def as_json(assignment: str, rows: list[Row]) -> dict:
    """``{assignment, submissions: [{student, status, message, points, max_points, level, …}]}``;
    ``points`` is null where nothing was decided, ``level`` "" where there is or was none.
    """
    return {
        "assignment": assignment,
        "submissions": [
            {
                "student": neutral(row.graded.student, 80),
                "status": row.graded.status,
                "message": neutral(row.problem or row.graded.message),
                "points": row.graded.points,
                "max_points": row.graded.max_points,
                "level": levels.reached(exercises.of_assignment(assignment), _by_id(row)),
                "seconds": row.graded.seconds,
                "fresh": row.fresh,
                "exercises": {
                    mark.exercise: {
                        "status": mark.status,
                        "outcome": mark.outcome,
                        "points": mark.points,
                        "max_points": mark.max_points,
                        **({"faults": mark.json["faults"]} if mark.json else {}),
                    }
                    for mark in row.graded.marks
                },
            }
            for row in rows
        ],
    }


def summary_table(asked: tuple[Exercise, ...], rows: list[Row]) -> Table:
    """One line a submission: points by exercise, total, the level reached if there are levels,
    status."""
    table = Table(pad_edge=False, box=None, header_style="bold")
    table.add_column("student")
    for exercise in asked:
        table.add_column(f"{exercise.id}\nof {exercise.max_points:g}", justify="right")
    total = sum(exercise.max_points for exercise in asked)
    table.add_column(f"total\nof {total:g}", justify="right")
    has_levels = any(exercise.level for exercise in asked)
    if has_levels:
        table.add_column("level")
    table.add_column("status")
    table.add_column("", overflow="fold", max_width=60)
    for row in rows:
        graded = row.graded
        by_id = _by_id(row)
        said = row.problem or graded.message or ("" if row.fresh else "as before")
        table.add_row(
            Text(neutral(graded.student, 40)),
            *(_points(by_id.get(e.id)) for e in asked),
            _points(graded.points),
            *[levels.reached(asked, by_id)] * has_levels,
            Text(graded.status, _COLOURS.get(graded.status, "magenta")),
            Text(neutral(said, 200), "dim"),
        )
    return table


def _by_id(row: Row) -> dict[str, float | None]:
    return {mark.exercise: mark.points for mark in row.graded.marks}


def _points(points: float | None) -> str:
    return "–" if points is None else f"{points:g}"


def closing_words(assignment: str, rows: list[Row], feedback: bool) -> Text:
    counts = Counter(row.graded.status for row in rows)
    said = ", ".join(f"{number} {status}" for status, number in counts.most_common())
    words = f"{len(rows)} submissions: {said}."
    if any(row.graded.points is None for row in rows):
        words += " – is not decided: it is exported as a blank, and formgrader waits for a person."
    if not feedback:
        words += f" Feedback: nbgrader generate_feedback {assignment}"
    else:
        words += f" Feedback: feedback/STUDENT/{assignment}/"
    return Text(words)
