"""Run + reference + limits → CaseResult, and CaseResults → Verdict. NumPy only; nothing is run
here.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from autograder.differences import told
from autograder.records import (
    ASPECTS,
    COPIED_INPUT,
    TORCH_COPY,
    Aspect,
    Case,
    CaseResult,
    CompileFacts,
    Exercise,
    Finding,
    Rejected,
    Run,
    Traffic,
    Verdict,
    aspect_of,
)

# Findings of these kinds mean that the values are wrong, or that no kernel earned them.
_WRONG = {"values", "unwritten", "interface"}
_NOT_EARNED = {"torch_computed", "compile"}


def judge_case(exercise: Exercise, case: Case, run: Run, arguments: tuple) -> CaseResult:
    """Compare one run with the exercise's reference and limits.

    ``arguments``: the call's arguments, arrays in held types and scalars, as the run got them.
    """
    findings = [_with_names(exercise, finding) for finding in run.findings]
    error = None
    # Of a case that is counted nothing was computed, or what some of its programs write.
    counted = case.sizes.get("counted", False)
    computed = bool(run.outputs) or not counted
    if computed and not any(f.kind == "interface" for f in findings):
        wide = tuple(
            a.astype(np.float64) if isinstance(a, np.ndarray) and a.dtype.kind == "f" else a
            for a in arguments
        )
        with np.errstate(all="ignore"):
            expected = tuple(np.asarray(e) for e in exercise.reference(*wide))
            allowed = exercise.tolerance(case, wide, expected)
        misfit = _misfit(exercise, case, run, expected)
        if misfit:
            findings.append(Finding("interface", misfit))
        else:
            missing = {f.kind for f in findings} & {"torch_computed", "unwritten"}
            error, wrong = _compare(exercise, run, expected, allowed)
            if exercise.about:
                error = None  # no numbers of a tensor, so no rounding either
            if wrong and exercise.about:
                outputs = tuple(output.values for output in run.outputs)
                wrong = replace(wrong, message=exercise.about(arguments, outputs, expected))
            if wrong and not missing:
                findings.append(wrong)
    for argument in run.changed:
        findings.append(
            Finding(
                "interface",
                f"{_changed(argument)}; the result belongs in a tensor of its own.",
                argument=argument,
            )
        )
    copied = [t for t in run.traffic if exercise.in_place and t.argument == COPIED_INPUT]
    findings += [_copied(traffic) for traffic in copied]
    if not findings and (few := _too_few(exercise, case, run)):
        findings.append(few)
    limit = exercise.limit(case)
    if limit is not None and not copied and run.traffic and run.elements > limit:
        findings.append(_too_much(exercise, run, limit))
    return CaseResult(
        case,
        "fail" if findings else "pass",
        tuple(findings),
        elements=run.elements if run.traffic else None,
        limit=limit,
        bytes=run.bytes if run.traffic else None,
        max_error=error,
        run=run,
    )


def _changed(argument: str) -> str:
    if argument.startswith("argument "):  # by the host: no kernel has a name for it
        return f"The call leaves other numbers in its {argument}"
    return f"The kernel writes into an input, through {argument}"


def _misfit(exercise: Exercise, case: Case, run: Run, expected: tuple) -> str:
    """One sentence if number, shape or dtype of the outputs is not what was asked for."""
    name = exercise.names[-1]
    if len(run.outputs) != len(expected):
        return (
            f"{name} returned {len(run.outputs)} tensor{'s' * (len(run.outputs) != 1)}, "
            f"the exercise asks for {len(expected)}."
        )
    asked = exercise.outputs(case)
    for i, (output, want) in enumerate(zip(run.outputs, expected, strict=True)):
        which = "a tensor" if len(expected) == 1 else _called(exercise, i)
        if output.values.shape != want.shape:
            return (
                f"{name} returned {which} of shape {output.values.shape}, "
                f"the exercise asks for {want.shape}."
            )
        if asked and output.dtype != asked[i].dtype:
            return (
                f"{name} returned {which} of dtype {output.dtype}, "
                f"the exercise asks for {asked[i].dtype}."
            )
    return ""


def _compare(exercise: Exercise, run: Run, expected: tuple, allowed: tuple):
    """(largest |difference| ÷ tolerance, a finding or None)."""
    worst = 0.0
    for i, (output, want, tolerance) in enumerate(zip(run.outputs, expected, allowed, strict=True)):
        tolerance = np.broadcast_to(np.asarray(tolerance, np.float64), want.shape)
        with np.errstate(all="ignore"):
            got = np.asarray(output.values, np.float64)
            if output.written is not None:
                got = np.where(output.written, got, want)
            difference = np.abs(got - want)
            ratio = difference / tolerance
            if ratio.size and not ratio.max() <= 1:  # too far, or one that is no number
                same = (got == want) | (np.isnan(got) & np.isnan(want))
                ratio = np.where(same, 0.0, ratio)
                ratio = np.where(np.isnan(ratio), np.inf, ratio)
        if ratio.size:
            worst = max(worst, float(ratio.max()))
        bad = ratio > 1
        if bad.any():
            which = "" if len(expected) == 1 else f" of {_called(exercise, i)}"
            return worst, Finding(
                "values",
                told(bad, got, want, which, run.unread),
                lanes=int(bad.sum()),
            )
    return worst, None


def _with_names(exercise: Exercise, finding: Finding) -> Finding:
    """A finding about "Output 1", told with the name that the exercise gives to that output."""
    for i, name in enumerate(exercise.results):
        start = f"Output {i}"
        if re.match(rf"{start}\b", finding.message):
            told = name[0].upper() + name[1:] + finding.message.removeprefix(start)
            return replace(finding, message=told)
    return finding


def _called(exercise: Exercise, output: int) -> str:
    """An output of several by its name, where the exercise gives names."""
    return exercise.results[output] if exercise.results else f"output {output}"


def _too_much(exercise: Exercise, run: Run, limit: int) -> Finding:
    biggest = max(run.traffic, key=lambda t: t.loaded + t.stored)
    form = f" ({exercise.limit_text} + 5 %)" if exercise.limit_text else ""
    counts = f"{biggest.loaded} loaded, {biggest.stored} stored"
    if biggest.argument in (TORCH_COPY, COPIED_INPUT):
        most = (
            f"copies that torch makes (.contiguous(), .clone(), .to()): {counts}. Which line "
            "copies a whole tensor, and could the kernel do without, given the strides?"
        )
    else:
        most = f"{biggest.argument}: {counts}."
    return Finding(
        "traffic",
        f"The call moves {run.elements} elements, the limit is {limit}{form}; most of it through "
        f"{most}",
        argument=biggest.argument,
        lanes=run.elements - limit,
    )


def _too_few(exercise: Exercise, case: Case, run: Run) -> Finding | None:
    """A finding where the numbers are right, but not by the partial sums that were asked for."""
    least, stored = exercise.stores(case), sum(t.stored for t in run.traffic)
    if least is None or not run.traffic or stored >= least:
        return None
    asked = ", ".join(f"{k}={v}" for k, v in case.sizes.items() if k.startswith("SPLIT"))
    return Finding(
        "interface",
        f"The numbers are right, but the programs store {stored} of them where {asked} makes at "
        f"least {least}: the sum along K is not split as the caller asks.",
    )


def _copied(traffic: Traffic) -> Finding:
    return Finding(
        "traffic",
        f"torch copied {traffic.loaded} numbers of an input, as .contiguous() does. The exercise "
        "asks for a kernel that finds them where they lie: by their strides.",
        argument=traffic.argument,
        lanes=traffic.loaded,
    )


# ---------------------------------------------------------------- verdict


_BROKEN = "not scored where the fault to be repaired is still there or only hidden"


def verdict(
    exercise: Exercise,
    results: Sequence[CaseResult],
    compiled: Sequence[CompileFacts] | None = None,
    warnings: Sequence[str] = (),
) -> Verdict:
    """Points by aspect: its points × cases whose values are right, came from kernels, and pass
    it.
    """
    # None: nothing ran that could be compiled. Empty: the proof was asked for and is not there.
    # Where no kernel was launched there is nothing to prove, and no point to earn.
    launched = any(r.run is None or r.run.traffic for r in results)
    unproved = compiled is not None and not compiled and exercise.compiled is not None and launched
    compiled = compiled or ()
    results = [r for r in results]
    broken_yet = [r for r in results if _earned(r) and _still_broken(exercise, r)]
    earned = [r for r in results if _earned(r) and r not in broken_yet]
    if all(_is_empty(r) for r in earned):  # no kernel has stored a number yet
        earned = []
    broken = [f for f in compiled if f.error or f.shared > f.shared_limit]
    aspects = []
    for name in ASPECTS:
        points = float(exercise.points.get(name, 0))
        if not points:
            continue
        if name == "compiles":
            good = [] if broken or unproved else earned
            failing = bool(broken) or any(_has(exercise, r, name) for r in results)
        else:
            good = [r for r in earned if not _has(exercise, r, name)]
            failing = any(_has(exercise, r, name) for r in results)
        unsure = any(r.status == "could_not_check" for r in results)
        unsure |= name == "compiles" and unproved
        share = len(good) / len(results) if results else 0.0
        if share == 1:
            status = "pass"
        elif (
            failing
            or name == "values"
            and any(r.status == "fail" and r not in broken_yet for r in results)
        ):
            status = "fail"
        elif unsure:
            status = "could_not_check"
        else:  # it saw no fault, and lacks points because values are not there to be judged
            status = "not_reached"
        note = _BROKEN if broken_yet and status == "not_reached" else ""
        aspects.append(Aspect(name, status, round(points * share, 2), points, note))
    findings = [f for r in results for f in r.findings]
    findings += [_compile_finding(f) for f in broken]
    unproved = unproved and bool(exercise.points.get("compiles"))
    if not findings and (unproved or any(r.status == "could_not_check" for r in results)):
        outcome = "could_not_check"
    else:
        outcome = "fail" if findings else "pass"
    message = next((r.message for r in results if r.message), "")
    if unproved and not message:
        message = "Whether it compiles for the card could not be found out."
    return Verdict(
        exercise.id,
        outcome,
        tuple(aspects),
        tuple(_distinct(findings, _by_torch(results))),
        tuple(results),
        tuple(compiled),
        tuple(dict.fromkeys([*warnings, *(w for r in results if r.run for w in r.run.warnings)])),
        message,
    )


def _has(exercise: Exercise, result: CaseResult, aspect: str) -> bool:
    return any(aspect_of(f.kind, exercise.points) == aspect for f in result.findings)


def _earned(result: CaseResult) -> bool:
    kinds = {f.kind for f in result.findings}
    if result.run is None:  # it never came to an end
        return False
    return result.status != "could_not_check" and not kinds & (_WRONG | _NOT_EARNED)


def _still_broken(exercise: Exercise, result: CaseResult) -> bool:
    """Whether the fault that the exercise hands out is there yet, or only hidden."""
    return any(_has(exercise, result, aspect) for aspect in exercise.repairs)


def _is_empty(result: CaseResult) -> bool:
    """Whether the case asked for no number at all, as for a matrix of 0 rows."""
    return result.run is not None and not any(o.values.size for o in result.run.outputs)


def _compile_finding(facts: CompileFacts) -> Finding:
    message = facts.error or (
        f"{facts.kernel} needs {facts.shared} bytes of shared memory a block, the {facts.card} has "
        f"{facts.shared_limit}: use smaller tiles or fewer stages."
    )
    return Finding("compile", message, facts.kernel)


def _by_torch(results: Sequence[CaseResult]) -> bool:
    """Whether all that is wrong with the first case is that no kernel did the work. That is then
    the cause, in whatever way another case ended."""
    return bool(results) and {f.kind for f in results[0].findings} == {"torch_computed"}


def _distinct(findings: Sequence[Finding], by_torch: bool = False) -> list[Finding]:
    """The same fault in several cases is told once, by the first case that showed it."""
    seen: dict[tuple, Finding] = {}
    for finding in findings:
        key = (finding.kind, finding.kernel, finding.argument, finding.line)
        seen.setdefault(key, finding)
    order = {
        k: i
        for i, k in enumerate(
            (
                "interface",
                "compile",
                "torch_computed",
                "out_of_bounds",
                "uninitialised",
                "undefined_lane",
                "race",
                "unwritten",
                "values",
                "traffic",
            )
        )
    }
    if by_torch:
        order["torch_computed"] = -1
    return sorted(seen.values(), key=lambda f: order[f.kind])


def failed(case: Case, fault: Finding | Rejected) -> CaseResult:
    """A case that could not run because of the student's side."""
    if isinstance(fault, Rejected):
        fault = Finding(fault.kind, str(fault), fault.kernel, line=fault.line)
    return CaseResult(case, "fail", (fault,))


def not_checked(case: Case, message: str) -> CaseResult:
    """A case that could not be checked because of our side."""
    return replace(CaseResult(case, "could_not_check", ()), message=message)
