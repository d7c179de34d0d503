"""One submission → points: cells to the sandbox, what comes back to the judge.

This process reads no student data but text that it passes on. It works on plain dicts, so that the
same function runs in nbgrader, in a Dask worker on this machine, or on another one.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from autograder import exercises
from autograder.grading.confine import Limits
from autograder.grading.course import hidden_cases
from autograder.grading.forkserver import End
from autograder.grading.sandbox import Sandbox, SandboxFailed, Warm
from autograder.ir.cards import DEFAULT
from autograder.records import Exercise, Tensor

# ok: judged to the end (right or wrong) · timeout, crash, memory: of the student's code ·
# invalid: nothing could be read · infrastructure: our side broke, nothing was decided.
STATUSES = ("ok", "timeout", "crash", "memory", "invalid", "infrastructure")


@dataclass(frozen=True)
class Request:
    """A submission and what it is judged by. ``cells``: (name, source) of the canonical notebook's
    code cells in order, check cells without their source; ``own``: those that the student wrote."""

    student: str
    assignment: str
    cells: tuple[tuple[str, str], ...] = ()
    own: tuple[str, ...] = ()
    problem: str = ""
    notes: tuple[str, ...] = ()
    hidden: Mapping[str, Any] | None = None
    salt: str = ""  # hexadecimal


@dataclass(frozen=True)
class Mark:
    """One exercise of one submission. ``points`` is None where nothing was decided."""

    exercise: str
    status: str
    points: float | None
    max_points: float
    outcome: str = ""  # pass, fail, could_not_check
    html: str = ""
    picture: str = ""  # PNG in base64
    json: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Graded:
    """All marks of a submission, its status (the worst of theirs), and one sentence about it."""

    student: str
    assignment: str
    status: str
    message: str = ""
    marks: tuple[Mark, ...] = ()
    notes: tuple[str, ...] = ()
    seconds: float = 0.0

    @property
    def points(self) -> float | None:
        """Sum of the marks; None if any of them is undecided."""
        if any(mark.points is None for mark in self.marks):
            return None
        return round(sum(mark.points for mark in self.marks), 2)

    @property
    def max_points(self) -> float:
        return sum(mark.max_points for mark in self.marks)


@dataclass(frozen=True)
class Budget:
    """Limits of the three kinds of fork, and how often a submission is begun again."""

    solve: Limits = Limits(step=15, wall=60)
    compile: Limits = Limits(step=60, wall=120, memory=4 << 30, may_fork=True)
    judge: Limits = Limits(step=60, wall=60, memory=4 << 30)
    attempts: int = 6


def check_id(exercise: str) -> str:
    """``02.add`` → ``check-02-add``, the grade id of its check cell."""
    return "check-" + exercise.replace(".", "-")


class Grader:
    """Keeps a warm sandbox and a warm judge; ``grade`` may be called any number of times."""

    def __init__(self, unsafe: bool = False, budget: Budget = Budget()):
        self._unsafe = unsafe
        self._budget = budget
        self._sandbox = Sandbox(unsafe)
        self._judge = Warm("judge", "limits")
        self._facts: dict[str, Any] = {}  # a trace's text → what the compiler said about it

    def close(self) -> None:
        self._sandbox.close()
        self._judge.close()

    def grade(self, request: Request) -> Graded:
        """Raises nothing: a fault of ours is a status, and a mark without points."""
        start = time.monotonic()
        student, assignment = request.student, request.assignment
        if request.problem:
            graded = undecided(student, assignment, "invalid", request.problem)
        else:
            try:
                graded = self._grade(request, exercises.of_assignment(assignment))
            except SandboxFailed as error:
                graded = undecided(student, assignment, "infrastructure", str(error))
        return replace(graded, notes=request.notes, seconds=round(time.monotonic() - start, 3))

    def _grade(self, request: Request, asked: tuple[Exercise, ...]) -> Graded:
        solved = _Solved(self._sandbox, self._budget, request)
        tasks = {exercise.id: self._task(exercise, request) for exercise in asked}
        together = [e.id for e in asked if e.machine != "numpy"]
        if together:
            solved.run({id: tasks[id] for id in together})
        for exercise in asked:  # NumPy kernels see values, so each exercise gets a fresh process
            if exercise.machine == "numpy":
                solved.run({exercise.id: tasks[exercise.id]})
        marks = tuple(self._mark(exercise, request, solved) for exercise in asked)
        worst = max(marks, key=lambda mark: STATUSES.index(mark.status))
        message = solved.problems.get(worst.exercise, "") if worst.status != "ok" else ""
        return Graded(request.student, request.assignment, worst.status, message, marks)

    def _task(self, exercise: Exercise, request: Request) -> dict:
        """What the untrusted side is told: names and geometry; values only in unit 01."""
        task: dict[str, Any] = {
            "exercise": exercise.id,
            "name": exercise.names[-1],
            "check": check_id(exercise.id),
        }
        if exercise.machine == "quiz":
            return task | {"do": "quiz"}
        if exercise.machine == "numpy":
            _, lines = self._judged({"job": "inputs"}, exercise, request)
            return task | {"do": "plain", "cases": [line["arguments"] for line in lines]}
        cases = list(exercise.cases + hidden_cases(exercise.id, request.hidden))
        if _proves(exercise):
            cases.append(exercise.compiled)
        geometry = [[_geometry(a) for a in exercise.arguments(case)] for case in cases]
        return task | {
            "do": "record",
            "backward": exercise.backward,
            "cases": geometry,
            "all_configs": sorted({0, len(cases) - 1} if _proves(exercise) else {0}),
        }

    def _mark(self, exercise: Exercise, request: Request, solved: _Solved) -> Mark:
        lines = solved.lines[exercise.id]
        ended, problem = solved.ended[exercise.id], solved.problems.get(exercise.id, "")
        facts: Any = []
        if _proves(exercise):
            last = len(exercise.cases) + len(hidden_cases(exercise.id, request.hidden))
            facts = self._compile([line for line in lines if line.get("case") == last])
            lines = [line for line in lines if line.get("case") != last]
        job = {
            "job": "judge",
            "lines": lines,
            "facts": facts,
            "problem": problem,
            "key": (request.hidden or {}).get(exercise.id),
            "source": "\n".join(source for name, source in request.cells if name in request.own),
        }
        end, said = self._judged(job, exercise, request)
        if end.how != "ok" or not said:
            status = "timeout" if end.how == "timeout" else "crash"
            sentence = _JUDGING[status].format(seconds=self._budget.judge.wall)
            solved.problems[exercise.id] = sentence
            return replace(_undecided(exercise, status, sentence), points=0.0)
        result = said[0]
        undecided = result["outcome"] == "could_not_check"
        return Mark(
            exercise.id,
            ended,
            None if undecided else min(max(float(result["points"]), 0.0), exercise.max_points),
            exercise.max_points,
            result["outcome"],
            result["html"],
            result["picture"],
            result["json"],
        )

    def _judged(self, job: dict, exercise: Exercise, request: Request) -> tuple[End, list[dict]]:
        hidden = (request.hidden or {}).get(exercise.id, [])
        job = job | {
            "exercise": exercise.id,
            "hidden": hidden if isinstance(hidden, list) else [],
            "salt": request.salt,
        }
        for attempt in range(2):
            try:
                return self._judge.run(job, self._budget.judge)
            except SandboxFailed:
                self._judge.close()
                self._judge = Warm("judge", "limits")
                if attempt:
                    raise
        raise AssertionError("unreachable")

    def _compile(self, lines: list[dict]) -> Any:
        """Compile facts of the traces of the case that the proof is about; a sentence if none."""
        facts: list[dict] = []
        for line in lines:
            trace = line.get("trace")
            if not isinstance(trace, str):
                said = line.get("rejected", {})
                message = said.get("message", "") if isinstance(said, dict) else ""
                return f"the call for the proof did not come to an end. {str(message)[:200]}"
            if trace not in self._facts:
                job = {"job": "compile", "trace": trace, "card": DEFAULT}
                end, answers = self._sandbox.run(job, self._budget.compile)
                answer = answers[0] if answers else {"could_not_check": f"it ended by {end.detail}"}
                self._facts[trace] = answer.get("facts", answer.get("could_not_check", "no answer"))
            if isinstance(self._facts[trace], str):
                return self._facts[trace]
            facts += self._facts[trace]
        return facts


class _Solved:
    """What the untrusted side said, exercise by exercise, however often it had to be begun again.

    A fork that dies takes with it what was not yet done. It is begun again without the cell, or
    without the exercise, in which it died, so that one loop does not cost the other exercises.
    """

    def __init__(self, sandbox: Sandbox, budget: Budget, request: Request):
        self._sandbox, self._budget, self._request = sandbox, budget, request
        self._skip: dict[str, str] = {}  # cell → how it ended
        self.lines: dict[str, list[dict]] = {}
        self.ended: dict[str, str] = {}
        self.problems: dict[str, str] = {}

    def run(self, tasks: dict[str, dict]) -> None:
        left = dict(tasks)
        for id in left:
            self.lines[id], self.ended[id] = [], "ok"
        deadline = time.monotonic() + 2 * self._budget.solve.wall
        for _ in range(self._budget.attempts):
            if not left:
                return
            job = {
                "job": "solve",
                "cells": [list(cell) for cell in self._request.cells],
                "skip": list(self._skip),
                "tasks": list(left.values()),
            }
            end, lines = self._sandbox.run(job, self._budget.solve)
            at = self._take(left, lines)
            if not left:
                return
            self._blame(at, left, end)
            if time.monotonic() > deadline:
                break
        for id in left:
            self._give_up(id, "timeout", "The submission took too long.")

    def _take(self, left: dict[str, dict], lines: list[dict]) -> Any:
        """Sort ``lines`` to their exercises; returns where the last one stood."""
        at: Any = None
        errors: dict[str, str] = {}
        for line in lines:
            id = line.get("exercise")
            if isinstance(id, str) and id in left:
                self.lines[id].append(line)
                if "missing" in line:
                    self.problems[id] = _missing(line["missing"], errors, self._request.own)
            elif "at" in line:
                at = line["at"]
            elif isinstance(line.get("cell_error"), list) and len(line["cell_error"]) == 2:
                cell, error = line["cell_error"]
                errors[str(cell)] = str(error)[:300]
            elif isinstance(line.get("done"), str):
                left.pop(line["done"], None)
        for id in left:
            self.lines[id] = []  # an exercise is taken whole or not at all
        return at

    def _blame(self, at: Any, left: dict[str, dict], end: End) -> None:
        status, what = _how(end)
        kind, name = at if isinstance(at, list) and len(at) == 2 else (None, None)
        if kind == "cell" and name in self._request.own and name not in self._skip:
            self._skip[name] = what
            for id in left:
                if f"solution-{id.replace('.', '-')}" == name:
                    self._give_up(id, status, f"The cell {what}.")
                    del left[id]
                    break
        elif kind == "exercise" and name in left:
            self._give_up(name, status, f"The call {what}.")
            del left[name]
        else:  # it says nothing of use about where it was
            for id in list(left):
                self._give_up(id, status, f"The notebook {what}.")
            left.clear()

    def _give_up(self, id: str, status: str, problem: str) -> None:
        self.lines[id], self.ended[id], self.problems[id] = [], status, problem


def _how(end: End) -> tuple[str, str]:
    """(status, the end of a sentence about the student's code)."""
    if end.how == "timeout":
        return "timeout", f"ran longer than it may ({end.detail})"
    if end.how == "output":
        return "crash", f"wrote more than it may ({end.detail})"
    if end.how == "ok":
        return "crash", "ended the process (os._exit?)"
    if "MemoryError" in end.detail:
        return "memory", "used more memory than it may"
    return "crash", f"ended the process ({end.detail})"


def _missing(name: Any, errors: dict[str, str], own: tuple[str, ...]) -> str:
    mine = [f"In {cell}, {error}." for cell, error in errors.items() if cell in own]
    return " ".join([f"{str(name)[:80]} is missing: the exercise asks for that name.", *mine[:2]])


def _proves(exercise: Exercise) -> bool:
    return exercise.compiled is not None and "compiles" in exercise.points


def _geometry(argument: Any) -> dict:
    """Shapes, strides and dtypes; what fills a tensor stays with the judge."""
    if isinstance(argument, Tensor):
        return {
            "shape": list(argument.shape),
            "dtype": argument.dtype,
            "strides": argument.strides and list(argument.strides),
        }
    return {"value": argument}


_OURS = (
    "Grading failed on our side, so nothing is decided and no points are lost. Your instructor sees "
    "this and will grade it again."
)
_JUDGING = {
    "timeout": "Running the kernels on the inputs took longer than {seconds:g} s, so it was stopped.",
    "crash": "Running the kernels on the inputs used more memory than it may, so it was stopped.",
}


def undecided(student: str, assignment: str, status: str, message: str) -> Graded:
    """A submission of which nothing is decided: blank marks, ``message`` for the instructor."""
    sentence = _OURS if status == "infrastructure" else message
    asked = exercises.of_assignment(assignment)
    marks = tuple(_undecided(exercise, status, sentence) for exercise in asked)
    return Graded(student, assignment, status, message, marks)


def _undecided(exercise: Exercise, status: str, sentence: str) -> Mark:
    """A mark without points, with one sentence as its feedback."""
    from html import escape

    html = f'<p class="ag-sentence">{escape(sentence)}</p>'
    return Mark(exercise.id, status, None, exercise.max_points, "could_not_check", html)
