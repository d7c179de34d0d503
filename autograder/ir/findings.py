"""Faults of a launch, gathered while it runs, then said in sentences.

One finding per (kind, kernel, argument, line): lanes are summed over all programs, and the program
with the smallest id tells the story.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from autograder.records import Access, Finding


@dataclass(slots=True)
class _Fault:
    lanes: int = 0
    program: int | None = None
    story: dict = field(default_factory=dict)  # facts of the program that tells it
    access: Access | None = None


@dataclass(slots=True)
class Faults:
    """The faults of one kernel launch. ``grid`` turns linear program ids into coordinates."""

    kernel: str
    grid: tuple[int, int, int]
    found: dict[tuple, _Fault] = field(default_factory=dict)

    def _add(self, kind, argument, line, lanes, program, story, access=None):
        fault = self.found.setdefault((kind, argument, line), _Fault())
        fault.lanes += int(lanes)
        if fault.program is None or program < fault.program:
            fault.program, fault.story, fault.access = int(program), story, access

    # ------------------------------------------------------------ notes

    def note_bounds(self, op, verb, window, pointer, bad, mask, shape, batch):
        row, total, per_program = _first_program(bad, shape, batch)
        full = (len(batch), *shape)
        offsets = np.broadcast_to(pointer.offset, full)[row]
        outside = np.broadcast_to(bad, full)[row]
        active = np.ones(shape, bool) if mask is None else np.broadcast_to(mask, full)[row]
        at_fault = offsets[outside]
        _, bitmap, count, _, _ = window.reach(pointer.dtype)
        story = {
            "verb": verb,
            "lanes": int(per_program),
            "of": int(active.sum()),
            "masked": not active.all(),
            "low": int(at_fault.min()),
            "high": int(at_fault.max()),
            "where": _span(*np.unique(at_fault).tolist()),
            "size": int(np.prod(window.view.shape)) if bitmap is None else None,
            "count": count,
            "shape": window.view.shape,
            "strides": window.view.strides,
        }
        access = Access(
            self.kernel,
            op.line,
            window.argument,
            verb,
            batch.programs[row : row + 1].copy(),
            offsets[None].copy(),
            active[None].copy(),
            (~outside)[None].copy(),
            window.view,
        )
        self._add(
            "out_of_bounds", window.argument, op.line, total, batch.programs[row], story, access
        )

    def note_state(self, kind, op, window, bad, index, shape, batch):
        row, total, per_program = _first_program(bad, shape, batch)
        full = (len(batch), *shape)
        cells = np.broadcast_to(index, full)[row][np.broadcast_to(bad, full)[row]]
        story = {
            "lanes": int(per_program),
            "where": _span(*np.unique(cells).tolist()),
            "torch": ", ".join(dict.fromkeys(window.buffer.foreign)),
        }
        self._add(kind, window.argument, op.line, total, batch.programs[row], story)

    def note_flat(self, kind, op, window, programs, bad, index):
        first = int(programs[bad].min())
        cells = index[bad & (programs == first)]
        story = {
            "lanes": len(cells),
            "where": _span(*np.unique(cells).tolist()),
            "torch": "",
            "atomic": True,
        }
        self._add(kind, window.argument, op.line, bad.sum(), first, story)

    def note_race(self, op, window, programs, bad, other, how, index):
        first = int(programs[bad].min())
        mine = bad & (programs == first)
        story = {
            "how": how,
            "lanes": int(mine.sum()),
            "cell": int(index[mine][0]),
            "other": None if other is None else int(np.broadcast_to(other, bad.shape)[mine][0]),
        }
        self._add("race", window.argument, op.line, bad.sum(), first, story)

    def note_undefined(self, argument, line, lanes, program):
        self._add("undefined_lane", argument, line, lanes, program, {})

    # ------------------------------------------------------------ sentences

    def coordinates(self, program: int) -> tuple[int, ...]:
        """Linear id → (x), (x, y) or (x, y, z), as many axes as the grid uses."""
        x, y, z = self.grid
        axes = 3 if z > 1 else 2 if y > 1 else 1
        return (program % x, program // x % y, program // (x * y))[:axes]

    def program_text(self, program: int) -> str:
        at = self.coordinates(program)
        return str(at[0]) if len(at) == 1 else f"({', '.join(map(str, at))})"

    def findings(self) -> list[Finding]:
        out = []
        for (kind, argument, line), fault in self.found.items():
            out.append(
                Finding(
                    kind,
                    getattr(self, f"_say_{kind}")(argument, line, fault),
                    self.kernel,
                    argument,
                    line,
                    self.coordinates(fault.program),
                    fault.lanes,
                    fault.access,
                )
            )
        return out

    def _say_out_of_bounds(self, argument, line, fault):
        s = fault.story
        if s["low"] < 0 and s["high"] < 0:
            where = "before the start"
        elif s["low"] >= s["count"]:
            where = "past the end"
        else:
            where = "outside"
        preposition = {"store": "to", "atomic": "on"}.get(s["verb"], "from")
        if s["size"] is not None:
            holds = f"{argument} has {_elements(s['size'])}"
        elif len(s["shape"]) < 2:  # what lies between its elements belongs to another tensor
            holds = f"{argument} has {_elements(math.prod(s['shape']))}, {s['strides'][0]} apart"
        else:
            holds = (
                f"{argument} is {' × '.join(map(str, s['shape']))} with strides "
                f"{', '.join(map(str, s['strides']))}"
            )
        lanes = "unmasked lanes" if s["masked"] else "lanes"
        offsets = "offset" if s["low"] == s["high"] else "offsets"
        return (
            f"{s['verb']} {preposition} {argument}: {s['lanes']} of {s['of']} {lanes} {where} "
            f"(program {self.program_text(fault.program)}, line {line}: {offsets} "
            f"{s['where']}, {holds})."
        )

    def _say_uninitialised(self, argument, line, fault):
        s = fault.story
        one = s["lanes"] == 1
        lanes = "1 lane" if one else f"{s['lanes']} lanes"
        offsets = f"offset{'s' * (not one)} {s['where']}"
        place = f"(program {self.program_text(fault.program)}, line {line}: {offsets})"
        if s.get("atomic"):
            return (
                f"atomic on {argument}: {lanes} update{one * 's'} memory that nobody has written "
                f"{place}. What must stand there before the first update?"
            )
        return (
            f"load from {argument}: {lanes} read{one * 's'} memory that nobody has written {place}."
        )

    def _say_torch_computed(self, argument, line, fault):
        what = fault.story["torch"] or "torch"
        return (
            f"load from {argument} (line {line}) reads values that torch computed ({what}), "
            f"not your kernel."
        )

    def _say_undefined_lane(self, argument, line, fault):
        return (
            f"load from {argument} (line {line}): {fault.lanes} lanes are masked off and no "
            f"`other=` says what they hold, yet the result depends on them (first in program "
            f"{self.program_text(fault.program)}). On a GPU they hold anything."
        )

    def _say_race(self, argument, line, fault):
        s = fault.story
        me = self.program_text(fault.program)
        if s["how"] == "lanes":
            return (
                f"store to {argument}: lanes of one program write different values to the "
                f"same element (program {me}, line {line}, element {s['cell']}). Which one "
                f"stays is luck."
            )
        them = (
            f"program {self.program_text(s['other'])}"
            if s["other"] is not None and s["other"] >= 0
            else "several other programs"
        )
        what = {
            "write": f"writes to element {s['cell']} of {argument}, which {them} wrote as well",
            "read": f"writes to element {s['cell']} of {argument}, which {them} read",
            "atomic": f"writes plainly to element {s['cell']} of {argument}, "
            f"which {them} updates atomically",
            "read of write": f"reads element {s['cell']} of {argument}, which {them} wrote",
            "read of atomic": f"reads element {s['cell']} of {argument} plainly, "
            f"which {them} updates atomically",
            "atomic of write": f"updates element {s['cell']} of {argument} atomically, "
            f"which {them} wrote plainly",
            "exchange": f"exchanges element {s['cell']} of {argument}, "
            f"which {them} changed as well",
            "atomic of read": f"updates element {s['cell']} of {argument} atomically, "
            f"which {them} read plainly",
        }[s["how"]]
        return (
            f"race on {argument}: program {me} {what} (line {line}, {fault.lanes} lanes in all). "
            f"Programs run in any order, and at the same time."
        )


def _span(*offsets: int) -> str:
    """Sorted offsets: ``5``, ``3…9`` where none is missing, ``1, 3``, ``1, 3 … 99`` of many."""
    low, high = offsets[0], offsets[-1]
    if low == high:
        return str(low)
    if high - low == len(offsets) - 1:
        return f"{low}…{high}"
    if len(offsets) <= 4:
        return ", ".join(map(str, offsets))
    return f"{low}, {offsets[1]} … {high}"


def _elements(count: int) -> str:
    return f"{count} element{'s' * (count != 1)}"


def _first_program(bad, shape, batch):
    """Row of the program with the smallest id at fault, lanes in all, lanes of that program."""
    rows = np.broadcast_to(bad, (len(batch), *shape)).reshape(len(batch), -1).sum(axis=1)
    hit = np.flatnonzero(rows)
    row = hit[np.argmin(batch.programs[hit])]
    return int(row), int(rows.sum()), int(rows[row])
