"""What there is to measure, by family: one module of this package each, loaded when asked for."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from autograder.records import Rejected
from lab_setup.kernels.bench.tasks import Check, Ladder, Launch, Task

__all__ = ["FAMILIES", "Family", "family", "names"]

FAMILIES = ("rows", "products", "attentions")


@dataclass(frozen=True)
class Family:
    """One module's tasks, ladders, compilations for a compute capability, and full-size checks."""

    name: str
    tasks: tuple[Task, ...] = ()
    ladders: tuple[Ladder, ...] = ()
    launches: Callable[[int], Iterable[Launch]] = lambda cc: ()
    checks: Callable[[], Iterable[Check]] = lambda: ()

    def blocks(self) -> Iterator[tuple[Task | Ladder, int]]:
        """What is measured in turn, what matters most first: tasks with targets, ladders, the
        other tasks; each at its sizes."""
        aimed = [task for task in self.tasks if task.targets]
        others = [task for task in self.tasks if not task.targets]
        for what in (*aimed, *self.ladders, *others):
            for size in what.sizes:
                yield what, size


def names(wanted: Iterable[str] = ()) -> tuple[str, ...]:
    """The families with these names, in this order; all without one. Raises Rejected for others."""
    wanted = tuple(wanted) or FAMILIES
    for name in wanted:
        if name not in FAMILIES:
            raise Rejected(f"There is no family '{name}'; there are {', '.join(FAMILIES)}.")
    return wanted


def family(name: str) -> Family:
    """The family ``name``. Raises Rejected with one sentence where it cannot be loaded."""
    (name,) = names([name])
    try:
        module = importlib.import_module(f"lab_setup.kernels.bench.{name}")
    except Exception as error:
        said = " ".join(str(error).split())[:200]
        raise Rejected(f"{name} does not load: {type(error).__name__}: {said}") from error
    return Family(name, module.TASKS, module.LADDERS, module.launches, module.checks)
