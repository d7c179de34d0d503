"""A lesson's code cells, run one after the other as a page of Jupyter would, in a fresh process."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

from course.build import notebooks_of
from tests.figure_looks import assert_readable

ROOT = Path(__file__).resolve().parent.parent

_PAGE = """
import ast, linecache, os, sys
sys.path.insert(0, os.getcwd())
names = {"__name__": "__main__"}


def cell(number, source):
    # A page per cell, so that getsource and the lines in findings work as in a notebook.
    file = f"cell {number}"
    linecache.cache[file] = (len(source), None, source.splitlines(True), file)
    *most, last = ast.parse(source).body
    exec(compile(ast.Module(most, []), file, "exec"), names)
    if isinstance(last, ast.Expr):  # shown, as Jupyter shows it, unless it is None
        exec(compile(ast.Interactive([last]), file, "single"), names)
    else:
        exec(compile(ast.Module([last], []), file, "exec"), names)


"""


def cells_of(name: str, complete: bool = False) -> list[str]:
    """The code cells of the lesson ``name``: with its holes, or as its solution page has them."""
    built = notebooks_of(ROOT / f"course/lessons/{name}.py")
    path = f"solutions/{name}_lesson.ipynb" if complete else f"notebooks/{name}.ipynb"
    return [cell.source for cell in built[path].cells if cell.cell_type == "code"]


def shown(
    folder: Path,
    cells: Iterable[str],
    before: str = "",
    skip: Callable[[str], bool] = lambda source: False,
) -> subprocess.CompletedProcess:
    """What the cells print and show, as text; ``before`` is run first, ``skip`` leaves cells out.

    Fails where a cell raises.
    """
    calls = [f"cell({i}, {source!r})" for i, source in enumerate(cells) if not skip(source)]
    page = folder / "lesson.py"
    page.write_text("\n".join((_PAGE + before, *calls)), encoding="utf-8")
    done = subprocess.run([sys.executable, page], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr[-2000:]
    return done


def words_of(figure) -> list[str]:
    """All that a figure says, text by text; fails where a text cannot be read in both themes."""
    assert_readable(figure)
    texts = figure.findobj(lambda a: hasattr(a, "get_text"))
    return [t.get_text() for t in texts if t.get_text()]


def said_in(figure) -> str:
    """The same in one line."""
    return " ".join(words_of(figure))


def names_are_defined(script: str, folder: Path) -> None:
    """Fails with ruff's words where a script uses a name that it does not define."""
    page = folder / "cells.py"
    page.write_text(script, encoding="utf-8")
    undefined = ["ruff", "check", "--isolated", "--select", "F821", str(page)]
    done = subprocess.run([sys.executable, "-m", *undefined], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
