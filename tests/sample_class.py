"""Makes a sample class: ``python -m tests.sample_class COURSE [NN]`` fills COURSE/submitted/.

Right in three styles, blank, half done, and one student for each typical mistake. The solutions are
the files of tests/submissions/; every submission is the released notebook with its cells filled.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import nbformat

from autograder import exercises
from autograder.grading import corpus
from autograder.grading.submission import canonical

CHECKOUT = Path(__file__).parents[1]


def solutions(kind: str, exercise: str) -> dict[str, str]:
    """name → text of the files of ``kind`` ("right", "wrong") for an exercise, sorted."""
    files = corpus.solutions(kind, exercise)
    return {name: path.read_text(encoding="utf-8") for name, path in files.items()}


def answers(assignment: str, right: bool = True) -> str:
    """The quiz cell with every answer right, or with all of them wrong."""
    path = CHECKOUT / "course" / "hidden" / f"{assignment}.json"
    key = json.loads(path.read_text(encoding="utf-8")).get(f"{assignment[:2]}.quiz", {})
    given = {name: row["answer"] if right else _wrong(row["answer"]) for name, row in key.items()}
    return f"answers = {given!r}\n"


def _wrong(answer):
    if isinstance(answer, str):
        return "b" if answer == "a" else "a"
    if isinstance(answer, list):
        return [next(letter for letter in "abcde" if letter not in answer)]
    return answer + 1


def cell(exercise: str) -> str:
    """The grade id of an exercise's solution cell."""
    return "solution-" + exercise.replace(".", "-")


def a_class(assignment: str) -> Iterator[tuple[str, dict[str, str]]]:
    """(student, grade id → text) of everybody. Cells that are not named stay as released."""
    asked = exercises.of_assignment(assignment)
    coding = [e.id for e in asked if e.machine != "quiz"]
    quiz = {cell(e.id): answers(assignment) for e in asked if e.machine == "quiz"}
    right = {id: list(solutions("right", id).items()) for id in coding}
    best = {cell(id): _first(right[id], "plain") for id in coding} | quiz
    for number in range(3):
        style = {cell(id): right[id][number % len(right[id])][1] for id in coding}
        yield f"right_{number + 1}", best if number == 0 else style | quiz
    yield "blank", {}
    if coding:  # a unit may have a quiz only
        yield "half_done", {cell(coding[0]): best[cell(coding[0])]}
    for id in coding:
        for name, text in solutions("wrong", id).items():
            yield f"{id[3:]}_{name}"[:60], best | {cell(id): text}
    for name in quiz:
        yield "quiz_wrong", best | {name: answers(assignment, right=False)}


def _first(styles: list[tuple[str, str]], wanted: str) -> str:
    return dict(styles).get(wanted, styles[0][1])


def write(course: Path, student: str, assignment: str, sources: Mapping[str, str]) -> Path:
    """submitted/STUDENT/ASSIGNMENT with a notebook and a time stamp; returns the notebook."""
    release = course / "release" / assignment / f"{assignment}.ipynb"
    notebook = canonical(nbformat.read(release, as_version=4), sources)
    directory = course / "submitted" / student / assignment
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "timestamp.txt").write_text("2026-10-01 12:00:00 UTC\n")
    path = directory / f"{assignment}.ipynb"
    nbformat.write(notebook, path)
    return path


def main() -> None:
    parser = argparse.ArgumentParser(description="Make a sample class in a course directory.")
    parser.add_argument("course", type=Path)
    parser.add_argument("assignments", nargs="*", help="e.g. 02 (default: all that are released)")
    options = parser.parse_args()
    chosen = [exercises.assignment(a) for a in options.assignments]
    for assignment in chosen or exercises.ASSIGNMENTS.values():
        if (options.course / "release" / assignment).is_dir():
            for student, sources in a_class(assignment):
                write(options.course, student, assignment, sources)


if __name__ == "__main__":
    main()
