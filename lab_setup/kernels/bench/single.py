"""One ladder at one size, for a lesson that measures on the card it runs on."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from autograder.records import Rejected
from lab_setup.kernels.bench.families import family, names
from lab_setup.kernels.bench.results import new

__all__ = ["ladder_here"]


def ladder_here(name: str, size: int) -> dict[str, Any]:
    """A record with one block: a ladder at one size, measured in this process. Wants a GPU.

    Raises Rejected where there is no such ladder.
    """
    import torch

    from lab_setup.kernels.bench.run import Bench
    from lab_setup.roofline.machine import about

    ladders = [ladder for one in map(family, names()) for ladder in one.ladders]
    found = next((ladder for ladder in ladders if ladder.name == name), None)
    if found is None:
        raise Rejected(f"No ladder {name}; there are {', '.join(one.name for one in ladders)}.")
    major, minor = torch.cuda.get_device_capability()
    record = new(about())
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(record, Path(folder) / "kernels.json", 10 * major + minor)
        record["blocks"].append(bench.block_of(found, size))
    return record
