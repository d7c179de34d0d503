"""``python -m lab_setup kernels``: compiles, checks and measures the fast kernels on this card.

The work is done in a child process: a fault on the card ends the child, and another one goes on
where it stopped.
"""

from __future__ import annotations

import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import Progress

from autograder.records import Rejected
from lab_setup.gpus import gpus
from lab_setup.kernels.bench import offline
from lab_setup.kernels.bench.families import family, names
from lab_setup.kernels.bench.results import join, load, new, save, summary
from lab_setup.roofline.versions import installed

__all__ = ["compile_for", "main", "measure_here", "measured_in_children"]

ROOT = Path(__file__).resolve().parents[3]
MISSED = 3  # a child's status: it did all, and a target was missed or a check failed
LOST = 75  # a child's status after a fault on the card: EX_TEMPFAIL, try again
HANGS = 150  # seconds without a word: the longest step, torch.compile's, takes a minute
_CHECKS = 0.4  # of the time: after that, what is left is measured unchecked at full size


def main(options: Any) -> int:
    """Arguments in, exit status out: 0 if every target was met and every check passed."""
    try:
        chosen = names(options.only or ())
        if options.plot:
            from lab_setup.kernels.bench.plot import write_all

            for path in write_all(load(Path(options.plot)), Path(options.plot)):
                print(path)
            return 0
        if options.offline is not None:
            return _offline(chosen, options.offline, options.json)
        if options.page:
            from lab_setup.kernels.bench.page import write

            print(write())
            return 0
        options.json = options.json or "kernels.json"
        if options.join:
            record = join([load(Path(path)) for path in options.join])
            save(record, Path(options.json))
            print(summary(record) + f"\nfigures as data: {options.json}")
            return 0
        if options.here:
            return measure_here(chosen, Path(options.json), float(options.seconds))
        cards = gpus()
        if not cards:
            print(
                "There is no card here, so nothing was measured. --offline 89 compiles every "
                "kernel for a card that is not there; docs/KERNELS.md has what was measured.",
                file=sys.stderr,
            )
            return 2
        target = Path(options.json)
        if not options.resume:
            target.unlink(missing_ok=True)
        start = time.monotonic()
        fits = compile_for(chosen, cards[0].cc)
        left = options.seconds - (time.monotonic() - start)
        status = measured_in_children(chosen, target, left)
        record = load(target)
        record["fits"] = [asdict(fit) for fit in fits]
        save(record, target)
        print(summary(record) + f"\nfigures as data: {target}")
        return status
    except Rejected as error:
        print(error, file=sys.stderr)
        return 2


def _offline(chosen: tuple[str, ...], cc: int, target: str | None) -> int:
    try:
        most = offline.limit(cc)
    except ValueError as error:
        raise Rejected(str(error)) from None
    fits = compile_for(chosen, cc)
    print(offline.table(fits, most))
    if target:
        record = new({"cc": cc, "versions": {"triton": installed("triton")}})
        save(record | {"fits": [asdict(fit) for fit in fits]}, Path(target))
    lacking = offline.without_fit(fits, most)
    for name in lacking:
        print(f"{name}: no config fits into {most:,} bytes of shared memory without spills")
    return 1 if lacking else 0


def compile_for(chosen: tuple[str, ...], cc: int) -> list[offline.Fit]:
    """Compiles all launches in parallel, with a bar on the terminal."""
    with _progress("compiling") as step:
        return offline.compiled(chosen, cc, step=lambda fit: step(fit.label))


def measured_in_children(
    chosen: tuple[str, ...], target: Path, seconds: float, command: tuple[str, ...] = ()
) -> int:
    """Runs one child after the other until one ends by itself; that one's status.

    A child that a fault or a crash ended is followed by another, which goes on; so is one that has
    not written for HANGS seconds. ``command``: a child, in tests.
    """
    end = time.monotonic() + seconds
    words = command or (sys.executable, "-m", "lab_setup", "kernels", "--here")
    words = (*words, "--json", str(target.resolve()), "--only", *chosen)
    written = -1.0
    while True:
        left = max(1.0, end - time.monotonic())
        status = _watched([*words, "--seconds", f"{left:.0f}"], target)
        # Something written each time, or a child that cannot even begin would be started for ever.
        before, written = written, _written(target)
        if status in (0, 2, MISSED) or written <= before or time.monotonic() > end:
            return status
        print(f"The process ended with status {status}; a fresh one goes on.", flush=True)


def _watched(words: list[str], target: Path) -> int:
    """The exit status of a child, which is killed if it hangs."""
    child = subprocess.Popen(words, cwd=ROOT)
    seen = time.time()
    while True:
        try:
            return child.wait(timeout=1)
        except subprocess.TimeoutExpired:
            if time.time() - max(seen, _written(target)) > HANGS:
                print(f"Nothing was written for {HANGS} s: that process is stopped.", flush=True)
                child.kill()
        except BaseException:
            child.kill()
            raise


def _written(target: Path) -> float:
    return target.stat().st_mtime if target.exists() else 0.0


def measure_here(chosen: tuple[str, ...], target: Path, seconds: float) -> int:
    """Checks, then measures, in this process; goes on with ``target`` where it exists. 0 if every
    target was met and every check passed, else MISSED; LOST after a fault on the card. Wants a GPU.
    """
    import torch

    from lab_setup.kernels.bench.run import Bench, CardLost
    from lab_setup.roofline.machine import about

    start = time.monotonic()
    record = load(target) if target.exists() else new(about())
    families = [_loaded(name, record) for name in chosen]
    families = [one for one in families if one]
    major, minor = torch.cuda.get_device_capability()
    with _progress("on the card:") as step:
        bench = Bench(
            record,
            target,
            10 * major + minor,
            until=start + _CHECKS * seconds,
            sync=torch.cuda.synchronize,
            state=lambda: about()["state"],
            step=step,
        )
        try:
            bench.check_all(families)
            bench.until = start + seconds
            bench.measure_all(families)
        except CardLost as error:
            print(error, flush=True)
            return LOST
        finally:
            save(record, target)
    return 0 if _all_well(record) else MISSED


def _loaded(name: str, record: dict[str, Any]):
    """The family, or None, with the reason among the record's notes."""
    try:
        return family(name)
    except Rejected as error:
        print(error, flush=True)
        record["notes"].append(str(error))
        return None


def _all_well(record: dict[str, Any]) -> bool:
    from lab_setup.kernels.bench.results import target_rows

    met = all(row["verdict"] in ("met", "stretch") for row in target_rows(record))
    return met and all(check["ok"] for check in record["checks"]) and not record["notes"]


@contextmanager
def _progress(word: str):
    """A bar on the terminal that beats; ``step(what)`` says what is done."""
    with Progress(console=Console(stderr=True)) as bar:
        task = bar.add_task(word, total=None)

        def step(what: str) -> None:
            bar.update(task, advance=1, description=f"{word} {what[:60]}")

        yield step
