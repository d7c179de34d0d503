"""What a process that grades keeps: one warm grader. A Dask worker calls ``grade_on_worker``.

Imports nothing of nbgrader, so that a worker is ready soon.
"""

from __future__ import annotations

import atexit
import json
from dataclasses import asdict

from autograder.grading.grader import Graded, Grader, Mark, Request

_grader: Grader | None = None


def the_grader(unsafe: bool = False) -> Grader:
    """The grader of this process: nbgrader's command, formgrader's server, or a Dask worker."""
    global _grader
    if _grader is None:
        _grader = Grader(unsafe)
        atexit.register(_grader.close)
    return _grader


def warm_up(unsafe: bool) -> None:
    """Begin to import torch and triton before the first submission is there; returns at once."""
    the_grader(unsafe)


def grade_on_worker(request: str, unsafe: bool) -> str:
    """One submission, JSON to JSON."""
    return to_json(the_grader(unsafe).grade(_request(json.loads(request))))


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
