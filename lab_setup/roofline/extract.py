"""Takes definitions out of a page of cells: a function with all that it names, and nothing else.

Checks, quizzes, experiments and measurements of the page stay where they are and do not run.
"""

from __future__ import annotations

import ast
import json
import symtable
from collections.abc import Iterable
from pathlib import Path

from autograder.records import Rejected

__all__ = ["code_of", "needed", "script_for", "statements_of"]

Statement = tuple[ast.stmt, str]


def code_of(path: Path, exercise: str = "") -> str:
    """The code of a ``.py`` file or a notebook; of a notebook the cells up to the solution cell of
    ``exercise``, because later cells may use its names again. Raises Rejected with a sentence."""
    if not path.is_file():
        raise Rejected(f"There is no file {path}.")
    if path.suffix not in (".py", ".ipynb"):
        raise Rejected(f"{path.name} is neither a .py file nor a notebook (.ipynb).")
    try:
        text = path.read_text(encoding="utf-8")
        if path.suffix == ".py":
            return text
        cells = []
        for cell in json.loads(text)["cells"]:
            if cell["cell_type"] != "code":
                continue
            source = "".join(cell["source"])
            grade_id = cell["metadata"].get("nbgrader", {}).get("grade_id", "")
            last = exercise and grade_id == "solution-" + exercise.replace(".", "-")
            if last or _parses(source):  # a cell that does not parse costs only itself
                cells.append(source)
            if last:
                break
    except (ValueError, KeyError, TypeError) as error:
        raise Rejected(f"{path.name} cannot be read: {error}.") from None
    return "\n\n".join(cells) + "\n"


def _parses(source: str) -> bool:
    try:
        ast.parse(source)
    except (SyntaxError, ValueError):
        return False
    return True


def statements_of(code: str) -> list[Statement]:
    """The statements of a page, each with its source, decorators included.

    Raises SyntaxError where the page is no Python.
    """
    lines, found = code.splitlines(), []
    for statement in ast.parse(code).body:
        decorators = getattr(statement, "decorator_list", [])
        first = min([statement.lineno, *(d.lineno for d in decorators)])
        found.append((statement, "\n".join(lines[first - 1 : statement.end_lineno])))
    return found


def needed(statements: list[Statement], wanted: Iterable[int]) -> list[str]:
    """The sources of the wanted statements, and of the last definition before each of every name
    that it uses."""
    names = [_names(source) for _, source in statements]
    for (statement, _), (defined, used) in zip(statements, names, strict=True):
        if isinstance(statement, ast.For | ast.If | ast.With):
            used -= defined  # a loop's own
    kept = set(wanted)
    waiting = sorted(kept)
    while waiting:
        user = waiting.pop()
        for name in names[user][1]:
            earlier = [i for i in range(user) if name in names[i][0]]
            if earlier and earlier[-1] not in kept:
                kept.add(earlier[-1])
                waiting.append(earlier[-1])
    return [statements[i][1] for i in sorted(kept)]


def script_for(path: Path, name: str, exercise: str = "") -> str:
    """A script that defines ``name`` as the file does, last definition first served.

    Raises Rejected where the file does not parse or does not define it.
    """
    try:
        statements = statements_of(code_of(path, exercise))
    except SyntaxError as error:
        raise Rejected(f"{path.name} does not parse: {error.msg} (line {error.lineno}).") from None
    defining = [i for i, (_, source) in enumerate(statements) if name in _names(source)[0]]
    if not defining:
        raise Rejected(f"{path.name} does not define {name}.")
    return "\n\n\n".join(needed(statements, defining[-1:])) + "\n"


def _names(source: str) -> tuple[set[str], set[str]]:
    """The names of a page that a statement defines, and those that it uses."""
    page = symtable.symtable(source, "page", "exec")
    defined = {s.get_name() for s in page.get_symbols() if s.is_assigned() or s.is_imported()}
    used, inner = {s.get_name() for s in page.get_symbols() if s.is_referenced()}, [page]
    while inner:
        for scope in inner.pop().get_children():
            used |= {s.get_name() for s in scope.get_symbols() if s.is_global()}
            inner.append(scope)
    return defined, used
