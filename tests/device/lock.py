"""On cards: two processes that benchmark the same card, with the lock and without.

`python -m tests.device.lock` times a copy in one process alone, then in two at once that take turns
by the lock, then in two at once without it, and prints the medians and their distance from the
undisturbed one. Needs a GPU; nothing here runs in CI.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile

import torch

from lab_setup.gpus import gpus
from lab_setup.roofline.measure import measure

REPEATS = 5


def once() -> None:
    """Prints the median milliseconds of a copy of an eighth of the card's memory.

    That takes longer than the driver's time slice, or two processes would hardly meet.
    """
    size = torch.cuda.get_device_properties(0).total_memory // 32
    x = torch.rand(size, device="cuda")
    y = torch.empty_like(x)
    found = measure(
        lambda size: {"copy": lambda: y.copy_(x)},
        [size],
        bytes_of=lambda size: 8 * size,
        expect="",
        rep=1000,
    )
    if not found.timings:
        raise SystemExit(f"nothing was measured: {found.note}")
    print(f"    {found.timings[0].ms:.4f} ms", flush=True)


def child(locked: bool) -> subprocess.Popen:
    """A process that measures; without the lock it takes one that nobody else knows."""
    words = [sys.executable, "-m", "tests.device.lock", "child"]
    own = {} if locked else {"COURSE_GPU_LOCKS": tempfile.mkdtemp(prefix="loose-")}
    return subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=os.environ | own)


def medians(count: int, locked: bool) -> list[float]:
    processes = [child(locked) for _ in range(count)]
    texts = [process.communicate()[0] for process in processes]
    print("".join(texts), end="")
    return [
        float(line.split()[0])
        for text in texts
        for line in text.splitlines()
        if line.endswith(" ms")
    ]


def main(words: list[str]) -> int:
    if words:
        for _ in range(REPEATS):
            once()
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
