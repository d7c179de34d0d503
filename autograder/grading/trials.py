"""Answers of a corpus, each in a fork of a process that is warm for its exercise.

Most answers are one right solution with one mistake. What they have in common with it is worked out
once, before the forks: the references of the cases, and the IR of the kernels that it changes in
nothing.
"""

from __future__ import annotations

import contextlib
import gc
import hashlib
import importlib
import io
import json
import multiprocessing
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from autograder import exercises
from autograder.grading import forkserver, worker
from autograder.grading.confine import Limits
from autograder.grading.forkserver import End
from autograder.grading.kept import Kept
from autograder.records import Exercise

LIMITS = Limits(cpu=120, step=1200, wall=1200, memory=4 << 30, processes=4096, may_fork=True)
Look = Callable[[Exercise, str, Callable], dict]
Record = TypeVar("Record")  # of an answer: how its fork ended and what was said of it

_MOST = 16  # answers that a process takes at once
_FEW = 4  # so few are not worth a warm process
# Read when libraries are loaded: one thread of BLAS a process, and no card even where there is one.
_ENVIRONMENT = {"OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}


def forked(
    look: Look,
    answers: Sequence,
    check: Callable,
    record: Callable[[Any, End, dict], Record],
    workers: int | None = None,
    *,
    plain: Callable[[str], str] | None = None,
    told: Callable[[Record], None] = lambda record: None,
    limits: Limits = LIMITS,
    kept: Kept | None = None,
) -> list[Record]:
    """``record(answer, end, said)`` of every answer, in their order: how its fork ended, and what
    ``look(exercise, path, check)`` said in it; ``told`` gets each as it comes. ``plain(exercise)``:
    the source of the solution that most of them are made from. ``kept``: what was said before, and
    where it is noted. Workers start afresh: a fork of a process with threads may hang."""
    workers = workers or len(os.sched_getaffinity(0))
    records: dict[int, Record] = {}

    def note(i: int, end: End, said: dict) -> None:
        records[i] = record(answers[i], end, said)
        told(records[i])

    for i, answer in enumerate(answers):
        if before := kept and kept.of(answer):
            note(i, *before)
    left = [(i, answer) for i, answer in enumerate(answers) if i not in records]
    left.sort(key=lambda pair: pair[1].exercise)
    lots = []
    for id, group in groupby(left, key=lambda pair: pair[1].exercise):
        source = plain(id) if plain else ""
        lots += [(source, lot) for lot in _lots(list(group), len(left), workers)]
    lots.sort(key=lambda pair: -len(pair[0]))  # long programs first: the last lots are short ones
    with (
        tempfile.TemporaryDirectory() as directory,
        _environment(),
        ProcessPoolExecutor(
            workers, multiprocessing.get_context("spawn"), _begin, (directory,)
        ) as pool,
    ):
        waiting = {
            pool.submit(_lot, look, source, [answer for _, answer in lot], check, limits): lot
            for source, lot in lots
        }
        try:
            for future in as_completed(waiting):
                for (i, answer), ended in zip(waiting[future], future.result(), strict=True):
                    if kept:
                        kept.note(answer, *ended)
                    note(i, *ended)
        except BaseException:  # Ctrl-C: only the lots that have begun are waited for
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return [records[i] for i in range(len(answers))]


def _lots(group: list, total: int, workers: int) -> Iterator[list]:
    most = min(max(total // (4 * workers), _FEW), _MOST)
    for start in range(0, len(group), most):
        yield group[start : start + most]


@contextmanager
def _environment() -> Iterator[None]:
    before = {name: os.environ.get(name) for name in _ENVIRONMENT}
    os.environ.update(_ENVIRONMENT)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


# ---------------------------------------------------------------- in a worker


@dataclass
class _Warm:
    """What a worker is warm for. All answers are read from one path, which their IR names."""

    path: Path = Path()
    source: str = ""
    exercise: Exercise | None = None
    lowered: dict[tuple, tuple] = field(default_factory=dict)


_warm = _Warm()


def _begin(directory: str) -> None:
    _warm.path = Path(directory) / str(os.getpid()) / "answer.py"
    _warm.path.parent.mkdir()
    worker.prepare()
    # What autograd imports when it is first asked for a gradient: a second in every fork.
    importlib.import_module("torch.nested._internal.nested_tensor")
    _keep_lowered()
    _compile_here()


def _lot(look: Look, source: str, answers: Sequence, check: Callable, limits: Limits) -> list:
    exercise = exercises.get(answers[0].exercise)
    if source and len(answers) >= _FEW:
        _prepare(look, source, exercise, check)
    if _warm.exercise is not None and _warm.exercise.id == exercise.id:
        exercise = _warm.exercise
    return [_in_a_fork(look, answer, exercise, check, limits) for answer in answers]


def _prepare(look: Look, source: str, exercise: Exercise, check: Callable) -> None:
    """Look at the plain solution in this process, which the next forks come from."""
    if _warm.source == source:
        return
    gc.unfreeze()
    _warm.source, _warm.exercise = source, sharing(exercise)
    _warm.lowered.clear()
    _warm.path.write_text(source, encoding="utf-8")
    quiet = io.StringIO()
    with contextlib.redirect_stdout(quiet), contextlib.redirect_stderr(quiet):
        look(replace(_warm.exercise, compiled=None), str(_warm.path), check)
    if exercise.machine == "triton":
        from autograder.ir.lower import ready_to_fork

        ready_to_fork()
    gc.collect()
    gc.freeze()  # so that a fork's collector does not copy every page


def _in_a_fork(look: Look, answer, exercise: Exercise, check: Callable, limits: Limits):
    _warm.path.write_text(answer.source, encoding="utf-8")
    end, data = forkserver.run_confined(
        lambda emit, more: emit(_quiet(look, exercise, check)), limits, "limits"
    )
    return end, json.loads(data) if end.how == "ok" else {}


def _quiet(look: Look, exercise: Exercise, check: Callable) -> dict:
    sys.stdout = sys.stderr = io.StringIO()  # a fork has none of the files that they stood for
    return look(exercise, str(_warm.path), check)


# ---------------------------------------------------------------- what answers share


def sharing(exercise: Exercise) -> Exercise:
    """The exercise, whose reference and tolerance are computed once for equal arguments."""
    if exercise.machine != "triton":
        return exercise
    known: dict[tuple, tuple] = {}

    def reference(*arguments):
        key = _digest(arguments)
        if key not in known:
            known[key] = _fixed(exercise.reference(*arguments))
        return known[key]

    def tolerance(case, arguments, expected):
        key = (repr(case), _digest(arguments))  # on which what is expected depends
        if key not in known:
            known[key] = _fixed(exercise.tolerance(case, arguments, expected))
        return known[key]

    return replace(exercise, reference=reference, tolerance=tolerance)


def _fixed(arrays: tuple) -> tuple[np.ndarray, ...]:
    made = tuple(np.asarray(a) for a in arrays)
    for array in made:
        array.flags.writeable = False  # others get the same ones
    return made


def _digest(arguments: tuple) -> tuple:
    return tuple(
        (a.shape, a.dtype.str, hashlib.sha256(np.ascontiguousarray(a)).digest())
        if isinstance(a, np.ndarray)
        else repr(a)
        for a in arguments
    )


def _keep_lowered() -> None:
    """From now on a kernel is lowered once, as far as Triton's own key for its compiled kernels
    tells: the text, the line, and all that it names."""
    from autograder.ir import lower
    from autograder.ir.surroundings import stamp

    fresh = lower._ttir

    def kept(kernel, source, options, backend, surroundings) -> str:
        try:
            with surroundings.untouched():
                named = kernel.cache_key
        except Exception:  # it names what is not there: lowering says so in its own words
            return fresh(kernel, source, options, backend, surroundings)
        constants = stamp(source.constants)
        key = (named, repr(source.signature), repr(source.attrs), constants, repr(options))
        if key not in _warm.lowered:
            text = fresh(kernel, source, options, backend, surroundings)
            _warm.lowered[key] = text, source  # which holds what the key names by identity
        return _warm.lowered[key][0]

    lower._ttir = kept


def _compile_here() -> None:
    """From now on the compile proof needs no process of its own: an answer has one already."""
    from autograder.ir import compile

    compile.run_child = partial(compile.run_here, otherwise=compile.run_child)
