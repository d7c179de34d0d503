"""Submissions of tests/submissions/ and the tables that judge them, for the tests of a unit."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from autograder import exercises
from autograder.checking import check_functions, load_solution
from autograder.exercises import tables
from autograder.grading.corpus import refusals
from autograder.judging import inputs_of
from autograder.records import (
    ASPECT_OF_KIND,
    ASPECTS,
    FINDING_KINDS,
    Case,
    CaseResult,
    Exercise,
    Output,
    Rejected,
    Run,
    Verdict,
)
from autograder.render.text import verdict_text
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
    return tables.read_hidden(path, exercises.of_assignment(assignment))


def hidden_cases(assignment: str, id: str) -> list[Case]:
    return list(tables.hidden_cases(id, hidden(assignment)))


def expected_of(path: Path) -> tuple[str, set[str]]:
    """``# expect: kind aspect …`` in the first line: the first finding, and aspects that fail."""
    first = path.read_text(encoding="utf-8").splitlines()[0]
    assert first.startswith("# expect: "), f"{path.name} does not say what to expect"
    kind, *aspects = first.removeprefix("# expect: ").split()
    assert kind in FINDING_KINDS, f"{path.name} expects '{kind}'; kinds are {FINDING_KINDS}"
    assert set(aspects) <= set(ASPECTS), f"{path.name} expects {aspects}; there are {ASPECTS}"
    return kind, set(aspects) or {ASPECT_OF_KIND[kind]}


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
    seen = (result.verdict, result.findings, result.message)
    assert seen == ("pass", (), ""), f"{path.name} is right, and:\n{verdict_text(result)}"
    assert result.points == result.max_points


def assert_wrong(path: Path, cases=None, *, proof: bool = False) -> None:
    """The first finding and the aspects that fail are those that the file says to expect."""
    kind, aspects = expected_of(path)
    try:
        result = judged(path, cases, proof=proof)
    except Rejected as error:  # the file itself is at fault
        assert kind == "interface" and str(error).count("\n") == 0, (
            f"{path.name} expects {kind}: {error}"
        )
        return
    failed = {aspect.name for aspect in result.aspects if aspect.status == "fail"}
    found = [finding.kind for finding in result.findings]
    assert result.verdict == "fail" and found[:1] == [kind] and failed >= aspects, (
        f"{path.name} expects {kind} first, and {sorted(aspects)} to fail. Found was {found}, and "
        f"{sorted(failed)} failed:\n{verdict_text(result)}"
    )
    assert result.points < result.max_points
    assert all(len(f.message) < 500 and "Traceback" not in f.message for f in result.findings)


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
