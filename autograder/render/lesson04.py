"""The pictures of lesson 04: passes of RMSNorm, running sums in narrow types, error by width."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from autograder.render.neutral import spaced
from autograder.render.passes import Solution
from autograder.render.passes import passes as _passes
from autograder.render.style import INK, OUTSIDE, READ, WRAPPED, look, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["accumulation", "by_width", "passes"]


def passes() -> Figure:
    """RMSNorm as six kernels and as one: every large box is the whole matrix."""
    eager = (
        ("t = x²", ("x", "→ t")),
        ("a = mean", ("t", "→ (a)")),
        ("a + eps", ("(a)", "→ (b)")),
        ("1/√", ("(b)", "→ (r)")),
        ("u = x · r", ("x", "(r)", "→ u")),
        ("y = u · w", ("u", "(w)", "→ y")),
    )
    return _passes(
        (
            Solution(eager, "7"),
            Solution((("y = rmsnorm(x, w)", ("x", "(w)", "→ y")),), "2"),
        ),
        "Six kernels pass over the matrix seven times, one kernel twice",
        "every large box is M × N numbers between memory and the SMs; a, b and r have M, w has N",
    )


def accumulation(sums: Mapping[str, Sequence[float]], exact: Sequence[float]) -> Figure:
    """Relative error of running sums against the exact ones, on two logarithmic axes.

    ``sums``: type → the sum after 1, 2, 3 … numbers, each addition rounded to that type; ``exact``
    the same in float64. Where there is no error nothing is drawn.
    """
    exact = np.asarray(exact, np.float64)
    n = np.arange(1, len(exact) + 1)
    with look():
        figure = new_figure(
            3.1,
            "A narrow running sum loses digits, then stops growing",
            f"relative error of the sum of n numbers, n up to {spaced(len(exact))}; "
            "a gap in a line: no error at all",
        )
        axes = figure.subplots()
        axes.set_xscale("log")
        axes.set_yscale("log")
        for (name, values), (colour, dash) in zip(sums.items(), _LINES, strict=False):
            error = np.abs(np.asarray(values, np.float64) - exact) / np.abs(exact)
            shown = np.where(error > 0, error, np.nan)
            axes.plot(n, shown, color=colour, linestyle=dash, linewidth=1.3, label=name)
        axes.set_xlim(1, len(exact))
        axes.set_ylim(1e-9, 3)
        ticks = [10**k for k in range(int(np.log10(len(exact))) + 1)]
        axes.set_xticks(ticks, [spaced(tick) for tick in ticks])
        # matplotlib would write powers of ten as formulas, which this style leaves unread
        axes.set_yticks([1e-8, 1e-6, 1e-4, 1e-2, 1], ["1e-8", "1e-6", "1e-4", "0.01", "1"])
        axes.minorticks_off()
        axes.set_xlabel("n")
        axes.legend(loc="lower left")
    return figure


_LINES = ((OUTSIDE, "-"), (WRAPPED, "--"), (READ, "-."), (INK, ":"))


def by_width(widths: Sequence[int], errors: Sequence[float], blocks: Sequence[int]) -> Figure:
    """Largest relative error of a kernel against the width of its rows.

    ``blocks``: the block of each width. Widths that fill their block are marked.
    """
    widths, errors = np.asarray(widths), np.asarray(errors, np.float64)
    full = widths == np.asarray(blocks)
    with look():
        figure = new_figure(
            2.6,
            "Where the error is nearly 0 the row fills its block",
            "largest relative error against the number of columns",
        )
        axes = figure.subplots()
        axes.set_xscale("log", base=2)
        axes.plot(widths, errors, color=READ, linewidth=1.2, marker="o", markersize=3.5)
        axes.plot(widths[full], errors[full], "s", color=OUTSIDE, markersize=7)
        axes.set_xticks(widths[full], [spaced(int(width)) for width in widths[full]])
        axes.minorticks_off()
        axes.set_ylim(-0.04 * errors.max(), 1.1 * errors.max())
        axes.set_xlabel("columns; squares: the row is as long as its block")
        axes.set_ylabel("error")
        axes.yaxis.set_major_formatter(lambda value, _: f"{100 * value:.0f} %")
    return figure
