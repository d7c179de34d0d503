"""Stress of grading, for ``make stress`` and not for CI: minutes, and every core.

    python -m tests.stress_grading class 200     a class of right, wrong and hostile work
    python -m tests.stress_grading kill 20       kill -9 at random moments, then equal exports
    python -m tests.stress_grading scheduler 12  two Dask workers, one killed on the way

Each prints what it saw and ends with status 1 where something is not as it must be.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.grading_course import CHECKOUT, make_course
from tests.sample_class import answers, solutions, write

NAME = "02_vector_add"
HOSTILE = sorted((CHECKOUT / "tests" / "submissions" / "hostile").glob("*.py"))


def fill(course: Path, number: int, hostile: bool = True) -> dict[str, float]:
    """``number`` submissions in turn right, wrong and hostile. Returns points where they are known:
    full for right work, and for hostile work what the other exercises are worth at most."""
    right = itertools.cycle(solutions("right", "02.add").items())
    wrong = itertools.cycle(solutions("wrong", "02.add").items())
    attacks = itertools.cycle(HOSTILE)
    base = {
        "solution-02-fma_relu": solutions("right", "02.fma_relu")["plain"],
        "solution-02-quiz": answers(NAME),
    }
    known = {}
    for i in range(number):
        kind = ("right", "hostile", "wrong", "hostile")[i % 4]
        if kind == "hostile" and not hostile:
            kind = "right"
        if kind == "hostile":
            path = next(attacks)
            name, text = path.stem, path.read_text()
        else:
            name, text = next(right if kind == "right" else wrong)
        student = f"{kind}_{i:03}_{name}"[:60]
        write(course, student, NAME, base | {"solution-02-add": text})
        if kind == "right":
            known[student] = 22.0
    return known


def command(course: Path, *options: str) -> list[str]:
    return [sys.executable, "-m", "autograder", "grade", "02", "--course", str(course), *options]


def export(course: Path) -> bytes:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = os.environ | {"PATH": path, "PYTHONPATH": str(CHECKOUT)}
    subprocess.run(
        ["nbgrader", "export", "--to", "grades.csv"],
        cwd=course,
        env=environment,
        check=True,
        capture_output=True,
    )
    return (course / "grades.csv").read_bytes()


def stress_class(root: Path, number: int) -> list[str]:
    course = make_course(root / "class", NAME)
    known = fill(course, number)
    start = time.perf_counter()
    output = root / "out.json"
    journal = course / ".grading" / NAME / "journal.jsonl"
    with open(output, "wb") as file:
        grader = subprocess.Popen(command(course, "--json"), cwd=CHECKOUT, stdout=file)
    curve = _memory(grader, journal, number)
    result = json.loads(output.read_text())
    seconds = time.perf_counter() - start
    rows = {row["student"]: row for row in result["submissions"]}
    faults = [f"{len(rows)} of {number} graded"] if len(rows) != number else []
    faults += [
        f"{s}: {rows[s]['points']} of {p}" for s, p in known.items() if rows[s]["points"] != p
    ]
    for student, row in rows.items():
        if student.startswith("hostile") and row["exercises"]["02.add"]["points"]:
            faults.append(f"{student} earned {row['exercises']['02.add']['points']}")
    print(f"{number} submissions in {seconds:.0f} s; resident memory of the driver (graded: MB):")
    print("  ".join(f"{graded}: {size >> 20}" for graded, size in curve.items()))
    # What it keeps of a submission is its record: points, and the feedback page's text and picture.
    kept = journal.stat().st_size
    early, late = (max(s for g, s in curve.items() if (g > number / 2) == half) for half in (0, 1))
    print(f"second half against first: {(late - early) >> 20} MB more; records: {kept >> 20} MB")
    if late - early > 2 * kept + (16 << 20):
        faults.append("the driver's memory grows by more than its records")
    return faults


def _memory(process: subprocess.Popen, journal: Path, number: int) -> dict[int, int]:
    """Submissions graded so far → resident bytes of a child, about twenty times; waits for it."""
    curve, step = {}, max(1, number // 20)
    while process.poll() is None:
        done = journal.read_bytes().count(b'"event": "graded"') if journal.exists() else 0
        if done // step * step not in curve:
            pages = Path(f"/proc/{process.pid}/statm").read_text().split()
            if len(pages) > 1:
                curve[done // step * step] = int(pages[1]) * os.sysconf("SC_PAGE_SIZE")
        time.sleep(0.1)
    return curve


def stress_kill(root: Path, times: int) -> list[str]:
    empty = make_course(root / "empty", NAME)
    fill(empty, 12, hostile=False)
    (empty / ".secret").write_bytes(bytes(range(32)))
    whole, killed = root / "whole", root / "killed"
    shutil.copytree(empty, whole)
    shutil.copytree(empty, killed)
    start = time.perf_counter()
    subprocess.run(command(whole, "--json"), cwd=CHECKOUT, check=True, capture_output=True)
    seconds = time.perf_counter() - start
    generator = random.Random(20)
    for number in range(times):
        grader = subprocess.Popen(
            command(killed), cwd=CHECKOUT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        time.sleep(generator.uniform(0.1, 1.1) * seconds)
        grader.send_signal(signal.SIGKILL)
        grader.wait()
        journal = killed / ".grading" / NAME / "journal.jsonl"
        lines = journal.read_bytes().count(b"\n") if journal.exists() else 0
        print(f"kill {number + 1}: {lines} lines in the journal", flush=True)
        if lines >= 24:  # all done: begin again with a fresh copy
            shutil.rmtree(killed)
            shutil.copytree(empty, killed)
    subprocess.run(command(killed, "--json"), cwd=CHECKOUT, check=True, capture_output=True)
    return [] if export(killed) == export(whole) else ["the exports differ"]


def stress_scheduler(root: Path, number: int) -> list[str]:
    course = make_course(root / "remote", NAME)
    known = fill(course, number, hostile=False)
    address = "tcp://127.0.0.1:18786"
    dask = [str(Path(sys.executable).parent / "dask")]
    environment = os.environ | {"PYTHONPATH": str(CHECKOUT)}
    options = {"env": environment, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    scheduler = subprocess.Popen(
        [*dask, "scheduler", "--host", "127.0.0.1", "--port", "18786", "--no-dashboard"], **options
    )
    workers = [
        subprocess.Popen([*dask, "worker", address, "--nthreads", "1", "--no-nanny"], **options)
        for _ in range(2)
    ]
    try:
        time.sleep(15)
        grader = subprocess.Popen(
            command(course, "--json", "--scheduler", address), cwd=CHECKOUT, stdout=subprocess.PIPE
        )
        journal = course / ".grading" / NAME / "journal.jsonl"
        while not journal.exists() or journal.read_bytes().count(b"\n") < 4:
            time.sleep(0.2)
        workers[0].send_signal(signal.SIGKILL)
        print("killed a worker", flush=True)
        output, _ = grader.communicate(timeout=1200)
    finally:
        for process in (*workers, scheduler):
            process.kill()
            process.wait()
    rows = {row["student"]: row for row in json.loads(output)["submissions"]}
    faults = [f"{len(rows)} of {number} graded"] if len(rows) != number else []
    return faults + [f"{s}: {rows[s]}" for s, p in known.items() if rows[s]["points"] != p]


def main(arguments: list[str] | None = None) -> int:
    names = {"class": (stress_class, 200), "kill": (stress_kill, 20)}
    names["scheduler"] = (stress_scheduler, 12)
    parser = argparse.ArgumentParser(
        prog="python -m tests.stress_grading", description="Minutes, and every core."
    )
    parser.add_argument("name", nargs="?", choices=names, help="one of them (default: all)")
    parser.add_argument("number", nargs="?", type=int, help="how many students or kills")
    options = parser.parse_args(arguments)
    status = 0
    for name in [options.name] if options.name else names:
        run, usual = names[name]
        number = options.number or usual
        print(f"== {name} {number}", flush=True)
        with tempfile.TemporaryDirectory() as folder:
            faults = run(Path(folder), number)
        print("\n".join(faults) or "as it must be", flush=True)
        status |= bool(faults)
    return status


if __name__ == "__main__":
    sys.exit(main())
