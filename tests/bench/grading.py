"""Throughput of grading, one core each: ours against stock nbgrader with tests in the kernel.

The same honest notebooks of unit 02. Stock is nbgrader as it comes: a kernel a notebook, its check
cells assert that the check passed. Ours is ``python -m autograder grade``, sandbox and hidden cases
included, start-up counted. ``python -m tests.bench grading`` grades 24; ``GRADING_BENCH=6`` fewer.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import nbformat

from tests.grading_course import CHECKOUT, make_course
from tests.sample_class import answers, solutions, write

NAME = "02_vector_add"
STUDENTS = int(os.environ.get("GRADING_BENCH", "24"))
CORE = str(max(os.sched_getaffinity(0)))
STOCK = 'report = check("{id}", {name})\nassert report.verdict.verdict == "pass", report'


def _class(course: Path) -> None:
    add, relu = (list(solutions("right", f"02.{name}").values()) for name in ("add", "fma_relu"))
    for number in range(STUDENTS):
        cells = {
            "solution-02-add": f"# student {number}\n" + add[number % len(add)],
            "solution-02-fma_relu": f"# student {number}\n" + relu[number % len(relu)],
            "solution-02-quiz": answers(NAME),
        }
        write(course, f"student{number:02}", NAME, cells)


def _stock(course: Path) -> Path:
    """A course with nbgrader's defaults and the check in the kernel."""
    stock = course.with_name("stock")
    shutil.copytree(course, stock)
    (stock / "nbgrader_config.py").write_text(
        "c = get_config()\nc.CourseDirectory.course_id = 'stock'\nc.Execute.timeout = 600\n"
    )
    (stock / "gradebook.db").unlink()
    for path in [
        stock / "source" / NAME / f"{NAME}.ipynb",
        *stock.glob(f"submitted/*/*/{NAME}.ipynb"),
    ]:
        notebook = nbformat.read(path, as_version=4)
        for cell in notebook.cells:
            grade_id = cell.metadata.get("nbgrader", {}).get("grade_id", "")
            if grade_id in ("check-02-add", "check-02-fma_relu"):
                name = grade_id.removeprefix("check-02-")
                cell.source = STOCK.format(id=f"02.{name}", name=name)
        nbformat.write(notebook, path)
    _run(["nbgrader", "generate_assignment", NAME, "--force"], stock)
    return stock


def _run(command: list[str], cwd: Path) -> float:
    """Seconds that ``command`` takes on one core."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = os.environ | {"PATH": path, "PYTHONPATH": str(CHECKOUT)}
    start = time.perf_counter()
    done = subprocess.run(
        ["taskset", "-c", CORE, *command], cwd=cwd, env=environment, capture_output=True, text=True
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stderr[-2000:]}")
    return time.perf_counter() - start


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        course = make_course(Path(folder) / "ours", NAME)
        _class(course)
        stock = _stock(course)
        ours = _run([sys.executable, "-m", "autograder", "grade", "02", "--workers", "1"], course)
        print(f"ours:  {ours:6.1f} s for {STUDENTS} notebooks, {ours / STUDENTS:.2f} s each")
        theirs = _run(["nbgrader", "autograde", NAME], stock)
        print(f"stock: {theirs:6.1f} s for {STUDENTS} notebooks, {theirs / STUDENTS:.2f} s each")
        print(f"ratio: {theirs / ours:.1f}")


if __name__ == "__main__":
    main()
