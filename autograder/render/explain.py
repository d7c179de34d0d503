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
    Aspect,
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
    "head_message",
    "head_points",
    "traffic_sentence",
]

SYMBOL = {"pass": "✓", "fail": "✗", "could_not_check": "?", "not_reached": "–"}
WORDS = {
    "pass": "pass",
    "fail": "fail",
    "could_not_check": "could not check",
    "not_reached": "not reached: first a kernel has to get the numbers right",
}
_PROVES = {
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
    cases: str  # "case “ragged length” and 2 more", or ""
    message: str
    note: str  # what to look at; asked once a kind


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
            if not (result.case.sizes or result.case.hidden):
                continue
            label = ("hidden " if result.case.hidden else "") + f"case “{result.case.label}”"
            if label not in labels.setdefault(key, []):
                labels[key].append(label)
    notes = NOTES | dict(exercise.notes if exercise else {})
    asked: set[str] = set()
    told = []
    for key, finding in first.items():
        note = "" if finding.kind in asked else neutral(notes[finding.kind], 240)
        asked.add(finding.kind)
        told.append(
            Fault(
                finding,
                ASPECT_OF_KIND[finding.kind],
                _where(finding),
                _and_more(labels.get(key, [])),
                neutral(finding.message),
                note,
            )
        )
    return tuple(told)


def _where(finding: Finding) -> str:
    parts = [neutral(finding.kernel, 48)] if finding.kernel else []
    parts += [f"line {finding.line}"] if finding.line > 0 else []
    return ", ".join(parts)


def _and_more(labels: list[str]) -> str:
    if not labels:
        return ""
    more = f" and {len(labels) - 1} more" if len(labels) > 1 else ""
    return neutral(labels[0], 60) + more


def aspect_words(verdict: Verdict, aspect: Aspect) -> str:
    """What an aspect proves, or on how many cases it fails, in a few words."""
    if aspect.status == "pass":
        return _PROVES.get(aspect.name, "")
    if aspect.note:
        return neutral(aspect.note, 80)
    if aspect.status != "fail":
        return WORDS[aspect.status]
    hit = sum(
        any(ASPECT_OF_KIND[finding.kind] == aspect.name for finding in result.findings)
        for result in verdict.cases
    )
    total = len(verdict.cases)
    if not hit:
        return "counts only where the numbers are right" if aspect.points else ""
    return f"fails on {hit} of {total} cases" if total > 1 else ""


def head_points(verdict: Verdict) -> str:
    """``4.5 of 10 points``; nothing where there are none to be had, or nothing was checked."""
    if not verdict.max_points or verdict.verdict == "could_not_check" and not verdict.points:
        return ""
    plural = "" if verdict.max_points == 1 else "s"
    return f"{verdict.points:g} of {verdict.max_points:g} point{plural}"


def head_message(verdict: Verdict) -> str:
    """The verdict's one sentence; where we could not check, it also says whose limit that is."""
    if verdict.verdict != "could_not_check":
        return neutral(verdict.message)
    said = neutral(verdict.message) or "Something could not be checked."
    return f"{said} That is a limit of this checker, not a mistake of yours."


def cases_sentence(verdict: Verdict) -> str:
    """``5 of 7 pass; not “ragged length”, “one element” (hidden)``."""
    # A call that never came to a case stands in the verdict as a case without sizes.
    results = [result for result in verdict.cases if result.case.sizes or result.case.hidden]
    if not results:
        return ""
    failed = [result for result in results if result.status != "pass"]
    total = len(results)
    if not failed:
        return f"all {total} pass" if total > 1 else "the only one passes"
    names = [
        f"“{neutral(r.case.label, 40)}”"
        + (" (hidden)" if r.case.hidden else "")
        + (" (could not check)" if r.status == "could_not_check" else "")
        for r in failed[:4]
    ]
    more = f" and {len(failed) - 4} more" if len(failed) > 4 else ""
    return f"{total - len(failed)} of {total} pass; not {', '.join(names)}{more}"


def traffic_sentence(results: Iterable[CaseResult], exercise: Exercise | None) -> str:
    """``moved 295 296 elements = 3.00 n; limit 3n + 5 %``, of the largest case.

    Where cases go over their limit, of the largest of those. Empty where nothing was counted.
    """
    counted = [r for r in results if r.elements is not None]
    over = [r for r in counted if r.limit is not None and r.elements > r.limit]
    result = max(over or counted, key=lambda r: r.elements, default=None)
    if result is None:
        return ""
    text = f"moved {count(result.elements, 'element')}"
    form = exercise.limit_text if exercise else ""
    unit = _unit(form, result)
    if unit:
        times = result.elements / unit[1]
        text += (
            f" = {times:.2f} {unit[0]}" if times < 100 else f" = {spaced(round(times))} {unit[0]}"
        )
    if result.limit is not None:
        if not unit and result.limit:
            text += f", {100 * result.elements / result.limit:.0f} % of the limit"
        text += f"; limit {neutral(form, 60)} + 5 %" if form else f" ({spaced(result.limit)})"
    return text + f" (case “{neutral(result.case.label, 40)}”)"


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


def error_sentence(results: Iterable[CaseResult]) -> str:
    """``largest error 0.31 of the tolerance (case “ragged length”)``.

    Empty if none is known, or if one is not finite: then findings say more.
    """
    known = [r for r in results if r.max_error is not None]
    if not known or not all(math.isfinite(r.max_error) for r in known):
        return ""
    worst = max(known, key=lambda r: r.max_error)
    if worst.max_error == 0:
        return "no error: equal to the reference to the last bit"
    return f"largest error {_times(worst.max_error)} (case “{neutral(worst.case.label, 40)}”)"


def _times(error: float) -> str:
    if error <= 1:
        return f"{error:.2f} of the tolerance"
    if error < 10:
        return f"{error:.1f} times the tolerance"
    return f"{spaced(round(error)) if error < 1e6 else f'{error:.0e}'} times the tolerance"


def compile_sentences(compiled: Iterable[CompileFacts]) -> tuple[str, ...]:
    """One line a kernel: registers, shared memory, spills, wide accesses, tensor cores."""
    return tuple(_compile_sentence(facts) for facts in compiled)


def _compile_sentence(facts: CompileFacts) -> str:
    head = f"{neutral(facts.kernel, 48)} for {neutral(facts.card, 40)}"
    if facts.error:
        return f"{head}: {neutral(facts.error, 300)}"
    shared = f"{spaced(facts.shared)} of {spaced(facts.shared_limit)} bytes of shared memory"
    parts = [
        f"{count(facts.registers, 'register')}",
        shared if facts.shared else "no shared memory",
        f"{spaced(facts.spills)} bytes spilled" if facts.spills else "no spills",
    ]
    telling = [
        f"{number} {neutral(name, 24)}"
        for name, number in facts.instructions.items()
        if number and any(word in name for word in (".v2", ".v4", "mma", "cp.async"))
    ]
    return f"{head}: {', '.join(parts + telling)}"
