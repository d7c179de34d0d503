"""The grader's self-test: answers that are wrong in ways that loose graders miss must all fail.

Judges ready-made outputs, as if a kernel had stored them, with the exercise's own reference,
tolerances and cases: zeros, a constant, an input, the right answers in another order, the right
answers of another case's seed, NaN, and values off by twice the tolerance. The right answers,
rounded to the output's type, must pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from rich.table import Table
from rich.text import Text

from autograder import exercises
from autograder.floats import held, is_float, rounded
from autograder.grading import course as course_directory
from autograder.grading.trials import sharing
from autograder.judging import inputs_of
from autograder.records import Case, CouldNotCheck, Exercise, Output, Rejected, Run
from autograder.verdict import judge_case

Answer = Callable[[np.ndarray, np.ndarray, list[np.ndarray], np.random.Generator], np.ndarray]


def _an_input(right, tolerance, inputs, generator):
    same = [a for a in inputs if a.shape == right.shape]
    return same[0].astype(np.float64) if same else np.zeros_like(right)


def _mean(right):
    finite = right[np.isfinite(right)]
    return finite.mean() if finite.size else 1.0


def _shuffled(right, tolerance, inputs, generator):
    return generator.permutation(right.ravel()).reshape(right.shape)


def _moved(right, tolerance, inputs, generator):
    return np.roll(right.ravel(), 1).reshape(right.shape)


WRONG: dict[str, Answer] = {
    "zeros": lambda right, *_: np.zeros_like(right),
    "constant": lambda right, *_: np.full_like(right, _mean(right)),
    "input": _an_input,
    "shuffled": _shuffled,
    "moved": _moved,
    "NaN": lambda right, *_: np.full_like(right, np.nan),
    "3 tol off": lambda right, tolerance, *_: right + 3 * tolerance + 1e-30,
}


def audit_exercise(exercise: Exercise, cases: Sequence[Case]) -> dict[str, tuple[int, int]]:
    """How many of the cases fail, by kind of answer: ``{"zeros": (caught, of), …, "right": …}``.

    A case counts for a wrong answer only where that answer differs from the right one by more than
    the tolerance (a row of zeros may rightly be zeros).
    """
    counts = {name: [0, 0] for name in ("right", *WRONG)}
    exercise = sharing(exercise)  # each case is judged once a kind of answer
    for case in cases:
        if case.sizes.get("counted"):
            continue  # such a case is there for its addresses; its values are not computed
        for name, judged, applies in _answers(exercise, case):
            if applies:
                counts[name][0] += judged.status != "pass"
                counts[name][1] += 1
    return {name: (caught, total) for name, (caught, total) in counts.items()}


def _answers(exercise: Exercise, case: Case) -> Iterator:
    arguments = inputs_of(exercise, case)
    wide = tuple(
        a.astype(np.float64) if isinstance(a, np.ndarray) and a.dtype.kind == "f" else a
        for a in arguments
    )
    inputs = [a for a in arguments if isinstance(a, np.ndarray)]
    with np.errstate(all="ignore"):
        right = tuple(np.array(e, np.float64) for e in exercise.reference(*wide))
        allowed = exercise.tolerance(case, wide, right)
    asked = exercise.outputs(case)
    types = [t.dtype for t in asked] or ["float32"] * len(right)
    for name, answer in {"right": lambda right, *_: right, **WRONG}.items():
        generator = np.random.default_rng(len(name))
        outputs, differs = [], False
        with np.errstate(all="ignore"):
            for want, tolerance, dtype in zip(right, allowed, types, strict=True):
                tolerance = np.broadcast_to(np.asarray(tolerance, np.float64), want.shape)
                values = _stored(answer(want, tolerance, inputs, generator), dtype)
                near = np.abs(values.astype(np.float64) - want) <= tolerance
                far = ~(near | (values == want))  # equal infinities have no difference
                differs |= bool((far & ~(np.isnan(values) & np.isnan(want))).any())
                outputs.append(Output(values, dtype))
        judged = judge_case(exercise, case, Run(tuple(outputs), ()), arguments)
        yield name, judged, name == "right" or differs


def _stored(values: np.ndarray, dtype: str) -> np.ndarray:
    if is_float(dtype):
        return rounded(values, dtype)
    return np.nan_to_num(values).astype(held(dtype))


def audit_quiz(exercise: Exercise, key: dict) -> dict[str, float]:
    """Points of answers that know nothing, and of the key: ``{"blank": 0.0, …, "right": max}``."""
    from autograder.exercises.quiz import score

    names = list(exercise.notes)
    given = {"right": {name: key[name]["answer"] for name in names}, "blank": {}}
    for letter in "abcde":
        given[f"all {letter}"] = dict.fromkeys(names, letter)
    given["all letters"] = {name: list("abcde") for name in names}
    given["NaN"] = dict.fromkeys(names, float("nan"))
    return {
        what: sum(a.points for a in score(exercise, answers, key))
        for what, answers in given.items()
    }


def blind(chosen: Sequence[Exercise]) -> tuple[Table, list[Text], int]:
    """A table of (caught, of) by exercise and kind of answer, a line a quiz, and how many kinds of
    answer got through."""
    try:
        course = course_directory.find()
    except Rejected:
        course = None
    table = Table(box=None, header_style="bold", pad_edge=False)
    for name in ("", "right", *WRONG):
        table.add_column(name, justify="right" if name else "left", no_wrap=True)
    quizzes, faults = [], 0
    for exercise in chosen:
        hidden = course and course.hidden(exercises.assignment(exercise.id[:2]))
        if exercise.machine == "quiz":
            good, words = _quiz_words(exercise, (hidden or {}).get(exercise.id))
            quizzes.append(Text(f"{exercise.id}: {words}", "green" if good else "bold red"))
            faults += not good
            continue
        cases = course.cases(exercise.id, hidden) if course else exercise.cases
        counts = audit_exercise(exercise, cases)
        cells = []
        for name, (caught, total) in counts.items():
            good = caught == (0 if name == "right" else total)
            faults += not good
            passed = total - caught if name == "right" else caught
            cells.append(Text(f"{passed}/{total}", "green" if good else "bold red"))
        table.add_row(exercise.id, *cells)
    return table, quizzes, faults


def _quiz_words(exercise: Exercise, key: dict | None) -> tuple[bool, str]:
    if key is None:
        return True, "no key here"
    try:
        points = audit_quiz(exercise, key)
    except (CouldNotCheck, KeyError):
        return False, "its key does not fit its questions"
    right, most = points.pop("right"), max(points.values())
    words = f"the key gets {right:g} of {exercise.max_points:g}, blind answers at most {most:g}"
    return right == exercise.max_points and most <= right / 2, words
