"""Step through a launch: one program, one memory operation at a time.

In a live notebook two sliders redraw the picture; where widgets do not run, the same operations
stand below one another in a static picture. Work is bounded: frames are drawn on demand.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from autograder.records import Access, Run, View
from autograder.render import geometry, style
from autograder.render.cells import CELLS, FEW, GAP, PREPOSITION, paint
from autograder.render.geometry import Lanes, Page
from autograder.render.neutral import count, neutral, spaced
from autograder.render.style import BEYOND, INSIDE, MASKED, NEXT_ROW, PAST

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["Player", "player"]

_STEPS = 200  # operations of one program that can be stepped through
_TENSORS = 6  # drawn in a frame
_STATIC = (3, 4)  # programs × operations of the static picture


def player(source: Run | Iterable[Access], *, static: bool = False) -> Player:
    """A player for the accesses of a run (``keep_accesses=True``) or of a list.

    ``static=True`` shows the picture without sliders also where widgets run.
    Raises ValueError when there is no access to show.
    """
    accesses = source.accesses if isinstance(source, Run) else tuple(source)
    return Player(accesses, static=static)


class Player:
    """What ``player`` returns. Jupyter shows it; ``frame`` and ``overview`` give its figures."""

    def __init__(self, accesses: Iterable[Access], static: bool = False):
        self.accesses = tuple(accesses)
        self.static = static
        if not any(len(access.programs) for access in self.accesses):
            raise ValueError(
                "this run kept no accesses, so there is nothing to play: use keep_accesses=True."
            )
        #: linear ids of the programs that can be shown, in order
        self.programs = np.unique(np.concatenate([a.programs for a in self.accesses])).tolist()
        #: programs of the launch: of a large one a run keeps some, the last among them
        self.total = self.programs[-1] + 1
        self._drawn = lru_cache(maxsize=64)(self._frame_svg)

    def steps(self, program: int) -> list[tuple[Access, int]]:
        """The operations of one program in order, each with the program's row in the access."""
        out = []
        for access in self.accesses:
            rows = np.flatnonzero(access.programs == program)
            out += [(access, int(row)) for row in rows]
        return out[:_STEPS]

    def frame(self, program: int, step: int) -> Figure:
        """The tensors after operation ``step`` (from 0): its lanes, and in pale what was before.

        Raises ValueError for a program or a step that is not there.
        """
        steps = self.steps(program)
        if not 0 <= step < len(steps):
            raise ValueError(f"program {program} has {count(len(steps), 'step')}, not step {step}.")
        with style.look():
            return _frame(steps, step)

    def overview(self) -> Figure:
        """The first operations of a few programs in one picture."""
        most, operations = _STATIC
        programs = self.programs
        if len(programs) > most:
            programs = [*programs[: most - 1], programs[-1]]
        with style.look():
            return _overview([self.steps(p) for p in programs], operations, self.total)

    # ------------------------------------------------------------ in Jupyter

    def _frame_svg(self, program: int, step: int) -> str:
        return style.svg(self.frame(program, step))

    def widget(self) -> Any:
        """Sliders for program and step above the picture (needs ipywidgets)."""
        import ipywidgets as widgets

        lazy = dict(continuous_update=False)
        program = widgets.SelectionSlider(options=self.programs, description="program", **lazy)
        step = widgets.IntSlider(min=1, max=1, value=1, description="step", **lazy)
        play = widgets.Play(min=1, max=1, interval=1200, show_repeat=False)
        picture = widgets.HTML()

        def draw(_=None):
            picture.value = self._drawn(program.value, step.value - 1)

        def other_program(_=None):
            step.max = play.max = len(self.steps(program.value))  # a value beyond it is clipped
            draw()

        program.observe(other_program, "value")
        step.observe(draw, "value")
        widgets.jslink((play, "value"), (step, "value"))
        other_program()
        return widgets.VBox([widgets.HBox([program, step, play]), picture])

    def _ipython_display_(self) -> None:
        """Sliders, and folded below them the static picture: a saved page has no sliders."""
        if self.static or not _widgets_run():
            raise NotImplementedError  # IPython then takes _repr_html_
        from IPython.display import HTML, display

        display(self.widget())
        summary = '<summary style="cursor:pointer;opacity:0.75">without sliders</summary>'
        display(HTML(f"<details>{summary}{self._repr_html_()}</details>"))

    def _repr_html_(self) -> str:
        return self.overview()._repr_html_()

    def __repr__(self) -> str:
        some = "" if len(self.programs) == self.total else f"{len(self.programs)} of "
        programs = f"{some}{count(self.total, 'program')}"
        lines = [f"player of {programs}; program {self.programs[0]}:"]
        for i, (access, row) in enumerate(self.steps(self.programs[0])[:8], 1):
            lines.append(f"  {i}. {_said(access)}: {_tally(_placed(access, row))}")
        return "\n".join(lines)


def _widgets_run() -> bool:
    """A kernel that a front end is connected to, and ipywidgets installed."""
    if importlib.util.find_spec("ipywidgets") is None:
        return False
    from IPython import get_ipython

    return getattr(get_ipython(), "kernel", None) is not None


# ---------------------------------------------------------------- words


def _said(access: Access) -> str:
    where = f", line {access.line}" if access.line > 0 else ""
    return f"{PREPOSITION[access.operation]} {neutral(access.argument, 40)}{where}"


def _tally(placed: Lanes) -> str:
    words = (INSIDE, "in"), (MASKED, "masked"), (NEXT_ROW, "in the next row"), (BEYOND, "outside")
    parts = [f"{spaced(placed.how_many(s), GAP)} {word}" for s, word in words if placed.how_many(s)]
    return ", ".join(parts) or "no lanes"


def _placed(access: Access, row: int) -> Lanes:
    return geometry.lanes(access, np.array([row]), geometry.page(access.view))


# ---------------------------------------------------------------- one frame


def _frame(steps: list[tuple[Access, int]], now: int) -> Figure:
    access, row = steps[now]
    placed = _placed(access, row)
    title = f"program {access.programs[row]}, step {now + 1} of {len(steps)}: {_said(access)}"
    tensors = _tensors(steps, access)
    flat = all(geometry.page(view).flat for _, view in tensors)
    height = 0.75 + 0.5 * len(tensors) if flat else 2.9
    facts = f"{neutral(access.kernel, 40)} · {_tally(placed)}"
    figure = style.new_figure(height, title, facts)
    shape = (len(tensors), 1) if flat else (1, len(tensors))
    seen = set()
    for axes, key in zip(figure.subplots(*shape, squeeze=False).flat, tensors, strict=True):
        before = [_placed(a, r) for a, r in steps[:now] if (a.argument, a.view) == key]
        after = [_placed(a, r) for a, r in steps[now:] if (a.argument, a.view) == key]
        current = placed if key == (access.argument, access.view) else None
        seen |= _tensor(axes, key, before, current, after)
        if not flat and geometry.page(key[1]).flat:
            _strip(axes)
    style.legend(figure, seen)
    return figure


def _tensors(steps: list[tuple[Access, int]], access: Access) -> list[tuple[str, View]]:
    """The tensors that a program touches, in order; at most six, and the present one among them."""
    keys = list(dict.fromkeys((a.argument, a.view) for a, _ in steps))
    present = (access.argument, access.view)
    if keys.index(present) >= _TENSORS:
        keys = [*keys[: _TENSORS - 1], present]
    return keys[:_TENSORS]


def _tensor(axes: Axes, key, before: list[Lanes], current: Lanes | None, after: list[Lanes]):
    """One tensor: what was touched before, and the lanes of the present operation."""
    name, view = key
    layout = geometry.page(view)
    window = _window(layout, [*before, *after])
    most = (1, 2048) if layout.flat else (128, 128)
    states, per_row, per_column = geometry.grid(layout, None, window, most)
    for past in before:
        states[geometry.grid(layout, past, window, most)[0] == INSIDE] = PAST
    if current is not None:
        now = geometry.grid(layout, current, window, most)[0]
        lanes = np.isin(now, (MASKED, INSIDE, NEXT_ROW, BEYOND))
        states[lanes] = now[lanes]
    top, left, height, width = window
    cells = max(height, width) <= (FEW if layout.flat else CELLS)
    seen = paint(axes, states, (top, left), (per_row, per_column), gap=0.08 if cells else 0.0)
    axes.set_xlim(left, left + width)
    axes.set_ylim(top + height, top)
    style.bare(axes)
    weight = "bold" if current is not None else "normal"
    colour = style.INK if current is not None else style.MUTED
    if layout.flat:
        axes.set_yticks([0.5], [neutral(name, 16)], color=colour, weight=weight)
        axes.tick_params(axis="y", length=0)
        ends = [max(left, 0), min(left + width, layout.columns)]
        axes.set_xticks(ends, [spaced(end, GAP) for end in ends])
    else:
        axes.set_title(neutral(name, 24), color=colour, weight=weight)
        axes.set_aspect("equal" if 0.25 < height / width < 4 else "auto", anchor="NW")
        axes.set_xticks([0, layout.columns], ["0", spaced(layout.columns, GAP)])
        axes.set_yticks([0, layout.rows], ["0", spaced(layout.rows, GAP)])
    return seen


def _strip(axes: Axes) -> None:
    """A vector among matrices stays low: it has one row."""
    axes.set_box_aspect(0.12)
    axes.set_anchor("NW")


def _window(layout: Page, lanes: list[Lanes]) -> tuple[int, int, int, int]:
    """The whole tensor, or of a long vector the part that the program touches."""
    box = lanes[0].box
    for one in lanes[1:]:
        box = geometry.union(box, one.box)
    whole = (0, 0, max(layout.rows, 1), max(layout.columns, 1))
    if layout.flat and layout.columns > max(2 * FEW, 4 * box[3]):
        margin = max(1, box[3] // 6)
        width = box[3] + 2 * margin  # the same at both ends, so that programs compare
        start, end = min(0, box[1]), max(layout.columns, box[1] + box[3])
        left = max(start, min(box[1] - margin, end - width))
        return 0, left, 1, min(width, end - left)
    return geometry.union(whole, box)


# ---------------------------------------------------------------- without widgets


def _overview(programs: list[list[tuple[Access, int]]], operations: int, total: int) -> Figure:
    """One strip (or small page) an operation, the programs below one another."""
    shown = [steps[:operations] for steps in programs]
    layouts = [geometry.page(a.view) for steps in shown for a, _ in steps]
    flat = all(layout.flat for layout in layouts)
    cut = max(len(steps) for steps in programs) > operations
    title = f"{count(len(shown), 'program')} of {spaced(total, GAP)}, operation by operation"
    if total == len(shown):
        title = f"{count(total, 'program')}, operation by operation"
    facts = f"the first {operations} operations of each" if cut else "every load and every store"
    rows = [(steps, i) for steps in shown for i in range(len(steps))]
    height = 0.45 + 0.36 * len(rows) if flat else 0.5 + 1.55 * len(shown)
    figure = style.new_figure(height, title, facts)
    if flat:
        grid = figure.subplots(len(rows), 1, squeeze=False)
        places = list(zip(grid.flat, rows, strict=True))
    else:
        grid = figure.subplots(len(shown), max(map(len, shown)), squeeze=False)
        for axes in grid.flat:
            axes.set_axis_off()
        places = [
            (grid[p, i], (steps, i)) for p, steps in enumerate(shown) for i in range(len(steps))
        ]
    seen = set()
    for axes, (steps, i) in places:
        seen |= _small(axes, steps, i, flat)
    style.legend(figure, seen)
    return figure


def _small(axes: Axes, steps: list[tuple[Access, int]], i: int, flat: bool) -> set[int]:
    access, row = steps[i]
    placed = _placed(access, row)
    key = (access.argument, access.view)
    every = [_placed(a, r) for a, r in steps if (a.argument, a.view) == key]
    axes.set_axis_on()
    seen = _tensor(axes, key, [], placed, every)
    if not flat and geometry.page(access.view).flat:
        _strip(axes)
    axes.set_xticks([])
    program = f"program {access.programs[row]}"
    said = f"{access.operation} {neutral(access.argument, 16)}"
    if flat:
        axes.set_yticks([0.5], [f"{program} · {said}" if i == 0 else said], color=style.INK)
        axes.get_yticklabels()[0].set_weight("normal")
        tally = axes.secondary_yaxis("right")
        tally.set_yticks([0.5], [_tally(placed)])
        tally.tick_params(length=0)
        tally.spines["right"].set_visible(False)
    else:
        axes.set_yticks([])
        axes.set_title(f"{program} · {said}" if i == 0 else said, fontsize=8.5)
    return seen
