"""What ``inspect_call`` found, as a cell's result: a sentence a finding, and the lanes drawn."""

from __future__ import annotations

import html
import textwrap

from autograder.records import Finding, Run
from autograder.render.asking import SAME_CAUSE, ask, explained
from autograder.render.explain import NOTES
from autograder.render.neutral import neutral

__all__ = ["show"]

WIDTH = 92


class Shown:
    """Findings; Jupyter gets HTML with a picture, everything else plain text."""

    def __init__(self, findings: tuple[Finding, ...], note: bool):
        self.findings = findings
        self.note = note

    def _sentences(self) -> list[tuple[str, str]]:
        told: list[tuple[str, str]] = []
        for i, finding in enumerate(self.findings):
            note = ask(finding, NOTES) if self.note else ""
            if note and explained(finding, (), [(f, ()) for f in self.findings[:i]]):
                note = SAME_CAUSE
            # A question that has just been asked is not asked again.
            elif note in [said for _, said in told]:
                note = ""
            told.append((neutral(finding.message), note))
        return told

    def __repr__(self) -> str:
        if not self.findings:
            return "✓ no findings"
        return "\n".join(
            textwrap.fill(f"✗ {message} {note}".rstrip(), WIDTH, subsequent_indent="  ")
            for message, note in self._sentences()
        )

    def _repr_html_(self) -> str:
        if not self.findings:
            return "<p>✓ no findings</p>"
        blocks = [
            f"<p>✗ {html.escape(message)} <em>{html.escape(note)}</em></p>"
            for message, note in self._sentences()
        ]
        return "\n".join((*blocks, _picture(self.findings)))


def _picture(findings: tuple[Finding, ...]) -> str:
    """The lanes of the first finding that they show, as inline SVG; empty if there is none."""
    from autograder.render.lanes import lanes_over_array, shows_its_fault
    from autograder.render.style import svg

    drawn = [f.access for f in findings if shows_its_fault(f)]
    return svg(lanes_over_array(drawn[0])) if drawn else ""


def show(run: Run, note: bool = True) -> Shown:
    """The run's findings, to stand at the end of a cell; ``note`` adds the question to ask."""
    return Shown(run.findings, note)
