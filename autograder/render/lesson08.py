"""The pictures of lesson 08: two programs in one cell, who sees which fault, an order of work."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

from autograder.render.style import (
    CELL,
    INK,
    MUTED,
    ON_FILL,
    OUTSIDE,
    PAPER,
    READ,
    WRAPPED,
    bare,
    look,
    new_figure,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["interleaved", "order_of_work", "races", "who_sees"]

# ---------------------------------------------------------------- two programs, one cell


def interleaved(schedule: Sequence[int], adds: Sequence[int]) -> list[tuple[int, str, int]]:
    """(program, what it does, the cell afterwards) of every step, for a cell that begins at 0.

    Each program takes three steps in turn: load, add its number of ``adds``, store. ``schedule``
    names the program of each step.
    """
    cell, held, done, steps = 0, [0] * len(adds), [0] * len(adds), []
    for program in schedule:
        if done[program] == 0:
            held[program] = cell
            said = f"load {cell}"
        elif done[program] == 1:
            held[program] += adds[program]
            said = f"+ {adds[program]}"
        else:
            cell = held[program]
            said = f"store {cell}"
        done[program] += 1
        steps.append((program, said, cell))
    return steps


def races() -> Figure:
    """Load, add, store of two programs: one after the other, and at the same time."""
    schedules = {
        "one after the other, as in Triton's interpreter": (0, 0, 0, 1, 1, 1),
        "at the same time, as a card may run them": (0, 1, 0, 1, 0, 1),
    }
    with look():
        figure = new_figure(
            1.95,
            "Load, add, store are three steps: another program may come in between",
            "program 0 adds 3 and program 1 adds 4 to a cell that holds 0; time runs to the right",
        )
        for axes, (title, schedule) in zip(figure.subplots(1, 2), schedules.items(), strict=True):
            _timeline(axes, title, interleaved(schedule, (3, 4)))
    return figure


def _timeline(axes: Axes, title: str, steps: Sequence[tuple[int, str, int]]) -> None:
    bare(axes)
    axes.set_title(title)
    axes.set_xlim(-2.1, len(steps) + 0.1)
    axes.set_ylim(-0.1, 3.1)
    for row, name in ((2, "program 0"), (1, "program 1"), (0, "the cell")):
        axes.text(-0.2, row + 0.5, name, ha="right", va="center", color=INK)
    for time, (program, said, cell) in enumerate(steps):
        _box(axes, time, 2 - program, said, READ if program == 0 else WRAPPED)
        right = time < len(steps) - 1 or cell == 7
        _box(axes, time, 0, str(cell), CELL if right else OUTSIDE)


def _box(axes: Axes, x: float, y: float, said: str, colour: str) -> None:
    from matplotlib.patches import Rectangle

    axes.add_patch(Rectangle((x + 0.04, y + 0.1), 0.92, 0.8, facecolor=colour, edgecolor="none"))
    ink = PAPER if colour == OUTSIDE else ON_FILL
    axes.text(x + 0.5, y + 0.5, said, ha="center", va="center", fontsize=8, color=ink)


# ---------------------------------------------------------------- who sees which fault

_TOOLS = (
    "comparing\nnumbers",
    "Triton's\ninterpreter",
    "check and\ninterpret",
    "compute-sanitizer\non a card",
)
# compute-sanitizer: NVIDIA's documentation of memcheck and of racecheck (shared memory only).
_SEEN = {
    "load past the end of a tensor": ("no", "no", "yes", "mostly"),
    "load past a row, inside a padded tensor": ("no", "no", "yes", "no"),
    "store past the end of a tensor": ("no", "may crash", "yes", "mostly"),
    "lane without other= that reaches a result": ("chance", "no: it is 0", "yes", "no"),
    "race between programs": ("chance", "no", "yes", "no"),
    "wrong numbers": ("yes", "yes: print", "yes", "no"),
    "wrong numbers in bfloat16": ("yes", "is wrong itself", "yes", "no"),
    "more traffic than needed": ("no", "no", "yes", "no"),
    "how long it takes": ("no", "no", "no", "no"),
}


def who_sees() -> Figure:
    """Faults against ways to look for them."""
    with look():
        figure = new_figure(
            3.5,
            "Numbers that agree say little about bounds, races and traffic",
            "which way of looking sees which fault; compute-sanitizer by its documentation, "
            "the rest in this lesson",
        )
        axes = figure.subplots()
        bare(axes)
        axes.set_xlim(-3.4, len(_TOOLS))
        axes.set_ylim(-len(_SEEN), 1.25)
        for column, tool in enumerate(_TOOLS):
            place = dict(ha="center", va="center", fontsize=8.5, color=MUTED, linespacing=1.15)
            axes.text(column + 0.5, 0.62, tool, **place)
        for row, (fault, seen) in enumerate(_SEEN.items()):
            axes.text(-0.12, -row - 0.5, fault, ha="right", va="center", color=INK)
            for column, said in enumerate(seen):
                _verdict(axes, column, -row - 1, said)
    return figure


def _verdict(axes: Axes, x: float, y: float, said: str) -> None:
    """A filled cell for yes, a hatched one for something between, an empty one for no."""
    from matplotlib.patches import Rectangle

    half = not said.startswith(("yes", "no"))
    face = READ if said.startswith("yes") else CELL if half else "none"
    axes.add_patch(
        Rectangle((x + 0.04, y + 0.08), 0.92, 0.84, facecolor=face, edgecolor=CELL, linewidth=0.8)
    )
    ink = MUTED if face == "none" else ON_FILL
    axes.text(x + 0.5, y + 0.5, said, ha="center", va="center", fontsize=8.5, color=ink)


# ---------------------------------------------------------------- an order of work

_STEPS = (
    ("shrink", "the smallest input that still goes wrong", "a loop over sizes"),
    ("values", "which numbers are wrong, and where do they lie?", "a float64 reference"),
    ("bounds", "does each lane stay in its tensor, each load have its mask?", "interpret"),
    ("races", "which cells do two programs meet in?", "interpret, order="),
    ("traffic", "is anything read twice, or by nobody?", "record.traffic"),
    ("by hand", "one program, lane by lane, on paper", "print, accesses"),
)


def order_of_work() -> Figure:
    """The six steps of this lesson, from left to right."""
    from matplotlib.patches import FancyArrow, Rectangle

    with look():
        figure = new_figure(
            1.3,
            "Shrink first, then ask in this order",
            "what to ask, and with what; the later a step, the more it costs",
        )
        axes = figure.subplots()
        bare(axes)
        axes.set_xlim(0, len(_STEPS))
        axes.set_ylim(0, 3.4)
        for x, (name, question, tool) in enumerate(_STEPS):
            axes.add_patch(Rectangle((x + 0.03, 2.5), 0.8, 0.8, facecolor=READ, edgecolor="none"))
            place = dict(ha="center", va="center", color=ON_FILL, weight="bold")
            axes.text(x + 0.43, 2.9, f"{x + 1}  {name}", **place)
            lines = "\n".join(textwrap.wrap(question, 20))
            axes.text(x + 0.03, 2.3, lines, ha="left", va="top", fontsize=8, color=INK)
            axes.text(x + 0.03, 0.1, tool, ha="left", va="bottom", fontsize=8, color=MUTED)
            if x:
                arrow = dict(width=0.02, head_width=0.22, head_length=0.07, color=MUTED)
                axes.add_patch(
                    FancyArrow(x - 0.14, 2.9, 0.13, 0, length_includes_head=True, **arrow)
                )
    return figure
