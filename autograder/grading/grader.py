"""One submission → points: cells to the sandbox, what comes back to the judge.

This process reads no student data but text that it passes on. It works on plain dicts, so that the
same function runs in nbgrader, in a Dask worker on this machine, or on another one.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from typing import Any

from autograder import exercises
from autograder.grading.alike import Alike, key_of
from autograder.grading.confine import Limits
from autograder.grading.course import hidden_cases
from autograder.grading.forkserver import End
from autograder.grading.parts import solve_apart
from autograder.grading.proof import NO_CALL, Proof, case_of_proof, no_proof, traces_of_proof
from autograder.grading.sandbox import Sandbox, SandboxFailed, Warm
from autograder.grading.solving import Said, Solving, check_id, ran_out
from autograder.records import Case, Exercise, Tensor
from autograder.render.neutral import neutral

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
    message: str = ""  # one sentence where nothing could be judged
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

    solve: Limits = Limits()
    compile: Limits = Limits(cpu=60, step=120, memory=4 << 30, may_fork=True)
    judge: Limits = Limits(cpu=60, step=240, wall=240, memory=4 << 30)
    attempts: int = 6


class Grader:
    """Keeps a warm sandbox and a warm judge; ``grade`` may be called any number of times."""

    def __init__(self, unsafe: bool = False, budget: Budget = Budget()):
        self._unsafe = unsafe
        self._budget = budget
        self._sandbox = Sandbox(unsafe)
        self._judge = Warm("judge", "limits")
        self._proof = Proof(
            self._to_judge, lambda job: self._sandbox.run(job, self._budget.compile)
        )
        self._alike = Alike()
        self._closed = False

    def close(self) -> None:
        """End its processes; a submission that another thread grades just now gets no result."""
        self._closed = True
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
        # NumPy kernels see values, so each exercise gets fresh processes.
        groups = [[e] for e in asked if e.machine == "numpy"]
        groups += [[e for e in asked if e.machine != "numpy"]]
        said: dict[str, Said] = {}
        for group in filter(None, groups):
            said |= self._solved(group, request)
        marks = self._marks(asked, request, said)
        worst = max(marks, key=lambda mark: STATUSES.index(mark.status))
        message = "" if worst.status == "ok" else f"{worst.exercise}: {_words(worst)}"
        return Graded(request.student, request.assignment, worst.status, message, marks)

    def _solved(self, group: Sequence[Exercise], request: Request) -> dict[str, Said]:
        """What the untrusted side says about exercises: of public cases, then of hidden ones."""
        limits, attempts = self._budget.solve, self._budget.attempts
        tasks = {e.id: self._task(e, request) for e in group}
        hidden = {}
        for exercise in group:
            cases = _cases(exercise, request)
            # What the compile proof calls is public, whether or not a hidden case calls the same.
            proof = case_of_proof(exercise, cases)
            hidden[exercise.id] = [n for n, c in enumerate(cases) if c.hidden and n != proof]

        def solving(skip: Iterable[str]) -> Solving:
            return Solving(self._sandbox, limits, attempts, request.cells, request.own, skip)

        return solve_apart(solving, tasks, hidden)

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
            end, lines = self._to_judge(self._job(exercise, request) | {"job": "inputs"})
            if end.how != "ok":
                raise SandboxFailed(f"the judge could not make inputs ({end.detail})")
            return task | {"do": "plain", "cases": [line["arguments"] for line in lines]}
        cases = list(_cases(exercise, request))
        proof = case_of_proof(exercise, cases)
        if proof == len(cases):
            cases.append(exercise.compiled)
        return task | {
            "do": "record",
            "backward": exercise.backward,
            "cases": [[geometry(a) for a in exercise.arguments(case)] for case in cases],
            "all_configs": [0] if proof is None else [0, proof],
        }

    def _marks(self, asked, request: Request, said: Mapping[str, Said]) -> tuple[Mark, ...]:
        """One for each exercise."""
        jobs, keys, known, prove = {}, {}, {}, {}
        for exercise in asked:
            id = exercise.id
            jobs[id], traces = self._judging(exercise, request, said[id])
            keys[id] = key_of(jobs[id])
            known[id] = self._alike.answers.get(keys[id])
            if traces and not said[id].problem and known[id] is None:
                prove[id] = traces
        for id, facts in self._proof.facts(prove).items():
            jobs[id]["facts"] = facts
        return tuple(self._mark(e, said[e.id], jobs[e.id], keys[e.id], known[e.id]) for e in asked)

    def _judging(self, exercise: Exercise, request: Request, said: Said) -> tuple[dict, list[str]]:
        """The judge's job, and the records whose kernels are to be compiled for its ``facts``."""
        proof = case_of_proof(exercise, _cases(exercise, request))
        ran = any("trace" in line for line in said.lines)
        of_proof = [line for line in said.lines if line.get("case") == proof]
        traces = traces_of_proof(of_proof) if proof is not None else []
        job = self._job(exercise, request) | {
            "job": "judge",
            "lines": said.lines,
            "proof": proof,
            "facts": [no_proof(NO_CALL)] if ran and proof is not None and not traces else [],
            "problem": said.problem,
            "key": (request.hidden or {}).get(exercise.id),
            "source": "\n".join(source for name, source in request.cells if name in request.own),
        }
        return job, traces

    def _mark(
        self, exercise: Exercise, said: Said, job: dict, key: str | None, result: dict | None
    ) -> Mark:
        """``result``: the judge's answer to a classmate's record that is alike; such a job has no
        facts of the compiler, so no other look decides whether there is one."""
        if said.ours:
            return _undecided(exercise, "infrastructure", said.problem)
        if result is None:
            end, answers = self._to_judge(job)
            result = answers[0] if answers else {}
            if end.how != "ok" or "outcome" not in result:
                return self._not_judged(exercise, end, str(result.get("error", "")))
            self._alike.keep(key, result)
        undecided = result["outcome"] == "could_not_check"
        return Mark(
            exercise.id,
            _status(said),
            None if undecided else min(max(float(result["points"]), 0.0), exercise.max_points),
            exercise.max_points,
            result["outcome"],
            said.problem,
            result["html"],
            result["picture"],
            result["json"],
        )

    def _not_judged(self, exercise: Exercise, end: End, error: str) -> Mark:
        """The judge did not come to an end: the kernels ask for too much, which a limit of the fork
        itself has to prove, or our side broke (a full machine kills and stalls honest work too)."""
        limits = self._budget.judge
        if end.how == "timeout" and end.spent:
            sentence = f"Running the kernels took longer than {limits.cpu:g} s on all inputs."
            return replace(_undecided(exercise, "timeout", sentence), points=0.0)
        if ran_out(error):
            sentence = f"Running the kernels took more than {limits.memory >> 30} GB of memory."
            return replace(_undecided(exercise, "memory", sentence), points=0.0)
        # Of an exception its name only: its words may hold a size, and a student reads this.
        what = error.split(":")[0][:80] or end.detail
        return _undecided(exercise, "infrastructure", f"The judge failed: {what}")

    def _job(self, exercise: Exercise, request: Request) -> dict:
        """What every job for the judge says."""
        hidden = (request.hidden or {}).get(exercise.id, [])
        return {
            "exercise": exercise.id,
            "hidden": hidden if isinstance(hidden, list) else [],
            "salt": request.salt,
        }

    def _to_judge(self, job: dict) -> tuple[End, list[dict]]:
        end, lines = self._asked(job)
        if end.how == "crash" and end.detail == "SIGKILL":  # no limit of its own: once more
            return self._asked(job)
        return end, lines

    def _asked(self, job: dict) -> tuple[End, list[dict]]:
        for attempt in range(2):
            try:
                return self._judge.run(job, self._budget.judge)
            except SandboxFailed:
                self._judge.close()
                if self._closed:
                    raise
                self._judge = Warm("judge", "limits")
                if attempt:
                    raise
        raise AssertionError("unreachable")


def _cases(exercise: Exercise, request: Request) -> tuple[Case, ...]:
    return exercise.cases + hidden_cases(exercise.id, request.hidden)


def _words(mark: Mark) -> str:
    faults = mark.json.get("faults", ())
    return mark.message or (faults[0]["message"] if faults else mark.status)


def geometry(argument: Any) -> dict:
    """Shapes, strides and dtypes; what fills a tensor stays with the judge."""
    if isinstance(argument, Tensor):
        return {
            "shape": list(argument.shape),
            "dtype": argument.dtype,
            "strides": argument.strides and list(argument.strides),
        }
    return {"value": argument}


_OURS = (
    "Grading failed on our side, so nothing is decided and no points are lost. Your instructor "
    "sees this and will grade it again."
)


def _status(said: Said) -> str:
    """How the student's code ended; a refusal for want of memory is one of its ends."""
    words = [said.problem, *(str(line["rejected"]) for line in said.lines if "rejected" in line)]
    return "memory" if said.status == "ok" and any(map(ran_out, words)) else said.status


def undecided(student: str, assignment: str, status: str, message: str) -> Graded:
    """A submission of which nothing is decided: blank marks, ``message`` for the instructor."""
    asked = exercises.of_assignment(assignment)
    marks = tuple(_undecided(exercise, status, message) for exercise in asked)
    return Graded(student, assignment, status, message, marks)


def _undecided(exercise: Exercise, status: str, message: str) -> Mark:
    """A mark without points. The student reads of our faults only that they are ours."""
    shown = _OURS if status == "infrastructure" else message
    html = f"<p>{escape(neutral(shown))}</p>"
    return Mark(exercise.id, status, None, exercise.max_points, "could_not_check", message, html)
