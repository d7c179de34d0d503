"""Compiles every kernel and config for a card that need not be there, and says what each takes.

Children compile, several at a time, each through a driver that only names the target: Triton's
cache is filled, under the same keys, for a run on the card that follows. A crash of the compiler
ends its child, and with it one launch. A child reads numbers of launches on stdin, one a line, and
answers each with a line of JSON:

    echo 0 | python -m lab_setup.kernels.bench.offline products 90
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

from autograder.ir.cards import CARDS
from lab_setup.kernels.bench.families import family
from lab_setup.kernels.bench.tasks import Launch

__all__ = ["Fit", "compiled", "limit", "table", "without_fit"]

ROOT = Path(__file__).resolve().parents[3]
SECONDS = 240  # for one compilation: the largest take a minute on a slow machine


@dataclass(frozen=True)
class Fit:
    """What one launch takes: bytes of shared memory a program, registers a thread, bytes a thread
    of stack, which is where ptxas spills to (−1: cuobjdump is not there to tell).

    ``error``: why it did not compile, or "".
    """

    family: str
    kernel: str
    label: str
    cc: int
    shared: int = 0
    registers: int = -1
    stack: int = -1
    error: str = ""

    def fits(self, most: int) -> bool:
        """Compiled, within ``most`` bytes of shared memory, without a stack."""
        return not self.error and self.shared <= most and self.stack <= 0


def limit(cc: int) -> int:
    """Bytes of shared memory that a program may have. Raises ValueError for an unknown ``cc``."""
    for card in CARDS.values():
        if card.cc == cc:
            return card.shared_per_block
    known = ", ".join(sorted({str(card.cc) for card in CARDS.values()}))
    raise ValueError(f"No card of compute capability {cc} is in the table; it has {known}.")


def compiled(
    names: Iterable[str],
    cc: int,
    *,
    workers: int | None = None,
    step: Callable[[Fit], None] = lambda fit: None,
    command: Callable[[str, int], Sequence[str]] | None = None,
) -> list[Fit]:
    """All launches of the families ``names`` for compute capability ``cc``, in their order.

    ``workers`` children at a time (one for each processor that this process may use); ``step(fit)``
    is called as each is done; ``command(family, cc)`` starts a child, another one in tests. A
    family that cannot tell its launches has one Fit, which says why.
    """
    jobs: list[tuple[str, int, str, str]] = []
    lost: list[Fit] = []
    for name in names:
        try:
            launches = _launches(name, cc)
        except Exception as error:  # the other families are compiled all the same
            lost.append(Fit(name, name, name, cc, error=_said(error)))
            continue
        for i, launch in enumerate(launches):
            jobs.append((name, i, _bare(launch.kernel).__name__, launch.label))
    children = _Children(cc, command or _child_command)
    with ThreadPoolExecutor(workers or len(os.sched_getaffinity(0))) as pool:

        def done(job: tuple[str, int, str, str]) -> Fit:
            fit = children.fit(*job)
            step(fit)
            return fit

        try:
            return lost + list(pool.map(done, jobs))
        finally:
            children.close()


def table(fits: Iterable[Fit], most: int) -> str:
    """One line a launch: what it takes, and whether that fits into ``most`` bytes unspilled."""
    lines = [f"{'launch':58}{'shared':>9}{'registers':>11}{'stack':>7}"]
    for fit in fits:
        if fit.error:
            lines.append(f"{fit.label:58}  {fit.error[:200]}")
            continue
        registers, stack = (n if n >= 0 else "–" for n in (fit.registers, fit.stack))
        note = "" if fit.fits(most) else "  spills" if fit.stack > 0 else "  too large"
        lines.append(f"{fit.label:58}{fit.shared:9,}{registers:>11}{stack:>7}{note}")
    return "\n".join(lines)


def without_fit(fits: Iterable[Fit], most: int) -> list[str]:
    """Kernels of which no launch compiles within ``most`` bytes of shared memory, unspilled."""
    fits = list(fits)
    fitting = {fit.kernel for fit in fits if fit.fits(most)}
    return sorted({fit.kernel for fit in fits} - fitting)


def _launches(name: str, cc: int) -> list[Launch]:
    """What a child and its parent count alike."""
    return [launch for launch in family(name).launches(cc) if launch.needs <= cc]


def _bare(kernel: Any) -> Any:
    """The kernel within autotune: a launch names its config, so nothing is left to tune."""
    while hasattr(kernel, "configs"):
        kernel = kernel.fn
    return kernel


# ------------------------------------------------------------------------ children, from outside


def _child_command(name: str, cc: int) -> Sequence[str]:
    return [sys.executable, "-m", "lab_setup.kernels.bench.offline", name, str(cc)]


class _Children:
    """Children that wait for work, by family; a new one where none waits."""

    def __init__(self, cc: int, command: Callable[[str, int], Sequence[str]]):
        self.cc, self.command = cc, command
        self.idle: dict[str, SimpleQueue] = {}
        self.all: list[subprocess.Popen] = []

    def fit(self, name: str, index: int, kernel: str, label: str) -> Fit:
        waiting = self.idle.setdefault(name, SimpleQueue())
        try:
            child = waiting.get_nowait()
        except Empty:
            child = self._start(name)
        began = time.monotonic()
        stop = threading.Timer(SECONDS, child.kill)
        stop.start()
        try:
            child.stdin.write(f"{index}\n")
            child.stdin.flush()
            answer = child.stdout.readline()
        except BrokenPipeError:
            answer = ""
        finally:
            stop.cancel()
        if answer.endswith("\n"):
            waiting.put(child)
            return Fit(name, kernel, label, self.cc, **json.loads(answer))
        status = child.wait()
        child.said.seek(0)
        why = " ".join(child.said.read().split())[-160:]
        if time.monotonic() - began >= SECONDS:
            why = f"no answer within {SECONDS} s"
        error = f"the compiler's process ended ({status}): {why}"
        return Fit(name, kernel, label, self.cc, error=error)

    def _start(self, name: str) -> subprocess.Popen:
        # No card: a child must not start a context beside the run that follows.
        environment = os.environ | {"CUDA_VISIBLE_DEVICES": ""}
        said = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")  # noqa: SIM115
        pipes = dict(stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=said, text=True)
        child = subprocess.Popen(self.command(name, self.cc), cwd=ROOT, env=environment, **pipes)
        child.said = said
        self.all.append(child)
        return child

    def close(self) -> None:
        for child in self.all:
            child.stdin.close()
            child.kill()
            child.wait()
            child.stdout.close()
            child.said.close()


# ------------------------------------------------------------------------ a child, from inside


class _NoCard:
    """As much of a driver as ``warmup`` asks: the target, under whose name the cache is filled."""

    def __init__(self, cc: int):
        from triton.backends.compiler import GPUTarget

        self.target = GPUTarget("cuda", cc, 32)

    def get_current_target(self) -> Any:
        return self.target

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, device: int = 0) -> int:
        return 0


def _compile(launch: Launch) -> dict[str, Any]:
    try:
        made = _bare(launch.kernel).warmup(*launch.args, grid=(1,), **launch.options)
    except Exception as error:  # whatever the compiler raises is the launch's answer
        return {"error": _said(error)}
    return {"shared": made.metadata.shared} | _resources(made.asm["cubin"])


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"


def _resources(cubin: bytes) -> dict[str, int]:
    """Registers and stack by the ``cuobjdump`` that Triton brings along; nothing without it."""
    from triton import knobs

    try:
        tool = knobs.nvidia.cuobjdump.path
        with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
            file.write(cubin)
            file.flush()
            asked = [tool, "--dump-resource-usage", file.name]
            said = subprocess.run(asked, capture_output=True, text=True, timeout=60).stdout
    except (OSError, RuntimeError, subprocess.TimeoutExpired):
        return {}
    found = re.search(r"REG:(\d+) STACK:(\d+)", said)
    return {"registers": int(found[1]), "stack": int(found[2])} if found else {}


def main(words: list[str]) -> int:
    name, cc = words[0], int(words[1])
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a compiler prints is no answer
    from triton.runtime.driver import driver

    driver.set_active(_NoCard(cc))
    launches = _launches(name, cc)
    for line in sys.stdin:
        print(json.dumps(_compile(launches[int(line)])), file=answers, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
