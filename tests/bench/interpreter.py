"""The IR interpreter against Triton's own, or against ours of a commit before, kernel by kernel.

Ours checks values, bounds, races and traffic with one program order and one poison; Triton's
(TRITON_INTERPRET=1) only computes. Each has a child process, and they run in turn, on the same
inputs, so that a slow spell of the machine meets both. What counts is processor time, which other
work on the machine hardly changes. `make bench` prints the ratios, and
`python -m tests.bench.interpreter --before COMMIT` whether a change has made it slower.
"""

from __future__ import annotations

import argparse
import io
import json
import math
import os
import resource
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ROUNDS = 5
HEADS = {"theirs": "Triton’s", "before": "before"}


def _ours(names):
    """Seconds a replay takes: the recorded trace on fresh inputs, everything checked."""
    import numpy as np

    from autograder.records import Tensor
    from autograder.trace.record import record
    from autograder.trace.replay import replay
    from tests.kernels.course import KERNELS

    def seconds(name):
        function, arguments = KERNELS[name]
        trace = record(function, arguments)
        generator = np.random.default_rng(0)
        inputs = [
            generator.standard_normal(a.shape).astype(np.float32)
            for a in arguments
            if isinstance(a, Tensor)
        ]
        start = time.process_time()
        run = replay(trace, inputs)
        took = time.process_time() - start
        assert not run.findings, run.findings
        return took

    return seconds


def _theirs(names):
    import torch

    from autograder.records import Tensor
    from tests.kernels.course import KERNELS

    def seconds(name):
        function, arguments = KERNELS[name]
        torch.manual_seed(0)
        given = [torch.randn(a.shape) if isinstance(a, Tensor) else a for a in arguments]
        start = time.process_time()
        function(*given)
        return time.process_time() - start

    return seconds


def _child(side: str) -> None:
    from tests.kernels.course import KERNELS

    seconds = {"ours": _ours, "theirs": _theirs}[side](list(KERNELS))
    for line in sys.stdin:
        name = json.loads(line)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(json.dumps([seconds(name), peak]), flush=True)


@contextmanager
def _checkout(commit: str) -> Iterator[Path]:
    """The course as it was at ``commit``, in a folder of its own. Raises SystemExit, one line."""
    packed = subprocess.run(["git", "archive", commit], capture_output=True, cwd=ROOT)
    if packed.returncode:
        sys.exit(f"There is no commit {commit!r} here: name one that git log shows.")
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as archive:
            archive.extractall(folder, filter="data")
        yield Path(folder)


def _start(side: str, root: Path) -> subprocess.Popen:
    """A child that times the interpreter of the checkout ``root``, with the clock of this file."""
    environment = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"}
    environment["PYTHONPATH"] = str(root)
    if side == "theirs":
        environment["TRITON_INTERPRET"] = "1"
    return subprocess.Popen(
        [sys.executable, "-P", __file__, side],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
        cwd=root,
    )


def compared(sides: dict[str, subprocess.Popen], other: str) -> None:
    """Time ``ours`` and ``other`` in turn and print seconds, the ratios and their mean."""

    def ask(side, name):
        sides[side].stdin.write(json.dumps(name) + "\n")
        sides[side].stdin.flush()
        return json.loads(sides[side].stdout.readline())

    from tests.kernels.course import KERNELS

    print(f"{'kernel':18} {'IR interpreter':>15} {HEADS[other]:>10} {'ratio':>7}")
    ratios, peak = [], 0
    for name in KERNELS:
        for side in sides:  # the first run parses; the student's check pays that once a kernel
            if side != "theirs":
                ask(side, name)
        times = {side: [] for side in sides}
        for _ in range(ROUNDS):
            for side in sides:
                took, memory = ask(side, name)
                times[side].append(took)
                if side == "ours":
                    peak = max(peak, memory)
        ours, theirs = (min(times[s]) for s in ("ours", other))  # what disturbs only adds
        ratios.append(theirs / ours)
        print(f"{name:18} {ours * 1e3:12.0f} ms {theirs * 1e3:7.0f} ms {ratios[-1]:7.2f}")
    mean = math.exp(statistics.fmean(map(math.log, ratios)))
    print(f"geometric mean {mean:.2f}, smallest {min(ratios):.2f}; peak memory {peak:.0f} MiB")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.interpreter", description=__doc__)
    parser.add_argument("--before", metavar="COMMIT", help="against our interpreter of COMMIT")
    parser.add_argument("side", nargs="?", choices=("ours", "theirs"), help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.side:
        return _child(options.side)
    with ExitStack() as stack:
        sides, other = {"ours": _start("ours", ROOT)}, "theirs"
        if options.before:
            other, root = "before", stack.enter_context(_checkout(options.before))
            sides["before"] = _start("ours", root)
        else:
            sides["theirs"] = _start("theirs", ROOT)
        compared(sides, other)
        for process in sides.values():
            process.stdin.close()
            process.wait()


if __name__ == "__main__":
    main()
