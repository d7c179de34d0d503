"""Traces of one case → CaseResult: which replays are run, and what their differences mean.

The student's check and the judge of a class call the same function; it runs no student Python and
imports neither torch nor triton.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from autograder.floats import ITEMSIZE, is_float
from autograder.ir.access import SECTOR
from autograder.ir.l2 import order_finding
from autograder.records import (
    Case,
    CaseResult,
    CouldNotCheck,
    Exercise,
    Finding,
    Input,
    Rejected,
    Run,
    Tensor,
    Touch,
    Trace,
    View,
)
from autograder.trace.launches import MAX_LANES
from autograder.trace.replay import replay
from autograder.trace.undefined import OTHERS, told_undefined
from autograder.verdict import failed, judge_case, not_checked


def judge_traces(
    exercise: Exercise,
    case: Case,
    traces: Sequence[Trace],
    arguments: tuple,
    *,
    orders: Sequence[str] = ("forward",),
    poisons: Sequence[str] | None = None,
    keep_accesses: bool = False,
    unread: bool = True,
) -> CaseResult:
    """Judge one case by the traces of its autotune configurations (one trace where there are none).

    ``arguments``: what ``inputs_of`` made, which is also what the reference gets: the call's
    arguments, whose arrays are the trace's inputs in order, then the incoming gradients. Every
    configuration runs on fresh buffers. ``poisons``: what undefined lanes hold besides NaN
    (default: all that are known). ``unread``: where values are wrong, run once more for the
    message's sake, to tell what no program read. The first fault decides which run is reported.
    What the interpreter cannot do gives could_not_check.
    """
    own = len(exercise.arguments(case))
    inputs = [a for a in arguments[:own] if isinstance(a, np.ndarray)]
    gradients = arguments[own:]
    first: CaseResult | None = None
    counted = case.sizes.get("counted", False)
    # A kernel that asks for a hundred times what it may is stopped: it would only take long.
    budget = max(1 << 24, 100 * (exercise.limit(case) or 1 << 22))
    try:
        for number, trace in enumerate(traces):
            _fits(trace, exercise.arguments(case))
            for order in orders if number == 0 and not counted else orders[:1]:
                if counted:
                    run = _count(exercise, case, trace, inputs, gradients, budget)
                else:
                    run = examine(
                        trace,
                        inputs,
                        gradients,
                        order=order,
                        poisons=OTHERS if poisons is None else poisons,
                        keep_accesses=keep_accesses and not first,
                        keep_touches=exercise.programs(case) > 0,
                        budget=budget,
                    )
                    run = _with_idle(exercise, case, trace, run)
                    run = _with_gaps(exercise, case, trace, run)
                result = judge_case(exercise, case, run, arguments)
                tells = first is None or first.status == "pass"
                if (
                    unread
                    and tells
                    and not counted
                    and any(f.kind == "values" for f in result.findings)
                ):
                    watched = replay(
                        trace, inputs, gradients, order=order, budget=budget, watch=True
                    )
                    run = replace(run, unread=watched.unread)
                    result = judge_case(exercise, case, run, arguments)
                if number and result.findings:
                    result = replace(
                        result, findings=tuple(_configured(f, number) for f in result.findings)
                    )
                if first is None or (first.status == "pass" and result.status != "pass"):
                    first = result
    except Rejected as error:
        return failed(case, error)
    except CouldNotCheck as error:
        if first is not None and first.status == "fail":
            return first
        return not_checked(case, str(error))
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        # IR that Triton would not have printed, or a fault of ours: no verdict either way.
        return not_checked(case, f"The kernel could not be run ({type(error).__name__}).")
    assert first is not None, "a case needs at least one trace"
    return first


SAMPLED = 8  # programs of a counted case whose values are looked at


def _count(exercise: Exercise, case: Case, trace: Trace, inputs, gradients, budget: int) -> Run:
    """A run without values, for a case that is there for its addresses and their order; then some
    of its programs once more with values, because addresses alone would earn what nobody computed.
    """
    run = replay(
        trace,
        inputs,
        gradients,
        count_only=True,
        keep_touches=True,
        budget=budget,
    )
    findings = list(run.findings)
    findings += [Finding("interface", said) for said in trace.outputs if isinstance(said, str)]
    stored = sum(t.stored for t in run.traffic)
    asked = sum(math.prod(output.shape) for output in exercise.outputs(case))
    if not findings and (stored < asked or not _covered(trace, run)):
        message = f"The programs store {stored} elements, the result has {asked}."
        if stored >= asked:
            message = "The programs leave parts of the result unwritten."
        findings.append(Finding("unwritten", message, lanes=max(asked - stored, 0)))
    if exercise.order is not None and (finding := order_finding(run, exercise.order)):
        findings.append(finding)
    if findings:
        return replace(run, findings=tuple(findings), touches=())
    sample = _sample(trace, run, inputs)
    checked = replay(trace, inputs, gradients, budget=budget, only=sample)
    return replace(run, outputs=checked.outputs, findings=checked.findings, touches=())


def _stores(run: Run, output: View) -> list[Touch]:
    stores = [t for t in run.touches if t.operation != "load"]
    return [t for t in stores if t.view.buffer == output.buffer]


def _covered(trace: Trace, run: Run) -> bool:
    """Whether stores reach every 32-byte sector of the results: how often they store tells little,
    they may store somewhere else, or one place many times."""
    for output in trace.outputs:
        touched = [t.sectors for t in _stores(run, output)]
        sectors = -(-math.prod(output.shape) * ITEMSIZE[output.dtype] // SECTOR)
        if len(np.unique(np.concatenate([np.empty(0, np.int64), *touched]))) < sectors:
            return False
    return True


def _sample(trace: Trace, run: Run, inputs: Sequence[np.ndarray]) -> np.ndarray | None:
    """Some of the programs that write the results, drawn by the inputs, which nobody knows
    beforehand. None, which is all, where launches may build on one another."""
    if len({touch.launch for touch in run.touches}) != 1:
        return None
    writers = [
        touch.programs[touch.first <= touch.last]
        for output in trace.outputs
        for touch in _stores(run, output)
    ]
    candidates = np.unique(np.concatenate(writers))
    seed = zlib.crc32(b"".join(np.ascontiguousarray(a).tobytes() for a in inputs))
    generator = np.random.default_rng(seed)
    return generator.choice(candidates, min(SAMPLED, len(candidates)), replace=False)


def _with_idle(exercise: Exercise, case: Case, trace: Trace, run: Run) -> Run:
    """A finding more where work for many programs was given to few, which then cannot race.

    Counted are the programs of one launch that read something of an input, whatever the grid says;
    an input of one number, as a scale is, may be read by programs that do nothing with it.
    """
    least = exercise.programs(case)
    if not least:
        return run
    inputs = {
        event.buffer
        for event in trace.events
        if isinstance(event, Input) and math.prod(event.view.shape) > 1
    }
    at_work: dict[int, set[int]] = {}
    for touch in run.touches:
        if touch.operation == "load" and touch.view.buffer in inputs:
            busy = touch.programs[touch.first <= touch.last]
            at_work.setdefault(touch.launch, set()).update(busy.tolist())
    most = max(map(len, at_work.values()), default=0)
    findings = run.findings
    # Too few partial sums are told as such, once the values are known to be right.
    sums, stored = exercise.stores(case), sum(t.stored for t in run.traffic)
    if 0 < most < least and stored >= (sums or 0):
        readers = "1 program reads" if most == 1 else f"{most} programs read"
        findings += (
            Finding(
                "race" if sums is None else "interface",
                f"At most {readers} the inputs in one launch, the exercise asks for at least "
                f"{least}: work that is done one after the other cannot race, and leaves a card "
                "idle.",
            ),
        )
    return replace(run, findings=findings, touches=())


def _with_gaps(exercise: Exercise, case: Case, trace: Trace, run: Run) -> Run:
    """A finding more where the exercise asks for a contiguous result and another one came back."""
    pairs = zip(trace.outputs, exercise.outputs(case), strict=False)
    for output, asked in pairs if exercise.contiguous else ():
        if not isinstance(output, View) or output.shape != asked.shape or 0 in asked.shape:
            continue  # told elsewhere, or nothing to lay out
        wanted = _layout(asked)[1]
        steps = zip(asked.shape, output.strides, wanted, strict=True)
        if any(n > 1 and step != want for n, step, want in steps):
            said = (
                f"{exercise.names[0]} returned a tensor with strides {output.strides}; the "
                f"exercise asks for a contiguous one, with strides {wanted}."
            )
            run = replace(run, findings=(*run.findings, Finding("interface", said)))
    return run


def _fits(trace: Trace, arguments: Sequence) -> None:
    """Raises Rejected unless the trace takes the call's tensors, each once, with their layout: a
    trace must not choose the strides that its kernels then get right."""
    tensors = [a for a in arguments if isinstance(a, Tensor)]
    seen = []
    for event in trace.events:
        if isinstance(event, Input) and event.index >= 0:
            seen.append(event.index)
            asked = tensors[event.index] if event.index < len(tensors) else None
            if asked is None or event.view != View(event.buffer, 0, *_layout(asked)):
                raise Rejected("The record of the call has other tensors than the call.")
    if sorted(seen) != list(range(len(tensors))):
        raise Rejected("The record of the call has other tensors than the call.")


def _layout(tensor: Tensor) -> tuple:
    """(shape, strides, dtype) as a dummy has them: contiguous where no strides are given."""
    strides = tensor.strides
    if strides is None:
        strides, step = (), 1
        for n in reversed(tensor.shape):
            strides, step = (step, *strides), step * max(n, 1)
    return tuple(tensor.shape), tuple(strides), tensor.dtype


def examine(
    trace: Trace,
    inputs: Sequence[np.ndarray],
    gradients: Sequence[np.ndarray] = (),
    *,
    order: str = "forward",
    poisons: Sequence[str] = OTHERS,
    keep_accesses: bool = False,
    keep_touches: bool = False,
    budget: int = MAX_LANES,
    watch: bool = False,
) -> Run:
    """One run; where lanes were undefined, more, which differ only in what those lanes hold.

    A load without ``other`` is a fault only if an output, an address or a branch differs.
    """
    run = replay(
        trace,
        inputs,
        gradients,
        order=order,
        keep_accesses=keep_accesses,
        keep_touches=keep_touches,
        budget=budget,
        watch=watch,
    )

    def again(poison: str, site: tuple | None) -> Run:
        return replay(
            trace, inputs, gradients, order=order, poison=poison, poisoned=site, budget=budget
        )

    return told_undefined(run, again, poisons)


def _configured(finding: Finding, number: int) -> Finding:
    """Configurations are judged in their order, so those before this one show no fault."""
    told = f"autotune configuration {number}, counted from 0; before it all is right"
    return replace(finding, message=f"{finding.message} ({told})")


def inputs_of(exercise: Exercise, case: Case, salt: bytes = b"") -> tuple:
    """What the reference gets: the call's arguments, then the incoming gradients of a backward
    exercise, one an output of the forward pass and of its shape and dtype."""
    arguments = exercise.arguments(case)
    values = values_of(case, arguments, salt)
    if not exercise.backward:
        return values
    from autograder.exercises.inputs import make

    outputs = exercise.outputs(case)
    floating = sum(isinstance(a, Tensor) and is_float(a.dtype) for a in arguments)
    incoming = outputs[: len(outputs) - floating]  # the rest are gradients of the arguments
    return (*values, *(make(case, output, -1 - k, salt) for k, output in enumerate(incoming)))


def values_of(case: Case, arguments: tuple, salt: bytes = b"") -> tuple:
    """The call's arguments with every Tensor made: arrays in held types, scalars as they are."""
    from autograder.exercises.inputs import make

    made, index = [], 0
    for argument in arguments:
        if isinstance(argument, Tensor):
            made.append(make(case, argument, index, salt))
            index += 1
        else:
            made.append(argument)
    return tuple(made)
