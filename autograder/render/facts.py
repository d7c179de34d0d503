"""What was measured, a sentence each: cases, traffic, error, and what the compiler said.

Everything returned is already neutral (see ``neutral``); a page still has to escape it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable

from autograder.records import CaseResult, CompileFacts, Exercise, Verdict
from autograder.render.neutral import count, neutral, spaced

__all__ = ["cases_sentence", "compile_sentences", "error_sentence", "traffic_sentence"]


def cases_sentence(verdict: Verdict) -> str:
    """``5 of 7 pass; not “ragged length”, “one element” (hidden)``."""
    # A call that never came to a case stands in the verdict as a case without sizes.
    results = [result for result in verdict.cases if result.case.sizes or result.case.hidden]
    if not results:
        return ""
    failed = [result for result in results if result.status != "pass"]
    total = len(results)
    if not failed:
        return f"all {total} pass" if total > 1 else "the only one passes"
    names = [
        f"“{neutral(r.case.label, 40)}”"
        + (" (hidden)" if r.case.hidden else "")
        + (" (could not check)" if r.status == "could_not_check" else "")
        for r in failed[:4]
    ]
    more = f" and {len(failed) - 4} more" if len(failed) > 4 else ""
    return f"{total - len(failed)} of {total} pass; not {', '.join(names)}{more}"


def traffic_sentence(results: Iterable[CaseResult], exercise: Exercise | None) -> str:
    """``moved 295 296 elements = 3.00 n; limit 3n + 5 %``, of the largest case.

    Where cases go over their limit, of the largest of those. Empty where nothing was counted.
    """
    counted = [r for r in results if r.elements is not None]
    over = [r for r in counted if r.limit is not None and r.elements > r.limit]
    result = max(over or counted, key=lambda r: r.elements, default=None)
    if result is None:
        return ""
    text = f"moved {count(result.elements, 'element')}"
    form = exercise.limit_text if exercise else ""
    unit = _unit(form, result)
    if unit:
        times = result.elements / unit[1]
        text += (
            f" = {times:.2f} {unit[0]}" if times < 100 else f" = {spaced(round(times))} {unit[0]}"
        )
    if result.limit is not None:
        if not unit and result.limit:
            text += f", {100 * result.elements / result.limit:.0f} % of the limit"
        text += f"; limit {neutral(form, 60)} + 5 %" if form else f" ({spaced(result.limit)})"
    return text + f" (case “{neutral(result.case.label, 40)}”)"


def _unit(form: str, result: CaseResult) -> tuple[str, int] | None:
    """``"2MN"`` and sizes M, N → ``("MN", M·N)``; None if the form is no such product."""
    match = re.fullmatch(r"\d*((?:[·\s]?[A-Za-z])+)", form.strip())
    if not match:
        return None
    letters = re.sub(r"[·\s]", "", match[1])
    product = 1
    for letter in letters:
        size = result.case.sizes.get(letter)
        if not isinstance(size, int) or size <= 0:
            return None
        product *= size
    return letters, product


def error_sentence(results: Iterable[CaseResult]) -> str:
    """``every value within its rounding bound (largest error 0.31 of it, case “…”)``.

    Empty if none is known, or if one is not finite: then findings say more.
    """
    results = list(results)
    known = [r for r in results if r.max_error is not None]
    if not known or not all(math.isfinite(r.max_error) for r in known):
        return ""
    worst = max(known, key=lambda r: r.max_error)
    where = f"case “{neutral(worst.case.label, 40)}”"
    if worst.max_error == 0:
        return "no error: equal to the reference to the last bit"
    if worst.max_error <= 1:
        # A right sum that is rounded once may lie on its bound: 1.00 is as good as 0.
        every = "every value" if len(known) == len(results) else "every value compared"
        worst_of = f"largest error {worst.max_error:.2f} of it"
        return f"{every} within its rounding bound ({worst_of}, {where})"
    return f"largest error {_times(worst.max_error)} its rounding bound ({where})"


def _times(error: float) -> str:
    if error < 10:
        return f"{error:.1f} times"
    return f"{spaced(round(error)) if error < 1e6 else f'{error:.0e}'} times"


def compile_sentences(compiled: Iterable[CompileFacts]) -> tuple[str, ...]:
    """One line a kernel: registers, shared memory, spills, wide accesses, tensor cores.

    None for a kernel that does not compile: the finding says why.
    """
    return tuple(_compile_sentence(facts) for facts in compiled if not facts.error)


# Instructions that tell something, in words; those of one kind are counted together.
_TELLING = (
    ("ld.global.v4", "load", "16 bytes wide (ld.global.v4)"),
    ("st.global.v4", "store", "16 bytes wide (st.global.v4)"),
    ("ld.global.v2", "load", "8 bytes wide (ld.global.v2)"),
    ("st.global.v2", "store", "8 bytes wide (st.global.v2)"),
    ("mma", "tensor-core product", ""),
    ("cp.async", "copy", "straight to shared memory (cp.async)"),
)


def _compile_sentence(facts: CompileFacts) -> str:
    head = f"{neutral(facts.kernel, 48)} for {neutral(facts.card, 40)}"
    shared = f"{spaced(facts.shared)} of {spaced(facts.shared_limit)} bytes of shared memory"
    parts = [
        f"{count(facts.registers, 'register')} a thread",
        f"{spaced(facts.spills)} bytes spilled from registers to memory"
        if facts.spills
        else "all values fit in registers",
        *([shared] if facts.shared else []),
    ]
    for name, number in facts.instructions.items():
        found = next((row for row in _TELLING if row[0] in name), None)
        if number and found:
            _, noun, width = found
            plural = "copies" if noun == "copy" else ""
            words = width or f"({neutral(name, 24)})"
            parts.append(f"{count(number, noun, plural)} {words}")
    return f"{head}: {', '.join(parts)}"
