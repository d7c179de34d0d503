"""What one call of a host function asks of a card: bytes before and behind the L2 cache, and
operations.

Nothing is computed: launches are recorded and their addresses followed, so sizes may be large.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from autograder.ir.l2 import EFFECTIVE, SECTOR, Step, fetched, programs_of
from autograder.records import Kernel, Launch, Run, Touch, Trace

__all__ = ["EFFECTIVE", "Counts", "counts"]

_DOT = re.compile(r"\btt\.dot\b.*? : tensor<(?:\d+x)+(\w+)>")
_DTYPES = {"f16": "float16", "bf16": "bfloat16", "f32": "float32", "f64": "float64", "i8": "int8"}


@dataclass(frozen=True)
class Counts:
    """Of one call, over all its launches. Bytes and single operations.

    * ``requested``: what loads and stores ask for, lanes that masks let through;
    * ``fetched``: what an L2 cache, empty at each launch, reads from memory (``autograder.ir.l2``);
    * ``written``: the sectors that stores and atomics touch, each once a launch;
    * ``dot``: of ``tl.dot``, a multiply-add counts two; ``elementwise``: one a lane;
    * ``dtype``: what ``tl.dot`` multiplies, "" where there is none.
    """

    requested: float
    fetched: float
    written: float
    dot: float
    elementwise: float
    dtype: str = ""


def counts(
    function: Callable,
    arguments: Sequence[Any],
    *,
    at_once: int,
    capacity: float,
    share: float = 1.0,
    backward: bool = False,
) -> Counts:
    """Counts of ``function(*arguments)`` or, with ``backward``, of its backward pass alone.

    ``arguments``: a ``Tensor`` of the records stands for a tensor of that geometry, anything else
    is passed on. ``at_once``: programs that run at a time; ``capacity``: the cache's bytes.
    ``share`` below 1: the call is a slice along a sum of such a share of the whole; it gets as much
    of the cache, in which stores, which are not sliced, count by this share as well.
    Raises Rejected with one sentence for a call that fails, CouldNotCheck for what the interpreter
    does not know.
    """
    from autograder.trace.record import record

    whole = record(function, arguments, backward=backward, execute=None)
    before = record(function, arguments, execute=None) if backward else None
    run, earlier = _counted(whole), _counted(before) if before else None
    skipped = sum(isinstance(event, Launch) for event in before.events) if before else 0
    touches = _later(run.touches, skipped)
    dtypes = [_dtype(kernel) for kernel in whole.kernels]
    less = earlier.operations if earlier else None
    return Counts(
        requested=run.bytes - (earlier.bytes if earlier else 0),
        fetched=sum(
            fetched((_sliced(p, share) for p in programs), at_once, capacity * share)
            for programs in programs_of(touches)
        ),
        written=_written(touches),
        dot=run.operations.dot - (less.dot if less else 0),
        elementwise=run.operations.elementwise - (less.elementwise if less else 0),
        dtype=next(filter(None, dtypes), ""),
    )


def _counted(trace: Trace) -> Run:
    from autograder.trace.replay import replay

    return replay(trace, [], count_only=True, keep_touches=True)


def _sliced(program: list[Step], share: float) -> list[Step]:
    if share == 1:
        return program
    return [
        replace(step, pieces=tuple((name, size * share) for name, size in step.pieces))
        if step.stores
        else step
        for step in program
    ]


def _later(touches: Sequence[Touch], skipped: int) -> list[Touch]:
    """The touches of the launches after the first ``skipped``."""
    launches = sorted({touch.launch for touch in touches})[skipped:]
    return [touch for touch in touches if touch.launch in launches]


def _written(touches: Sequence[Touch]) -> int:
    stored: dict[tuple[int, int], list[np.ndarray]] = {}
    for touch in touches:
        if touch.operation != "load":
            stored.setdefault((touch.launch, touch.view.buffer), []).append(touch.sectors)
    return sum(SECTOR * len(np.unique(np.concatenate(all_))) for all_ in stored.values())


def _dtype(kernel: Kernel) -> str:
    found = _DOT.search(kernel.ir)
    return _DTYPES.get(found[1], "float8" if found[1].startswith("f8") else "") if found else ""
