"""``make versions``: the tests of the interpreter under every Triton that is supported.

Each version gets an environment of its own, outside the checkout: that Triton alone, in front of
the packages of the Python that runs this. A Triton needs no particular PyTorch as long as nothing
is compiled by ``torch.compile``, so all share one, the installed. Environments are kept and used
again: they lie under ``$XDG_CACHE_HOME`` (``~/.cache``), 0.7 GB each.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

ROOT = Path(__file__).resolve().parent.parent
VERSIONS = ("3.6.0", "3.7.1", "3.8.0", "3.9.0")
# What meets Triton: lowering, the interpreter, the recorder, findings, the units, the public face.
TESTS = (
    *("lower", "hook", "interpreter", "interpreting", "findings", "compile", "compile_errors"),
    *(f"operations_{which}" for which in ("blocks", "casts", "elements", "language")),
    *("record", "record_host", "serial", "l2", "check_call", "styles"),
    *(f"unit{number:02}" for number in (2, 3, 4, 5, 6, 8, 9)),
    *(f"lesson{number:02}" for number in (3, 5, 6, 7, 8, 9, 10)),
    "audit",
)


@dataclass(frozen=True)
class Outcome:
    """What pytest counted under one Triton, by file; ``failures`` are names of tests."""

    version: str
    passed: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)
    failures: tuple[str, ...] = ()
    seconds: float = 0.0
    problem: str = ""  # why there is no count

    @property
    def green(self) -> bool:
        return bool(self.passed) and not self.failures and not self.problem

    def of(self, file: str) -> str:
        """A cell of the table: tests passed, and what else became of some."""
        failed = sum(f.startswith(f"{file}::") for f in self.failures)
        words = [f"{self.passed[file]}", *([f"{failed} failed"] if failed else [])]
        return ", ".join(words + [f"{n} skipped" for n in [self.skipped[file]] if n])


def home() -> Path:
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "triton-course" / "versions"


def environment(version: str) -> Path:
    """The Python of an environment with this Triton, made if it is not there yet.

    Raises RuntimeError, one sentence, where it cannot be made.
    """
    python = f"py{sys.version_info.major}{sys.version_info.minor}"
    directory = home() / f"triton-{version}-{python}"
    executable = directory / "bin" / "python"
    if (directory / "complete").exists():
        return executable
    shutil.rmtree(directory, ignore_errors=True)
    _run([sys.executable, "-m", "venv", "--without-pip", str(directory)], f"venv of {version}")
    ask = "import sysconfig; print(sysconfig.get_path('purelib'))"
    own = Path(_run([str(executable), "-c", ask], f"venv of {version}").strip())
    shared = dict.fromkeys(sysconfig.get_path(kind) for kind in ("purelib", "platlib"))
    (own / "shared.pth").write_text("".join(f"{path}\n" for path in shared))
    install = ["-m", "pip", "install", "--quiet", "--no-deps", "--disable-pip-version-check"]
    _run(
        [sys.executable, *install, "--target", str(own), f"triton=={version}"],
        f"installing triton {version}",
    )
    (directory / "complete").touch()
    return executable


def _run(command: Sequence[str], what: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        said = (done.stderr.strip() or done.stdout.strip()).splitlines()
        raise RuntimeError(f"{what} failed: {said[-1] if said else done.returncode}")
    return done.stdout


def tested(
    version: str, jobs: int, select: str, files: Sequence[str], told: Callable[[float], None]
) -> Outcome:
    """Run the tests under one Triton; ``told`` hears of the share that is done."""
    start = time.monotonic()
    try:
        executable = environment(version)
        found = _run([str(executable), "-c", "import triton; print(triton.__version__)"], "import")
    except RuntimeError as error:
        return Outcome(version, problem=str(error))
    if found.strip() != version:
        return Outcome(version, problem=f"the environment has triton {found.strip()}")
    with tempfile.TemporaryDirectory() as scratch:
        report = Path(scratch) / "report.xml"
        command = [str(executable), "-m", "pytest", "-n", str(jobs), "-p", "no:cacheprovider"]
        command += [f"--junitxml={report}", *(["-k", select] if select else [])]
        command += [str(ROOT / "tests" / f"test_{name}.py") for name in files]
        quiet = {"TRITON_CACHE_DIR": str(Path(scratch) / "cache"), "PYTHONDONTWRITEBYTECODE": "1"}
        with subprocess.Popen(
            command,
            cwd=ROOT,
            env=os.environ | quiet,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as process:
            lines = []
            for line in process.stdout:
                lines.append(line.rstrip())
                if share := re.search(r"\[ *(\d+)%\]$", line.rstrip()):
                    told(int(share[1]) / 100)
        if not report.exists():
            return Outcome(version, problem=f"pytest: {(lines or ['no output'])[-1]}")
        return _read(version, report, time.monotonic() - start)


def _read(version: str, report: Path, seconds: float) -> Outcome:
    cases = list(ElementTree.parse(report).iter("testcase"))
    passed, skipped, failures = Counter(), Counter(), []
    for case in cases:
        # A file that could not be imported has its name where a test has its own.
        file = (case.get("classname") or case.get("name")).split(".")[1].removeprefix("test_")
        if case.find("failure") is not None or case.find("error") is not None:
            failures.append(f"{file}::{case.get('name')}")
        else:
            (passed if case.find("skipped") is None else skipped)[file] += 1
    return Outcome(version, passed, skipped, tuple(failures), seconds)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.versions", description=__doc__)
    parser.add_argument("versions", nargs="*", default=VERSIONS, help="default: all")
    parser.add_argument("-n", "--jobs", type=int, default=2, help="test processes (default 2)")
    parser.add_argument("-k", "--select", default="", help="pytest's -k")
    parser.add_argument("--files", nargs="*", default=TESTS, help="names of test files")
    options = parser.parse_args(arguments)
    columns = TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:>3.0f} %")
    outcomes = []
    with Progress(*columns, TimeElapsedColumn(), console=Console(stderr=True)) as progress:
        for version in options.versions:
            task = progress.add_task(f"triton {version}", total=1.0)
            told = lambda share, task=task: progress.update(task, completed=share)  # noqa: E731
            outcomes.append(tested(version, options.jobs, options.select, options.files, told))
            told(1.0)
    table = Table("passed", *(f"Triton {o.version}" for o in outcomes))
    for file in options.files:
        table.add_row(file, *(o.of(file) for o in outcomes))
    table.add_section()
    table.add_row("all", *(str(o.passed.total()) for o in outcomes))
    table.add_row("time", *(f"{o.seconds:.0f} s" for o in outcomes))
    table.add_row("", *("green" if o.green else "red" for o in outcomes))
    Console(width=100).print(table)
    for o in outcomes:
        for name in (*((o.problem,) if o.problem else ()), *o.failures):
            print(f"{o.version}: {name}")
    return 0 if outcomes and all(o.green for o in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
