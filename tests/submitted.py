"""Submissions of tests/submissions/ and the tables that judge them, for the tests of a unit."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from autograder import exercises
from autograder.checking import check_functions, load_solution
from autograder.grading.corpus import refusals
from autograder.judging import inputs_of
from autograder.records import FINDING_KINDS, Case, CaseResult, Exercise, Output, Run, Verdict
from autograder.verdict import judge_case

ROOT = Path(__file__).resolve().parent
SUBMISSIONS = ROOT / "submissions"


def files(unit: str, verdict: str) -> list:
    """Parameters of a test: every submission of a unit in right/ or wrong/."""
    paths = sorted((SUBMISSIONS / verdict).glob(f"{unit}_*.py"))
    assert paths, f"no submissions of unit {unit} in {verdict}/"
    return [pytest.param(path, id=path.stem) for path in paths]


def exercise_of(path: Path) -> Exercise:
    """The exercise with the longest id that the file's name begins with."""
    ids = [id for id in exercises.ids() if path.stem.startswith(id.replace(".", "_") + "_")]
    return exercises.get(max(ids, key=len))


def hidden(assignment: str) -> dict:
    """The hidden cases and quiz keys of an assignment."""
    path = ROOT.parent / "course" / "hidden" / f"{assignment}.json"
    return json.loads(path.read_text(encoding="utf-8"))


def hidden_cases(assignment: str, id: str) -> list[Case]:
    return [Case(row["label"], row["sizes"], hidden=True) for row in hidden(assignment)[id]]


def expected_of(path: Path) -> tuple[str, set[str]]:
    """``# expect: kind aspect …`` in the first line: the first finding, and aspects that fail."""
    first = path.read_text(encoding="utf-8").splitlines()[0]
    assert first.startswith("# expect: "), f"{path.name} does not say what to expect"
    kind, *aspects = first.removeprefix("# expect: ").split()
    assert kind in FINDING_KINDS
    return kind, set(aspects)


def judged(path: Path, cases=None, *, proof: bool = True) -> Verdict:
    """The verdict on a submission; without ``proof`` nothing is compiled for the card."""
    exercise = exercise_of(path)
    functions = load_solution(str(path))
    if not proof:
        exercise = replace(exercise, compiled=None)
    return check_functions(exercise, functions, cases)


def assert_right(path: Path, result: Verdict) -> None:
    """Full marks; where the installed Triton refuses the file's style, that it does so by name."""
    if words := refusals().get(path.stem):
        assert result.verdict == "fail" and result.points < result.max_points
        assert {f.kind for f in result.findings} == {"compile"}
        assert all(words in f.message and "\n" not in f.message for f in result.findings)
        return
    assert (result.verdict, result.findings, result.message) == ("pass", (), "")
    assert result.points == result.max_points


def arrays(exercise: Exercise, case: Case) -> tuple[tuple, tuple]:
    """What the reference gets, in held types and in float64; scalars as they are."""
    held = inputs_of(exercise, case)
    wide = [a.astype(np.float64) if isinstance(a, np.ndarray) else a for a in held]
    return tuple(held), tuple(wide)


def right_answers(exercise: Exercise, case: Case) -> tuple[np.ndarray, ...]:
    with np.errstate(all="ignore"):
        return exercise.reference(*arrays(exercise, case)[1])


def answered(exercise: Exercise, case: Case, outputs) -> CaseResult:
    """How a case goes if a solution returned these arrays and did nothing else."""
    asked = exercise.outputs(case)
    run = Run(tuple(Output(o, t.dtype) for o, t in zip(outputs, asked, strict=True)), ())
    return judge_case(exercise, case, run, inputs_of(exercise, case))
