"""Right solutions with one mistake put in, made from their syntax tree: the audit's wrong answers.

The rules stand in ``mistakes``. A mistake that changes nothing (``other`` of a lane that is never
stored) is listed in tests/submissions/equivalent.json with its reason, never left out here.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate

from autograder.grading.mistakes import RULES, Spot


@dataclass(frozen=True)
class Mutant:
    """``place`` is "function: the statement as it reads now", which names the mistake."""

    rule: str
    place: str
    aspects: tuple[str, ...]
    source: str


def mutants(source: str) -> list[Mutant]:
    """Every mutant of a solution, in the order of the rules; of equal trees only the first."""
    tree = ast.parse(source)
    seen, found = {ast.dump(tree)}, []
    functions = list(_functions(tree))
    without = not any(map(_is_kernel, functions))
    spots = [pair for f in functions for pair in _inside(f, None if without else _is_kernel(f))]
    for name, aspects, kernel, needs, function in RULES:
        for node, spot in spots:
            if kernel != spot.kernel or needs not in source:
                continue
            for old, new in function(node, spot):
                text = _spliced(source, old, new)
                changed = ast.dump(ast.parse(text))
                if changed not in seen:
                    seen.add(changed)
                    place = f"{spot.function.name}: {_reads(source, spot.statement, old, new)}"
                    text = _aligned(source, text, spot.function)
                    found.append(Mutant(name, place, aspects, text))
    return found


# ---------------------------------------------------------------- places and texts


def _functions(tree: ast.Module) -> Iterator[ast.FunctionDef]:
    for top in tree.body:
        for function in top.body if isinstance(top, ast.ClassDef) else [top]:
            if isinstance(function, ast.FunctionDef):
                yield function


def _is_kernel(function: ast.FunctionDef) -> bool:
    first = function.args.args[0].arg if function.args.args else ""
    return first == "pid" or any("jit" in ast.unparse(d) for d in function.decorator_list)


def _inside(function: ast.FunctionDef, kernel: bool | None) -> Iterator[tuple[ast.AST, Spot]]:
    def walk(node: ast.AST, spot: Spot):
        if isinstance(node, ast.stmt):
            spot = Spot(function, kernel, node, spot.carried)
        yield node, spot
        if isinstance(node, ast.For):
            before = (n for n in ast.walk(function) if getattr(n, "lineno", math.inf) < node.lineno)
            spot = Spot(function, kernel, node, frozenset(_set(before) & _set(ast.walk(node))))
        for child in ast.iter_child_nodes(node):
            yield from walk(child, spot)

    for statement in function.body:
        yield from walk(statement, Spot(function, kernel, statement))


def _set(nodes) -> set[str]:
    return {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}


def _at(source: str, line: int, column: int) -> int:
    """Bytes from the start of the source; ``ast`` counts columns in bytes."""
    return _starts(source)[line - 1] + column


@lru_cache(maxsize=4)
def _starts(source: str) -> list[int]:
    lines = source.splitlines(keepends=True)
    return list(accumulate((len(text.encode()) for text in lines), initial=0))


def _spliced(source: str, old: ast.AST, new: str) -> str:
    start = _at(source, old.lineno, old.col_offset)
    end = _at(source, old.end_lineno, old.end_col_offset)
    data = source.encode()
    return (data[:start] + new.encode() + data[end:]).decode()


def _aligned(source: str, text: str, function: ast.FunctionDef) -> str:
    """What follows the changed function stands in the lines in which it stood: kernels there are
    then the same to Triton, for which a line is part of a kernel."""
    more = text.count("\n") - source.count("\n")
    lines = text.splitlines(keepends=True)
    end = function.end_lineno + more
    if more < 0:
        lines[end:end] = ["\n"] * -more
    while more > 0 and end < len(lines) and not lines[end].strip():
        del lines[end]
        more -= 1
    return "".join(lines)


def _reads(source: str, statement: ast.stmt, old: ast.AST, new: str) -> str:
    """The statement with the change, or its head line where it has a body."""
    text = _spliced(source, old, new)
    start = _at(source, statement.lineno, 0)
    last = statement.body[0] if hasattr(statement, "body") else None
    end = _at(source, last.lineno, 0) if last else _at(source, statement.end_lineno + 1, 0)
    segment = text.encode()[start : end + len(text.encode()) - len(source.encode())].decode()
    segment = re.sub(r"^(\s*)elif", r"\1if", segment)
    tree = ast.parse("if 1:\n" + segment + (" " * 80 + "pass" if last else ""))
    said = ast.unparse(tree.body[0].body).removesuffix("\n    pass").strip()
    return "; ".join(line.strip() for line in said.split("\n"))
