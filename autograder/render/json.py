"""A verdict as a dict for ``--json``: the shape that the command line promises."""

from __future__ import annotations

from typing import Any

from autograder.records import Finding, Verdict
from autograder.render.neutral import neutral
from autograder.render.public import public_view

__all__ = ["verdict_json"]


def verdict_json(verdict: Verdict) -> dict[str, Any]:
    """``{exercise, verdict, points, max_points, aspects: {name: verdict}, faults: [...]}``.

    A fault is ``{kind, kernel, argument, line, program, lanes, message}``; ``program`` is a list of
    ids or None. Everything is of a type that ``json.dumps`` takes without ``default``. Findings on
    hidden cases are those of ``public_view``: kernel ``""``, program None, lanes 0.
    """
    verdict = public_view(verdict)
    findings = verdict.findings
    if verdict.message and not findings and verdict.verdict == "fail":
        # A file that does not parse has no findings, yet a fault that a program should see.
        findings = (Finding("interface", verdict.message),)
    return {
        "exercise": neutral(verdict.exercise, 120),
        "verdict": verdict.verdict,
        "points": float(verdict.points),
        "max_points": float(verdict.max_points),
        "aspects": {aspect.name: aspect.status for aspect in verdict.aspects},
        "faults": [_fault(finding) for finding in findings],
    }


def _fault(finding: Finding) -> dict[str, Any]:
    return {
        "kind": finding.kind,
        "kernel": neutral(finding.kernel, 120),
        "argument": neutral(finding.argument, 120),
        "line": int(finding.line),
        "program": None if finding.program is None else [int(p) for p in finding.program],
        "lanes": int(finding.lanes),
        "message": neutral(finding.message),
    }
