"""The walls of docs/ARCHITECTURE.md, read from the imports: arrows point one way.

Imports inside functions count too: a wall with a door that opens late is no wall.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

# room of autograder/ → the rooms it may use. A room is a package or a module of the top level.
MAY_USE = {
    "records": set(),
    "floats": set(),
    "minitriton": set(),
    "cells": set(),
    "solutions": {"records", "cells", "trace"},
    "triton_interpreter": set(),
    "exercises": {"records", "floats", "minitriton"},
    "ir": {"records", "floats"},
    "trace": {"records", "floats", "minitriton", "ir"},
    "differences": set(),
    "verdict": {"records", "trace", "differences"},
    "compiled": {"records", "ir"},
    "eager": set(),
    "counting": {"records", "ir", "trace"},
    "clock": {"trace"},
    "generated": {"records", "trace"},
    "judging": {"records", "floats", "exercises", "ir", "trace", "verdict"},
    "render": {"records", "floats", "verdict"},
}
MAY_USE["interpreting"] = {"records", "ir", "trace", "render"}
_ALL = {*MAY_USE}
MAY_USE["grading"] = _ALL - {"minitriton", "compiled", "eager", "triton_interpreter"}
MAY_USE["grading"] -= {"clock", "generated"}
MAY_USE["grading"].discard("interpreting")
MAY_USE["checking"] = _ALL | {"grading"}  # grading for `check --hidden` in an instructor's clone
MAY_USE["__init__"] = MAY_USE["__main__"] = _ALL | {"grading", "checking"}

# A table of facts about cards, without imports of its own; any room may read it.
FACTS = {"autograder.ir.cards"}

# Only these rooms meet Triton or torch; of `ir` and `trace` not the half that the judge uses.
MEETS_TRITON = {"ir", "trace", "compiled", "clock", "generated"}
MEETS_TORCH = {"trace", "checking", "eager", "clock", "generated"}

# What decides a grade; student code and the libraries that run it must be out of its reach.
JUDGE = ("autograder.grading.judge", "autograder.judging", "autograder.verdict")


@cache
def modules() -> dict[str, Path]:
    """Every module of the product by its dotted name."""
    found = {}
    for package in ("autograder", "course", "lab_setup"):
        for path in (ROOT / package).rglob("*.py"):
            parts = path.relative_to(ROOT).with_suffix("").parts
            if parts[0] == "course" and len(parts) > 2:
                continue  # texts are pages for students, not modules
            found[".".join(parts).removesuffix(".__init__")] = path
    return found


@cache
def imports(module: str) -> frozenset[str]:
    """Dotted names that a module imports, wherever in the file; for `from a import b` a.b too."""
    names = set()
    tree = ast.parse(modules()[module].read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module} imports relatively; write the full name."
            names.add(node.module)
            deeper = {f"{node.module}.{alias.name}" for alias in node.names}
            names |= deeper & set(modules())
    return frozenset(names)


def room(module: str) -> str:
    return module.split(".")[1] if "." in module else "__init__"


def reached(starts: tuple[str, ...]) -> dict[str, str]:
    """Modules of ours that ``starts`` import, directly or not → the module that imports each."""
    by, queue = dict.fromkeys(starts, ""), list(starts)
    while queue:
        module = queue.pop()
        for name in imports(module) & set(modules()) - {"autograder"}:  # its imports are lazy
            if name not in by:
                by[name] = module
                queue.append(name)
    return by


OURS = sorted(module for module in modules() if module.startswith("autograder"))


@pytest.mark.parametrize("module", OURS)
def test_arrows_point_one_way(module):
    here = room(module)
    assert here in MAY_USE, f"{module} has no room: give it one here and in docs/ARCHITECTURE.md."
    for name in imports(module):
        if name.partition(".")[0] == "autograder" and name not in FACTS and name != "autograder":
            there = room(name)
            assert there == here or there in MAY_USE[here], (
                f"{module} imports {name}: an arrow that points back ({here} → {there})."
            )


@pytest.mark.parametrize("module", OURS)
def test_only_some_rooms_meet_triton_and_torch(module):
    foreign = {name.partition(".")[0] for name in imports(module)}
    assert "triton" not in foreign or room(module) in MEETS_TRITON, f"{module} imports triton."
    assert "torch" not in foreign or room(module) in MEETS_TORCH, f"{module} imports torch."


@pytest.mark.parametrize("module", OURS)
def test_the_package_does_not_know_its_users(module):
    foreign = {name.partition(".")[0] for name in imports(module)}
    assert not foreign & {"course", "lab_setup"}, f"{module} imports the course or the lab."
    instructors = {"nbgrader", "dask", "distributed", "jupytext"}  # students do not install these
    assert not foreign & instructors or room(module) == "grading", f"{module} {foreign}"


@pytest.mark.parametrize("module", [m for m in modules() if m.startswith(("course", "lab_setup"))])
def test_course_and_lab_use_public_names_only(module):
    public = {"autograder", "autograder.exercises", "autograder.records", "autograder.ir.cards"}
    public.add("autograder.exercises.tables")  # what an author is told
    public |= {"autograder.counting", "autograder.solutions"}  # what a kernel moves; a file of it
    public |= {f"autograder.render.{name}" for name in ("ladders", "roofs", "style")}
    ours = {name for name in imports(module) if name.partition(".")[0] == "autograder"}
    assert ours <= public, (
        f"{module} imports {sorted(ours - public)}, which is the package's inside."
    )


def test_the_judge_is_out_of_reach_of_what_runs_student_code():
    for module, by in reached(tuple(m for m in JUDGE if m in modules())).items():
        foreign = {name.partition(".")[0] for name in imports(module)}
        assert not foreign & {"torch", "triton"}, f"the judge reaches {module} through {by}."
        assert room(module) not in ("checking", "cells"), (
            f"the judge reaches {module} through {by}."
        )


def test_importing_the_package_loads_neither_torch_nor_triton():
    names = ("autograder", "autograder.exercises", "autograder.minitriton", "autograder.judging")
    program = (
        f"import sys, {', '.join(names)}; autograder.exercises.ids(); "
        "sys.exit([m for m in ('torch', 'triton', 'nbgrader') if m in sys.modules] or 0)"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
