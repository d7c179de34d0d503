"""The pictures of lesson 02: the last program's block, what fusion saves, the roof over it all."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from autograder.ir.cards import DEFAULT, card
from autograder.render.figures import roofline
from autograder.render.neutral import count, spaced
from autograder.render.passes import Solution, passes
from autograder.render.style import (
    ARRAY,
    INSIDE,
    MASKED,
    MUTED,
    ON_FILL,
    PAPER,
    STATE_WORDS,
    STATES,
    bare,
    legend,
    look,
    new_figure,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.patches import ConnectionPatch

__all__ = ["fusion", "roof", "tail"]


def tail(n: int = 98432, block: int = 1024) -> Figure:
    """All programs over an array of ``n`` elements, and the last program's block, enlarged.

    ``block`` is the number of elements a program owns; programs are cdiv(n, block). Lanes
    without an element are drawn as a mask leaves them, switched off.
    """
    from matplotlib.patches import Rectangle

    programs = -(-n // block)
    start = (programs - 1) * block
    inside = n - start
    with look():
        figure = new_figure(
            2.3,
            f"{count(programs, 'program')} own {spaced(n)} elements; "
            + (f"the last one has only {spaced(inside)}" if inside < block else "all are full"),
            f"each owns a block of {spaced(block)}",
        )
        top, bottom = figure.subplots(2, 1, height_ratios=(1, 1.5))
        for axes in (top, bottom):
            bare(axes)
            axes.set_ylim(-0.9, 1.2)
        top.set_xlim(-0.01 * programs, 1.01 * programs)
        for program in range(programs):
            last = program == programs - 1
            style = STATES[INSIDE if last else ARRAY] | dict(edgecolor=PAPER, linewidth=0.5)
            top.add_patch(Rectangle((program, 0), 1, 1, **style))
        _tick(top, 0.5, "program 0")
        _tick(top, programs - 0.5, f"program {programs - 1}", "right")
        top.text(programs / 2, -0.45, "…", ha="center", va="center", color=MUTED)

        bottom.set_xlim(-0.01 * block, 1.01 * block)
        bottom.add_patch(Rectangle((0, 0), inside, 1, linewidth=0.6, **STATES[INSIDE]))
        if inside < block:
            rest = Rectangle((inside, 0), block - inside, 1, linewidth=0.6, **STATES[MASKED])
            bottom.add_patch(rest)
            _tick(bottom, inside, f"{spaced(n - 1)}, the last element", "left")
        _tick(bottom, 0, spaced(start), "left")
        _tick(bottom, block, spaced(start + block - 1), "right")
        words = spaced(inside)
        bottom.text(inside / 2, 0.5, words, ha="center", va="center", color=ON_FILL)
        if inside < block:
            middle, words = (inside + block) / 2, f"{spaced(block - inside)} without an element"
            bottom.text(middle, -0.35, words, ha="center", va="top", color=MUTED)
        for here, there in ((programs - 1, 0), (programs, block)):
            figure.add_artist(_zoom_line(top, here, bottom, there))
        shown = (ARRAY, INSIDE, MASKED) if inside < block else (ARRAY, INSIDE)
        legend(figure, shown, words=STATE_WORDS | {ARRAY: "block of another program"})
    return figure


def _zoom_line(top: Axes, here: float, bottom: Axes, there: float) -> ConnectionPatch:
    from matplotlib.patches import ConnectionPatch

    style = dict(color=MUTED, linewidth=0.7, linestyle=":")
    return ConnectionPatch((here, 0), (there, 1), "data", "data", axesA=top, axesB=bottom, **style)


def _tick(axes: Axes, x: float, text: str, align: str = "left") -> None:
    """A number under the bar at ``x``, with a short line that says where it points."""
    axes.plot([x, x], [-0.25, 0], color=MUTED, linewidth=0.7)
    axes.text(x, -0.35, text, ha=align, va="top", fontsize=8.5, color=MUTED)


def fusion() -> Figure:
    """relu(x·y + z) as three kernels and as one: every box is n numbers that cross the bus."""
    three = (
        ("t = x · y", ("x", "y", "→ t")),
        ("u = t + z", ("t", "z", "→ u")),
        ("out = relu(u)", ("u", "→ out")),
    )
    one = (("out = relu(x · y + z)", ("x", "y", "z", "→ out")),)
    return passes(
        (Solution(three, "8n"), Solution(one, "4n")),
        "One pass moves half of what three kernels move",
        "every box is n numbers between memory and the SMs",
    )


def roof(
    kernels: Mapping[str, tuple[float, float]],
    name: str = DEFAULT,
    measured: Any = None,
) -> Figure:
    """The fp32 roofline of a card with the points that theory gives for ``kernels``.

    ``kernels``: label → (floating-point operations, bytes) per element. ``measured``, which
    ``measure`` returns, adds what ran here, each function at its largest size, under the roof of
    the card that it ran on; a function whose label is not in ``kernels`` has the operations and
    bytes of the first. What ran on a card that the table lacks is left out.
    """
    ran = {t.name: t for t in measured.timings} if measured and measured.bandwidth else {}
    row = card(measured.card if ran else name)
    points = [
        {
            "label": f"{label}, {operations:g}/{nbytes:g} FLOP a byte",
            "intensity": operations / nbytes,
        }
        for label, (operations, nbytes) in kernels.items()
    ]
    for label, timing in ran.items():
        operations, nbytes = kernels.get(label, next(iter(kernels.values())))
        speed = timing.gbs * operations / nbytes / 1e3  # TFLOP/s
        said = f"{label}, {timing.gbs:.0f} GB/s"
        points.append({"label": said, "intensity": operations / nbytes, "performance": speed})
    about = {"name": row.name, "bandwidth": row.bandwidth, "peak": row.fp32_tflops}
    return roofline(about, points)
