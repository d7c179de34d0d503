"""Which question a finding deserves, if any: one that leads to its cause, and to no other.

Three things speak against the question that an exercise has for a kind of finding: the lanes at
fault tell more than the kind does, an earlier finding explains this one, or the message asks
already.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping

import numpy as np

from autograder.records import COPIED_INPUT, WHOLE_ROWS, Access, CaseResult, Finding

__all__ = ["SAME_CAUSE", "ask", "explained"]

SAME_CAUSE = "Most likely from the same cause."
# In place of "out_of_bounds", where no mask could mend it.
_STRIDES = (
    "How far apart do neighbours lie in memory, along each axis of this tensor? Does this line "
    "multiply by these distances?"
)
_BEYOND = (
    "No lane of this program is inside. Where should its block begin in this tensor, and is there "
    "anything for this program to do?"
)
# In place of "unwritten", where a mask switched off as many lanes as there are elements missing.
_MASKED_OFF = (
    "The mask switched lanes off where elements are missing. What does it say for a lane that owns "
    "an element, and is it true there?"
)
# In place of "values", where all that is wrong lies behind index 0 of a leading axis.
_FIRST_RIGHT = (
    "Index 0 of axis {axis} is right throughout, so the formula is. How does a program choose its "
    "index along that axis, and does every tensor move by it, with its own stride?"
)
_BOX = re.compile(r"\(all in \[([^\]]+)\]")
_BOUNDS = ("out_of_bounds", "uninitialised", "undefined_lane")


def ask(finding: Finding, notes: Mapping[str, str], shown_on: Collection[CaseResult] = ()) -> str:
    """The question for ``finding``. ``notes``: kind → the exercise's own; ``shown_on``: the cases
    on which this finding showed."""
    if finding.message.endswith("?"):
        return ""
    if finding.kind == "interface" and finding.argument:  # an input was written into
        return ""
    if finding.argument == COPIED_INPUT:  # the message says where to look
        return ""
    if finding.kind == "values" and (behind := _behind_the_first(finding.message)):
        return behind
    note = notes.get(finding.kind, "")
    if note and finding.kind == "out_of_bounds" and finding.access is not None:
        return _of_bounds(finding.access) or note
    masked_off = finding.kind == "unwritten" and _masked_off(finding, shown_on)
    if masked_off and note and "mask" not in note:  # unless it speaks of the mask itself
        return _MASKED_OFF
    return note


def _behind_the_first(message: str) -> str:
    """A question where the wrong values spare index 0 of an axis before the last two. (Along those
    two the first row of a causal mask, say, is right for reasons of its own.)"""
    box = _BOX.search(message)
    slices = box[1].split(", ") if box else []
    spared = [i for i, part in enumerate(slices[:-2]) if re.fullmatch(r"1:?", part)]
    return _FIRST_RIGHT.format(axis=spared[0]) if len(spared) == 1 else ""


def explained(
    finding: Finding, cases: Collection[str], earlier: Iterable[tuple[Finding, Collection[str]]]
) -> bool:
    """Whether one of the ``earlier`` findings, each with its cases, most likely made this one."""
    for other, its_cases in earlier:
        covered = set(cases) <= set(its_cases)
        if other.kind == "out_of_bounds" and finding.kind in ("race", "traffic"):
            line = finding.line in (0, other.line)  # of traffic no line is known
            made = line and finding.argument == other.argument
        elif other.kind in _BOUNDS:
            made = covered and finding.kind in ("values", "unwritten")
        else:  # a kernel that wrote into an input did not write, or read, what it should have
            wrote = other.kind == "interface" and other.argument
            made = covered and wrote and finding.kind in ("unwritten", "uninitialised")
        if made:
            return True
    return False


def _of_bounds(access: Access) -> str:
    """What else than a mask went wrong for the first program at fault; empty if nothing did."""
    offsets, active = access.offsets[0], access.active[0]
    inside = access.inside[0] & active
    if not active.any():
        return ""
    shape, strides = access.view.shape, access.view.strides
    real = {s for n, s in zip(shape, strides, strict=True) if n > 1}
    span = 1 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True))
    start = int(offsets[active][0])
    in_a_gap = 0 <= start < span and not inside[active][0]
    if in_a_gap or real and _steps(offsets, active) - real:
        return _STRIDES
    return "" if inside.any() else _BEYOND


def _steps(offsets: np.ndarray, active: np.ndarray) -> set[int]:
    """How far neighbouring lanes lie apart, along every axis of the block where that is constant;
    0, the same element for all, is no step."""
    found = set()
    for axis in range(offsets.ndim):
        both = np.diff(active.astype(np.int8), axis=axis) == 0
        both &= np.take(active, range(active.shape[axis] - 1), axis)
        apart = np.unique(np.diff(offsets, axis=axis)[both])
        if len(apart) == 1 and apart[0]:
            found.add(int(apart[0]))
    return found


def _masked_off(finding: Finding, shown_on: Collection[CaseResult]) -> bool:
    """Whether stores had at least as many lanes masked off as elements are missing.

    Not where rows are missing from one on: the lanes off are those beyond the columns then.
    """
    if WHOLE_ROWS in finding.message:
        return False
    for result in shown_on:
        if result.run is not None:
            if any(f.kind == "out_of_bounds" for f in result.findings):
                return False
            stores = [t for t in result.run.traffic if not t.loaded]
            return sum(t.masked for t in stores) >= finding.lanes > 0
    return False
