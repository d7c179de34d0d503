"""``python -m tests.others [--tutorials DIR] [--only WORD] [--markdown]``: see the package."""

from __future__ import annotations

import argparse
import importlib
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path

import torch
import triton
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from autograder import interpret
from autograder.records import CouldNotCheck, Finding, Rejected
from tests.others.cases import Case

# collection -> distribution on PyPI whose version is printed
COLLECTIONS = {
    "liger": "liger-kernel",
    "tutorials": "",
    "fla": "fla-core",
    "gems": "flag-gems",
}


@dataclass
class Outcome:
    """How one kernel of one case went: "agrees", "differs" or "does not run", and why."""

    collection: str
    case: str
    kernel: str
    file: str
    status: str
    reason: str = ""
    error: float = 0.0  # largest, in units of the tolerance
    findings: list[Finding] = field(default_factory=list)


def tried(collection: str, case: Case) -> list[Outcome]:
    """Run one case; every kernel that it names gets an outcome."""
    reason, stopped, pairs = "", "", []
    with interpret() as record:
        try:
            pairs = case.call()
        except CouldNotCheck as error:
            reason = str(error)
            stopped = reason.partition(":")[0]
        except Rejected as error:
            reason, stopped = str(error), error.kernel
        except Exception as error:  # the host function itself, or a fault of ours: named as it is
            place = error.__traceback__
            while place.tb_next:
                place = place.tb_next
            file = Path(place.tb_frame.f_code.co_filename).name
            reason = f"{type(error).__name__}: {error} ({file}:{place.tb_lineno})"
    ran = dict.fromkeys(kernel.name for kernel, _, _ in record.launches)
    worst = max(pairs, key=lambda p: p.error, default=None)
    outcomes = []
    names = {**ran, **dict.fromkeys(case.kernels)} | ({stopped: None} if stopped else {})
    for name in names:
        file = next((k.file for k, _, _ in record.launches if k.name == name), "")
        error = worst.error if worst else 0.0
        outcome = Outcome(collection, case.name, name, file, "agrees", error=error)
        outcome.findings = [f for f in record.findings if f.kernel == name]
        if name not in ran:
            outcome.status = "does not run"
            outcome.reason = reason or f"never launched; launched: {', '.join(ran)}"
        elif reason or worst is None:
            outcome.status, outcome.reason = "not compared", reason
        elif worst.error > 1:
            outcome.status = "differs"
            outcome.reason = f"{worst.name}: {worst.error:.3g} times the tolerance"
        outcomes.append(outcome)
    return outcomes


def collected(name: str, tutorials: Path | None) -> list[Case]:
    """The cases of a collection; none where it is not installed."""
    with interpret():  # modules that ask for a card while they are imported find one
        module = importlib.import_module(f"tests.others.{name}")
        if name == "tutorials":
            return module.cases(tutorials) if tutorials else []
        return module.cases()


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.others")
    parser.add_argument("--tutorials", type=Path, help="python/tutorials of a Triton checkout")
    parser.add_argument("--only", default="", help="cases whose collection or name has this word")
    parser.add_argument("--markdown", action="store_true", help="print the table for the docs")
    options = parser.parse_args(arguments)
    console = Console(stderr=True)
    todo, absent = [], []
    for name in COLLECTIONS:
        if options.only.split("/")[0] in COLLECTIONS and name != options.only.split("/")[0]:
            continue
        try:
            cases = collected(name, options.tutorials)
        except ModuleNotFoundError as error:
            absent.append(f"{name} ({error})")
            continue
        word = options.only.partition("/")[2] or options.only
        todo += [(name, c) for c in cases if word in f"{name} {c.name} {' '.join(c.kernels)}"]
    outcomes: list[Outcome] = []
    with Progress(console=console) as progress:
        task = progress.add_task("public kernels", total=len(todo))
        for name, case in todo:
            progress.update(task, description=f"{name}: {case.name}"[:60])
            start = time.perf_counter()
            outcomes += tried(name, case)
            took = time.perf_counter() - start
            if took > 20:
                progress.console.print(f"{name}: {case.name} took {took:.0f} s")
            progress.advance(task)
    for text in absent:
        console.print(f"not installed: {text}")
    return told(outcomes, options.markdown, console)


def told(outcomes: list[Outcome], markdown: bool, console: Console) -> int:
    """Print the table; the exit status is 0 if 95 % ran and all that ran agree."""
    rows = best(outcomes)
    if markdown:
        print("| collection | kernel | through | result | largest error / tolerance | findings |")
        print("|---|---|---|---|---|---|")
    table = Table("collection", "kernel", "through", "result", "error", "findings")
    for o in rows:
        error = f"{o.error:.2f}" if o.status in ("agrees", "differs") else ""
        found = ", ".join(dict.fromkeys(f.kind for f in o.findings))
        cells = [o.collection, o.kernel, o.case, o.status, error, found]
        if markdown:
            cells[3] += f": {o.reason}" if o.reason else ""
            print("| " + " | ".join(c.replace("|", "\\|") for c in cells) + " |")
        table.add_row(*cells)
    if not markdown:
        Console().print(table)
    for o in rows:
        if o.reason:
            print(f"{o.collection} {o.kernel} ({o.case}): {o.status}: {o.reason}", file=sys.stderr)
        for f in o.findings:
            print(
                f"{o.collection} {o.kernel} ({o.case}) line {f.line}: {f.message}", file=sys.stderr
            )
    ran = [o for o in rows if o.status in ("agrees", "differs")]
    agree = [o for o in ran if o.status == "agrees"]
    versions = [f"torch {torch.__version__}", f"triton {triton.__version__}"]
    for name, package in COLLECTIONS.items():
        if package and any(o.collection == name for o in rows):
            versions.append(f"{package} {metadata.version(package)}")
    print(f"{len(rows)} kernels, {len(ran)} run, {len(agree)} agree ({', '.join(versions)})")
    return 0 if rows and len(ran) >= 0.95 * len(rows) and agree == ran else 1


def best(outcomes: list[Outcome]) -> list[Outcome]:
    """One outcome a kernel: the worst of the cases that it is in, with the findings of all."""
    order = ("agrees", "not compared", "differs", "does not run")
    rows: dict[tuple, Outcome] = {}
    for new in outcomes:
        place = new.collection, new.file, new.kernel
        old = rows.get(place)
        if old is None:
            rows[place] = new
            continue
        key = lambda o: (order.index(o.status), o.error)  # noqa: E731
        worse = max(old, new, key=key)
        worse.findings = [*old.findings, *new.findings]
        rows[place] = worse
    return list(rows.values())


if __name__ == "__main__":
    sys.exit(main())
