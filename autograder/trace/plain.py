"""Run a solution in plain Python: unit 01's kernels on the mini-Triton, unit 09's prune rule.

The student's Python runs in this process, so what it counts is the student's word: nothing here
guards against somebody who works around ``load``, it only says so to somebody who did by mistake.
"""

from __future__ import annotations

import traceback
import warnings
from collections.abc import Callable, Mapping

import numpy as np

from autograder import minitriton
from autograder.records import CouldNotCheck, Exercise, Finding, Output, Rejected, Run
from autograder.trace.plain_memory import going_on
from autograder.trace.watch import Event, Fault, Recorder, is_students, recorded

__all__ = ["inspect_launch", "run_plain"]


def run_plain(
    exercise: Exercise,
    solution: Mapping[str, Callable],
    arguments: tuple,
    *,
    keep_accesses: bool = False,
) -> Run:
    """Call ``exercise.drive(solution, arguments)`` and report what it did.

    ``arguments``: NumPy arrays and scalars, all the kernel's own: they may change; a dict is what a
    ``Tuning`` is made of. An array that
    arrives full of NaN is an output to be filled; every other one is an input.
    A lane outside its array is a finding and stops nothing: it reads NaN and writes nothing, so
    that all that it did not touch still counts. What does stop the run is a finding too, and then
    there are no outputs.
    ``Run.traffic`` counts by argument, in elements. NumPy's warnings are in ``Run.warnings``.
    ``Run.accesses`` holds every access if ``keep_accesses``; a finding always has its own.
    Raises CouldNotCheck if our own side fails.
    """
    if any(isinstance(a, dict) for a in arguments):
        from autograder.trace.tuning import Tuning

        arguments = tuple(Tuning(a) if isinstance(a, dict) else a for a in arguments)
    before = tuple(a.copy() if isinstance(a, np.ndarray) else a for a in arguments)
    fresh = [a for a in arguments if _is_fresh(a)]
    with (
        recorded(poisoned=fresh) as record,
        going_on(record),
        warnings.catch_warnings(record=True) as warned,
    ):
        warnings.simplefilter("always")
        returned, findings = _driven(exercise, solution, arguments)
    findings = [_finding(fault, record) for fault in record.faults] + findings
    outputs = tuple(value for value in returned or () if _is_numbers(value))
    if returned and len(outputs) < len(returned):
        outputs = ()
        findings.append(_no_array(exercise, returned))
    if outputs and any(isinstance(a, np.ndarray) for a in arguments):  # else nothing to load
        outputs, missing = _missing(record, outputs, fresh)
        findings += missing
        if not any(f.kind in ("unwritten", "out_of_bounds") for f in findings):
            findings += _bypassed(exercise, record, outputs, before)
    changed = (
        a for a, was in zip(arguments, before, strict=True) if _is_input(was) and not _equal(a, was)
    )
    return Run(
        outputs=tuple(Output(values, values.dtype.name) for values in outputs),
        findings=tuple(findings),
        traffic=record.traffic(),
        accesses=record.accesses() if keep_accesses else (),
        warnings=tuple(dict.fromkeys(f"NumPy, line {w.lineno}: {w.message}" for w in warned)),
        changed=tuple(record.name(a) for a in changed),
        unread=tuple(_unread(record, [a for a in arguments if _is_input(a)])),
    )


def inspect_launch(kernel: Callable, grid: tuple[int, ...], *arguments, order=iter) -> Run:
    """``launch(kernel, grid, *arguments)``, watched: findings, traffic and every access.

    A lane outside its array becomes a finding instead of an error; it reads NaN and writes nothing.
    Errors pass through.
    ``arguments`` as for ``run_plain``: an array full of NaN counts as never written.
    """
    fresh = [a for a in arguments if _is_fresh(a)]
    with recorded(poisoned=fresh) as record, going_on(record):
        minitriton.launch(kernel, grid, *arguments, order=order)
    return Run(
        outputs=(),
        findings=tuple(_finding(fault, record) for fault in record.faults),
        traffic=record.traffic(),
        accesses=record.accesses(),
    )


def _is_fresh(value) -> bool:
    if not isinstance(value, np.ndarray):
        return False
    return value.dtype.kind == "f" and bool(np.isnan(value).all())


def _is_input(value) -> bool:
    return isinstance(value, np.ndarray) and not _is_fresh(value)


def _driven(exercise: Exercise, solution: Mapping, arguments: tuple):
    """(what the solution returned, no findings), or (None, what stopped it)."""
    for name in exercise.names:
        if not callable(solution.get(name)):
            what = (
                f"is {_said(solution[name])}, not a function" if name in solution else "is missing"
            )
            return None, [Finding("interface", f"{name} {what}.")]
    try:
        return exercise.drive(solution, arguments), []
    except Rejected:
        raise
    except (Exception, SystemExit) as error:
        frames = traceback.extract_tb(error.__traceback__)
        frames = [frame for frame in frames if is_students(frame.filename)]
        said = " ".join(str(error).split())[:200].rstrip(".")
        what = type(error).__name__ + (f": {said}" if said else "")
        if "truth value of an array" in said:  # NumPy's advice, a.any(), would lead away
            what = (
                "`and`, `or`, `if` or a < b < c, which ask for one truth value, and this is a "
                "block of them. Join masks by & and |, with each comparison in parentheses"
            )
        if frames:
            line, name = frames[-1].lineno, frames[-1].name
            message = f"{name} stopped at line {line} with {what}."
            return None, [Finding("interface", message, kernel=name, line=line)]
        if isinstance(error, TypeError):  # raised by the call itself, before the first line
            return None, [Finding("interface", f"The call failed: {said}.")]
        raise CouldNotCheck(f"{exercise.id} could not be run here ({what}).") from error


# ---------------------------------------------------------------- from the record


def _finding(fault: Fault, record: Recorder) -> Finding:
    event = fault.event
    return Finding(
        kind=fault.kind,
        message=_SENTENCES[fault.kind](fault),
        kernel=event.kernel,
        argument=event.argument,
        line=event.line,
        program=event.program,
        lanes=fault.lanes,
        access=record.stacked([event]),
    )


def _out_of_bounds(fault: Fault) -> str:
    event = fault.event
    off = event.offsets[event.active & ~event.inside]
    span = f"offset {off[0]}" if off.size == 1 else f"offsets {off.min()}…{off.max()}"
    return (
        f"{_way(event)}: {off.size} of {event.offsets.size} lanes outside it "
        f"({_who(event.program)}: {span}, {event.argument} has {_numbers(event.array.size)})."
    )


def _uninitialised(fault: Fault) -> str:
    return (
        f"{_way(fault.event)}: {_numbers(fault.lanes)} read before anybody wrote there "
        f"({_who(fault.event.program)}, first at offset {fault.offset})."
    )


def _race(fault: Fault) -> str:
    event, me = fault.event, _who(fault.event.program)
    cell = f"offset {fault.offset} of {event.argument}"
    lanes = f"{fault.lanes} lane{'s' if fault.lanes > 1 else ''} in all"
    if fault.other == event.program:
        return f"{_way(event)}: two lanes of {me} write different values to {cell} ({lanes})."
    mine, theirs = event.operation == "store", fault.wrote
    other = "other programs" if fault.other is None else _who(fault.other)
    verb = ("write" if theirs else "read") + ("s" if fault.other is not None else "")
    return (
        f"{_way(event)}: {me} {'writes' if mine else 'reads'} {cell}, which {other} {verb}"
        f"{' too' if mine and theirs else ''} ({lanes}). A GPU promises no order between programs."
    )


_SENTENCES = {
    "out_of_bounds": _out_of_bounds,
    "uninitialised": _uninitialised,
    "race": _race,
}


def _missing(record: Recorder, outputs: tuple, fresh: list):
    """(outputs, findings): elements that nobody wrote, of outputs that a kernel was given. They
    become NaN, since what ``np.empty`` leaves there would differ from run to run."""
    kept, findings = [], []
    for values in outputs:
        cells, name = record.cells(values), record.name(values)
        left = ~cells.stored[cells.all_of(values)]
        if any(values is f for f in fresh):
            left &= np.isnan(values)  # others were written past store: _bypassed says that
        if cells.name and left.any():
            place = ", ".join(str(i) for i in np.argwhere(left)[0])
            some = f"{left.sum()} of the" if not left.all() else "any of the"
            message = f"no store wrote {some} {_numbers(left.size)} of {name}"
            message += "." if left.all() else f", the first of them {name}[{place}]."
            findings.append(Finding("unwritten", message, argument=name, lanes=int(left.sum())))
            values = np.where(left, np.nan, values)
        kept.append(values)
    return tuple(kept), findings


def _unread(record: Recorder, inputs: list):
    """(argument, elements that no load asked for) of every input that was loaded in part."""
    for array in inputs:
        cells = record.cells(array)
        missing = ~cells.loaded[cells.all_of(array)]
        if missing.any() and not missing.all():
            yield cells.name, missing


def _bypassed(exercise: Exercise, record: Recorder, outputs: tuple, given: tuple):
    """Numbers that came or went without load and store: every exercise needs all of its inputs
    and stores all of its outputs, so fewer requests than numbers mean that NumPy did it; or, for
    loads, that the kernel leaves numbers out, but then its results are wrong and say so.
    ``given`` are the arguments as they were before the run."""
    traffic = record.traffic()
    loaded, stored = sum(t.loaded for t in traffic), sum(t.stored for t in traffic)
    want_loaded = sum(a.size for a in given if _is_input(a))
    want_stored = sum(a.size for a in outputs)
    if stored < want_stored:
        message = f"store wrote {stored} numbers, and the result has {want_stored}: NumPy wrote it."
    elif loaded < want_loaded and _look_right(exercise, outputs, given):
        message = (
            f"the numbers are right, but load read {loaded} of the {want_loaded} numbers that they "
            "need: NumPy read the others without load."
        )
    else:
        return []
    return [Finding("torch_computed", message)]


def _look_right(exercise: Exercise, outputs: tuple, given: tuple) -> bool:
    """Whether no result is far off. Much wider than any tolerance: the verdict comes later."""
    with np.errstate(all="ignore"):
        expected = exercise.reference(*given)
        return all(
            got.shape == want.shape
            and (np.abs(got - want) <= 1e-2 * np.abs(want) + 1e-3 * np.abs(want).max()).all()
            for got, want in zip(outputs, expected, strict=False)
        )


def _is_numbers(value) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.kind in "biuf"


def _no_array(exercise: Exercise, returned: tuple) -> Finding:
    wrong = next(value for value in returned if not _is_numbers(value))
    return Finding(
        "interface",
        f"{exercise.names[-1]} returned {_said(wrong)}; it has to return a NumPy array of float32.",
    )


def _equal(a: np.ndarray, b: np.ndarray) -> bool:
    return np.array_equal(a, b, equal_nan=a.dtype.kind == "f")


def _way(event: Event) -> str:
    return f"{event.operation} {'from' if event.operation == 'load' else 'to'} {event.argument}"


def _who(program: tuple[int, ...]) -> str:
    if not program:
        return "a call outside launch"
    return f"program {program[0] if len(program) == 1 else program}"


def _numbers(count: int) -> str:
    return f"{count} number{'s' if count != 1 else ''}"


def _said(value) -> str:
    if isinstance(value, np.ndarray):
        return f"an array of {value.dtype}"
    return "None" if value is None else f"a {type(value).__name__}"
