"""A verdict as plain text: for terminals and for notebooks that show no HTML."""

from __future__ import annotations

import textwrap

from autograder.records import Exercise, Verdict
from autograder.render.explain import (
    SYMBOL,
    Fault,
    aspect_words,
    first_faults,
    head_message,
    head_points,
    head_word,
    warnings_of,
)
from autograder.render.facts import (
    cases_sentence,
    compile_sentences,
    error_sentence,
    traffic_sentence,
)
from autograder.render.neutral import neutral, unbroken
from autograder.render.public import public_view

__all__ = ["hints_text", "public_view", "verdict_text"]

WIDTH = 92
LINES = 5  # of one finding, at most


def verdict_text(verdict: Verdict, exercise: Exercise | None = None) -> str:
    """The verdict in at most about thirty lines of at most 92 characters, without colours.

    First line: verdict and points. Then a table by aspect, what was moved and compiled, and the
    first findings in at most five lines each. Hidden cases appear as ``public_view`` leaves them.
    """
    verdict = public_view(verdict)
    of_a_line, others = warnings_of(verdict)
    blocks = [
        _head(verdict, exercise),
        _table(verdict),
        _facts(verdict, exercise),
        _notes(of_a_line),
        *_findings(verdict, exercise),
        _notes(others),
    ]
    return "\n".join(block for block in blocks if block)


def _head(verdict: Verdict, exercise: Exercise | None) -> str:
    title = f" {neutral(exercise.heading, 60)}" if exercise and exercise.heading else ""
    mark = f"{SYMBOL[verdict.verdict]} {neutral(verdict.exercise, 40)}{title}: "
    line = mark + ", ".join(part for part in (head_word(verdict), head_points(verdict)) if part)
    message = head_message(verdict)
    return line + ("\n" + _wrapped(message, LINES) if message else "")


def _table(verdict: Verdict) -> str:
    width = max((len(aspect.name) for aspect in verdict.aspects), default=0)
    rows = []
    for aspect in verdict.aspects:
        points = f"{aspect.points:g}/{aspect.max_points:g}" if aspect.max_points else ""
        words = aspect_words(verdict, aspect)
        row = f"  {SYMBOL[aspect.status]} {aspect.name:<{width}}  {points:>7}  {words}"
        rows.append(row.rstrip())
    return "\n".join(rows)


def _facts(verdict: Verdict, exercise: Exercise | None) -> str:
    facts = [
        ("cases", cases_sentence(verdict)),
        ("traffic", traffic_sentence(verdict.cases, exercise)),
        ("values", error_sentence(verdict.cases)),
        *(("compiled", sentence) for sentence in compile_sentences(verdict.compiled)),
    ]
    lines = []
    for name, sentence in facts:
        if sentence:
            lines += _wrap(
                sentence,
                initial_indent=f"  {name:<9} ",
                subsequent_indent=" " * 12,
                max_lines=3,
                placeholder=" …",
            )
    return "\n".join(lines)


def _findings(verdict: Verdict, exercise: Exercise | None) -> list[str]:
    told, left = first_faults(verdict, exercise)
    blocks = [_finding(fault) for fault in told]
    if left:
        blocks.append(f"… and {left} more, most likely from the same cause.")
    return blocks


def _finding(fault: Fault) -> str:
    head = " · ".join(part for part in (fault.aspect, fault.where, fault.cases) if part)
    head = textwrap.shorten(f"✗ {head}", WIDTH, placeholder=" …")
    # The question is worth more than the end of a long message, so the message gives way; but
    # one of the compiler or the interface says itself what to do, at its end.
    both = _lines(f"{fault.message} {fault.note}")
    if len(both) >= LINES and fault.finding.kind in ("compile", "interface"):
        return head + "\n" + _wrapped(fault.message, LINES)
    room = len(fault.message)
    while True:
        message = textwrap.shorten(fault.message, room, placeholder=" …")
        lines = _lines(f"{message} {fault.note}")
        if len(lines) < LINES or room < 40:
            return "\n".join([head, *lines[: LINES - 1]])
        room -= 10


def _notes(texts: list[str]) -> str:
    return "\n".join(_wrapped("note: " + text, 3) for text in texts[:3])


def _wrapped(text: str, most: int) -> str:
    lines = _lines(text)
    return "\n".join(lines[:most]) + (" …" if len(lines) > most else "")


def _lines(text: str) -> list[str]:
    return _wrap(text, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False)


def _wrap(text: str, **how) -> list[str]:
    """Lines of at most WIDTH; a number such as ``40 960`` stays on one of them."""
    lines = textwrap.wrap(unbroken(text), WIDTH, **how)
    return [line.replace("\u202f", " ") for line in lines]


def hints_text(exercise: Exercise, opened: int = 1, again: str = "call hint again") -> str:
    """The first ``opened`` hints, numbered, and how many are left. ``again``: how to get one."""
    total = len(exercise.hints)
    if not total:
        return f"{exercise.id} has no hints."
    shown = max(0, min(opened, total))
    blocks = [
        f"hint {i} of {total}\n{_wrapped(neutral(exercise.hints[i - 1], 2000), 30)}"
        for i in range(1, shown + 1)
    ]
    left = total - shown
    if left:
        blocks.append(f"({left} more: {again} after you have tried this one)")
    return "\n".join(blocks)
