"""Throughput of grading, one core each: ours against stock nbgrader with tests in the kernel.

The same honest notebooks of unit 02. Stock is nbgrader as it comes: a kernel a notebook, its check
cells assert that the check passed. Ours is ``python -m autograder grade``, sandbox and hidden cases
included, start-up counted. ``python -m tests.bench grading`` grades 24; ``GRADING_BENCH=6`` fewer.
Besides the time that passes, processor seconds of all processes: on a machine that does other work
as well, theirs is the ratio to look at. Ours runs before and after stock, because a machine's speed
drifts over minutes, and the mean counts. Both find Python's bytecode written, as everywhere after
the first run, and none of the class's kernels compiled.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
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
_SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER of linux/prctl.h
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


def _run(command: list[str], cwd: Path) -> tuple[float, float]:
    """Seconds that ``command`` takes on one core: that pass, and of processor time."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = os.environ | {"PATH": path, "PYTHONPATH": str(CHECKOUT)}
    environment["AUTOGRADER_CACHE_DIR"] = str(cwd.with_suffix(".cache"))  # a class that is new here
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)  # processes whose parent ended count as well
    start, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        ["taskset", "-c", CORE, *command], cwd=cwd, env=environment, capture_output=True, text=True
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stderr[-2000:]}")
    passed = time.perf_counter() - start
    with contextlib.suppress(ChildProcessError):
        while True:
            os.wait()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return passed, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        course = make_course(Path(folder) / "ours", NAME)
        _class(course)
        stock, again = _stock(course), course.with_name("again")
        shutil.copytree(course, again)
        _run([sys.executable, "-m", "compileall", "-q", "autograder", "lab_setup"], CHECKOUT)
        grade = [sys.executable, "-m", "autograder", "grade", "02", "--workers", "1"]
        before = _run(grade, course)
        _print("ours: ", *before)
        theirs = _run(["nbgrader", "autograde", NAME], stock)
        _print("stock:", *theirs)
        after = _run(grade, again)
        _print("ours: ", *after)
        passed, used = (2 * t / sum(ours) for t, *ours in zip(theirs, before, after, strict=True))
        print(f"ratio: {passed:.1f}, of processor time {used:.1f}")


def _print(who: str, passed: float, used: float) -> None:
    each = f"{passed / STUDENTS:.2f} s each"
    print(f"{who} {passed:6.1f} s for {STUDENTS} notebooks, {each}; {used:.1f} s of processor time")


if __name__ == "__main__":
    main()
