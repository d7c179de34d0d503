"""The figures of one card as data: what was predicted, what was measured. JSON, to be plotted
anywhere."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from autograder.ir.cards import Card
from autograder.records import Rejected
from lab_setup.roofline.kernels import CourseKernel, least_ms
from lab_setup.roofline.model import Work, predict

__all__ = ["load", "new", "predicted_row", "save"]

_FORMAT = 1


def new(card: Card, made: Mapping[str, Any]) -> dict[str, Any]:
    """A record without rows. ``made`` says where it comes from: date, versions, clocks."""
    limits = ("name", "sms", "bandwidth", "l2_mb", "bf16_tflops", "fp32_tflops")
    roof = {name: getattr(card, name) for name in limits}
    return {"format": _FORMAT, "made": dict(made), "roof": roof, "kernels": [], "notes": []}


def predicted_row(kernel: CourseKernel, work: Work, card: Card) -> dict[str, Any]:
    """What the model says of one kernel; times in ms, bytes and operations of one call."""
    said = predict(work, card, kernel.band)
    return {
        "id": kernel.id,
        "label": kernel.label,
        "bound": said.bound,
        "intensity": said.intensity,
        "tflops": said.tflops,
        "ms": said.ms,
        "band": list(said.band),
        "least_ms": least_ms(kernel, card),
        "work": asdict(work),
        "measured": [],
    }


def save(record: dict[str, Any], path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def load(path: Path) -> dict[str, Any]:
    """A record that ``save`` wrote. Raises Rejected with one sentence for anything else."""
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise Rejected(f"There is no file {path}.") from None
    except (OSError, ValueError) as error:
        raise Rejected(f"{path} is not JSON: {error}.") from None
    if not isinstance(record, dict) or record.get("format") != _FORMAT:
        raise Rejected(f"{path} is no record of `python -m lab_setup roofline --json`.")
    return record
