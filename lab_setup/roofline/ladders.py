"""Ladders that were measured: the stored ones, and on a card with the fast kernels those of here.

Part of the students' copy, which has the figures (docs/measured/kernels_h200.json) and not the
kernels. A stored figure always goes with the card and the date that it comes from.
"""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from autograder.records import Rejected

__all__ = ["STORED", "beside", "climbed", "facts_of", "here", "stored"]

STORED = Path(__file__).resolve().parents[2] / "docs/measured/kernels_h200.json"


def stored(name: str, size: int, path: Path | None = None) -> dict[str, Any]:
    """The ladder ``name`` at ``size`` as it was measured elsewhere, for ``render.lesson11.Climb``:
    ``title``, ``facts`` (on which card, when), ``steps`` and ``rivals`` as ``climbed`` gives them.

    Raises Rejected with one sentence where it is not among the stored ones.
    """
    return _told(*_stored("ladder", name, size, path))


def beside(name: str, size: int, path: Path | None = None) -> dict[str, float]:
    """The stored task ``name`` at ``size``: every kernel's speed over that of the last rival.

    Raises Rejected as ``stored`` does.
    """
    _, block = _stored("task", name, size, path)
    times = {timing["name"]: timing["ms"] for timing in block["timings"]}
    return {label: times[block["rivals"][-1]] / ms for label, ms in times.items()}


def _stored(
    kind: str, name: str, size: int, path: Path | None
) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """The record and its block."""
    path = path or STORED
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise Rejected(f"The stored measurements, {path.name}, cannot be read: {error}.") from None
    blocks = [block for block in record["blocks"] if block["kind"] == kind]
    for block in blocks:
        if (block["name"], block["size"]) == (name, size):
            return record, block
    known = ", ".join(f"{block['name']} at {block['size']}" for block in blocks)
    raise Rejected(f"No {kind} {name} at {size} is stored; there are {known}.")


def here(name: str, size: int) -> dict[str, Any] | None:
    """The same, measured on this machine's card; None without a card or the fast kernels.

    Raises Rejected where there is no such ladder, or nothing could be measured.
    """
    import torch

    if not torch.cuda.is_available() or not importlib.util.find_spec("lab_setup.kernels"):
        return None
    from lab_setup.kernels.bench.single import ladder_here

    record = ladder_here(name, size)
    (block,) = record["blocks"]
    if not block["timings"]:
        raise Rejected(f"The ladder {name} was not measured: {' '.join(block['notes'])}")
    return _told(record, block)


def _told(record: Mapping[str, Any], block: Mapping[str, Any]) -> dict[str, Any]:
    steps, rivals = climbed(block)
    title = f"{block['title']}, n = {block['size']}"
    return {"title": title, "facts": facts_of(record), "steps": steps, "rivals": rivals}


def facts_of(record: Mapping[str, Any]) -> str:
    """One line: measured on which card, when, with which versions."""
    made = record["made"]
    versions = ", ".join(f"{n} {made['versions'][n]}" for n in ("triton", "torch"))
    return f"measured on one {made['card']}, {made['date'][:10]}, {versions}"


def climbed(block: Mapping[str, Any]) -> tuple[list[dict[str, Any]], dict[str, float]]:
    """A ladder's steps as ratios, and its rivals: speeds over that of the last rival.

    A step has ``label``, ``reason``, ``needs`` (89 for compute capability 8.9), ``ms``, ``ratio``,
    ``gain`` (over the last step before it that was measured) and ``expect``, the predicted gain;
    None where there is no such figure.
    """
    times = {timing["name"]: timing["ms"] for timing in block["timings"]}
    vendor = times[block["rivals"][-1]]
    steps, before = [], None
    for step in block["steps"]:
        ms = times.get(step["label"])
        ratio, gain = vendor / ms if ms else None, before / ms if before and ms else None
        steps.append({**step, "ms": ms, "ratio": ratio, "gain": gain})
        before = ms or before
    return steps, {name: vendor / times[name] for name in block["rivals"] if name in times}
