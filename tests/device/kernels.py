"""On a card: the fast kernels compiled, checked at full size, and measured beside the vendor's.

`python -m tests.device.kernels OUTDIR [SECONDS] [FAMILY…]` writes kernels.json there. Families
come in the order given (rows, products, attentions); what is left after SECONDS (520) is left out.
An OUTDIR that holds a kernels.json is gone on with. All prints as it goes, the targets last. Needs
a GPU.
"""

from __future__ import annotations

import sys
import time
from dataclasses import asdict
from pathlib import Path

from autograder.records import Rejected
from lab_setup.gpus import gpus
from lab_setup.kernels.bench import offline
from lab_setup.kernels.bench.command import compile_for, measured_in_children
from lab_setup.kernels.bench.families import FAMILIES, family, names
from lab_setup.kernels.bench.results import load, save, summary


def main(words: list[str]) -> int:
    if not words:
        print("Where to? python -m tests.device.kernels OUTDIR [SECONDS] [FAMILY…]")
        return 2
    cards = gpus()
    if not cards:
        print("No card here: python -m lab_setup kernels --offline 89 compiles without one.")
        return 2
    start, target = time.monotonic(), Path(words[0]) / "kernels.json"
    seconds = float(words[1]) if len(words) > 1 else 520.0
    chosen = names(name for name in words[2:] or FAMILIES if _loads(name))
    fits = compile_for(chosen, cards[0].cc)  # before this process's children meet the card
    print(offline.table(fits, offline.limit(cards[0].cc)))
    print(f"compiled {len(fits)} launches, {time.monotonic() - start:.0f} s", flush=True)
    status = measured_in_children(chosen, target, seconds - (time.monotonic() - start))
    record = load(target)
    record["fits"] = [asdict(fit) for fit in fits]
    save(record, target)
    print(summary(record))
    print(f"took {time.monotonic() - start:.0f} s, status {status}")
    return status


def _loads(name: str) -> bool:
    """Whether a family is there; one that is not keeps no other waiting."""
    try:
        family(name)
    except Rejected as error:
        print(error, flush=True)
        return False
    return True


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
