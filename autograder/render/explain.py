"""What a verdict says, in sentences: the words that text and HTML share.

Everything returned is already neutral (see ``neutral``); a page still has to escape it.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

from autograder.records import (
    Aspect,
    CaseResult,
    Exercise,
    Finding,
    Verdict,
    aspect_of,
)
from autograder.render.asking import SAME_CAUSE, ask, explained
from autograder.render.neutral import neutral

__all__ = [
    "NOTES",
    "SYMBOL",
    "WORDS",
    "Fault",
    "aspect_words",
    "faults",
    "first_faults",
    "head_message",
    "head_points",
    "head_word",
    "warnings_of",
]

_LINE = re.compile(r"\(line (\d+)\)")
SYMBOL = {"pass": "✓", "fail": "✗", "could_not_check": "?", "not_reached": "–"}
WORDS = {
    "pass": "pass",
    "fail": "fail",
    "could_not_check": "could not check",
}
FINDINGS = 3  # a reader mends one fault at a time
# What is known of a quiz before it is graded: its form, and never whether an answer is right.
_FORM = {"pass": "form complete", "could_not_check": "incomplete", "fail": "form not right"}
_PROVES = {
    "values": "the numbers are right",
    "kernel": "a kernel computed them",
    "bounds": "every lane stays in its tensor",
    "races": "no two programs meet in an element",
    "traffic": "it moves no more than needed",
    "compiles": "it compiles for the card",
    "form": "every question has an answer of its form",
}
_FAILS = {
    "values": "not the numbers asked for",
    "kernel": "computed by torch, not by a kernel",
    "bounds": "lanes outside their tensor, or without a number",
    "races": "programs meet in an element",
    "traffic": "moves more than the limit",
    "compiles": "does not compile",
    "form": "not as the questions ask",
}

# What to look at, where an exercise has no question of its own.
NOTES = {
    "out_of_bounds": "Which condition tells a lane that it has a number to work on?",
    "uninitialised": "Who writes these elements before they are read?",
    "undefined_lane": "What does a masked lane hold when the load has no `other`?",
    "unwritten": "Do the programs of the grid, taken together, cover the whole output?",
    "race": "Which programs own this element, and what would make it only one?",
    "traffic": "Which number is read or written twice, and where could it have been kept?",
    "values": "Take the first element that differs and do its sum by hand: where do they part?",
    "torch_computed": "Which line of the host function computes? Move that work into the kernel.",
    "compile": "",  # these two say themselves what to do
    "interface": "",
}


@dataclass(frozen=True)
class Fault:
    """One finding, told once, with the labels of all cases on which it shows."""

    finding: Finding
    aspect: str
    where: str  # "add_kernel, line 7", or ""
    cases: str  # "case “ragged length” and 2 more", or ""
    message: str
    note: str  # what to look at; asked once


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
    # A quiz has no programs to ask about, and its notes are the forms of its questions.
    quiz = exercise is not None and exercise.machine == "quiz"
    notes = {} if quiz else NOTES | dict(exercise.notes if exercise else {})
    names = [aspect.name for aspect in verdict.aspects]
    clues = {} if quiz or exercise is None else _clues(verdict, exercise)
    asked: set[str] = set()
    told = []
    earlier: list[tuple[Finding, list[str]]] = []
    for key, finding in first.items():
        cases = labels.get(key, [])
        if explained(finding, cases, earlier):
            note = SAME_CAUSE
        else:
            note = ask(finding, notes | clues, shown_on.get(finding, ()))
            note = "" if note in asked else note
            asked.add(note)
        note = neutral(note, 240)
        earlier.append((finding, cases))
        told.append(
            Fault(
                finding,
                "form" if _is_form(verdict) else aspect_of(finding.kind, names),
                _where(finding),
                _and_more(cases),
                neutral(finding.message),
                note,
            )
        )
    return tuple(told)


def first_faults(verdict: Verdict, exercise: Exercise | None) -> tuple[tuple[Fault, ...], int]:
    """The faults to tell, and how many are left. Of a quiz all: they are not one cause."""
    told = faults(verdict, exercise)
    quiz = _is_form(verdict) or (exercise is not None and exercise.machine == "quiz")
    shown = told if quiz else told[:FINDINGS]
    return shown, len(told) - len(shown)


def warnings_of(verdict: Verdict) -> tuple[list[str], list[str]]:
    """The warnings, neutral: those on a line of a kernel, which may be the cause, and the others.

    Such as differ in nothing but a line are one, with all lines.
    """
    lines: dict[str, list[str]] = {}
    for text in verdict.warnings:
        found = _LINE.search(text)
        key = _LINE.sub("(line)", text, count=1)
        lines.setdefault(key, []).append(found[1] if found else "")
    merged = []
    for text, (*others, last) in lines.items():
        where = f"lines {', '.join(others)} and {last}" if others else f"line {last}"
        merged.append(neutral(text.replace("(line)", f"({where})", 1) if last else text, 300))
    of_a_kernel = [text for text in merged if re.match(r"Line \d+ of ", text)]
    return of_a_kernel, [text for text in merged if text not in of_a_kernel]


def _clues(verdict: Verdict, exercise: Exercise) -> dict[str, str]:
    """For each kind of finding the question of the first clue that fits, by the public cases."""
    status = {r.case.label: r.status for r in verdict.cases if not r.case.hidden}
    fitting: dict[str, str] = {}
    for clue in exercise.clues:
        right = not clue.right or status.get(clue.right) == "pass"
        if right and status.get(clue.wrong) == "fail":
            fitting.setdefault(clue.kind, clue.question)
    return fitting


def _is_form(verdict: Verdict) -> bool:
    """Whether this is the check of a quiz, which knows the form of its answers only."""
    return [aspect.name for aspect in verdict.aspects] == ["form"]


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
    """What an aspect proves, what is wrong and on how many cases, or why it was not scored."""
    if aspect.note:
        return neutral(aspect.note, 80)
    if aspect.status == "pass":
        return _PROVES.get(aspect.name, "")
    if aspect.status == "could_not_check":
        return WORDS["could_not_check"]
    if aspect.status == "not_reached":
        return _not_scored(verdict, aspect)
    names = [other.name for other in verdict.aspects]
    hit = sum(
        any(aspect_of(finding.kind, names) == aspect.name for finding in result.findings)
        for result in verdict.cases
    )
    total = len(verdict.cases)
    said = _FAILS.get(aspect.name, "")
    kinds = {f.kind for r in verdict.cases for f in r.findings}
    kinds = {kind for kind in kinds if aspect_of(kind, names) == aspect.name}
    if aspect.name == "values" and kinds == {"torch_computed"}:
        said = "not by load and store"  # unit 01: the numbers may well be those asked for
    if aspect.name == "values" and not hit and any(r.findings for r in verdict.cases):
        return _not_scored(verdict, aspect)
    if not hit or total < 2:
        return said
    return f"{said}{', ' * bool(said)}on {hit} of {total} cases"


def _not_scored(verdict: Verdict, aspect: Aspect) -> str:
    """Why an aspect without a fault of its own lacks points."""
    ran = any(r.run is not None or r.elements is not None for r in verdict.cases)
    if aspect.name == "values":
        blocked = Counter(f.kind for r in verdict.cases for f in r.findings)
        if blocked["torch_computed"]:
            return "not scored: no kernel computed the numbers"
        return "not scored where the run was stopped" if ran else "not scored: nothing ran"
    if not ran:
        return "not scored: nothing ran"
    if aspect.points:
        return "no fault seen; scored on the cases with right values"
    return "no fault seen; scored once the values are right"


def head_points(verdict: Verdict) -> str:
    """``4.5 of 10 points``; nothing where there are none to be had, or nothing was checked."""
    if not verdict.max_points or verdict.verdict == "could_not_check" and not verdict.points:
        return ""
    plural = "" if verdict.max_points == 1 else "s"
    return f"{verdict.points:g} of {verdict.max_points:g} point{plural}"


def head_word(verdict: Verdict) -> str:
    """``pass``, ``fail``, ``could not check``; of a quiz not graded yet, the state of its form."""
    return _FORM[verdict.verdict] if _is_form(verdict) else WORDS[verdict.verdict]


def head_message(verdict: Verdict) -> str:
    """The verdict's one sentence; where we could not check, it also says whose limit that is."""
    if verdict.verdict != "could_not_check" or _is_form(verdict):
        return neutral(verdict.message)
    said = neutral(verdict.message) or "Something could not be checked."
    return f"{said} That is a limit of this checker, not a mistake of yours."
