"""Whether the check in a notebook and the judge of a class say the same of an answer.

The notebook's check runs on the public cases. The judge gets what the untrusted side says of the
same cases, as text, and makes inputs of its own; it judges three times, so that every case meets
every order of the programs. Neither compiles: what the compiler says is one function for both.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from autograder.grading import judge, worker
from autograder.grading.corpus import Answer, plain
from autograder.grading.forkserver import End
from autograder.grading.grader import geometry
from autograder.grading.kept import Kept
from autograder.grading.trials import forked
from autograder.records import Exercise, Rejected, Verdict
from autograder.solutions import load_solution

SALT = "5a" * 32  # the judge's inputs are not the notebook's
TURNS = len(judge.ORDERS)


@dataclass(frozen=True)
class Pair:
    """``notebook`` and, a turn each, ``judged``: verdict, aspects, the first finding. ``problem``
    where the fork came to no end."""

    answer: Answer
    notebook: dict
    judged: tuple[dict, ...]
    problem: str = ""

    @property
    def differences(self) -> list[str]:
        """A sentence for every turn in which they differ."""
        if self.problem:
            return [self.problem]
        return [
            f"turn {turn}: {key} is {said[key]} for the judge, {self.notebook[key]} in the notebook"
            for turn, said in enumerate(self.judged)
            for key in self.notebook
            if said[key] != self.notebook[key]
        ]


def compared(
    answers: Sequence[Answer],
    check: Callable,
    workers: int | None = None,
    told: Callable[[Pair], None] = lambda pair: None,
    kept: Kept | None = None,
) -> list[Pair]:
    """A ``Pair`` for every answer, in their order; see ``corpus.judged``."""
    return forked(_both, answers, check, _paired, workers, plain=plain, told=told, kept=kept)


def _paired(answer: Answer, end: End, said: dict) -> Pair:
    if end.how == "ok":
        return Pair(answer, said["notebook"], tuple(said["judged"]))
    return Pair(answer, {}, (), f"{end.how}: {end.detail}")


def _both(exercise: Exercise, path: str, check: Callable) -> dict:
    exercise = replace(exercise, compiled=None)
    try:
        functions = load_solution(path)
    except Rejected as error:  # there is nothing to check, for neither
        said = {"verdict": "fail", "aspects": {}, "first": ["interface", str(error), 0]}
        return {"notebook": said, "judged": [said] * TURNS}
    notebook = _facts(check(exercise, functions, unread=False))
    job = {"salt": SALT, "hidden": [], "proof": None, "source": "", "key": None, "problem": ""}
    job |= _said(exercise, functions, job)
    turns = range(1 if exercise.machine == "numpy" else TURNS)  # NumPy kernels know one order
    verdicts = [judge.judged(exercise, exercise.cases, job | {"turn": turn}) for turn in turns]
    return {"notebook": notebook, "judged": [_facts(verdict) for verdict in verdicts]}


def _said(exercise: Exercise, functions: dict, job: dict) -> dict:
    """What the untrusted side says, once through JSON, as in a class."""
    task = {"exercise": exercise.id, "name": exercise.names[-1], "backward": exercise.backward}
    if exercise.machine == "numpy":
        sent: list[dict] = []
        ask = job | {"job": "inputs", "exercise": exercise.id}
        judge.perform(ask, sent.append, lambda: None)
        task |= {"do": "plain", "cases": [line["arguments"] for line in sent]}
    else:
        cases = [[geometry(a) for a in exercise.arguments(case)] for case in exercise.cases]
        task |= {"do": "record", "cases": cases, "all_configs": [0]}
    lines = json.loads(json.dumps(list(worker.done(task, functions))))
    missing = next((line["missing"] for line in lines if "missing" in line), "")
    return {"lines": lines, "problem": missing and f"{missing} is missing."}


def _facts(verdict: Verdict) -> dict:
    """Where programs race, which of them stores last is a matter of their order, and so are the
    values: of such an answer only the race is compared, beside verdict and first finding."""
    first = verdict.findings[0] if verdict.findings else None
    aspects = {aspect.name: aspect.status for aspect in verdict.aspects}
    if aspects.get("races") == "fail":
        aspects = {"races": "fail"}
    return {
        "verdict": verdict.verdict,
        "aspects": aspects,
        "first": [first.kind, first.argument, first.line] if first else [],
    }
