"""The IR interpreter against Triton's own interpreter, kernel by kernel, in one run.

Ours checks values, bounds, races and traffic with one program order and one poison; Triton's
(TRITON_INTERPRET=1) only computes. Both run in this process's child, in turn, on the same inputs,
so that a slow spell of the machine meets both. `make bench` prints the ratios.
"""

from __future__ import annotations

import json
import math
import os
import resource
import statistics
import subprocess
import sys
import time

ROUNDS = 3


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
        start = time.perf_counter()
        run = replay(trace, inputs)
        took = time.perf_counter() - start
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
        start = time.perf_counter()
        function(*given)
        return time.perf_counter() - start

    return seconds


def _child(side: str) -> None:
    from tests.kernels.course import KERNELS

    seconds = {"ours": _ours, "theirs": _theirs}[side](list(KERNELS))
    for line in sys.stdin:
        name = json.loads(line)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(json.dumps([seconds(name), peak]), flush=True)


def main() -> None:
    sides = {}
    for side in ("ours", "theirs"):
        environment = dict(os.environ)
        environment.pop("TRITON_INTERPRET", None)
        if side == "theirs":
            environment["TRITON_INTERPRET"] = "1"
        sides[side] = subprocess.Popen(
            [sys.executable, "-m", "tests.bench.interpreter", side],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )

    def ask(side, name):
        sides[side].stdin.write(json.dumps(name) + "\n")
        sides[side].stdin.flush()
        return json.loads(sides[side].stdout.readline())

    from tests.kernels.course import KERNELS

    print(f"{'kernel':18} {'IR interpreter':>15} {'Triton’s':>10} {'ratio':>7}")
    ratios, peak = [], 0
    for name in KERNELS:
        ask("ours", name)  # the first run parses; the student's check pays that once a kernel
        times = {side: [] for side in sides}
        for _ in range(ROUNDS):
            for side in sides:
                took, memory = ask(side, name)
                times[side].append(took)
                if side == "ours":
                    peak = max(peak, memory)
        ours, theirs = (statistics.median(times[s]) for s in ("ours", "theirs"))
        ratios.append(theirs / ours)
        print(f"{name:18} {ours * 1e3:12.0f} ms {theirs * 1e3:7.0f} ms {ratios[-1]:7.1f}")
    mean = math.exp(statistics.fmean(map(math.log, ratios)))
    print(f"geometric mean {mean:.1f}, smallest {min(ratios):.1f}; peak memory {peak:.0f} MiB")
    for process in sides.values():
        process.stdin.close()
        process.wait()


if __name__ == "__main__":
    if len(sys.argv) > 1:
        _child(sys.argv[1])
    else:
        main()
