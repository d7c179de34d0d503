"""Reads a solution, a ``.py`` file or a notebook: runs it and hands back what it defines.

A solution's own launches, self-checks and ``device="cuda"`` do no harm where there is no card.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import linecache
import re
import traceback
from pathlib import Path
from typing import Any

from autograder.cells import run_cells
from autograder.records import Rejected

__all__ = ["load_solution"]


def load_solution(path: str, exercise: str = "") -> dict[str, Any]:
    """The names that a ``.py`` file or a notebook defines. Raises Rejected with one sentence.

    A notebook's failing cell costs only itself; a file that fails defines nothing. With
    ``exercise``, such as ``"03.softmax"``, a notebook is run as far as the check cell of that
    exercise, as the judge does: a name that a later exercise uses again means what it meant there.
    """
    file = Path(path)
    if not file.is_file():
        raise Rejected(f"There is no file {path}.")
    if file.suffix not in (".py", ".ipynb"):
        raise Rejected(f"{file.name} is neither a .py file nor a notebook (.ipynb).")
    text = _read(file)
    with _without_card():
        return _notebook(file, text, exercise) if file.suffix == ".ipynb" else _script(file, text)


def _without_card():
    """Triton's side of it, where there is a Triton (unit 01 does without)."""
    if importlib.util.find_spec("triton") is None:
        return contextlib.nullcontext()
    from autograder.trace.loading import loading

    return loading()


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise Rejected(f"{file.name} is not UTF-8 text.") from None


def _script(file: Path, source: str) -> dict[str, Any]:
    name = str(file)
    namespace: dict[str, Any] = {"__name__": "solution", "__file__": name}
    try:
        code = compile(source, name, "exec")
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None)
        where = f" (line {line})" if line else ""
        said = getattr(error, "msg", error)
        raise Rejected(f"{file.name} does not parse: {said}{where}.") from None
    # Triton reads a kernel's source through inspect, which asks linecache.
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    try:
        exec(code, namespace)
    except (Exception, SystemExit) as error:
        frames = traceback.extract_tb(error.__traceback__)
        line = next((f.lineno for f in reversed(frames) if f.filename == name), 0)
        said = " ".join(str(error).split())[:200]
        what = type(error).__name__ + (f": {said}" if said else "")
        raise Rejected(f"{file.name} stops at line {line} with {what}") from None
    return namespace


def _notebook(file: Path, text: str, exercise: str) -> dict[str, Any]:
    try:
        cells = json.loads(text)["cells"]
        sources = [
            (f"cell {number}", "".join(cell["source"]))
            for number, cell in enumerate(cells[: _check_cell(cells, exercise)], 1)
            if cell["cell_type"] == "code"
        ]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise Rejected(f"{file.name} is not a notebook that can be read.") from None
    namespace: dict[str, Any] = {}
    for _ in run_cells(sources, namespace):  # what a failing cell defined before still counts
        continue
    return namespace


def _check_cell(cells: list[dict], exercise: str) -> int | None:
    """Where the exercise's check cell stands: nbgrader's, or else the last one that calls check on
    it (a lesson's cells have no grade id). None if there is none."""
    graded, called = "check-" + exercise.replace(".", "-"), None
    for number, cell in enumerate(cells):
        if cell.get("metadata", {}).get("nbgrader", {}).get("grade_id") == graded:
            return number
        if exercise and re.search(rf"\bcheck\(\s*['\"]{exercise}['\"]", "".join(cell["source"])):
            called = number
    return called
