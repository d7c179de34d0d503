"""Whether a table and its hidden cases can judge: what is wrong is one sentence for the author."""

from __future__ import annotations

import difflib
import json
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from autograder.exercises.inputs import FILLS, below
from autograder.records import ASPECTS, FINDING_KINDS, Case, Exercise, Rejected, Tensor

_ROW = {"label", "sizes", "seed"}


def check(exercise: Exercise) -> None:
    """Raises Rejected where points, notes or a public case of an exercise mean nothing."""
    for aspect, points in exercise.points.items():
        _known(aspect, ASPECTS, f"{exercise.id} gives points for '{aspect}', which is no aspect")
        if not points > 0:
            raise Rejected(
                f"{exercise.id} gives {points} points for {aspect}: give more than 0, or leave the "
                "aspect out."
            )
    if exercise.machine != "quiz":  # whose notes are its questions
        for kind in (*exercise.notes, *(clue.kind for clue in exercise.clues)):
            _known(kind, FINDING_KINDS, f"{exercise.id} has a note on '{kind}', which is no kind")
    for case in (*exercise.cases, *filter(None, [exercise.compiled])):
        _check_case(exercise, case)


def read_hidden(path: Path, exercises: Iterable[Exercise]) -> dict | None:
    """The hidden cases and quiz keys of an assignment with these exercises; None without a file.

    Raises Rejected, with the file's name, where a row could not judge or an id is none of theirs:
    its rows would be left out without a word.
    """
    where = f"course/hidden/{path.name}"
    try:
        hidden = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise Rejected(f"{where} is not valid JSON: {error}") from None
    table = {exercise.id: exercise for exercise in exercises}
    if not isinstance(hidden, dict):
        raise Rejected(f'{where} needs an object, {{"{min(table, default="id")}": [rows]}}.')
    for id, rows in hidden.items():
        _known(id, table, f"{where} has rows for '{id}', which is no exercise of the assignment")
        if isinstance(rows, dict) == (table[id].machine != "quiz"):
            raise Rejected(f"{where}: a quiz has an object of answers, {id} has other contents.")
        if table[id].machine != "quiz":
            _check_rows(table[id], rows, where)
    return hidden


def hidden_cases(exercise_id: str, hidden: Mapping | None) -> tuple[Case, ...]:
    """The rows ``{"label": …, "sizes": {…}}`` under the exercise's id, as hidden cases."""
    rows = (hidden or {}).get(exercise_id, ())
    if isinstance(rows, dict):  # a quiz: answers, no cases
        return ()
    try:
        return tuple(
            Case(row["label"], dict(row["sizes"]), hidden=True, seed=int(row.get("seed", 0)))
            for row in rows
        )
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise Rejected(
            f"The hidden cases of {exercise_id} need a label and sizes in every row ({error!r})."
        ) from None


def _check_rows(exercise: Exercise, rows: list, where: str) -> None:
    try:
        cases = hidden_cases(exercise.id, {exercise.id: rows})
        for row, case in zip(rows, cases, strict=True):
            for key in row:
                _known(key, _ROW, f"A hidden case of {exercise.id} has a '{key}'")
            if any(dict(case.sizes) == dict(public.sizes) for public in exercise.cases):
                raise Rejected(f"Case “{case.label}” of {exercise.id} is a public one: change it.")
            _check_case(exercise, case)
    except Rejected as error:
        raise Rejected(f"{where}: {error}") from None


def _check_case(exercise: Exercise, case: Case) -> None:
    """Asks the table for everything about a case that costs nothing."""
    place = f"Case “{case.label}” of {exercise.id}"
    try:
        for asked in (exercise.outputs, exercise.limit, exercise.stores, exercise.programs):
            asked(case)
        tensors = [a for a in exercise.arguments(case) if isinstance(a, Tensor)]
    except KeyError as error:
        raise Rejected(f"{place} lacks the size {error}, which the table asks for.") from None
    except Exception as error:  # the author's functions may raise anything
        raise Rejected(f"{place}: the table raises {type(error).__name__}: {error}.") from error
    for fill in (tensor.fill for tensor in tensors):
        if not below(fill):
            _known(fill, {*FILLS, "below_N"}, f"{place} asks for the fill '{fill}', which is none")


def _known(word: str, words: Collection[str], fault: str) -> None:
    if word not in words:
        near = difflib.get_close_matches(str(word), words, n=1)
        hint = f"did you mean '{near[0]}'?" if near else f"there are {', '.join(sorted(words))}."
        raise Rejected(f"{fault}: {hint}")
