"""What a process that grades keeps: a warm grader, or some. A Dask worker calls
``grade_on_worker``.

Imports nothing of nbgrader, so that a worker is ready soon.
"""

from __future__ import annotations

import atexit
import json
from dataclasses import asdict
from queue import SimpleQueue

from autograder.grading.grader import Graded, Grader, Mark, Request

_grader: Grader | None = None


def the_grader(unsafe: bool = False) -> Grader:
    """The grader of this process: nbgrader's command, formgrader's server, or a Dask worker."""
    global _grader
    if _grader is None:
        _grader = Grader(unsafe)
        atexit.register(_grader.close)
    return _grader


def grade_on_worker(request: str, unsafe: bool) -> str:
    """One submission, JSON to JSON."""
    return to_json(the_grader(unsafe).grade(_request(json.loads(request))))


class Pool:
    """Graders of this process, each for one thread at a time. Importing torch and triton takes
    their processes seconds, and begins here."""

    def __init__(self, count: int, unsafe: bool):
        self._graders = [Grader(unsafe) for _ in range(count)]
        self._free: SimpleQueue[Grader] = SimpleQueue()
        for grader in self._graders:
            self._free.put(grader)

    def grade(self, request: str) -> str:
        """``grade_on_worker``, by whichever grader is free."""
        grader = self._free.get()
        try:
            return to_json(grader.grade(_request(json.loads(request))))
        finally:
            self._free.put(grader)

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *_) -> None:
        for grader in self._graders:
            grader.close()


def to_json(record: Request | Graded) -> str:
    return json.dumps(asdict(record))


def graded_from(data: dict) -> Graded:
    """A Graded from the dict that ``dataclasses.asdict`` made of one."""
    marks = tuple(Mark(**mark) for mark in data["marks"])
    return Graded(**data | {"marks": marks, "notes": tuple(data["notes"])})


def _request(data: dict) -> Request:
    cells = tuple((name, source) for name, source in data["cells"])
    return Request(
        **data | {"cells": cells, "own": tuple(data["own"]), "notes": tuple(data["notes"])}
    )
