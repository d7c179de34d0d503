"""What the untrusted side said about a submission, exercise by exercise.

A fork that dies takes with it what was not yet done. It is begun again without the cell, or without
the exercise, in which it died, so that one loop does not cost the other exercises.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from autograder.grading.confine import Limits
from autograder.grading.forkserver import End
from autograder.grading.sandbox import Sandbox

_LONGEST = 300  # characters of what the other side says about an error


@dataclass
class Said:
    """About one exercise: the worker's lines; ``status`` is how the student's code ended, and
    ``problem`` a sentence where nothing came that could be judged. ``ours``: our code failed."""

    lines: list[dict] = field(default_factory=list)
    status: str = "ok"
    problem: str = ""
    ours: bool = False


class Solving:
    """Runs tasks of one submission: ``cells`` are (name, source), ``own`` the student's cells."""

    def __init__(
        self,
        sandbox: Sandbox,
        limits: Limits,
        attempts: int,
        cells: tuple[tuple[str, str], ...],
        own: tuple[str, ...],
        skip: Iterable[str] = (),
    ):
        self._sandbox, self._limits, self._attempts = sandbox, limits, attempts
        self._cells, self._own = cells, own
        self.skip = list(skip)  # cells that ended a fork
        self.said: dict[str, Said] = {}

    def run(
        self,
        tasks: Mapping[str, dict],
        later: Callable[[], Mapping[str, dict]] = dict,
        already: list[dict] = (),
    ) -> list[dict]:
        """Fill ``said`` for every id of ``tasks``. Raises SandboxFailed where our side broke.

        ``later()`` gives tasks for the fork in which the last of ``tasks`` was done; it is asked
        when their lines are here. What that fork says about those comes back. ``already``: such
        lines of another one; what is not done by them is done in forks of its own.
        """
        left = dict(tasks)
        self.said |= {id: Said() for id in left}
        self._take(left, already)
        if not left:
            return []
        deadline = time.monotonic() + 2 * self._limits.wall
        killed = False
        for _ in range(self._attempts):
            job = {
                "job": "solve",
                "cells": [list(cell) for cell in self._cells],
                "skip": self.skip,
                "tasks": list(left.values()),
                "keep": [task["check"] for task in tasks.values()],
            }
            seen: list[tuple[Any, str]] = []

            def more(lines: list[dict], seen=seen) -> dict | None:
                seen.append(self._take(left, lines))
                return {"tasks": list(later().values())} if not left else None

            end, lines = self._sandbox.run(job, self._limits, more)
            if seen and not left:
                return lines
            # A fork that asks for more before its tasks are done is forged: no line of it counts.
            at, error = seen[-1] if seen else self._take(left, lines)
            if left and not killed and end.detail == "SIGKILL":
                # Nothing inside a pid namespace can do that to its first process: perhaps the
                # machine was short of memory. Once, it is nobody's fault.
                killed = True
                continue
            if left:
                self._blame(left, at, error, end)
            if not left:
                return []
            if time.monotonic() > deadline:
                break
        self._give_up(left, "timeout", "The notebook ran longer than it may.")
        return []

    def _take(self, left: dict[str, dict], lines: list[dict]) -> tuple[Any, str]:
        """Sort lines to their exercises. Returns where the last one stood, and an error of ours."""
        at, error = None, ""
        failed_cells: dict[str, str] = {}
        fresh: dict[str, list[dict]] = {id: [] for id in left}
        for line in lines:
            id = line.get("exercise")
            if isinstance(id, str) and id in fresh:
                fresh[id].append(line)
                if "missing" in line:
                    self.said[id].problem = self._missing(line["missing"], failed_cells)
            elif "at" in line:
                at = line["at"]
            elif isinstance(line.get("cell_error"), list) and len(line["cell_error"]) == 2:
                failed_cells[str(line["cell_error"][0])] = str(line["cell_error"][1])[:_LONGEST]
            elif isinstance(line.get("done"), str) and line["done"] in left:
                del left[line["done"]]  # an exercise is taken whole or not at all
                self.said[line["done"]].lines = fresh[line["done"]]
            elif isinstance(line.get("error"), str):
                error = line["error"][:_LONGEST]
        return at, error

    def _blame(self, left: dict[str, dict], at: Any, error: str, end: End) -> None:
        """Decide what is left out of the next attempt."""
        status, what = _how(end)
        kind, name = at if isinstance(at, list) and len(at) == 2 else ("", "")
        if kind == "exercise" and name in left:
            if error and ran_out(error):
                status, what = "memory", "used more memory than it may"
            elif error:  # an exception that got past our own code
                self.said[name].ours = True
                what = f"could not be recorded ({error})"
            self._give_up({name: left.pop(name)}, status, f"The call {what}.")
        elif kind == "cell" and name in self._own and name not in self.skip:
            self.skip.append(name)
            owners = {id: left.pop(id) for id in list(left) if solution_id(id) == name}
            self._give_up(owners, status, f"The cell {what}.")
        else:  # it says nothing of use about where it was
            self._give_up(left, status, f"The notebook {what}.")
            left.clear()

    def _give_up(self, ids: Mapping[str, dict], status: str, problem: str) -> None:
        for id in ids:
            self.said[id].status, self.said[id].problem = status, problem

    def _missing(self, name: Any, failed_cells: Mapping[str, str]) -> str:
        own = [f"In {c}, {error}." for c, error in failed_cells.items() if c in self._own]
        words = [f"{str(name)[:80]} is missing: the exercise asks for that name.", *own[:2]]
        return " ".join(words)


def solution_id(exercise: str) -> str:
    """``02.add`` → ``solution-02-add``, the grade id of the cell that the student writes."""
    return "solution-" + exercise.replace(".", "-")


def check_id(exercise: str) -> str:
    """``02.add`` → ``check-02-add``, the grade id of its check cell."""
    return "check-" + exercise.replace(".", "-")


def exercise_id(grade_id: str) -> str:
    """``check-02-add`` → ``02.add``; no exercise's name holds a dash."""
    return grade_id.removeprefix("check-").replace("-", ".", 1)


def ran_out(words: str) -> bool:
    """Whether an error's words say that memory was what it had too little of."""
    return "MemoryError" in words or "allocate memory" in words


def _how(end: End) -> tuple[str, str]:
    """(status, the end of a sentence about the student's code)."""
    if end.how == "timeout":
        return "timeout", f"ran longer than it may ({end.detail})"
    if end.how == "output":
        return "crash", f"wrote more than it may ({end.detail})"
    if end.how == "ok":
        return "crash", "ended the process (os._exit?)"
    return "crash", f"ended the process ({end.detail})"
