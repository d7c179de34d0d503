"""On cards: two processes that benchmark the same card, with the lock and without.

`python -m tests.device.lock` times a copy in one process alone, then in two at once that take turns
by the lock, then in two at once without it, and prints the medians and their distance from the
undisturbed one. Needs a GPU; nothing here runs in CI.
"""

from __future__ import annotations

import subprocess
import sys
from contextlib import nullcontext

import torch

from lab_setup.gpulock import hold
from lab_setup.gpus import current, gpus
from lab_setup.roofline.measure import measure

REPEATS = 5


def once(locked: bool) -> float:
    """Median milliseconds of a copy of an eighth of the card's memory.

    That takes longer than the driver's time slice, or two processes would hardly meet.
    """
    size = torch.cuda.get_device_properties(0).total_memory // 32
    x = torch.rand(size, device="cuda")
    y = torch.empty_like(x)
    said = []
    with hold(current(), tell=said.append) if locked else nullcontext():
        found = measure(
            lambda size: {"copy": lambda: y.copy_(x)},
            [size],
            bytes_of=lambda size: 8 * size,
            expect="",
            rep=1000,
        )
    print(f"    {found.timings[0].ms:.4f} ms  {'; '.join(said)}", flush=True)
    return found.timings[0].ms


def child(locked: bool) -> subprocess.Popen:
    words = [sys.executable, "-m", "tests.device.lock", "locked" if locked else "loose"]
    return subprocess.Popen(words, stdout=subprocess.PIPE, text=True)


def medians(count: int, locked: bool) -> list[float]:
    processes = [child(locked) for _ in range(count)]
    texts = [process.communicate()[0] for process in processes]
    print("".join(texts), end="")
    return [float(line.split()[0]) for text in texts for line in text.splitlines() if "ms" in line]


def main(words: list[str]) -> int:
    if words:
        for _ in range(REPEATS):
            once(words[0] == "locked")
        return 0
    for card in gpus():
        print(f"{card.index}  {card.name}  {card.uuid}")
    found = {}
    for name, count, locked in (("alone", 1, True), ("lock", 2, True), ("no lock", 2, False)):
        print(f"{name}:")
        found[name] = medians(count, locked)
    alone = sorted(found["alone"])[len(found["alone"]) // 2]
    for name, times in found.items():
        worst = max(abs(ms / alone - 1) for ms in times)
        print(
            f"{name:8} {len(times)} medians, at most {worst:.1%} from the undisturbed {alone:.4f}"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
