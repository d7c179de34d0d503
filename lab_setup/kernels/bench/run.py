"""Measures the fast kernels, their rivals and their ladders, block by block.

A task or a ladder at one size is a block, whose functions take turns. A function that fails, or
gives something else than the reference, is named and left out of its block; nothing else stops.
The record is saved after each block, and a run that goes on with a record leaves out what it has.
A fault on the card, such as an illegal access, spoils the whole process: ``CardLost`` says so and a
fresh process goes on. What is being tried stands in the record, so that a function that ended or
hung its process is not tried again.
"""

from __future__ import annotations

import gc
import math
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from lab_setup.kernels.bench.families import Family
from lab_setup.kernels.bench.results import PLAIN, block_lines, done, save
from lab_setup.kernels.bench.tasks import Ladder, Task, Variant
from lab_setup.roofline.measure import differs, measure

__all__ = ["Bench", "CardLost"]

Functions = dict[str, Callable[[], object]]
# Ladder → the exercise whose solution its first step should be as fast as.
_EXERCISES = {"softmax": "03.softmax", "matmul": "05.matmul", "flash": "06.flash_boss"}
_CALLS = 3  # of each function before it is timed: not every race shows in the first


class CardLost(Exception):
    """A fault on the card ended this process's use of it: a fresh process can go on."""


@dataclass
class Bench:
    """A record, the file it is saved to, and the card.

    * ``cc``: compute capability; variants that need more are left out;
    * ``until``: a reading of ``time.monotonic()`` after which nothing more is begun;
    * ``rep``: milliseconds a function;
    * ``measure``: that of ``lab_setup.roofline.measure``; ``sync()`` waits for the card and raises
      what went wrong there; ``state()``: clocks and the like, kept with each block.
    """

    record: dict[str, Any]
    target: Path
    cc: int
    until: float = math.inf
    rep: int = 100
    measure: Callable = measure
    sync: Callable[[], None] = lambda: None
    state: Callable[[], dict] = dict
    step: Callable[[str], None] = lambda what: None

    def __post_init__(self) -> None:
        if at := self.record.pop("trying", None):
            self.record["faults"].append({"at": at, "why": "it ended or hung the whole process"})

    def measure_all(self, families: Iterable[Family]) -> None:
        """Fills the record and prints each block. Raises CardLost, with the record saved."""
        for family in families:
            for what, size in family.blocks():
                kind = "ladder" if isinstance(what, Ladder) else "task"
                if done(self.record, kind, what.name, size):
                    continue
                name = f"{kind} {what.name}, n = {size:,}"
                self.step(name)
                if time.monotonic() > self.until:
                    self._note(f"{name}: left out, the time was over.")
                    continue
                start = time.monotonic()
                self._trying(kind, what.name, size, "")
                block = self.block_of(what, size)
                self._trying()
                block |= {"family": family.name, "seconds": round(time.monotonic() - start, 1)}
                block["state"] = self.state()
                self.record["blocks"].append(block)
                save(self.record, self.target)
                print(block_lines(block), flush=True)
                gc.collect()
                self._answers(name)

    def check_all(self, families: Iterable[Family]) -> None:
        """Runs the families' checks at full size that the record does not have yet; one that fails
        is named with its error. Raises CardLost, with the record saved."""
        for family in families:
            try:
                for check in family.checks():
                    self._check(family.name, *check)
            except CardLost:
                raise
            except Exception as error:  # while the next check was being made
                self._note(f"checks of {family.name} ended early: {_said(error)}")

    def _check(self, name: str, label: str, function: Callable[[], float], bound: float) -> None:
        if any((c["family"], c["label"]) == (name, label) for c in self.record["checks"]):
            return
        self.step(f"check {label}")
        if time.monotonic() > self.until:
            self._note(f"check {label}: left out, the time was over.")
            return
        row = {"family": name, "label": label, "bound": bound}
        if fault := self._fault("check", name, 0, label):
            row |= {"ok": False, "error": None, "why": fault}
        else:
            self._trying("check", name, 0, label)
            row |= _checked(function, bound)
            self._trying()
        self.record["checks"].append(row)
        save(self.record, self.target)
        print(f"check {label}: {'ok' if row['ok'] else 'FAILED'}: {row['why']}", flush=True)
        self._answers(f"check {label}")

    def block_of(self, what: Task | Ladder, size: int) -> dict[str, Any]:
        """One block as data: timings, steps with their reasons, and ``failed``, label → why."""
        ladder = isinstance(what, Ladder)
        task = what.task if ladder else what
        own = [v for v in (what.steps if ladder else what.own) if v.needs <= self.cc]
        targets = [] if ladder else [t for t in what.targets if size in (t.sizes or what.sizes)]
        block: dict[str, Any] = {
            "kind": "ladder" if ladder else "task",
            "name": what.name,
            "title": task.title,
            "size": size,
            "bytes": task.bytes(size),
            "flop": task.flop(size) if task.flop else 0,
            "steps": [_as_data(variant) for variant in own],
            "rivals": [],
            "targets": [asdict(target) for target in targets],
            "timings": [],
            "failed": {},
            "notes": [],
        }
        at = block["kind"], what.name, size
        if fault := self._fault(*at, ""):
            block["notes"].append(f"not measured: {fault}")
            return block

        def functions(size: int) -> Functions:
            tensors = task.tensors(size)
            ready, reference = self._rivals(what, task, tensors, block)
            made = {variant.label: variant.make for variant in own}
            if ladder and what.name in _EXERCISES:
                made[PLAIN] = lambda *given: _course(_EXERCISES[what.name], given)
            atol = task.atol(size) if task.atol else None
            expected = reference() if reference else None
            found = {}
            for label, make in made.items():
                against = None if label in task.unchecked else expected
                function = self._tried(block, label, make, tensors, against, atol)
                if function:
                    found[label] = function
            return found | ready

        try:
            found = self.measure(
                functions,
                (size,),
                bytes_of=task.bytes,
                flop_of=task.flop,
                unchecked=_Everything(),  # compared above, one by one
                dtype=task.dtype,
                rep=self.rep,
                expect="see docs/KERNELS.md",
            )
        except CardLost:
            raise
        except Exception as error:
            block["notes"].append(f"not measured: {_said(error)}")
            return block
        block["timings"] = [asdict(timing) for timing in found.timings]
        block["notes"] += found.note.splitlines()
        return block

    def _rivals(
        self, what: Task | Ladder, task: Task, tensors: tuple, block: dict[str, Any]
    ) -> tuple[Functions, Callable[[], object] | None]:
        """The rivals that run here, the reference last, and the reference: the task's last rival
        that runs and computes the same."""
        named = what.rivals if isinstance(what, Ladder) else tuple(task.rivals)
        same = [label for label in task.rivals if label not in task.unchecked]
        tried: Functions = {}
        for label in [label for label in task.rivals if label in named or label in same[-1:]]:
            function = self._tried(block, label, task.rivals[label], tensors)
            if function:
                tried[label] = function
        same = [label for label in tried if label in same]
        for label in same[-1:]:
            tried[label] = tried.pop(label)
        block["rivals"] = list(tried)
        return tried, tried[same[-1]] if same else None

    def _tried(
        self,
        block: dict[str, Any],
        label: str,
        make: Callable,
        tensors: tuple,
        expected: object = None,
        atol: float | None = None,
    ) -> Callable[[], object] | None:
        """The function, once it has run and given what is expected, where something is; else None,
        and why in ``block``."""
        at = block["kind"], block["name"], block["size"]
        if fault := self._fault(*at, label):
            block["failed"][label] = fault
            return None
        self._trying(*at, label)
        try:
            function = make(*tensors)
            for _ in range(_CALLS):
                result = function()
                self.sync()
                if expected is not None and (what := differs(result, expected, atol)):
                    rival = block["rivals"][-1]
                    block["failed"][label] = f"does not give what {rival} gives. {what}"
                    return None
        except Exception as error:
            block["failed"][label] = _said(error)
            try:
                self.sync()
            except Exception as lost:
                self.record["faults"].append({"at": [*at, label], "why": _said(error)})
                self._trying()
                save(self.record, self.target)
                raise CardLost(f"{label} ended in a fault on the card: {_said(lost)}") from error
            return None
        finally:
            if "trying" in self.record:
                self._trying(*at, "")
        return function

    def _trying(self, *at: Any) -> None:
        """Writes down what is about to run; nothing is, without ``at``."""
        self.record.pop("trying", None)
        if at:
            self.record["trying"] = list(at)
            save(self.record, self.target)

    def _fault(self, *at: Any) -> str:
        """Why this is not tried again, or an empty string."""
        return next((f["why"] for f in self.record["faults"] if f["at"] == list(at)), "")

    def _answers(self, name: str) -> None:
        try:
            self.sync()
        except Exception as error:
            raise CardLost(f"{name} ended in a fault on the card: {_said(error)}") from error

    def _note(self, words: str) -> None:
        if words not in self.record["notes"]:
            self.record["notes"].append(words)
            save(self.record, self.target)


class _Everything:
    """Holds every name."""

    def __contains__(self, name: object) -> bool:
        return True


def _checked(function: Callable[[], float], bound: float) -> dict[str, Any]:
    try:
        error = float(function())
    except Exception as problem:
        return {"ok": False, "error": None, "why": _said(problem)}
    number = error if math.isfinite(error) else None  # JSON has no NaN
    why = f"error {error:.3g}, bound {bound:.3g}"
    return {"ok": error <= bound, "error": number, "why": why}  # NaN keeps no bound


def _as_data(variant: Variant) -> dict[str, Any]:
    return {name: getattr(variant, name) for name in ("label", "reason", "needs", "expect")}


def _course(exercise: str, tensors: tuple) -> Callable[[], object]:
    """The course's own solution of an exercise, on these tensors."""
    from lab_setup.roofline.command import chosen, function_of

    (kernel,) = chosen([exercise])
    folder = tempfile.TemporaryDirectory()  # Triton reads the source when it compiles
    call = kernel.call(function_of(kernel, None, Path(folder.name), on_card=True))
    return lambda: folder and call(*tensors)


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
