"""Stress of grading, for ``make stress`` and not for CI: minutes, and every core.

    python -m tests.stress_grading class 200     a class of right, wrong and hostile work
    python -m tests.stress_grading kill 20       kill -9 at random moments, then equal exports
    python -m tests.stress_grading scheduler 12  two Dask workers, one killed on the way

Each prints what it saw and ends with status 1 where something is not as it must be.
"""

from __future__ import annotations

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
        kind = ("right", "wrong", "hostile" if hostile else "right")[i % 3]
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
    grader = subprocess.Popen(command(course, "--json"), cwd=CHECKOUT, stdout=subprocess.PIPE)
    peaks = []
    reader_output = root / "out.json"
    with open(reader_output, "wb") as file:
        while True:
            chunk = os.read(grader.stdout.fileno(), 1 << 16)
            if not chunk:
                break
            file.write(chunk)
    peaks.append(_peak(grader))
    result = json.loads(reader_output.read_text())
    seconds = time.perf_counter() - start
    rows = {row["student"]: row for row in result["submissions"]}
    faults = [f"{len(rows)} of {number} graded"] if len(rows) != number else []
    faults += [
        f"{s}: {rows[s]['points']} of {p}" for s, p in known.items() if rows[s]["points"] != p
    ]
    for student, row in rows.items():
        if student.startswith("hostile") and row["exercises"]["02.add"]["points"]:
            faults.append(f"{student} earned {row['exercises']['02.add']['points']}")
    print(f"{number} submissions in {seconds:.0f} s, peak of the driver {peaks[0] >> 20} MB")
    return faults


def _peak(process: subprocess.Popen) -> int:
    """Peak resident bytes of a child; waits for it."""
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return usage.ru_maxrss * 1024


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


def main(arguments: list[str]) -> int:
    names = {"class": (stress_class, 200), "kill": (stress_kill, 20)}
    names["scheduler"] = (stress_scheduler, 12)
    chosen = [(arguments[0], int(arguments[1]))] if len(arguments) == 2 else None
    if chosen is None and arguments:
        chosen = [(name, names[name][1]) for name in arguments if name in names]
    status = 0
    for name, number in chosen or [(name, default) for name, (_, default) in names.items()]:
        print(f"== {name} {number}", flush=True)
        with tempfile.TemporaryDirectory() as folder:
            faults = names[name][0](Path(folder), number)
        print("\n".join(faults) or "as it must be", flush=True)
        status |= bool(faults)
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
