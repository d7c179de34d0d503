"""Public cases first, then hidden ones; only the words about the first are ever shown.

Whoever knows a hidden case's geometry can put it into any text: an error's message, a line number,
a name. So a fork is told of hidden cases when all that it said about public ones is here, and of
what it says from then on only records and outputs are kept, with fixed sentences in the place of
its own. A fork that ends on a hidden case is begun again, for hidden cases alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from autograder.grading.solving import Said, Solving, ran_out
from autograder.records import FINDING_KINDS, CaseResult

STOPPED = "It stopped with an error on a hidden case."
RAN_OUT = "It stopped with a MemoryError on a hidden case."
NOT_KNOWN = "A hidden case needs something that this checker does not know yet."
NO_END = "The call did not come to an end on a hidden case."
_MOST_LINES, _MOST_NAMES = 200, 32  # that a hidden case's findings may choose from


def solve_apart(
    solving: Callable[[Iterable[str]], Solving],
    tasks: Mapping[str, dict],
    hidden: Mapping[str, Sequence[int]],
) -> dict[str, Said]:
    """What the untrusted side says about the exercises of ``tasks``; ``hidden`` are the numbers of
    their cases that no fork is told before it is through with the others. ``solving(skip)`` makes a
    Solving."""
    public = {
        id: [n for n in range(len(task.get("cases", ()))) if n not in hidden[id]]
        for id, task in tasks.items()
    }
    shown = solving(())

    def later() -> dict[str, dict]:
        return {
            id: _part(task, hidden[id], first=False)
            for id, task in tasks.items()
            if "cases" in task and hidden[id] and _may_go_on(shown.said[id])
        }

    rest = shown.run({id: _part(task, public[id], first=True) for id, task in tasks.items()}, later)
    other = solving(shown.skip)
    other.run(later(), already=rest)
    return {id: _joined(shown.said[id], public[id], other.said.get(id), hidden[id]) for id in tasks}


def _may_go_on(said: Said) -> bool:
    """Not where nothing could be judged, or where the first case was refused already."""
    refused = any("rejected" in line and line.get("case") == 0 for line in said.lines)
    return not (said.problem or said.ours or refused) and said.status == "ok"


def _part(task: dict, numbers: Sequence[int], *, first: bool) -> dict:
    """``task`` with the cases ``numbers`` only. ``first``: a rejection of its first case ends it,
    as in the student's check."""
    if "cases" not in task:
        return task
    configs = [numbers.index(n) for n in task.get("all_configs", ()) if n in numbers]
    cases = [task["cases"][n] for n in numbers]
    return task | {"cases": cases, "all_configs": configs, "first": first}


def _joined(shown: Said, numbers: Sequence[int], other: Said | None, others: Sequence[int]) -> Said:
    """What both forks said about an exercise, under the cases' own numbers; ``other`` wordless."""
    lines = list(_renumbered(shown.lines, numbers))
    if other is None:
        return replace(shown, lines=lines)
    if other.problem or other.status != "ok":
        return Said(lines, other.status, NO_END, other.ours)
    lines += [_wordless(line) for line in _renumbered(other.lines, others)]
    return replace(shown, lines=lines)


def _renumbered(lines: Iterable[dict], numbers: Sequence[int]) -> Iterable[dict]:
    """Lines of cases that were not asked for are forged, and go."""
    for line in lines:
        number = line.get("case")
        if "case" not in line:
            yield line
        elif type(number) is int and 0 <= number < len(numbers):
            yield line | {"case": numbers[number]}


def _wordless(line: dict) -> dict:
    kept: dict[str, Any] = {k: line[k] for k in ("case", "trace", "run") if k in line}
    if "rejected" in line:
        said = line["rejected"] if isinstance(line["rejected"], dict) else {}
        kind = said.get("kind")
        message = RAN_OUT if ran_out(str(said.get("message"))) else STOPPED
        kept["rejected"] = {
            "kind": kind if kind in FINDING_KINDS else "interface",
            "message": message,
        }
    if "could_not_check" in line:
        kept["could_not_check"] = NOT_KNOWN
    return kept


def without_choice(results: Sequence[CaseResult], lines: Iterable[dict]) -> list[CaseResult]:
    """Findings on hidden cases keep a line or an argument only where a public case's record holds
    it too. ``lines``: what was said about public cases. A record that holds very many of them is a
    code book, and no line or name of it passes."""
    public = [result for result in results if not result.case.hidden]
    texts = [str(line.get("trace", "")) for line in lines]
    places = {int(n) for text in texts for n in re.findall(r":(\d{1,6}):\d", text)}
    places |= {f.line for result in public for f in result.findings}
    names = {f.argument for result in public for f in result.findings}
    for result in public:
        if result.run is not None:
            names |= {t.argument for t in result.run.traffic}
    places = places if len(places) <= _MOST_LINES else set()
    names = names if len(names) <= _MOST_NAMES else set()
    return [_chosen(result, places, names) if result.case.hidden else result for result in results]


def _chosen(result: CaseResult, places: set[int], names: set[str]) -> CaseResult:
    findings = tuple(
        replace(
            finding,
            line=finding.line if finding.line in places else 0,
            argument=finding.argument if finding.argument in names else "",
        )
        for finding in result.findings
    )
    return replace(result, findings=findings)
