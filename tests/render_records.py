"""Records for the tests of rendering: made by hand, so that every number in them is known."""

from __future__ import annotations

import numpy as np

from autograder.records import (
    Access,
    Aspect,
    Case,
    CaseResult,
    CompileFacts,
    Exercise,
    Finding,
    Run,
    Verdict,
    View,
)
from autograder.render.neutral import unbroken


def vector(n=98432, block=1024, programs=range(97), mask=False, operation="load", argument="x"):
    """``add``'s access to one vector: program p owns p·block … p·block + block − 1."""
    programs = np.array(list(programs), np.int64)
    offsets = programs[:, None] * block + np.arange(block)
    inside = offsets < n
    active = inside.copy() if mask else np.ones_like(inside)
    view = View(0, 0, (n,), (1,), "float32")
    return Access("add_kernel", 7, argument, operation, programs, offsets, active, inside, view)


def tile(m=1000, n=900, bm=32, bn=32, pitch=0, mask=False, programs=None, argument="c"):
    """``matmul``'s store of one tile a program into a matrix, row by row; ``pitch`` pads rows."""
    pitch = pitch or n
    across = -(-n // bn)
    programs = np.arange(-(-m // bm) * across) if programs is None else np.array(programs)
    rows = (programs // across)[:, None] * bm + np.arange(bm)
    columns = (programs % across)[:, None] * bn + np.arange(bn)
    offsets = rows[:, :, None] * pitch + columns[:, None, :]
    meant = (rows < m)[:, :, None] & (columns < n)[:, None, :]
    inside = (offsets < m * n) if pitch == n else (offsets % pitch < n) & (offsets // pitch < m)
    active = meant if mask else np.ones_like(meant)
    view = View(0, 0, (m, n), (pitch, 1), "float16")
    return Access("matmul_kernel", 31, argument, "store", programs, offsets, active, inside, view)


def rows(m=1823, n=781, block=1024, pitch=0, mask=False, programs=None):
    """``softmax``'s load of one row a program."""
    pitch = pitch or n
    programs = np.arange(m) if programs is None else np.array(programs)
    offsets = programs[:, None] * pitch + np.arange(block)
    inside = (offsets < m * n) if pitch == n else (offsets % pitch < n) & (offsets // pitch < m)
    meant = np.broadcast_to(np.arange(block) < n, offsets.shape)
    active = meant.copy() if mask else np.ones_like(inside)
    view = View(0, 0, (m, n), (pitch, 1), "float32")
    return Access("softmax_kernel", 12, "x_ptr", "load", programs, offsets, active, inside, view)


EXERCISE = Exercise(
    id="02.add",
    title="Vector add",
    names=("add",),
    cases=(),
    points={"values": 2, "kernel": 1, "bounds": 2, "races": 1, "traffic": 1, "compiles": 1},
    arguments=lambda case: (),
    reference=lambda *arguments: (),
    tolerance=lambda *arguments: (),
    limit_text="3n",
    hints=("Think of one program.", "Then of its <block>.", "mask = offsets < n"),
    notes={"out_of_bounds": "Which condition tells a lane that it has a number to work on?"},
)

OUTSIDE = Finding(
    "out_of_bounds",
    "store to out: 896 of 1024 lanes past the end (program 96, line 7: offsets 98432…99327, "
    "out has 98432 elements).",
    kernel="add_kernel",
    argument="out",
    line=7,
    program=(96,),
    lanes=896,
    access=vector(programs=[96], operation="store", argument="out"),
)
FACTS = CompileFacts(
    "add_kernel", "RTX 4080", 0, 101376, 26, 0, {"ld.global": 4, "ld.global.v4": 4, "mma.sync": 0}
)
LESSON = Case("the lesson's length", {"n": 98432, "dtype": "float32"})
ONE = Case("one element", {"n": 1, "dtype": "float32"})


def aspects(**statuses):
    """The exercise's aspects; those named have that status and no points, the others pass."""
    out = []
    for name, points in EXERCISE.points.items():
        status = statuses.get(name, "pass")
        out.append(Aspect(name, status, points if status == "pass" else 0.0, float(points)))
    return tuple(out)


def passed() -> Verdict:
    results = (
        CaseResult(LESSON, "pass", (), 295296, 310060, 1181184, 0.5),
        CaseResult(ONE, "pass", (), 3, 3, 12, 0.0),
    )
    return Verdict("02.add", "pass", aspects(), (), results, (FACTS,))


def failed(*findings: Finding, hidden: Case | None = None) -> Verdict:
    findings = findings or (OUTSIDE,)
    results = [CaseResult(LESSON, "fail", findings, 295296, 310060, 1181184, 0.25)]
    results.append(CaseResult(ONE, "pass", (), 3, 3, 12, 0.0))
    if hidden is not None:
        results.append(CaseResult(hidden, "fail", findings, 4, 5, 6, 7.0, run=Run((), findings)))
    return Verdict("02.add", "fail", aspects(bounds="fail"), findings, tuple(results), (FACTS,))


def unsure() -> Verdict:
    message = "The interpreter does not know tt.dot_scaled yet."
    result = CaseResult(LESSON, "could_not_check", (), message=message)
    states = dict.fromkeys(EXERCISE.points, "could_not_check")
    return Verdict("02.add", "could_not_check", aspects(**states), (), (result,), message=message)


def shown(message: str) -> str:
    """A message as pages show it: long numbers with gaps, whatever the gap's width."""
    return unbroken(message).replace("\u202f", " ")
