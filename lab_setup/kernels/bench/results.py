"""What was measured, as data: JSON with card, date, versions, and one block a task or ladder at a
size. Pure functions read it; who writes it is ``run``."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from autograder.records import Rejected

__all__ = [
    "PLAIN",
    "block_lines",
    "done",
    "join",
    "load",
    "new",
    "plain_ratio",
    "save",
    "summary",
    "target_rows",
]

PLAIN = "the course's solution"
"""What the course's own plain solution is called in a ladder's block."""

_FORMAT = 1
_KEYS = {  # what tells the rows of a part apart
    "blocks": ("kind", "name", "size"),
    "checks": ("family", "label"),
    "fits": ("family", "label", "cc"),
}
Record = dict[str, Any]


def new(made: Mapping[str, Any]) -> Record:
    """A record without blocks. ``made``: card, date, versions, clocks."""
    return {
        "format": _FORMAT,
        "made": dict(made),
        "blocks": [],
        "checks": [],
        "fits": [],
        "faults": [],
        "notes": [],
    }


def save(record: Record, path: Path) -> None:
    """Writes all or nothing: a run that is killed leaves the last whole record."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(path.name + ".part")
    draft.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    draft.replace(path)


def load(path: Path) -> Record:
    """A record that ``save`` wrote. Raises Rejected with one sentence for anything else."""
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise Rejected(f"There is no file {path}.") from None
    except (OSError, ValueError) as error:
        raise Rejected(f"{path} is not JSON: {error}.") from None
    if not isinstance(record, dict) or record.get("format") != _FORMAT or "blocks" not in record:
        raise Rejected(f"{path} is no record of `python -m lab_setup kernels --json`.")
    return record


def join(records: Sequence[Record]) -> Record:
    """One record of several runs on one kind of card with the same versions: of a block or a check
    that several have, the last one's. Raises Rejected where cards or versions differ."""
    joined = new(records[-1]["made"])
    for record in records:
        for what in ("card", "versions"):
            if record["made"][what] != joined["made"][what]:
                here, there = record["made"][what], joined["made"][what]
                raise Rejected(f"Runs with different {what} are not joined: {here} and {there}.")
    for part, keys in _KEYS.items():
        rows = {tuple(row[k] for k in keys): row for record in records for row in record[part]}
        joined[part] = list(rows.values())
    notes = dict.fromkeys(note for record in records for note in record["notes"])
    kept = {f"{b['kind']} {b['name']}, n = {b['size']:,}" for b in joined["blocks"]}
    kept |= {f"check {check['label']}" for check in joined["checks"]}
    joined["notes"] = [note for note in notes if note.partition(":")[0] not in kept]
    return joined


def done(record: Record, kind: str, name: str, size: int) -> bool:
    """Whether the record has this block."""
    return any(
        (block["kind"], block["name"], block["size"]) == (kind, name, size)
        for block in record["blocks"]
    )


def target_rows(record: Record) -> Iterator[dict[str, Any]]:
    """One row a target and size: task, size, own, rival, ratio (None: not measured), at_least,
    stretch, verdict ("stretch", "met", "missed", "not measured")."""
    for block in record["blocks"]:
        times = {timing["name"]: timing["ms"] for timing in block["timings"]}
        for target in block["targets"]:
            own, rival = times.get(target["own"]), times.get(target["rival"])
            ratio = rival / own if own and rival else None
            row = {"task": block["name"], "title": block["title"], "size": block["size"]}
            yield row | target | {"ratio": ratio, "verdict": _verdict(ratio, target)}


def _verdict(ratio: float | None, target: Mapping[str, Any]) -> str:
    if ratio is None:
        return "not measured"
    if ratio < target["at_least"]:
        return "missed"
    return "stretch" if ratio >= (target["stretch"] or float("inf")) else "met"


def block_lines(block: Mapping[str, Any]) -> str:
    """A block for the terminal: each function's time, its speed, and its ratio to the rivals."""
    times = {timing["name"]: timing["ms"] for timing in block["timings"]}
    rivals = [label for label in block["rivals"] if label in times]
    lines = [f"{block['kind']} {block['name']}, n = {block['size']:,} ({block['title']})"]
    head = "".join(f"{label[:16]:>18}" for label in rivals)
    lines.append(f"    {'':34}{'ms':>9}{'(20–80 %)':>18}{'GB/s':>8}{'TFLOP/s':>9}{head}")
    before = None
    for timing in block["timings"]:
        ms = timing["ms"]
        spread = f"({timing['low']:.4f}–{timing['high']:.4f})"
        work = f"{timing['tflops']:9.1f}" if timing["tflops"] else f"{'–':>9}"
        beside = "".join(f"{times[label] / ms:18.3f}" for label in rivals)
        line = (
            f"    {timing['name'][:34]:34}{ms:9.4f}{spread:>18}{timing['gbs']:8.0f}{work}{beside}"
        )
        step = next((s for s in block["steps"] if s["label"] == timing["name"]), None)
        if step and block["kind"] == "ladder":
            gain = f"{before / ms:.3f}" if before else "–"
            expected = f"{step['expect']:.2f}" if step["expect"] else "–"
            line += f"  gain {gain} (expected {expected})"
            before = ms
        lines.append(line)
    lines += [f"    {label}: FAILED: {why}" for label, why in block["failed"].items()]
    lines += [f"    note: {note}" for note in block["notes"]]
    return "\n".join(lines)


def summary(record: Record) -> str:
    """The targets, met and missed, the checks that failed, and how the first steps agree."""
    lines = [f"{'target':52}{'ratio':>8}{'at least':>10}{'stretch':>9}"]
    for row in target_rows(record):
        label = f"{row['task']} n={row['size']} {row['own']} / {row['rival']}"
        ratio = f"{row['ratio']:.3f}" if row["ratio"] else "–"
        stretch = f"{row['stretch']:.2f}" if row["stretch"] else "–"
        words = {"missed": "MISSED", "not measured": "NOT MEASURED"}
        verdict = words.get(row["verdict"], row["verdict"])
        lines.append(f"{label[:52]:52}{ratio:>8}{row['at_least']:10.2f}{stretch:>9}  {verdict}")
    for block in record["blocks"]:
        if agreement := plain_ratio(block):
            said = "agree" if abs(agreement - 1) <= 0.1 else "DIFFER by more than 10 %"
            lines.append(
                f"{block['name']} n={block['size']}: first step over course's solution, times: "
                f"{agreement:.3f}, {said}"
            )
    bad = [c for c in record["checks"] if not c["ok"]]
    lines.append(f"checks at full size: {len(record['checks'])}, failed: {len(bad)}")
    lines += [f"    {c['label']}: {c['why']}" for c in bad]
    lines += record["notes"]
    return "\n".join(lines)


def plain_ratio(block: Mapping[str, Any]) -> float | None:
    """Time of a ladder's first step over that of the course's own solution, where both ran."""
    times = {timing["name"]: timing["ms"] for timing in block["timings"]}
    first = block["steps"][0]["label"] if block["steps"] else ""
    if block["kind"] != "ladder" or first not in times or PLAIN not in times:
        return None
    return times[first] / times[PLAIN]
