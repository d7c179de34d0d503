"""The compile proof of a submission: which call is compiled, and what the compiler said about it.

The compiler runs in the sandbox; what it said about kernels is kept, because many students write
the same one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

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


class Proof:
    """``compiler`` compiles the kernels of traces."""

    def __init__(self, compiler: Run):
        self._compiler = compiler
        self.known: dict[str, list[dict]] = {}  # kernels → what the compiler said about them

    def facts(self, traces: list[str], answer: dict) -> Facts:
        """The compiler's facts about the kernels of ``traces``, which the judge read and named in
        ``answer``. What cannot be compiled proves nothing, so it is an error."""
        if "key" not in answer:
            return [no_proof("the record of the compile proof's call cannot be read")]
        names = answer["names"]
        if not names:
            return [no_proof("the call that the compile proof makes launches no kernel")]
        known = self.known.get(answer["key"])
        if known is not None:
            return [row | {"kernel": name} for row, name in zip(known, names, strict=True)]
        job = {"job": "compile", "traces": traces, "card": DEFAULT, "apart": False}
        end, said = self._compiler(job)
        if end.how == "crash":  # the compiler took the fork with it: in a process of its own
            end, said = self._compiler(job | {"apart": True})
        if end.how == "timeout" and not end.spent or end.detail == "SIGKILL":
            return f"the compiler was stopped ({end.detail})"
        if end.how != "ok":
            return [no_proof(f"compiling it did not come to an end ({end.detail})")]
        facts = said[0].get("facts") if said else None
        if not isinstance(facts, list) or not all(map(_is_fact, facts)):
            return str(said[0].get("could_not_check", "")) if said else "no answer"
        if len(facts) != len(names):
            return "the compiler did not answer for every kernel"
        if not any(row["error"] for row in facts):
            self.known[answer["key"]] = facts  # an error's words may name this student's variables
        return facts


def _is_fact(row: object) -> bool:
    """Whether a row has the fields of one; the judge reads what they hold."""
    return isinstance(row, dict) and row.keys() == no_proof("").keys()


def no_proof(error: str) -> dict:
    numbers = dict.fromkeys(("shared", "shared_limit", "registers", "spills", "num_warps"), 0)
    return numbers | {"kernel": "", "card": DEFAULT, "instructions": {}, "error": error}
