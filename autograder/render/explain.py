"""What a verdict says, in sentences: the words that text and HTML share.

Everything returned is already neutral (see ``neutral``); a page still has to escape it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass

from autograder.records import (
    ASPECT_OF_KIND,
    CaseResult,
    CompileFacts,
    Exercise,
    Finding,
    Verdict,
)
from autograder.render.neutral import count, neutral, spaced

__all__ = [
    "NOTES",
    "SYMBOL",
    "WORDS",
    "Fault",
    "aspect_words",
    "cases_sentence",
    "compile_sentences",
    "error_sentence",
    "faults",
    "heaviest",
    "points_words",
    "traffic_sentence",
]

SYMBOL = {"pass": "✓", "fail": "✗", "could_not_check": "?", "not_reached": "–"}
WORDS = {
    "pass": "pass",
    "fail": "fail",
    "could_not_check": "could not check",
    "not_reached": "not reached",
}
_ASPECT_WORDS = {
    "values": "the numbers are right",
    "kernel": "a kernel computed them",
    "bounds": "every lane stays in its tensor",
    "races": "programs do not meet in a cell",
    "traffic": "it moves no more than needed",
    "compiles": "it compiles for the card",
}

# What to look at, where an exercise has no question of its own.
NOTES = {
    "out_of_bounds": "Which condition tells a lane that it has a number to work on?",
    "uninitialised": "Who writes these cells before they are read?",
    "undefined_lane": "What does a masked lane hold when the load has no `other`?",
    "unwritten": "Do the programs of the grid, taken together, cover the whole output?",
    "race": "Which programs own this cell, and what would make it only one?",
    "traffic": "Which number is read or written twice, and where could it have been kept?",
    "values": "Take the first element that differs and do its sum by hand: where do they part?",
    "torch_computed": "Which line of the host function computes? Move that work into the kernel.",
    "compile": "What does the message name: a shape, a type, or the size of a block?",
    "interface": "What does the stub ask for: which tensors, which shape, which type?",
}


@dataclass(frozen=True)
class Fault:
    """One finding, told once, with the labels of all cases on which it shows."""

    finding: Finding
    aspect: str
    where: str  # "add_kernel, line 7", or ""
    cases: str  # "case 'ragged length' and 2 more", or ""
    message: str
    note: str


def faults(verdict: Verdict, exercise: Exercise | None = None) -> tuple[Fault, ...]:
    """The findings in the verdict's order; the same fault on several cases is told once."""
    labels: dict[tuple, list[str]] = {}
    first: dict[tuple, Finding] = {}
    shown_on: dict[Finding, list[CaseResult]] = {}
    for result in verdict.cases:
        for finding in result.findings:
            shown_on.setdefault(finding, []).append(result)
    for finding in (*verdict.findings, *shown_on):
        key = (finding.kind, finding.argument, finding.line)
        first.setdefault(key, finding)
        for result in shown_on.get(finding, ()):
            label = ("hidden " if result.case.hidden else "") + f"case '{result.case.label}'"
            if label not in labels.setdefault(key, []):
                labels[key].append(label)
    notes = NOTES | dict(exercise.notes if exercise else {})
    return tuple(
        Fault(
            finding=finding,
            aspect=ASPECT_OF_KIND[finding.kind],
            where=_where(finding),
            cases=_and_more(labels.get(key, [])),
            message=neutral(finding.message),
            note=neutral(notes[finding.kind], 240),
        )
        for key, finding in first.items()
    )


def _where(finding: Finding) -> str:
    parts = [neutral(finding.kernel, 48)] if finding.kernel else []
    parts += [f"line {finding.line}"] if finding.line > 0 else []
    return ", ".join(parts)


def _and_more(labels: list[str]) -> str:
    if not labels:
        return ""
    more = f" and {len(labels) - 1} more" if len(labels) > 1 else ""
    return neutral(labels[0], 60) + more


def aspect_words(name: str) -> str:
    """What an aspect proves, in a few words."""
    return _ASPECT_WORDS.get(name, "")


def points_words(points: float, max_points: float) -> str:
    """``4.5 of 10 points``; nothing for exercises without points."""
    if not max_points:
        return ""
    return f"{points:g} of {max_points:g} point{'' if max_points == 1 else 's'}"


def cases_sentence(verdict: Verdict) -> str:
    """``5 of 7 cases pass; not 'ragged length', 'one element' (hidden)``."""
    if not verdict.cases:
        return ""
    failed = [result for result in verdict.cases if result.status != "pass"]
    total = len(verdict.cases)
    if not failed:
        return f"all {total} cases pass" if total > 1 else "1 case passes"
    names = [
        f"'{neutral(r.case.label, 40)}'"
        + (" (hidden)" if r.case.hidden else "")
        + (" (could not check)" if r.status == "could_not_check" else "")
        for r in failed[:4]
    ]
    more = f" and {len(failed) - 4} more" if len(failed) > 4 else ""
    return f"{total - len(failed)} of {total} cases pass; not {', '.join(names)}{more}"


def traffic_sentence(result: CaseResult, exercise: Exercise | None) -> str:
    """``moved 295 296 elements = 3.00 n; limit 3n + 5 %``. Empty where nothing was counted."""
    if result.elements is None:
        return ""
    text = f"moved {count(result.elements, 'element')}"
    form = exercise.limit_text if exercise else ""
    unit = _unit(form, result)
    if unit:
        text += f" = {result.elements / unit[1]:.2f} {unit[0]}"
    if result.limit is None:
        return text
    if not unit and result.limit:
        text += f", {result.elements / result.limit:.0%} of the limit".replace("%", " %")
    return text + (f"; limit {neutral(form, 60)} + 5 %" if form else f" ({spaced(result.limit)})")


def _unit(form: str, result: CaseResult) -> tuple[str, int] | None:
    """``"2MN"`` and sizes M, N → ``("MN", M·N)``; None if the form is no such product."""
    match = re.fullmatch(r"\d*((?:[·\s]?[A-Za-z])+)", form.strip())
    if not match:
        return None
    letters = re.sub(r"[·\s]", "", match[1])
    product = 1
    for letter in letters:
        size = result.case.sizes.get(letter)
        if not isinstance(size, int) or size <= 0:
            return None
        product *= size
    return letters, product


def heaviest(results: Iterable[CaseResult]) -> CaseResult | None:
    """The case that came closest to its limit, or went furthest over it."""
    counted = [r for r in results if r.elements is not None]
    return max(counted, key=lambda r: r.elements / r.limit if r.limit else 0.0, default=None)


def error_sentence(results: Iterable[CaseResult]) -> str:
    """``largest error 0.31 of the tolerance (case 'ragged length')``. Empty if none is known."""
    known = [r for r in results if r.max_error is not None]
    worst = max(known, key=lambda r: _rank(r.max_error), default=None)
    if worst is None:
        return ""
    if worst.max_error == 0:
        return "no error: equal to the reference to the last bit"
    return f"largest error {_times(worst.max_error)} (case '{neutral(worst.case.label, 40)}')"


def _rank(error: float) -> float:
    return math.inf if math.isnan(error) else error  # a NaN is the worst error there is


def _times(error: float) -> str:
    if not math.isfinite(error):
        return "is not finite"
    if error <= 1:
        return f"{error:.2g} of the tolerance"
    if error < 1e6:
        return (
            f"{error:.1f} times the tolerance"
            if error < 10
            else (f"{spaced(round(error))} times the tolerance")
        )
    return f"{error:.0e} times the tolerance"


def compile_sentences(compiled: Iterable[CompileFacts]) -> tuple[str, ...]:
    """One line a kernel: shared memory, registers, spills, wide loads, tensor-core instructions."""
    return tuple(_compile_sentence(facts) for facts in compiled)


def _compile_sentence(facts: CompileFacts) -> str:
    head = f"{neutral(facts.kernel, 48)} for {neutral(facts.card, 40)}"
    if facts.error:
        return f"{head}: {neutral(facts.error, 300)}"
    parts = [
        f"{count(facts.registers, 'register')} a thread",
        f"{spaced(facts.shared)} of {spaced(facts.shared_limit)} bytes of shared memory",
        f"{spaced(facts.spills)} bytes spilled" if facts.spills else "no spills",
    ]
    parts += [
        f"{number} {neutral(name, 24)}" for name, number in facts.instructions.items() if number
    ]
    return f"{head}: {', '.join(parts)}"
