"""How long a student waits: the first check in a fresh notebook, and the next one.

Runs a notebook of four cells in a fresh kernel, as JupyterLab would, and reports the seconds of
each: imports (the student's own), solution, first check, second check. Limits: 5 s and 1.5 s.
"""

from __future__ import annotations

import os
import statistics
import time
from pathlib import Path

import nbformat
from nbclient import NotebookClient

ROOT = Path(__file__).resolve().parents[2]
ROUNDS = 3
CELLS = (
    "import torch, triton, triton.language as tl\nfrom autograder import check",
    (ROOT / "tests" / "submissions" / "right" / "02_add_plain.py").read_text(),
    'check("02.add", add)',
    'check("02.add", add)',
)


def _once() -> list[float]:
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(c) for c in CELLS])
    client = NotebookClient(notebook, timeout=600, kernel_name="python3")
    seconds = []
    with client.setup_kernel():
        for index, cell in enumerate(notebook.cells):
            start = time.perf_counter()
            client.execute_cell(cell, index)
            seconds.append(time.perf_counter() - start)
    return seconds


def main() -> None:
    os.environ["PYTHONPATH"] = str(ROOT)
    rows = [_once() for _ in range(ROUNDS)]
    names = ("imports", "solution", "first check", "next check")
    for name, column in zip(names, zip(*rows, strict=True), strict=True):
        middle = statistics.median(column)
        print(f"{name:12} {middle:6.2f} s  ({min(column):.2f}…{max(column):.2f})")


if __name__ == "__main__":
    main()
