"""On a card: the GPU cells of assignments and lessons, run as a script, solutions in place.

`python -m tests.device.cells 03_softmax lessons/05_matmul` makes a script of each of these texts,
runs it in this process, and prints what a cell shows. Of an assignment: imports, solutions, GPU
cells; no checks, no quiz. Of a lesson: the statements that ask for a card, and those that define
what they name. A text that fails does not keep the others from running; the exit status is 1 then.
Needs a GPU; CI only makes the scripts.
"""

from __future__ import annotations

import ast
import re
import runpy
import sys
import tempfile
import time
import traceback
from pathlib import Path

import torch

from lab_setup.roofline.extract import needed, statements_of

COURSE = Path(__file__).parents[2] / "course"


def script_of(text: str) -> str:
    """The code cells of a text as one script; a cell's last expression is printed."""
    parts = []
    for header, body in _cells(text):
        if "[markdown]" in header or "check=" in header or "quiz=" in header:
            continue
        if "inspect_call(" in body and "import" not in body:
            continue  # a place to experiment without a card
        last = ast.parse(body).body[-1]
        if isinstance(last, ast.Expr) and not body.rstrip().endswith(")"):
            lines = body.rstrip().splitlines()
            lines[last.lineno - 1] = f"print({lines[last.lineno - 1]}, flush=True)"
            body = "\n".join(lines) + "\n"
        parts.append(body)
    return "\n".join(parts)


def script_of_lesson(text: str) -> str:
    """What of a lesson wants a card, and the last definition before it of every name it uses."""
    code = "\n".join(body for header, body in _cells(text) if "[markdown]" not in header)
    statements = statements_of(code)
    wanted = [i for i, (statement, _) in enumerate(statements) if _asks_for_a_card(statement)]
    sources = needed(statements, wanted)
    parts = [f"print({s}, flush=True)" if s.startswith("measure(") else s for s in sources]
    return "\n\n\n".join(parts) + "\n"


def _cells(text: str) -> list[tuple[str, str]]:
    """Header and body of every cell."""
    parts = re.split(r"^# %%(.*)\n", text, flags=re.M)[1:]
    return list(zip(parts[::2], parts[1::2], strict=True))


def _asks_for_a_card(statement: ast.stmt) -> bool:
    """`if gpu(…):`, `measure(…)`, and the line that prints the versions."""
    called = {
        node.func.id
        for node in ast.walk(getattr(statement, "test", statement))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    asking = isinstance(statement, ast.If | ast.Expr)
    return asking and bool(called & {"gpu", "measure", "versions"})


def main(names: list[str]) -> int:
    if not torch.cuda.is_available():
        print("No card here: these cells would only say what they expect.")
        return 2
    failed = []
    for name in names:
        print(f"== {name}", flush=True)
        start = time.perf_counter()
        with tempfile.TemporaryDirectory() as folder:
            lesson = name.startswith("lessons/")
            text = (COURSE / f"{name if lesson else f'assignments/{name}'}.py").read_text("utf-8")
            script = script_of_lesson(text) if lesson else script_of(text)
            path = Path(folder) / "cells.py"  # a file, because Triton reads a kernel's source
            path.write_text(script, encoding="utf-8")
            try:
                runpy.run_path(str(path), run_name="cells")
            except Exception:
                traceback.print_exc(file=sys.stdout)
                failed.append(name)
        print(f"== {name} took {time.perf_counter() - start:.0f} s", flush=True)
    if failed:
        print(f"failed: {', '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
