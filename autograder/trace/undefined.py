"""Masked lanes that no ``other`` defines: a fault where something depends on what they hold."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from autograder.ir.access import POISONS
from autograder.ir.findings import Faults
from autograder.records import Run

OTHERS = tuple(p for p in POISONS if p != "nan")


def told_undefined(
    run: Run, again: Callable[[str, tuple | None], Run], poisons: Sequence[str] = OTHERS
) -> Run:
    """``run``, with a finding for every load whose undefined lanes change an output, an address or
    a branch. ``again(poison, site)`` repeats it with other contents of those lanes, in all loads or
    only in that at ``site``, a (line, argument).
    """
    if not run.undefined:
        return run
    guilty = next((p for p in poisons if not _same(run, again(p, None))), None)
    if guilty is None:
        return run
    sites = list(dict.fromkeys((line, argument) for _, _, argument, line, _, _ in run.undefined))
    if len(sites) > 1:  # which of the loads is it?
        sites = [s for s in sites if not _same(run, again(guilty, s))] or sites
    findings = []
    for kernel, grid, argument, line, lanes, program in run.undefined:
        if (line, argument) in sites:
            faults = Faults(kernel, grid)
            faults.note_undefined(argument, line, lanes, program)
            findings += faults.findings()
    return replace(run, findings=(*run.findings, *findings))


def _same(a: Run, b: Run) -> bool:
    def facts(run: Run):
        return [(f.kind, f.argument, f.line, f.lanes) for f in run.findings]

    return (
        a.digest == b.digest
        and facts(a) == facts(b)
        and a.traffic == b.traffic
        and len(a.outputs) == len(b.outputs)
        and all(
            np.array_equal(x.values, y.values, equal_nan=x.values.dtype.kind == "f")
            for x, y in zip(a.outputs, b.outputs, strict=True)
        )
    )
