"""The untrusted side: loads a submission's cells in a sandboxed fork, says what they do.

Whatever comes from here may be forged, so nothing here decides anything. The job holds geometry
only: shapes, strides, dtypes and scalars of cases, no values, no seeds, no labels, no references.

Jobs: ``solve`` (cells, then tasks ``record``, ``plain``, ``quiz``) and ``compile`` (a trace's
kernels for a card). Every line that is emitted says ``at`` (how far it came) or a result.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import os
import pkgutil
import sys
import types
from functools import partial
from typing import Any

from autograder.cells import MODULE, run_cells
from autograder.grading.arrays import from_npy
from autograder.records import CouldNotCheck, Rejected, Tensor

MOST_CONFIGS = 16  # autotune configurations that are judged; each is a trace of its own
_LONGEST = 500  # characters of a message
JOBS_OF_A_FORK = 1  # nothing of a job may be there when another student's code runs


def prepare() -> None:
    """Import and run once what every fork needs, so that forks begin warm."""
    import autograder
    from autograder import render
    from autograder.exercises import ids
    from autograder.ir import compile as _compile  # noqa: F401 - loaded before the fork
    from autograder.ir.lower import ready_to_fork
    from autograder.trace import plain, record, serial  # noqa: F401
    from autograder.trace.dummies import dummy, touch_torch

    ids()
    # A check inside a solution cell would only cost time here: the judge looks at everything.
    autograder.check = lambda *arguments, **options: None
    autograder.hint = lambda *arguments, **options: None
    touch_torch()
    for dtype in ("float32", "float16", "bfloat16", "int32"):
        for index in range(4):  # their contents are kept
            dummy(Tensor((1,), dtype), index, None)
    # What notebooks import besides torch and triton; nothing here uses it.
    drawn = [module.name for module in pkgutil.iter_modules(render.__path__)]
    for name in ("checking", "minitriton", *(f"render.{name}" for name in drawn)):
        importlib.import_module(f"autograder.{name}")
    # Imported where they are first needed; the second, for a prediction in place of a measurement.
    for name in ("lab_setup.roofline.measure", "lab_setup.roofline.model", "numpy.ctypeslib"):
        importlib.import_module(name)
    for _ in _solve({"cells": [["warm", _WARM]], "tasks": [_WARM_TASK]}, lambda: None):
        pass
    ready_to_fork()


_WARM = """
import torch, triton, triton.language as tl
@triton.jit
def k(x_ptr, out_ptr, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n) + 1, mask=i < n)
def f(x):
    out = torch.empty_like(x)
    k[(triton.cdiv(x.numel(), 16),)](x, out, x.numel(), B=16)
    return out
"""
_WARM_TASK = {
    "do": "record",
    "exercise": "warm",
    "check": "",
    "name": "f",
    "cases": [[{"shape": [5], "dtype": "float32", "strides": None}]],
}


def ahead(job: dict) -> bool:
    """Nothing of a job may stay in this warm process: students' code is forked from it."""
    return False


def perform(job: dict, emit, more) -> None:
    """Do one job in a confined fork; ``emit`` writes a line of JSON, ``more()`` gives what else is
    to be done, when all of this is."""
    with contextlib.redirect_stdout(io.StringIO()):
        for line in _JOBS[job["job"]](job, more):
            emit(line)


def _solve(job: dict, more):
    """Cells in order; a task when its check cell comes, as in the notebook, so that a name that two
    exercises use means what it meant there: also for the tasks that come later, for which the names
    are put back. ``skip`` names cells that ended an earlier attempt."""
    namespace: dict[str, Any] = {}
    module = types.ModuleType(MODULE)
    then: dict[str, dict] = {}  # check cell → the module's names when it came
    tasks = {task["check"]: task for task in job["tasks"]}
    for name, error in run_cells(job["cells"], namespace, job.get("skip", ()), module):
        yield {"at": ["cell", name]} if error is None else {"cell_error": [name, error]}
        if name in tasks:
            yield from _perform(tasks.pop(name), namespace)
        if name in job.get("keep", ()):
            then[name] = dict(module.__dict__)
    for task in tasks.values():
        yield from _perform(task, namespace)
    for task in (more() or {}).get("tasks", ()):
        names = then.get(task["check"])
        if names is not None:
            module.__dict__.clear()
            module.__dict__.update(names)
        yield from _perform(task, module.__dict__)


def _perform(task: dict, namespace: dict):
    yield {"at": ["exercise", task["exercise"]]}
    yield from done(task, namespace)
    yield {"done": task["exercise"]}


def done(task: dict, namespace: dict):
    """The lines of a task, with the functions that ``namespace`` holds."""
    yield from _TASKS[task["do"]](task, namespace)


def _record(task: dict, namespace: dict):
    """A trace for every case; for some also one for every autotune configuration."""
    from autograder.trace.record import record
    from autograder.trace.serial import to_json

    function = namespace.get(task["name"])
    if function is None:
        yield {"exercise": task["exercise"], "missing": task["name"]}
        return
    for index, geometry in enumerate(task["cases"]):
        arguments = tuple(_argument(a) for a in geometry)
        config, configs = 0, 1
        while config < configs:
            line = {"exercise": task["exercise"], "case": index, "config": config}
            try:
                trace = record(
                    function, arguments, backward=task.get("backward", False), config=config
                )
                line["trace"] = to_json(trace)
                if index in task.get("all_configs", ()):
                    configs = min(trace.configs, MOST_CONFIGS)
            except Rejected as error:
                line["rejected"] = _rejection(error)
            except CouldNotCheck as error:
                line["could_not_check"] = str(error)[:_LONGEST]
            yield line
            if "rejected" in line and index == config == 0 and task.get("first", True):
                return  # as in the student's check: nothing ran, and more cases would say the same
            config += 1


def _rejection(error: Rejected) -> dict:
    return {
        "kind": getattr(error, "kind", "interface"),
        "message": str(error)[:_LONGEST],
        "kernel": str(error.kernel)[:80],
        "line": int(error.line),
    }


def _plain(task: dict, namespace: dict):
    """Unit 01: run the NumPy kernels on the judge's arrays and hand back what came out."""
    from autograder import exercises
    from autograder.grading.runs import run_to_json
    from autograder.trace.plain import run_plain

    exercise = exercises.get(task["exercise"])
    solution = {name: namespace[name] for name in exercise.names if name in namespace}
    for index, arguments in enumerate(task["cases"]):
        line = {"exercise": task["exercise"], "case": index}
        try:
            run = run_plain(exercise, solution, tuple(_value(a) for a in arguments))
            line["run"] = run_to_json(run)
        except Rejected as error:
            line["rejected"] = _rejection(error)
        except CouldNotCheck as error:
            line["could_not_check"] = str(error)[:_LONGEST]
        yield line


def _quiz(task: dict, namespace: dict):
    yield {"exercise": task["exercise"], "answers": _plain_data(namespace.get("answers"))}


def _plain_data(value: Any, depth: int = 0) -> Any:
    """Answers as JSON: numbers, strings, lists and dicts of them; the rest as its name in words."""
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, str):
        return value[:200]
    if depth < 3 and isinstance(value, dict):
        return {str(k)[:80]: _plain_data(v, depth + 1) for k, v in list(value.items())[:100]}
    if depth < 3 and isinstance(value, list | tuple | set):
        items = sorted(value, key=repr) if isinstance(value, set) else value
        return [_plain_data(v, depth + 1) for v in list(items)[:100]]
    return f"a {type(value).__name__}"


def _argument(given: dict) -> Tensor | Any:
    if "value" in given:
        return given["value"]
    strides = given["strides"]
    return Tensor(tuple(given["shape"]), given["dtype"], strides and tuple(strides))


def _value(given: dict) -> Any:
    return given["value"] if "value" in given else from_npy(given["npy"])


def _compile(job: dict, more):
    """Facts of the kernels of traces. The IR is hostile data, the Python here is ours."""
    from autograder.ir.compile import compile_all, run_here
    from autograder.trace.serial import from_json

    try:
        kernels = [kernel for text in job["traces"] for kernel in from_json(text).kernels]
        run = _fork_compiler if job["apart"] else partial(run_here, otherwise=_fork_compiler)
        facts = compile_all(kernels, job["card"], run=run)
    except (Rejected, CouldNotCheck) as error:
        yield {"could_not_check": str(error)[:_LONGEST]}
        return
    yield {"facts": [fact.__dict__ | {"instructions": dict(fact.instructions)} for fact in facts]}


def _fork_compiler(argv, request: bytes) -> tuple[int, bytes, bytes]:
    """``compile``'s child as a fork of this warm process: Triton is imported already."""
    from autograder.ir.compile import main

    with open("request", "wb") as file:
        file.write(request)
    child = os.fork()
    if child == 0:
        status = 70
        try:
            for name, fd, flags in (
                ("request", 0, os.O_RDONLY),
                ("answers", 1, os.O_WRONLY | os.O_CREAT | os.O_TRUNC),
                ("errors", 2, os.O_WRONLY | os.O_CREAT | os.O_TRUNC),
            ):
                os.dup2(os.open(name, flags, 0o600), fd)
            sys.stdin, sys.stdout, sys.stderr = (
                os.fdopen(fd, mode) for fd, mode in ((0, "r"), (1, "w"), (2, "w"))
            )
            status = main()
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            os._exit(status)
    _, ended = os.waitpid(child, 0)
    status = os.waitstatus_to_exitcode(ended)
    with open("answers", "rb") as answers, open("errors", "rb") as errors:
        return status, answers.read(), errors.read()


_TASKS = {"record": _record, "plain": _plain, "quiz": _quiz}
_JOBS = {"solve": _solve, "compile": _compile}


if __name__ == "__main__":  # for a look by hand: a job on stdin, lines on stdout
    prepare()
    perform(
        json.load(sys.stdin),
        lambda line: print(json.dumps(line), file=sys.__stdout__),
        lambda: None,
    )
