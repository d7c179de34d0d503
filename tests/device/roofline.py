"""On a card: every kernel of the course and its rivals on the roofline, then bytes by counters.

`python -m tests.device.roofline OUTDIR [SECONDS]` writes roofline.json and roofline.png there, and
dram.json where `ncu` may read the card's counters. What is left after SECONDS (200) is left out.
Every part prints as it goes, and none keeps the others from running. Needs a GPU.
"""

from __future__ import annotations

import subprocess
import sys
import time
import traceback
from pathlib import Path

import torch

from autograder.records import Rejected
from lab_setup.roofline import records
from lab_setup.roofline.command import gather, reference
from lab_setup.roofline.kernels import KERNELS
from lab_setup.roofline.machine import about, card_here
from lab_setup.roofline.plot import write

FOR_COUNTERS = 60  # seconds kept for ncu


def main(words: list[str]) -> int:
    if not words:
        print("Where to? python -m tests.device.roofline OUTDIR")
        return 2
    if not torch.cuda.is_available():
        print("No card here: python -m lab_setup roofline predicts without one.")
        return 2
    start, out = time.monotonic(), Path(words[0])
    seconds = float(words[1]) if len(words) > 1 else 200.0
    out.mkdir(parents=True, exist_ok=True)
    failed = [part.__name__ for part in (speeds, counters) if not _tried(part, out, start, seconds)]
    print(f"took {time.monotonic() - start:.0f} s" + (f"; failed: {failed}" if failed else ""))
    return 1 if failed else 0


def _tried(part, out: Path, start: float, seconds: float) -> bool:
    print(f"== {part.__name__}, {time.monotonic() - start:.0f} s", flush=True)
    try:
        return part(out, start + seconds)
    except Exception:
        traceback.print_exc(file=sys.stdout)
        return False


def speeds(out: Path, end: float) -> bool:
    on, target = card_here(), out / "roofline.json"
    if on is None:
        print("This card's limits are unknown.")
        return False
    record = records.new(on, about())
    try:
        record["reference"] = reference()
    except Exception:
        traceback.print_exc(file=sys.stdout)
    # The first of each unit before the others, should the time be short.
    first = {kernel.id[:2]: kernel for kernel in reversed(KERNELS)}.values()
    kernels = sorted(KERNELS, key=lambda kernel: kernel not in first)
    gather(record, kernels, on, target, here=True, until=end - FOR_COUNTERS)
    order = [kernel.id for kernel in KERNELS]
    record["kernels"].sort(key=lambda row: order.index(row["id"]))
    record["made"]["state_after"] = about()["state"]
    records.save(record, target)
    try:
        write(record, out / "roofline.png")
    except Rejected as error:
        print(error)
    return all(row["measured"] for row in record["kernels"]) and bool(record["kernels"])


def counters(out: Path, end: float) -> bool:
    left = max(10.0, end - time.monotonic())
    command = [sys.executable, "-m", "tests.device.dram", str(out / "dram.json")]
    try:
        return subprocess.run(command, timeout=left).returncode == 0
    except subprocess.TimeoutExpired:
        print(f"The counters were not read within {left:.0f} s.")
        return False


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
