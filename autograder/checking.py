"""The student's check: record → replay → verdict → render, in one process.

``check`` is what notebooks call; ``check_file`` is the command line; ``inspect_call`` runs any host
function outside exercises. Only this module and the recorder run student code.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from autograder import exercises
from autograder.judging import examine, inputs_of, judge_traces
from autograder.records import (
    Aspect,
    Case,
    CaseResult,
    CompileFacts,
    CouldNotCheck,
    Exercise,
    Finding,
    Kernel,
    Rejected,
    Verdict,
)
from autograder.solutions import load_solution
from autograder.verdict import failed, judge_case, not_checked, verdict

__all__ = [
    "check",
    "check_file",
    "check_functions",
    "hint",
    "inspect_call",
    "judge_traces",
    "load_solution",
]

MAX_CONFIGS = 16  # autotune configurations that a check runs
_opened: dict[str, int] = {}  # exercise -> hints already shown, for `hint`


class CheckFailed(AssertionError):
    """Raised only while nbgrader validates a notebook, so that Validate cannot say "success".

    Its window shows the report alone: where the exception comes from is nothing to a student.
    """

    def _render_traceback_(self) -> list[str]:  # IPython asks an exception for this first
        return [str(self)]


def check(id: str = "", *functions: Any, hidden: bool = False):
    """Check an exercise at once, on the CPU: ``check("02.add", add)``.

    ``functions`` are what the exercise asks for, in its order (for a quiz, the dict of answers).
    Returns a report that Jupyter shows as a picture and a terminal as text. Never raises for a
    student's mistake. ``hidden=True`` stands in check cells for the grader, which does not run
    them; elsewhere it checks the public cases once more.
    """
    from autograder.render.html import Report

    try:
        exercise = _exercise(id)
        given = _named(exercise, functions)
    except Rejected as error:
        return _Sentence(str(error))
    result = check_functions(exercise, given, pictures=True)
    report = Report(result, exercise)
    if os.environ.get("NBGRADER_EXECUTION") == "validate":
        unfinished = exercise.machine == "quiz" and result.verdict != "pass"
        if result.verdict == "fail" or unfinished:
            raise CheckFailed(repr(report))
    return report


def hint(id: str = ""):
    """The exercise's hints, one after the other: each opens the next."""
    from autograder.render.html import Hints

    try:
        exercise = _exercise(id)
    except Rejected as error:
        return _Sentence(str(error))
    _opened[id] = min(_opened.get(id, 0) + 1, len(exercise.hints))
    return Hints(exercise, _opened[id])


class _Sentence:
    """One sentence as a cell's result, without quotes."""

    def __init__(self, text: str):
        self.text = text

    def __repr__(self) -> str:
        return self.text


def _exercise(id: Any) -> Exercise:
    """The exercise. Raises Rejected if there is none, also where its id was forgotten."""
    if id == "":
        raise Rejected(
            'Say which exercise, as its check cell does: check("02.add", add), hint("02.add").'
        )
    if isinstance(id, str):
        return exercises.get(id)
    name = getattr(id, "__name__", "add")
    wanted = next((i for i in exercises.ids() if name in exercises.get(i).names), "02.add")
    raise Rejected(
        f"The first argument is the exercise's id, a string as in its check cell, such as "
        f'check("{wanted}", {name}); here it is {_a(type(id).__name__)}.'
    )


def _named(exercise: Exercise, functions: Sequence) -> dict[str, Any]:
    """The functions by the names that the exercise asks for; a later one may be left out if the
    first one's module defines it."""
    if len(functions) != len(exercise.names):
        call = ", ".join([f'"{exercise.id}"', *exercise.names])
        raise Rejected(
            f"{exercise.id} asks for {' and '.join(exercise.names)}: call check({call})."
        )
    return dict(zip(exercise.names, functions, strict=True))


# ---------------------------------------------------------------- one exercise


def check_functions(
    exercise: Exercise,
    functions: Mapping[str, Any],
    cases: Sequence[Case] | None = None,
    *,
    salt: bytes = b"",
    orders: Sequence[str] = ("forward",),
    pictures: bool = False,
    unread: bool = True,
) -> Verdict:
    """Record, replay and judge ``functions`` (name → object) on the exercise's cases.

    ``cases`` defaults to the public ones; ``salt`` changes the inputs; ``pictures`` keeps the lanes
    of some programs of the first case; for ``unread`` see ``judge_traces``.
    """
    missing = [n for n in exercise.names if n not in functions]
    if missing:
        return _stopped(exercise, f"{missing[0]} is missing: the exercise asks for that name.")
    if exercise.machine == "quiz":
        return _check_quiz(exercise, functions["answers"])
    for name in exercise.names:
        if exercise.machine == "triton" and _is_kernel(functions[name]):
            kernel = getattr(functions[name], "__name__", "this")
            call = ", ".join([f'"{exercise.id}"', *exercise.names])
            return _stopped(
                exercise,
                f"{kernel} is a kernel, under @triton.jit. The check takes the host function "
                f"{name}, which launches it: check({call}).",
            )
        if not callable(functions[name]) and not hasattr(functions[name], "apply"):
            what = type(functions[name]).__name__
            return _stopped(exercise, f"{name} is not a function but {_a(what)}.")
    rows = exercise.cases if cases is None else tuple(cases)
    if exercise.machine == "numpy":
        return verdict(exercise, [_check_plain(exercise, functions, c, salt) for c in rows])
    if importlib.util.find_spec("triton") is None:
        return _unsure(
            exercise,
            "Triton is not installed here (it exists for Linux only). Unit 01 works everywhere; "
            "for this unit use a machine with Linux, or WSL2 on Windows (docs/WSL2.md).",
        )
    results = []
    for number, case in enumerate(rows):
        try:
            traces = _record(exercise, functions, exercise.arguments(case), number == 0)
        except Rejected as error:
            results.append(failed(case, error))
            if number == 0:  # nothing ran: more cases would say the same (the judge stops as well)
                return verdict(exercise, results)
            continue
        except CouldNotCheck as error:
            results.append(not_checked(case, str(error)))
            continue
        keep = pictures and number == 0
        arguments = inputs_of(exercise, case, salt)
        options = {"orders": orders, "keep_accesses": keep, "unread": unread}
        results.append(_judged(exercise, case, traces, arguments, options))
    facts, warnings = _compile(exercise, functions)
    return verdict(exercise, results, facts, warnings)


def _judged(exercise, case, traces, arguments, options) -> CaseResult:
    try:
        return judge_traces(exercise, case, traces, arguments, **options)
    except Exception as error:  # our crash is never the student's failure
        return not_checked(case, _crash(error))


def _record(exercise: Exercise, functions: Mapping, specification: tuple, all_configs: bool):
    """The call's traces: one, or one for every autotune configuration."""
    from autograder.trace.record import record

    def one(config: int):
        return record(
            functions[exercise.names[-1]],
            specification,
            backward=exercise.backward,
            config=config,
        )

    traces = [one(0)]
    if all_configs:
        traces += [one(i) for i in range(1, min(traces[0].configs, MAX_CONFIGS))]
    return traces


def _crash(error: Exception) -> str:
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return (
        f"The checker itself failed ({type(error).__name__}: {error}, at "
        f"{Path(frame.filename).name}:{frame.lineno}). This is not your mistake; please report it."
    )


def _check_plain(exercise, functions, case, salt) -> CaseResult:
    from autograder.trace.plain import run_plain

    arguments = inputs_of(exercise, case, salt)
    fresh = tuple(a.copy() if isinstance(a, np.ndarray) else a for a in arguments)
    try:
        run = run_plain(exercise, functions, fresh)
    except Rejected as error:
        return failed(case, error)
    except CouldNotCheck as error:
        return not_checked(case, str(error))
    return judge_case(exercise, case, run, arguments)


def _is_kernel(function: Any) -> bool:
    """Whether this is what @triton.jit, @triton.autotune or @triton.heuristics made."""
    return type(function).__module__.startswith("triton.") and hasattr(function, "__getitem__")


def _check_quiz(exercise: Exercise, answers: Any) -> Verdict:
    """Form only: whether answers are right is told after grading.

    The one aspect is "form", without points. While an answer is missing nothing can be said of it,
    so the verdict is could_not_check, which is no pass.
    """
    from autograder.exercises.quiz import check_format, open_questions

    findings = check_format(exercise, answers)
    left = open_questions(exercise, answers) if isinstance(answers, dict) else ()
    missing = f"Not answered yet: {', '.join(left)}. " if left else ""
    if findings:
        outcome, status, message = "fail", "fail", missing.rstrip()
    elif left:
        outcome, status, message = "could_not_check", "not_reached", missing
        message += "Points come with the grading."
    else:
        outcome, status, message = "pass", "pass", "Points come with the grading."
    note = f"{len(exercise.notes) - len(left)} of {len(exercise.notes)} answered" if left else ""
    aspect = Aspect("form", status, 0.0, 0.0, note)
    return Verdict(exercise.id, outcome, (aspect,), tuple(findings), message=message)


def _compile(exercise: Exercise, functions: Mapping):
    """(compile facts of the graded case, warnings about the other cases)."""
    from autograder.ir.compile import compile_all

    if exercise.compiled is None or "compiles" not in exercise.points:
        return (), ()
    try:
        specification = exercise.arguments(exercise.compiled)
        traces = _record(exercise, functions, specification, True)
        seen: list[Kernel] = []
        for trace in traces:
            for kernel in trace.kernels:
                if not any(k.ir == kernel.ir and k.options == kernel.options for k in seen):
                    seen.append(kernel)
        return compile_all(seen), ()
    except CouldNotCheck as error:
        return (), (f"The compile proof could not run: {error}",)
    except Rejected as error:
        return (CompileFacts("", "", 0, 0, 0, 0, error=str(error)),), ()


def _stopped(exercise: Exercise, message: str) -> Verdict:
    case = Case("call", {})
    return verdict(exercise, [failed(case, Finding("interface", message))])


def _unsure(exercise: Exercise, message: str) -> Verdict:
    return verdict(exercise, [not_checked(Case("call", {}), message)])


def _a(noun: str) -> str:
    return f"{'an' if noun[:1].lower() in 'aeiou' else 'a'} {noun}"


# ---------------------------------------------------------------- any host function


def inspect_call(
    function: Callable,
    *arguments: Any,
    gradients: Sequence = (),
    keep_accesses: bool = True,
    config: int = 0,
):
    """Run a host function's launches in the IR interpreter on these torch tensors and scalars.

    Returns a ``Run``: outputs, findings, traffic, accesses. No exercise, no reference, no device:
    nothing is launched on a GPU, and the tensors themselves stay unchanged. With ``gradients``,
    torch tensors, one an output, backward runs as well: the outputs are followed by the gradients
    of all floating arguments.
    Raises Rejected (one sentence) where the call itself fails, CouldNotCheck for what we cannot
    run.
    """
    import torch

    from autograder.trace.record import record

    given = [a for a in arguments if isinstance(a, torch.Tensor)]
    trace = record(function, arguments, backward=bool(gradients), config=config, values=given)
    inputs, incoming = [_array(t) for t in given], [_array(t) for t in gradients]
    return examine(trace, inputs, incoming, keep_accesses=keep_accesses, watch=True)


def _array(tensor) -> np.ndarray:
    """A torch tensor's values in the held type of its dtype."""
    import torch

    from autograder.floats import held

    name = str(tensor.dtype).removeprefix("torch.")
    wide = tensor.detach().cpu()
    if held(name) == np.float32 and tensor.dtype != torch.float32:
        wide = wide.to(torch.float32)
    return wide.numpy().copy()


# ---------------------------------------------------------------- files


def check_file(id: str, path: str, *, as_json: bool = False, hidden: bool = False) -> int:
    """``python -m autograder check ID FILE``: prints a report, returns the exit status.

    0 passed; 1 anything wrong in the student's file; 2 unknown id, unsupported operation, our
    crash.
    """
    from autograder.render.json import verdict_json
    from autograder.render.text import verdict_text

    try:
        exercise = exercises.get(id)
        cases, salt = _cases(exercise, hidden)
    except Rejected as error:
        return _say(str(error), as_json, id, "could_not_check", 2)
    try:
        with contextlib.redirect_stdout(sys.stderr):  # what a student prints is no report
            functions = load_solution(path, id)
    except Rejected as error:
        return _say(str(error), as_json, id, "fail", 1)
    if exercise.machine == "quiz" and hidden:
        result = _graded_quiz(exercise, functions)
    else:
        orders = ("forward", "reversed") if hidden else ("forward",)
        with contextlib.redirect_stdout(sys.stderr):
            result = check_functions(exercise, functions, cases, salt=salt, orders=orders)
    print(json.dumps(verdict_json(result), indent=1) if as_json else verdict_text(result, exercise))
    return {"pass": 0, "fail": 1}.get(result.verdict, 2)


def _say(sentence: str, as_json: bool, id: str, outcome: str, status: int) -> int:
    if as_json:
        fault = {"kind": "interface", "kernel": "", "argument": "", "line": 0}
        fault |= {"program": None, "lanes": 0, "message": sentence}
        record = {"exercise": id, "verdict": outcome, "points": 0, "max_points": 0}
        print(json.dumps(record | {"aspects": {}, "faults": [fault]}, indent=1))
    else:
        print(sentence, file=sys.stderr)
    return status


def _cases(exercise: Exercise, hidden: bool):
    """Cases and salt: public ones, and with ``hidden`` those of the course directory as well."""
    if not hidden:
        return None, b""
    try:
        from autograder.grading import course
    except ImportError:
        raise Rejected("--hidden works in the instructor's course directory only.") from None
    here = course.find()
    table = here.hidden(exercises.assignment(exercise.id[:2]))
    return here.cases(exercise.id, table), here.secret()


def _graded_quiz(exercise: Exercise, functions: Mapping) -> Verdict:
    from autograder.exercises.quiz import score
    from autograder.grading import course

    table = course.find().hidden(exercises.assignment(exercise.id[:2])) or {}
    answers = score(exercise, functions.get("answers"), table.get(exercise.id, {}))
    points = sum(a.points for a in answers)
    wrong = tuple(Finding("values", f"{a.question}: {a.explain}") for a in answers if not a.right)
    status = "fail" if wrong else "pass"
    aspect = Aspect("values", status, points, exercise.max_points)
    return Verdict(exercise.id, status, (aspect,), wrong)
