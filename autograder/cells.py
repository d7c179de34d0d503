"""Runs the cells of a submission in one namespace, statement by statement, tolerating what fails.

A student's notebook may launch kernels on a GPU that is not here, print, plot or raise: whatever
is defined before and after still counts.
"""

from __future__ import annotations
import __future__

import ast
import linecache
import sys
import types
from collections.abc import Iterable, Iterator
from typing import Any

MODULE = "solution"


def run_cells(
    cells: Iterable[tuple[str, str]],
    namespace: dict[str, Any],
    skip: Iterable[str] = (),
    module: types.ModuleType | None = None,
) -> Iterator[tuple[str, str | None]]:
    """Run ``(name, source)`` cells. Yields (name, None) before a cell and (name, what went wrong)
    for the first statement in it that failed. ``namespace`` holds after every cell what is defined
    so far; ``module`` is where they run."""
    module = module or types.ModuleType(MODULE)
    sys.modules[MODULE] = module
    module.__dict__.update(namespace)
    module.__dict__["__name__"] = "__main__"
    skipped, flags = set(skip), 0
    for name, source in cells:
        yield name, None
        if name in skipped:
            yield name, "it did not come to an end, so it was left out"
            continue
        error, flags = _run_cell(name, source, module.__dict__, flags)
        namespace.update(module.__dict__)
        if error:
            yield name, error


def _run_cell(name: str, source: str, namespace: dict, flags: int) -> tuple[str, int]:
    filename = f"<{name}>"
    # Triton reads a kernel's source through inspect, which asks linecache.
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    try:
        body = ast.parse(_python(source), filename).body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = getattr(error, "lineno", None)
        where = f" at line {line}" if line else ""
        return f"it does not parse{where}: {getattr(error, 'msg', error)}", flags
    first = ""
    for statement in body:
        if isinstance(statement, ast.ImportFrom) and statement.module == "__future__":
            for alias in statement.names:
                feature = getattr(__future__, alias.name, None)
                flags |= getattr(feature, "compiler_flag", 0)
            continue
        try:
            module = ast.Module([statement], [])
            exec(compile(module, filename, "exec", flags=flags, dont_inherit=True), namespace)
        except BaseException as error:  # SystemExit and KeyboardInterrupt end no submission
            said = " ".join(_text(error).split())[:300]
            what = type(error).__name__ + (f": {said}" if said else "")
            first = first or f"line {statement.lineno} stopped with {what}"
    return first, flags


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except BaseException:  # the student's own exception class
        return ""


def _python(source: str) -> str:
    """Plain Python: a line with IPython's ``%magic`` or ``!command`` becomes a comment, so that all
    other lines keep their numbers."""
    lines = source.split("\n")
    if any(line.lstrip().startswith(("%", "!")) for line in lines):
        try:
            ast.parse(source)
        except SyntaxError:
            lines = [
                "#" + line
                if line.startswith(("%", "!"))
                else line.replace(line.lstrip(), "pass  #" + line.lstrip())
                if line.lstrip().startswith(("%", "!"))
                else line
                for line in lines
            ]
    return "\n".join(lines)
