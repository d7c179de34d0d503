"""A journal of measurements: a file to which every measurement adds lines, JSON, one a timing.

The card and the versions stand in every line, so that numbers of another card or of last year's
compiler are never taken for today's.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import date
from pathlib import Path

from lab_setup.roofline.measure import Measured, Timing

__all__ = ["entries", "note", "table"]


def entries(
    kernel: str, measured: Measured, mine: str, torch: str, versions: str
) -> list[dict[str, object]]:
    """A line of the journal for every size: the timing called ``mine``, beside it ``torch``'s.

    ``roof_percent``: of the data sheet's TFLOP/s where the timing has operations, else of its GB/s;
    None where the card is not in the table. ``torch_percent``: PyTorch's time over this one, so
    100 means as fast. A size that one of the two lacks is left out. Raises ValueError where one of
    the names has no timing at all.
    """
    names = {timing.name for timing in measured.timings}
    if names and not {mine, torch} <= names:
        said = ", ".join(sorted(names))
        raise ValueError(f"There are timings of {said}; the journal wants {mine} and {torch}.")
    by_name = {(t.name, t.size): t for t in measured.timings}
    wanted = [
        (t, by_name[torch, t.size])
        for t in measured.timings
        if t.name == mine and (torch, t.size) in by_name
    ]
    return [
        {
            "date": date.today().isoformat(),
            "kernel": kernel,
            "card": measured.card,
            "versions": versions,
            "n": t.size,
            "ms": round(t.ms, 5),
            "gbs": round(t.gbs, 1),
            "tflops": None if t.tflops is None else round(t.tflops, 2),
            "roof_percent": _of_roof(t, measured),
            "torch_percent": round(100 * rival.ms / t.ms, 1),
        }
        for t, rival in wanted
    ]


def note(lines: Sequence[dict[str, object]], path: str | Path = "results.jsonl") -> None:
    """Adds ``lines`` to the end of the journal, which is made if it is not there."""
    with Path(path).open("a", encoding="utf-8") as journal:
        journal.writelines(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)


def table(path: str | Path = "results.jsonl") -> str:
    """The journal as text, oldest line first. Raises ValueError with the number of a torn line."""
    rows = [("date", "kernel", "card", "n", "ms", "GB/s", "TFLOP/s", "of roof", "of torch")]
    for number, text in enumerate(Path(path).read_text(encoding="utf-8").splitlines(), 1):
        try:
            line = json.loads(text)
            names = ("date", "kernel", "card", "n", "ms", "gbs", "tflops")
            rows.append((*(_said(line[name]) for name in names), *_percents(line)))
        except (json.JSONDecodeError, KeyError, TypeError) as error:
            raise ValueError(
                f"Line {number} of {path} is no line of a journal: mend it or take it out."
            ) from error
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ("  ".join(w.rjust(n) for w, n in zip(row, widths, strict=True)) for row in rows)
    return "\n".join(lines)


def _of_roof(timing: Timing, measured: Measured) -> float | None:
    top = measured.bandwidth if timing.tflops is None else measured.peak
    speed = timing.gbs if timing.tflops is None else timing.tflops
    return round(100 * speed / top, 1) if top else None


def _percents(line: dict) -> tuple[str, str]:
    return tuple(
        "–" if line[name] is None else f"{line[name]:g} %"
        for name in ("roof_percent", "torch_percent")
    )


def _said(value: object) -> str:
    return "–" if value is None else f"{value:,}" if isinstance(value, int) else str(value)
