"""A record as one figure: the roof, every kernel under it, and its share of the roof as a list."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from autograder.records import Rejected
from autograder.render.roofs import roofline
from autograder.render.style import png, svg

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["figure_of", "write"]


def figure_of(record: dict[str, Any]) -> Figure:
    """The record's figure. A kernel stands at the intensity that the model counted; measured, at
    its own operations over its time, else predicted, hollow, on the roof."""
    roof, made = record["roof"], record["made"]
    points, shares = [], []
    for row in record["kernels"]:
        operations = row["work"]["dot"] + row["work"]["elementwise"]
        speeds = [operations / ms / 1e9 for ms in row["band"]]  # TFLOP/s
        times = {timing["name"]: timing["ms"] for timing in row["measured"]}
        own = times.pop("triton", None)
        points.append(
            {
                "label": row["label"],
                "intensity": row["intensity"],
                "performance": operations / own / 1e9 if own else row["tflops"],
                "predicted": own is None,
                "band": speeds,
            }
        )
        shares.append(
            {
                "label": row["label"],
                "predicted": row["least_ms"] / row["ms"],
                "band": sorted(row["least_ms"] / ms for ms in row["band"]),
                "own": row["least_ms"] / own if own else None,
                "marks": {name: row["least_ms"] / ms for name, ms in times.items()},
            }
        )
    card = {"name": made["card"], "bandwidth": roof["bandwidth"], "peak": roof["bf16_tflops"]}
    reached = record.get("reference", {})
    ceilings = []
    if "copy_gbs" in reached:
        ceilings.append((reached["copy_gbs"], 0, f"a copy: {reached['copy_gbs']:,.0f} GB/s"))
    if "matmul_tflops" in reached:
        words = f"cuBLAS: {reached['matmul_tflops']:,.0f} TFLOP/s"
        ceilings.append((0, reached["matmul_tflops"], words))
    facts = f"predicted {made['date']}" if made.get("predicted") else f"measured {made['date']}"
    return roofline(card | {"ceilings": ceilings}, points, shares, facts)


def write(record: dict[str, Any], target: Path) -> None:
    """Writes the figure as .png or .svg. Raises Rejected for other names and an empty record."""
    if not record["kernels"]:
        raise Rejected("The record holds no kernel, so there is nothing to draw.")
    figure = figure_of(record)
    if target.suffix == ".png":
        target.write_bytes(png(figure))
    elif target.suffix == ".svg":
        target.write_text(svg(figure), encoding="utf-8")
    else:
        raise Rejected(f"A figure is written as .png or .svg, not {target.name}.")
