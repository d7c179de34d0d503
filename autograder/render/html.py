"""A verdict as HTML: for JupyterLab, light and dark, and for the feedback that students get.

The pages use no script and no style sheet; colours come from the page around them or are legible
on both white and black. ``TAGS``, ``ATTRIBUTES`` and ``STYLES`` are all that ``feedback_html``
uses, in the form that nbconvert's ``SanitizeHTML`` and bleach take.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from html import escape

from autograder.records import CaseResult, Exercise, Verdict
from autograder.render import style
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
from autograder.render.lanes import lanes_over_array, shows_its_fault
from autograder.render.neutral import count, neutral, spaced, unbroken
from autograder.render.public import public_view
from autograder.render.text import hints_text, verdict_text

__all__ = [
    "ATTRIBUTES",
    "Hints",
    "Report",
    "STYLES",
    "TAGS",
    "feedback_html",
    "hints_html",
    "picture",
    "verdict_html",
]

TAGS = ("div", "p", "span", "b", "em", "table", "tbody", "thead", "tr", "td", "th", "details",
        "summary")  # fmt: skip
ATTRIBUTES = {"*": ["style"], "details": ["open"], "td": ["style"], "th": ["style", "scope"]}

_BADGE = {
    "pass": style.PASSED,
    "fail": style.OUTSIDE,
    "could_not_check": style.UNDECIDED,
    "not_reached": style.UNDECIDED,
}
_BOX = (
    "max-width:54em;margin:0.3em 0;padding:0.1em 0 0.1em 0.9em;line-height:1.5;text-align:left;"
    "overflow-wrap:break-word;"  # a student's word may be as wide as three pages
    "font-family:var(--jp-ui-font-family,system-ui,sans-serif);font-size:0.93em;color:inherit;"
    "border-left:0.25em solid {colour}"
)
_PILL = f"background-color:{{colour}};color:{style.PAPER};border-radius:0.8em;padding:0.1em 0.65em"
_MUTED = "opacity:0.75"
_CELL = "text-align:left;vertical-align:top;padding:0.1em 0.9em 0.1em 0;border:none;max-width:46em"
_LAST = _CELL + ";overflow-wrap:anywhere"  # which break-word does not do to a table
_ROW = "background-color:transparent"
_FOLD = "cursor:pointer;display:list-item"  # formgrader's page would hide the triangle
_FAULT = "margin:0.6em 0;padding-left:0.8em;border-left:1px solid"
STYLES = (
    "max-width", "margin", "padding", "padding-left", "line-height", "text-align", "font-family",
    "font-size", "font-weight", "color", "border", "border-left", "border-radius", "opacity",
    "background-color", "vertical-align", "border-collapse", "cursor", "display",
    "overflow-wrap", "white-space",
)  # fmt: skip


@dataclass(frozen=True)
class Report:
    """A verdict with its exercise, as ``check`` returns it: HTML in Jupyter, text elsewhere."""

    verdict: Verdict
    exercise: Exercise | None = None

    @property
    def passed(self) -> bool:
        return self.verdict.verdict == "pass"

    def _repr_html_(self) -> str:
        return verdict_html(self.verdict, self.exercise)

    def __repr__(self) -> str:
        return verdict_text(self.verdict, self.exercise)


@dataclass(frozen=True)
class Hints:
    """The hints of an exercise, the first ``opened`` of them open."""

    exercise: Exercise
    opened: int = 0

    def _repr_html_(self) -> str:
        return hints_html(self.exercise, self.opened)

    def __repr__(self) -> str:
        return hints_text(self.exercise, self.opened)


# ---------------------------------------------------------------- whole pages


def verdict_html(verdict: Verdict, exercise: Exercise | None = None) -> str:
    """The verdict with the picture of the first access out of bounds, as one ``<div>``.

    Hidden cases appear as ``public_view`` leaves them.
    """
    verdict = public_view(verdict)
    of_a_line, others = warnings_of(verdict)
    drawing = _drawing(verdict)
    parts = [
        _head(verdict, exercise),
        _aspects(verdict),
        _notes(of_a_line),
        _faults(verdict, exercise),
        f"<div>{drawing}</div>" if drawing else "",
        _facts(verdict, exercise),
        _cases(verdict.cases, exercise) if len(verdict.cases) > 1 else "",
        _notes(others),
    ]
    return _box(verdict, parts)


def feedback_html(verdict: Verdict, exercise: Exercise | None = None) -> str:
    """What stands under a graded cell: points by aspect, what passed, what failed and why.

    Holds nothing that a sanitiser with ``TAGS``, ``ATTRIBUTES`` and ``STYLES`` would take away, so
    no picture either: ``picture`` gives that as PNG, to go beside it as an ``image/png`` output.
    """
    verdict = public_view(verdict)
    of_a_line, others = warnings_of(verdict)
    parts = [
        _head(verdict, exercise),
        _aspects(verdict),
        _notes(of_a_line),
        _faults(verdict, exercise),
        _facts(verdict, exercise),
        _cases(verdict.cases, exercise) if verdict.cases else "",
        _notes(others),
    ]
    return _box(verdict, parts)


def picture(verdict: Verdict) -> bytes | None:
    """The first finding's lanes as PNG; None where no public finding holds an access.

    A picture that cannot be drawn is None as well, with a RuntimeWarning: points do not wait.
    """
    access = _access(public_view(verdict))
    if access is None:
        return None
    try:
        return style.png(lanes_over_array(access))
    except Exception as error:
        warnings.warn(f"a picture could not be drawn: {error}", RuntimeWarning, stacklevel=2)
        return None


def hints_html(exercise: Exercise, opened: int = 0) -> str:
    """The hints one inside the other, so that each can only be opened after the one before."""
    if not exercise.hints:
        return f"<p>{_t(exercise.id, 40)} has no hints.</p>"
    total = len(exercise.hints)
    inner = ""
    for i in range(total, 0, -1):
        state = " open" if i <= opened else ""
        inner = (
            f'<details{state} style="margin:0.4em 0"><summary style="{_FOLD}">hint {i} of '
            f'{total}</summary><p style="margin:0.3em 0">{_t(exercise.hints[i - 1], 2000)}</p>'
            f"{inner}</details>"
        )
    return f'<div style="{_BOX.format(colour=style.READ)}">{inner}</div>'


# ---------------------------------------------------------------- parts


def _t(text: object, limit: int = 600) -> str:
    """Foreign text, neutral and escaped."""
    return escape(neutral(text, limit), quote=True)


def _box(verdict: Verdict, parts: Iterable[str]) -> str:
    inner = "".join(part for part in parts if part)
    return f'<div style="{_BOX.format(colour=_BADGE[verdict.verdict])}">{inner}</div>'


def _head(verdict: Verdict, exercise: Exercise | None) -> str:
    pill = _PILL.format(colour=_BADGE[verdict.verdict])
    points = head_points(verdict)
    title = _t(exercise.heading, 60) if exercise else ""
    text = (
        f'<p style="margin:0.2em 0 0.5em 0"><span style="{pill}">{SYMBOL[verdict.verdict]} '
        f"{head_word(verdict)}</span> <b>{_t(verdict.exercise, 40)} {title}</b> "
        f'<span style="{_MUTED}">{points}</span></p>'
    )
    if message := head_message(verdict):
        text += f'<p style="margin:0.2em 0 0.5em 0">{escape(message)}</p>'
    return text


def _mark(status: str) -> str:
    look = _PILL.format(colour=_BADGE[status]) + ";font-size:0.85em"
    return f'<span style="{look}">{SYMBOL[status]}</span>'


def _table(rows: Iterable[tuple[str, ...]], head: Iterable[str] = ()) -> str:
    """Cells are HTML already."""
    body = "".join(
        f'<tr style="{_ROW}">'
        + "".join(f'<td style="{_CELL}">{cell}</td>' for cell in row[:-1])
        + f'<td style="{_LAST}">{row[-1]}</td></tr>'
        for row in rows
    )
    if not body:
        return ""
    top = "".join(f'<th scope="col" style="{_CELL}">{cell}</th>' for cell in head)
    top = f'<thead style="border:none"><tr style="{_ROW}">{top}</tr></thead>' if top else ""
    look = "border:none;border-collapse:collapse;margin:0.3em 0;font-size:1em"
    return f'<table style="{look}">{top}<tbody>{body}</tbody></table>'


def _aspects(verdict: Verdict) -> str:
    rows = []
    for aspect in verdict.aspects:
        points = ""
        if aspect.max_points:  # in one line, also on a telephone
            points = f"{aspect.points:g} of {aspect.max_points:g}"
            points = f'<span style="white-space:nowrap">{points}</span>'
        said = f'<span style="{_MUTED}">{escape(aspect_words(verdict, aspect))}</span>'
        rows.append((_mark(aspect.status), f"<b>{_t(aspect.name, 40)}</b>", points, said))
    return _table(rows)


def _facts(verdict: Verdict, exercise: Exercise | None) -> str:
    facts = [
        ("cases", cases_sentence(verdict)),
        ("traffic", traffic_sentence(verdict.cases, exercise)),
        ("values", error_sentence(verdict.cases)),
        *(("compiled", sentence) for sentence in compile_sentences(verdict.compiled)),
    ]
    return _table(
        (f'<span style="{_MUTED}">{name}</span>', escape(unbroken(sentence)))
        for name, sentence in facts
        if sentence
    )


def _fault(fault: Fault) -> str:
    head = " · ".join(escape(part) for part in (fault.where, fault.cases) if part)
    note = escape(unbroken(fault.note))
    return (
        f'<div style="{_FAULT}"><p style="margin:0">{_mark("fail")} <b>{fault.aspect}</b> '
        f'<span style="{_MUTED}">{head}</span></p>'
        f'<p style="margin:0.2em 0">{escape(unbroken(fault.message))}</p>'
        + (f'<p style="margin:0.2em 0"><em>{note}</em></p>' if fault.note else "")
        + "</div>"
    )


def _faults(verdict: Verdict, exercise: Exercise | None) -> str:
    told, left = first_faults(verdict, exercise)
    blocks = [_fault(fault) for fault in told]
    if left:
        words = f"… and {left} more, most likely from the same cause."
        blocks.append(f'<p style="{_MUTED}">{words}</p>')
    return "".join(blocks)


def _cases(results: Iterable[CaseResult], exercise: Exercise | None) -> str:
    rows = []
    for result in results:
        hidden = result.case.hidden
        moved = "" if result.elements is None else spaced(result.elements)
        if result.limit is not None:
            moved = f"{moved or '–'} of {spaced(result.limit)}"
        error = "" if result.max_error is None else f"{result.max_error:.2g}"
        told = {name: size for name, size in result.case.sizes.items() if name != "counted"}
        sizes = ", ".join(
            f"{_t(name, 30)}\u202f=\u202f{_t(size, 30)}" for name, size in told.items()
        )
        sizes += ", only addresses" if result.case.sizes.get("counted") else ""
        label = unbroken(_t(result.case.label, 60)) + (
            f' <span style="{_MUTED}">hidden</span>' * hidden
        )
        rows.append((_mark(result.status), label, sizes, unbroken(moved), error))
    head = ("", "case", "sizes", "elements moved, limit", "error ÷ bound (right up to 1)")
    return (
        f'<details style="margin:0.5em 0"><summary style="{_FOLD}">the '
        f"{count(len(rows), 'case')}</summary>{_table(rows, head)}</details>"
    )


def _notes(texts: list[str]) -> str:
    return "".join(
        f'<p style="margin:0.3em 0"><b>note</b> {escape(text)}</p>' for text in texts[:5]
    )


# ---------------------------------------------------------------- the picture


def _access(verdict: Verdict):
    """The first finding's access whose picture shows the fault; None if there is none."""
    return next((f.access for f in verdict.findings if shows_its_fault(f)), None)


def _drawing(verdict: Verdict) -> str:
    """The picture as inline SVG. A picture that fails must not take the verdict with it."""
    access = _access(verdict)
    if access is None:
        return ""
    try:
        return style.svg(lanes_over_array(access))
    except Exception as error:
        return f"<p>(The picture could not be drawn: {_t(error, 120)}.)</p>"
