"""Quizzes: what an answer looks like, and how answers are scored against a key.

A quiz is an Exercise with ``machine="quiz"`` and no cases. Its ``notes`` are its table of questions
(name → form); their wording is Markdown in the assignment. A form is one of

* ``"number"``: an int or a float; the key may give a relative ``tolerance``
* ``"one of a b c d"``: one of these letters, as a string
* ``"some of a b c d"``: a list of these letters, in any order

The right answers are no part of this package, which students have. They are data in
``course/hidden/NN_name.json`` under the quiz's id::

    "01.quiz": {"q1": {"answer": 10, "explain": "ten blocks of 1024 cover 10 000 numbers"}, …}

An answer of None is a question left open: well formed, and no point.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from autograder.records import CouldNotCheck, Exercise, Finding


@dataclass(frozen=True)
class Answer:
    """How one question went. ``explain`` is the key's sentence, for the feedback."""

    question: str
    given: Any  # None where nothing usable was given
    points: float
    max_points: float
    explain: str = ""

    @property
    def right(self) -> bool:
        return self.points == self.max_points


def quiz(id: str, title: str, questions: Mapping[str, str]) -> Exercise:
    """The Exercise of a quiz whose ``questions`` map names to forms; a point a question.

    Raises ValueError on a form that is none of the three.
    """
    for form in questions.values():
        _letters(form)
    return Exercise(
        id=id,
        title=title,
        names=("answers",),
        cases=(),
        points={"values": float(len(questions))},
        arguments=lambda case: (),
        reference=lambda: (),
        tolerance=lambda case, arguments, expected: (),
        machine="quiz",
        notes=dict(questions),
    )


def check_format(exercise: Exercise, answers: Any) -> tuple[Finding, ...]:
    """What keeps ``answers`` from being graded, one ``interface`` finding a fault; says nothing
    about right or wrong. Empty if all is well formed, open questions included."""
    questions = exercise.notes
    if not isinstance(answers, dict):
        wanted = ", ".join(f'"{name}": …' for name in questions)
        return (_fault(f"answers is {_said(answers)}; it wants a dict: answers = {{{wanted}}}."),)
    missing = [name for name in questions if name not in answers]
    verb = "is" if len(missing) == 1 else "are"
    faults = [_fault(f"{', '.join(missing)} {verb} missing from answers.")] if missing else []
    for name, given in answers.items():
        if name not in questions:
            asked = ", ".join(questions)
            fault = f"answers has {_said(name)}, but the quiz asks {asked}."
            faults.append(_fault(fault, _said(name)))
        elif given is not None and not _fits(questions[name], given):
            faults.append(
                _fault(f"{name} wants {_wanted(questions[name])}, not {_said(given)}.", name)
            )
    return tuple(faults)


def open_questions(exercise: Exercise, answers: Any) -> tuple[str, ...]:
    """The questions that have no answer yet, in the quiz's order."""
    given = answers if isinstance(answers, dict) else {}
    return tuple(name for name in exercise.notes if given.get(name) is None)


def score(exercise: Exercise, answers: Any, key: Mapping[str, Mapping]) -> tuple[Answer, ...]:
    """``answers`` (anything at all) against ``key``, one Answer a question in the quiz's order.

    A number is right within the key's relative ``tolerance`` (without one: exactly). A choice of
    several earns (right letters − wrong letters) ÷ letters in the key, at least 0, so that ticking
    all earns no more than knowing. What is not well formed counts as not given.
    Raises CouldNotCheck if the key does not fit the questions: that is the course's fault.
    """
    questions = exercise.notes
    if set(key) != set(questions) or not all(
        _fits(form, key[name].get("answer")) for name, form in questions.items()
    ):
        raise CouldNotCheck(f"The hidden key of {exercise.id} does not fit its questions.")
    given = answers if isinstance(answers, dict) else {}
    each = exercise.max_points / len(questions)
    results = []
    for name, form in questions.items():
        answer = given.get(name)
        answer = answer if _fits(form, answer) else None
        share = 0.0 if answer is None else _share(form, answer, key[name])
        results.append(
            Answer(name, answer, round(each * share, 2), each, key[name].get("explain", ""))
        )
    return tuple(results)


def _share(form: str, given: Any, key: Mapping) -> float:
    right = key["answer"]
    if form == "number":
        return float(math.isclose(given, right, rel_tol=key.get("tolerance", 0.0)))
    if form.startswith("one of"):
        return float(given == right)
    hits, misses = len(set(given) & set(right)), len(set(given) - set(right))
    return max(0.0, (hits - misses) / len(right))


def _letters(form: str) -> tuple[str, ...]:
    """The letters that a form allows; none for a number."""
    words = form.split()
    if words == ["number"]:
        return ()
    if words[:2] in (["one", "of"], ["some", "of"]) and len(words) > 3:
        return tuple(words[2:])
    raise ValueError(f"'{form}' is no form of question: 'number', 'one of a b …', 'some of a b …'")


def _fits(form: str, given: Any) -> bool:
    letters = _letters(form)
    if not letters:
        # A huge int would not compare with a float; nobody answers with one.
        number = isinstance(given, int | float) and not isinstance(given, bool)
        return number and abs(given) < 1e300
    if form.startswith("one of"):
        return isinstance(given, str) and given in letters
    return (
        isinstance(given, list | tuple | set)
        and 0 < len(given) <= len(letters)
        and all(isinstance(letter, str) and letter in letters for letter in given)
        and len(set(given)) == len(given)
    )


def _wanted(form: str) -> str:
    letters = _letters(form)
    if not letters:
        return "a number, such as 12 or 0.5"
    names = ", ".join(letters)
    if form.startswith("one of"):
        return f'one letter out of {names}, such as "{letters[0]}"'
    return f'a list of letters out of {names}, such as ["{letters[0]}", "{letters[-1]}"]'


def _said(given: Any) -> str:
    text = repr(given)
    return text if len(text) <= 40 else f"{text[:37]}…"


def _fault(message: str, question: str = "answers") -> Finding:
    return Finding("interface", message, argument=question)
