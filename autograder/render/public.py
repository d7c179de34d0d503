"""What a student may see of a verdict: everything of public cases, five words of hidden ones."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from autograder.records import Case, CaseResult, Finding, Verdict

__all__ = ["public_view"]

# One sentence a kind, rebuilt from nothing but the argument's name. Sizes cannot slip in.
_SENTENCES = {
    "out_of_bounds": "Lanes go outside {argument}",
    "uninitialised": "Lanes read elements of {argument} that nothing has written",
    "undefined_lane": "Masked lanes of {argument} hold no defined number, and the result uses them",
    "unwritten": "Elements of {argument} are never written",
    "race": "Two programs, or two lanes, meet in one element of {argument}",
    "traffic": "More elements move than the limit allows",
    "values": "Values of {argument} differ from the reference",
    "torch_computed": "Values come from torch and not from a kernel",
    "compile": "A kernel does not compile for the card",
    "interface": "What comes back is not what was asked for",
}
_FINDINGS_A_CASE = 3  # a fault repeats; and each one shown could carry a few bits of a hidden case
_LONGEST_NAME = 32


def public_view(verdict: Verdict, source: str | None = None) -> Verdict:
    """``verdict`` without anything that tells a size, an offset or a program of a hidden case.

    A finding on a hidden case keeps kind, argument and line; its message is written anew with the
    case's label. Verdicts without hidden cases come back unchanged. With hidden cases, sentences
    whose origin is unknown (``message``, ``warnings``, notes of aspects) stay only if a public case
    says the same.

    ``source`` is the student's text. The sandboxed side knows the geometry of hidden cases and
    chooses names and line numbers, so with it only names and lines that stand in that text pass.
    """
    if not any(result.case.hidden for result in verdict.cases):
        return verdict
    open_results = [result for result in verdict.cases if not result.case.hidden]
    open_findings = {finding for result in open_results for finding in result.findings}
    open_sentences = {finding.message for finding in open_findings}
    open_sentences |= {result.message for result in open_results}
    open_warnings = {w for r in open_results if r.run is not None for w in r.run.warnings}
    cases = tuple(
        _stripped(result, source) if result.case.hidden else result for result in verdict.cases
    )
    findings = tuple(f for f in verdict.findings if f in open_findings or _of_compile(f, verdict))
    findings += tuple(f for result in cases if result.case.hidden for f in result.findings)
    return replace(
        verdict,
        aspects=tuple(replace(aspect, note="") for aspect in verdict.aspects),
        findings=findings,
        cases=cases,
        warnings=tuple(w for w in verdict.warnings if w in open_warnings),
        message=verdict.message if verdict.message in open_sentences else _message(verdict),
    )


def _of_compile(finding: Finding, verdict: Verdict) -> bool:
    """The compile proof runs on the blocks that the exercise states; it belongs to no case."""
    of_a_case = any(finding in result.findings for result in verdict.cases)
    return finding.kind == "compile" and not of_a_case


def _stripped(result: CaseResult, source: str | None) -> CaseResult:
    return CaseResult(
        case=Case(result.case.label, {}, hidden=True),
        status=result.status,
        findings=tuple(_rebuilt(result.findings, result.case.label, source)),
    )


def _rebuilt(findings: Iterable[Finding], label: str, source: str | None) -> Iterable[Finding]:
    seen = set()
    for finding in findings:
        argument = finding.argument if _harmless(finding.argument, source) else ""
        line = finding.line if _stands_in(finding.line, source) else 0
        key = (finding.kind, argument, line)
        if key in seen or len(seen) == _FINDINGS_A_CASE:
            continue
        seen.add(key)
        sentence = _SENTENCES[finding.kind].format(argument=argument or "a tensor")
        where = f" at line {line}" if line else ""
        message = f"{sentence}{where}, on the hidden case “{label}”."
        yield Finding(finding.kind, message, argument=argument, line=line)


def _harmless(name: str, source: str | None) -> bool:
    """A plain identifier that spells no number, and one that the student's text holds."""
    if not name.isidentifier() or len(name) > _LONGEST_NAME or re.search(r"\d\d", name):
        return False
    return source is None or re.search(rf"\b{re.escape(name)}\b", source) is not None


def _stands_in(line: int, source: str | None) -> bool:
    return line > 0 and (source is None or line <= source.count("\n") + 1)


def _message(verdict: Verdict) -> str:
    if not verdict.message:
        return ""
    if verdict.verdict == "could_not_check":
        return "A hidden case needs something that this checker does not know yet."
    return "A hidden case did not get what was asked for."
