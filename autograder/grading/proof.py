"""The compile proof of a submission: which call is compiled, and what the compiler said about it.

The compiler runs in the sandbox; what it said about kernels is kept, because many students write
the same one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from autograder.grading.forkserver import End
from autograder.ir.cards import DEFAULT
from autograder.records import Case, Exercise

Run = Callable[[dict], tuple[End, list[dict]]]  # a job → how it ended, the lines that it wrote
Facts = list[dict] | str  # by kernel; a sentence where our side could not find out


def case_of_proof(exercise: Exercise, cases: Sequence[Case]) -> int | None:
    """The index of the case whose kernels are compiled; behind the last where it is a case of its
    own. None where nothing is to be proved."""
    if exercise.compiled is None or "compiles" not in exercise.points:
        return None
    same = (i for i, case in enumerate(cases) if case.sizes == exercise.compiled.sizes)
    return next(same, len(cases))


def traces_of_proof(lines: list[dict]) -> list[str]:
    """The records of the proof's call; none where it did not come to an end."""
    traces = [line.get("trace") for line in lines]
    return traces if all(isinstance(trace, str) for trace in traces) else []


NO_CALL = "the call that the compile proof makes did not come to an end"


@dataclass(frozen=True)
class _Asked:
    """One exercise's records, the names of their kernels, and a key of all that is compiled."""

    traces: list[str]
    names: list[str]
    key: str


class Proof:
    """``judge`` reads records and names their kernels, for all exercises of a submission at once;
    where that does not come to its end, for each alone, so that none pays for another. ``compiler``
    compiles them, each exercise's in a job of its own: what is kept for classmates must come from
    a process that met no other kernels, which may have taken it over."""

    def __init__(self, judge: Run, compiler: Run):
        self._judge, self._compiler = judge, compiler
        self.known: dict[str, list[dict]] = {}  # kernels → what the compiler said about them

    def facts(self, traces: Mapping[str, list[str]]) -> dict[str, Facts]:
        """The compiler's facts about the kernels of ``traces``, by exercise of one submission. What
        cannot be compiled proves nothing, so it is an error."""
        asked = self._read(traces) if traces else {}
        return {
            id: self._compiled(one) if isinstance(one, _Asked) else one for id, one in asked.items()
        }

    def _read(self, traces: Mapping[str, list[str]]) -> dict[str, _Asked | Facts]:
        end, said = self._judge({"job": "kernels", "traces": list(traces.values())})
        if end.how == "ok" and len(said) == len(traces):
            pairs = zip(traces.items(), said, strict=True)
            return {id: _asked(given, answer) for (id, given), answer in pairs}
        if len(traces) > 1:
            return {id: self._read({id: one})[id] for id, one in traces.items()}
        stopped = _stopped(end) and f"the judge was stopped ({end.detail})"
        return dict.fromkeys(traces, stopped or [no_proof(_UNREADABLE)])

    def _compiled(self, asked: _Asked) -> Facts:
        known = self.known.get(asked.key)
        if known is not None:
            pairs = zip(known, asked.names, strict=True)
            return [row | {"kernel": name} for row, name in pairs]
        job = {"job": "compile", "traces": asked.traces, "card": DEFAULT, "apart": False}
        end, said = self._compiler(job)
        if end.how == "crash":  # the compiler took the fork with it: in a process of its own
            end, said = self._compiler(job | {"apart": True})
        if _stopped(end):
            return f"the compiler was stopped ({end.detail})"
        if end.how != "ok":
            return [no_proof(f"compiling it did not come to an end ({end.detail})")]
        facts = said[0].get("facts") if said else None
        if not isinstance(facts, list) or not all(map(_is_fact, facts)):
            return str(said[0].get("could_not_check", "")) if said else "no answer"
        if len(facts) != len(asked.names):
            return "the compiler did not answer for every kernel"
        if not any(row["error"] for row in facts):
            self.known[asked.key] = facts  # an error's words may name this student's variables
        return facts


_UNREADABLE = "the record of the compile proof's call cannot be read"


def _asked(traces: list[str], answer: dict) -> _Asked | Facts:
    """What the judge's ``answer`` says about ``traces``."""
    if "key" not in answer:
        return [no_proof(_UNREADABLE)]
    if not answer["names"]:
        return [no_proof("the call that the compile proof makes launches no kernel")]
    return _Asked(traces, answer["names"], answer["key"])


def _stopped(end: End) -> bool:
    """Whether a full machine can have done it, and no limit of the job itself."""
    return end.how == "timeout" and not end.spent or end.detail == "SIGKILL"


def _is_fact(row: object) -> bool:
    """Whether a row has the fields of one; the judge reads what they hold."""
    return isinstance(row, dict) and row.keys() == no_proof("").keys()


def no_proof(error: str) -> dict:
    numbers = dict.fromkeys(("shared", "shared_limit", "registers", "spills", "num_warps"), 0)
    return numbers | {"kernel": "", "card": DEFAULT, "instructions": {}, "error": error}
