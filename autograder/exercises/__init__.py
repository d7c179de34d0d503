"""The register of exercises: tables, one module a unit, found by their stable ids."""

from __future__ import annotations

import difflib
import importlib
from functools import cache
from pathlib import Path

from autograder.records import Exercise, Rejected

# By number; the exercises of each are a module unitNN with EXERCISES, a tuple of Exercise.
ASSIGNMENTS = {
    "01": "01_programming_model",
    "02": "02_vector_add",
    "03": "03_softmax",
    "04": "04_norms",
    "05": "05_matmul",
    "06": "06_flash_attention",
    "07": "07_measuring",
    "08": "08_debugging",
    "09": "09_production",
}


@cache
def _table() -> dict[str, Exercise]:
    table = {}
    for unit in ASSIGNMENTS:
        module = importlib.import_module(f"autograder.exercises.unit{unit}")
        listed = getattr(module, "EXERCISES", None)
        if not isinstance(listed, tuple) or not all(isinstance(e, Exercise) for e in listed):
            raise Rejected(
                f"autograder/exercises/unit{unit}.py has to end with EXERCISES = (…,), a tuple of "
                "Exercise."
            )
        table |= {exercise.id: exercise for exercise in listed}
    return table


def ids() -> tuple[str, ...]:
    """All exercise ids, in the order of the course."""
    return tuple(_table())


def get(id: str) -> Exercise:
    """The exercise with this id. Raises Rejected with the nearest id if there is none."""
    table = _table()
    if id in table:
        return table[id]
    near = difflib.get_close_matches(str(id), table, n=1, cutoff=0.4)
    # Not all ids: a student has the notebooks of some units only.
    hint = f" Did you mean '{near[0]}'?" if near else " Its check cell names its id, e.g. 02.add."
    raise Rejected(f"There is no exercise '{id}'.{hint}")


def assignment(name: str) -> str:
    """``"02"`` or ``"02_vector_add"`` → ``"02_vector_add"``. Raises Rejected otherwise."""
    if name in ASSIGNMENTS.values():
        return name
    if name in ASSIGNMENTS:
        return ASSIGNMENTS[name]
    known = ", ".join(f"{number} ({full})" for number, full in ASSIGNMENTS.items())
    raise Rejected(f"There is no assignment '{name}'. There are: {known}.")


def of_assignment(name: str) -> tuple[Exercise, ...]:
    """The exercises of an assignment, quiz last."""
    number = assignment(name)[:2]
    return tuple(exercise for id, exercise in _table().items() if id[:2] == number)


def text_of(name: str) -> bytes:
    """The source of an assignment's table and of what tables share: public cases, points, limits.
    Whoever keeps a grade keeps it for this text."""
    number = assignment(name)[:2]
    here = Path(__file__).parent
    shared = (path for path in here.glob("*.py") if not path.name.startswith("unit"))
    return b"".join(path.read_bytes() for path in [here / f"unit{number}.py", *sorted(shared)])
