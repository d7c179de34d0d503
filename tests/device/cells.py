"""On a card: the GPU cells of assignments, run as a script with the solutions in place.

`python -m tests.device.cells 03_softmax 04_norms` makes a script of each of these texts (imports,
solutions, GPU cells; no checks, no quiz), runs it in this process, and prints what a cell shows.
Needs a GPU; nothing here runs in CI.
"""

from __future__ import annotations

import ast
import re
import runpy
import sys
import tempfile
from pathlib import Path

import torch

TEXTS = Path(__file__).parents[2] / "course" / "assignments"


def script_of(text: str) -> str:
    """The code cells of a text as one script; a cell's last expression is printed."""
    cells = re.split(r"^# %%(.*)\n", text, flags=re.M)[1:]
    parts = []
    for header, body in zip(cells[::2], cells[1::2], strict=True):
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


def main(names: list[str]) -> int:
    if not torch.cuda.is_available():
        print("No card here: these cells would only say what they expect.")
        return 2
    for name in names:
        print(f"== {name}", flush=True)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"{name}.py"  # a file, because Triton reads a kernel's source
            path.write_text(script_of((TEXTS / f"{name}.py").read_text()), encoding="utf-8")
            runpy.run_path(str(path), run_name="cells")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
