"""Figures of a record: every ladder, and by family the ratio to the vendor by size."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from autograder.records import Rejected
from autograder.render.ladders import ladder, ratios
from autograder.render.style import png
from lab_setup.kernels.bench.results import PLAIN, target_rows
from lab_setup.roofline.ladders import climbed, facts_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["figures", "write_all"]

_TITLES = {
    "rows": "Memory-bound kernels, speed by size",
    "products": "Matrix products, speed by size",
    "attentions": "FlashAttention, speed by length",
}


def figures(record: Mapping[str, Any]) -> Iterator[tuple[str, Figure]]:
    """Names and figures: "ladder_matmul_4096", "products"."""
    for block in record["blocks"]:
        times = {timing["name"] for timing in block["timings"]}
        if block["kind"] == "ladder" and times.intersection(block["rivals"][-1:]):
            yield f"ladder_{block['name']}_{block['size']}", ladder_of(record, block)
    for name in dict.fromkeys(block["family"] for block in record["blocks"]):
        panels = list(_panels(record, name))
        if panels:
            title = _TITLES.get(name, f"{name}, speed by size")
            yield name, ratios(title, f"times as fast as the vendor · {facts_of(record)}", panels)


def ladder_of(record: Mapping[str, Any], block: Mapping[str, Any]) -> Figure:
    steps, rivals = climbed(block)
    first, last = (next((s for s in order if s["ratio"]), None) for order in (steps, steps[::-1]))
    vendor = list(rivals)[-1]
    title = f"{block['title']}, n = {block['size']:,}"
    if first and last:
        title += f": from {first['ratio']:.2f} to {last['ratio']:.2f} of {vendor}"
    return ladder(title, facts_of(record), steps, rivals)


def _panels(record: Mapping[str, Any], family: str) -> Iterator[dict[str, Any]]:
    blocks = [b for b in record["blocks"] if b["family"] == family and b["kind"] == "task"]
    for name in dict.fromkeys(block["name"] for block in blocks):
        sizes = sorted((b for b in blocks if b["name"] == name), key=lambda b: b["size"])
        sizes = [b for b in sizes if b["rivals"] and b["timings"]]
        if not sizes:
            continue
        vendor = sizes[0]["rivals"][-1]
        times = [{t["name"]: t["ms"] for t in b["timings"]} for b in sizes]
        own = dict.fromkeys(step["label"] for b in sizes for step in b["steps"])
        rivals = dict.fromkeys(r for b in sizes for r in b["rivals"] if r != vendor)

        def over(label: str, times=times, vendor=vendor) -> list[float | None]:
            return [t[vendor] / t[label] if {vendor, label} <= t.keys() else None for t in times]

        yield {
            "title": sizes[0]["title"],
            "sizes": [b["size"] for b in sizes],
            "vendor": vendor,
            "own": {label: over(label) for label in own if label != PLAIN},
            "rivals": {label: over(label) for label in rivals},
            "wanted": [_wanted(record, b, t, vendor) for b, t in zip(sizes, times, strict=True)],
        }


def _wanted(record: Mapping, block: Mapping, times: Mapping, vendor: str) -> float | None:
    """The largest speed over the vendor's that a target asks for at this size."""
    rows = (r for r in target_rows(record) if (r["task"], r["size"]) == _at(block))
    asked = [
        r["at_least"] * times[vendor] / times[r["rival"]]
        for r in rows
        if {vendor, r["rival"]} <= times.keys()
    ]
    return max(asked, default=None)


def _at(block: Mapping) -> tuple[str, int]:
    return block["name"], block["size"]


def write_all(
    record: Mapping[str, Any], source: Path, only: Collection[str] | None = None
) -> list[Path]:
    """PNG files beside ``source``, named after it; ``only`` some of the ``figures``' names. Raises
    Rejected where nothing was measured."""
    written = []
    for name, figure in figures(record):
        if only is not None and name not in only:
            continue
        path = source.with_name(f"{source.stem}_{name}.png")
        path.write_bytes(png(figure))
        written.append(path)
    if not written:
        raise Rejected(f"{source} holds no timings, so there is nothing to draw.")
    return written
