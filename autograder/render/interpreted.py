"""What ``interpret`` recorded, as text, as a page for Jupyter, and as a picture of lanes."""

from __future__ import annotations

import html
import textwrap
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from autograder.records import (
    Access,
    Finding,
    Kernel,
    Launch,
    Operations,
    Rejected,
    Run,
    Traffic,
)
from autograder.render.cells import GAP
from autograder.render.inspected import WIDTH, Shown
from autograder.render.neutral import count, neutral, spaced

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw", "record_html", "record_text"]

_COLUMNS = ("argument", "loaded", "stored", "masked off", "bytes", "sectors")


class _Recorded(Protocol):
    launches: list[tuple[Kernel, Launch, Run]]
    findings: tuple[Finding, ...]
    traffic: tuple[Traffic, ...]
    operations: Operations
    warnings: tuple[str, ...]


def _heads(record: _Recorded) -> list[str]:
    """``add_kernel (vectors.py): 97 programs``, a line a kernel."""
    if not record.launches:
        return ["nothing was launched"]
    lines = []
    for name in dict.fromkeys((k.name, k.file) for k, _, _ in record.launches):
        grids = [la.grid for k, la, _ in record.launches if (k.name, k.file) == name]
        programs = Counter(x * y * z for x, y, z in grids)
        each = ", ".join(spaced(n, GAP) for n in sorted(programs)[:4])
        each += " …" if len(programs) > 4 else ""
        times = f"{len(grids)} launches of " if len(grids) > 1 else ""
        noun = "program" if set(programs) == {1} else "programs"
        file = f" ({neutral(Path(name[1]).name, 40)})" if name[1] else ""
        lines.append(f"{neutral(name[0], 60)}{file}: {times}{each} {noun}")
    return lines


def _rows(traffic: Sequence[Traffic]) -> list[tuple[str, ...]]:
    rows = []
    for t in traffic:
        numbers = (t.loaded, t.stored, t.masked, (t.loaded + t.stored) * t.itemsize, t.sectors)
        if t.loaded + t.stored + t.masked:
            rows.append((neutral(t.argument, 60), *(spaced(n, GAP) for n in numbers)))
    return rows


def _sums(operations: Operations) -> str:
    parts = [f"{count(operations.elementwise, 'elementwise operation')}"]
    if operations.dot:
        parts.insert(0, f"{count(operations.dot, 'operation')} in tl.dot")
    return ", ".join(parts)


def record_text(record: _Recorded) -> str:
    """A line a kernel, the findings, a table of traffic by argument, operations, notes."""
    lines = _heads(record)
    if record.launches:
        lines.append(repr(Shown(record.findings, note=False)))
    if rows := _rows(record.traffic):
        table = [_COLUMNS, *rows]
        widths = [max(len(row[i]) for row in table) for i in range(len(_COLUMNS))]
        for row in table:
            cells = [row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]
            lines.append("  " + "  ".join(cells))
        lines.append("  " + _sums(record.operations))
    for text in record.warnings:
        lines.append(textwrap.fill(f"note: {neutral(text, 300)}", WIDTH, subsequent_indent="  "))
    return "\n".join(lines)


_CELL = "text-align:right;padding:0.1em 0.9em 0.1em 0"


def record_html(record: _Recorded) -> str:
    """The same as a page, with the lanes of the first fault that they show."""
    parts = [f"<p><b>{html.escape(line)}</b></p>" for line in _heads(record)]
    if record.launches:
        parts.append(Shown(record.findings, note=False)._repr_html_())
    if rows := _rows(record.traffic):
        first = "text-align:left;padding:0.1em 0.9em 0.1em 0"
        for tag, row in [("th", _COLUMNS), *(("td", row) for row in rows)]:
            cells = "".join(
                f'<{tag} style="{_CELL if i else first}">{html.escape(cell)}</{tag}>'
                for i, cell in enumerate(row)
            )
            parts.append(f"<tr>{cells}</tr>")
        start = len(parts) - len(rows) - 1
        parts[start] = "<table>" + parts[start]
        parts[-1] += "</table>"
        parts.append(f"<p>{_sums(record.operations)}</p>")
    parts += [f"<p>note: {html.escape(neutral(text, 300))}</p>" for text in record.warnings]
    return "\n".join(parts)


def draw(
    findings: Sequence[Finding],
    accesses: Sequence[Access],
    argument: str | None = None,
    program: int | None = None,
) -> Figure:
    """The lanes of the first fault that they show, or else of the first access.

    Raises Rejected where there is none of that argument and program.
    """
    from autograder.render.lanes import lanes_over_array, shows_its_fault

    guilty = [f.access for f in findings if shows_its_fault(f)]
    for access in (*guilty, *accesses):
        if argument not in (None, access.argument) or not len(access.programs):
            continue
        if program is None or program in access.programs:
            return lanes_over_array(access, program)
    what = f"argument {argument!r}" if argument is not None else "any argument"
    who = f" by program {program}" if program is not None else ""
    names = ", ".join(dict.fromkeys(a.argument for a in accesses)) or "none"
    raise Rejected(f"No access to {what}{who} was kept; there are lanes of: {names}.")
