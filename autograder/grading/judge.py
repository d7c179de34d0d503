"""Decides: traces, outputs and answers of one exercise → verdict, points and feedback.

Runs no student Python. It makes secret inputs, replays the traces on them, compares, and renders.
It runs in a fork with limits, because a trace may ask for more than anybody wants to compute.

Jobs: ``inputs`` (unit 01: the arrays of the cases), ``kernels`` (which kernels some records hold,
for the compiler) and ``judge``.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from autograder import exercises
from autograder.grading.ahead import ahead, arguments_of, cases_of, warm_job  # noqa: F401
from autograder.grading.arrays import to_npy
from autograder.grading.parts import without_choice
from autograder.grading.runs import run_from_json
from autograder.ir.access import POISONS
from autograder.judging import judge_traces
from autograder.records import (
    FINDING_KINDS,
    Aspect,
    Case,
    CaseResult,
    CompileFacts,
    CouldNotCheck,
    Exercise,
    Finding,
    Rejected,
    Verdict,
)
from autograder.trace.serial import from_json
from autograder.verdict import failed, judge_case, not_checked, verdict

JOBS_OF_A_FORK = 100  # of one job nothing stays for the next but values of functions, kept
ORDERS = ("forward", "reversed", "shuffled")
OTHERS = tuple(poison for poison in POISONS if poison != "nan")


def prepare() -> None:
    """Import and run once what every fork needs, so that forks begin warm. Neither torch nor triton
    is among it."""
    exercises.ids()
    perform(warm_job(), lambda line: None, lambda: None)


def perform(job: dict, emit, more) -> None:
    """Do one job in a fork with limits; ``emit`` writes a line of JSON."""
    if job["job"] == "kernels":
        for traces in job["traces"]:
            emit(_kernels(traces))
        return
    exercise = exercises.get(job["exercise"])
    cases = cases_of(exercise, job)
    if job["job"] == "inputs":
        for number, case in enumerate(cases):
            emit({"arguments": [_sent(a) for a in arguments_of(exercise, case, job, number)]})
        return
    emit(_rendered(exercise, judged(exercise, cases, job), job["source"]))


def _sent(argument: Any) -> dict:
    return {"npy": to_npy(argument)} if isinstance(argument, np.ndarray) else {"value": argument}


def _kernels(traces: list[str]) -> dict:
    """The kernels' names, and a key under which the compiler's facts about them may be kept: equal
    IR but for names, lines and comments compiles to equal facts."""
    try:
        kernels = [kernel for text in traces for kernel in from_json(text).kernels]
    except (Rejected, CouldNotCheck) as error:
        return {"unreadable": str(error)[:300]}
    plain = [(_without_names(kernel.ir), sorted(kernel.options.items())) for kernel in kernels]
    key = hashlib.sha256(repr(plain).encode()).hexdigest()
    return {"key": key, "names": [kernel.name for kernel in kernels]}


_MOST_LOCATIONS = 64  # in a line; Triton prints one, and one for each parameter
_LOCATION = r'loc\((?:[^()"\n]|"(?:[^"\\\n]|\\.)*"|\((?:[^()"\n]|"(?:[^"\\\n]|\\.)*")*\))*\)'


def _without_names(ir: str) -> str:
    """IR text without locations, its names numbered in the order in which they come. Whatever does
    not look like a location stays, so that nothing can be hidden behind one."""
    location = re.compile(rf"^#loc\d* = {_LOCATION}$| {_LOCATION}(?=\)?[,)]|\)? {{|$)")
    # A search begins at every "loc(", and each may look at the rest of its line.
    lines = (
        line if line.count("loc(") > _MOST_LOCATIONS else location.sub("", line)
        for line in ir.split("\n")
    )
    ir = "\n".join(lines)
    names: dict[str, str] = {}
    return re.sub(r"[%@][\w$.-]+", lambda m: names.setdefault(m[0], f"%{len(names)}"), ir)


# ---------------------------------------------------------------- one exercise


def judged(exercise: Exercise, cases: Sequence[Case], job: dict) -> Verdict:
    """The verdict on what a job's ``lines`` say. ``turn``, 0 where none is given, moves the orders
    of programs on by so many cases: over three turns every case meets all of them."""
    if job["problem"]:  # nothing came back that could be judged: a loop, a crash, a missing name
        finding = Finding("interface", job["problem"])
        return verdict(exercise, [failed(case, finding) for case in cases[:1]])
    if exercise.machine == "quiz":
        return _quiz(exercise, job)
    plain = exercise.machine == "numpy"
    judge = _judge_plain if plain else partial(_judge_traces, turn=job.get("turn", 0))
    lines: dict[int, list[dict]] = {}
    for line in job["lines"]:
        if type(line.get("case")) is int:
            lines.setdefault(line["case"], []).append(line)
    results = []
    stopped = any("rejected" in line for line in lines.get(0, []))
    for number, case in enumerate(cases[:1] if stopped else cases):
        arguments = arguments_of(exercise, case, job, number)
        results.append(_one_case(exercise, case, lines.get(number, []), arguments, judge, number))
    public = [n for n, case in enumerate(cases) if not case.hidden]
    results = without_choice(results, [line for n in public for line in lines.get(n, [])])
    if stopped:  # nothing ran, and the worker went no further
        return verdict(exercise, results)
    return _with_proof(exercise, results, lines, judge, job)


def _with_proof(exercise, results, lines, judge, job: dict) -> Verdict:
    """The verdict with what the compiler said. What was compiled has to be what computes: where the
    proof's call is none of the cases, its record is judged like one, and counts for the proof only.
    """
    if job["proof"] is None:
        return verdict(exercise, results)
    if isinstance(job["facts"], str):
        warning = f"The compile proof could not run: {job['facts']}"
        return replace(verdict(exercise, results, (), (warning,)), verdict="could_not_check")
    facts = _facts(job["facts"])
    if job["proof"] >= len(results):
        case, number = exercise.compiled, job["proof"]
        arguments = arguments_of(exercise, case, job, number)
        judged = _one_case(exercise, case, lines.get(number, []), arguments, judge, number)
        if {f.kind for f in judged.findings} & {
            "values",
            "unwritten",
            "interface",
            "torch_computed",
        }:
            wrong = "the call that the compile proof makes does not compute the right values"
            facts = (*facts, CompileFacts("", "", 0, 0, 0, 0, error=wrong))
    return verdict(exercise, results, facts)


def _one_case(exercise, case, lines, arguments, judge, number) -> CaseResult:
    """A case by what was said about it. A forged line is a student's fault at worst; what we cannot
    do is told as that."""
    try:
        for line in lines:
            if "rejected" in line:
                return failed(case, _rejection(line["rejected"]))
            if "could_not_check" in line:
                return not_checked(case, _words(line["could_not_check"]))
        if not lines:
            return failed(case, Finding("interface", "The call did not come to an end."))
        return judge(exercise, case, lines, arguments, number)
    except Rejected as error:
        return failed(case, error)
    except CouldNotCheck as error:
        return not_checked(case, str(error))
    except MemoryError:
        raise
    except Exception as error:  # our crash is never the student's failure
        said = f"The judge failed on this case ({type(error).__name__}); please report it."
        return not_checked(case, said)


def _judge_traces(exercise, case, lines, arguments, number, turn) -> CaseResult:
    traces = [from_json(line["trace"]) for line in lines]
    # The interpreter finds races in any order, and one case with all poisons finds most undefined
    # lanes: orders and poisons are there for what is left, so they take turns over the cases.
    return judge_traces(
        exercise,
        case,
        traces,
        arguments,
        orders=ORDERS[(number + turn) % len(ORDERS) :][:1],
        poisons=None if number == 1 else OTHERS[number % len(OTHERS) :][:1],
        keep_accesses=number == 0,
    )


def _judge_plain(exercise, case, lines, arguments, number) -> CaseResult:
    return judge_case(exercise, case, run_from_json(lines[0]["run"]), arguments)


def _rejection(said: Any) -> Finding:
    if not isinstance(said, dict):
        raise TypeError("rejected")
    kind = said.get("kind")
    line = said.get("line")
    return Finding(
        kind if kind in FINDING_KINDS else "interface",
        _words(said.get("message")),
        kernel=_words(said.get("kernel"), 80),
        line=line if type(line) is int and 0 <= line < 1_000_000 else 0,
    )


def _words(value: Any, most: int = 500) -> str:
    return value[:most] if isinstance(value, str) else ""


def _facts(said: list) -> tuple[CompileFacts, ...]:
    """Compile facts from the sandboxed compiler: numbers and short sentences only."""
    facts = []
    for row in said:
        numbers = {n: int(row[n]) for n in ("shared", "shared_limit", "registers", "spills")}
        counts = {str(k)[:40]: int(v) for k, v in row["instructions"].items()}
        words = {n: _words(row[n], 300) for n in ("kernel", "card", "error")}
        warps = int(row["num_warps"])
        facts.append(CompileFacts(**words, **numbers, instructions=counts, num_warps=warps))
    return tuple(facts)


def _quiz(exercise: Exercise, job: dict) -> Verdict:
    from autograder.exercises.quiz import check_format, score

    given = next((line["answers"] for line in job["lines"] if "answers" in line), None)
    key = job["key"]
    if not isinstance(key, dict):
        return Verdict(
            exercise.id, "could_not_check", (), (), message="The quiz has no key in course/hidden/."
        )
    answers = score(exercise, given, key)
    wrong = [a for a in answers if not a.right]
    findings = [*check_format(exercise, given)][:_MOST_FORM]
    findings += [
        Finding("values", f"{a.question}: {_mark(a)}. {a.explain}".strip(), argument=a.question)
        for a in wrong
    ]
    status = "fail" if wrong else "pass"
    points = round(sum(a.points for a in answers), 2)
    note = f"{len(answers) - len(wrong)} of {len(answers)} answers are right"
    aspect = Aspect("values", status, points, exercise.max_points, note)
    return Verdict(exercise.id, status, (aspect,), tuple(findings))


_MOST_FORM = 10  # findings about the form of answers; a student may hand in a hundred names


def _mark(answer) -> str:
    if answer.given is None:
        return "no answer"
    return "partly right" if answer.points else "not right"


# ---------------------------------------------------------------- what goes out


def _rendered(exercise: Exercise, result: Verdict, source: str) -> dict:
    """Only this leaves the judge: points, and texts from which hidden cases are gone."""
    from autograder.render.html import feedback_html, picture
    from autograder.render.json import verdict_json
    from autograder.render.public import public_view

    shown = public_view(result, source)
    drawing = picture(shown)
    return {
        "exercise": exercise.id,
        "outcome": result.verdict,
        "points": result.points,
        "max_points": exercise.max_points,
        "json": verdict_json(shown),
        "html": feedback_html(shown, exercise),
        "picture": base64.b64encode(drawing).decode("ascii") if drawing else "",
        # See ``alike``: nothing in it comes from a line.
        "lineless": result.verdict == "pass"
        and not (result.findings or result.warnings or result.message or drawing),
    }
