"""Ladders of kernels and kernels beside their rivals: speeds as ratios of times, from records.

Pictures of figures that were measured elsewhere: the caller says on which card and when.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from autograder.render import style
from autograder.render.neutral import neutral

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["ladder", "ratios"]

_SHAPES = "Ds^vPX"  # of rivals, in the order in which they come
_DASHES = ("--", ":", "-.")
_OWN = "o^vs"  # of the course's kernels; the first is filled
_TOP = -0.6  # of the rows of a ladder


def ladder(
    title: str,
    facts: str,
    steps: Sequence[Mapping],
    rivals: Mapping[str, float],
    guesses: Mapping[str, float] | None = None,
) -> Figure:
    """A bar a step, its speed over that of the last rival; beside it the gain over the step before.

    ``steps``: mappings with ``label``, ``ratio`` (speed over the last rival's; None: it was not
    measured), ``gain`` (over the step before, None for the first) and ``expect``, the predicted
    one, or None. ``rivals``: name → ratio, the last one's is 1. ``guesses``: label → the reader's
    own prediction.
    """
    guesses = guesses or {}
    vendor = neutral(list(rivals)[-1], 30)
    with style.look():
        figure = style.new_figure(0.36 * len(steps) + 0.75, title, facts)
        speeds, gains = figure.subplots(1, 2, width_ratios=[1.5, 1])
        _bars(speeds, steps, rivals)
        speeds.set_xlabel(f"speed, {vendor} = 1")
        _gains(gains, steps, guesses)
        gains.set_xlabel("gain over the step before: times as fast")
        _key(figure, bool(guesses))
    return figure


def _bars(axes: Axes, steps: Sequence[Mapping], rivals: Mapping[str, float]) -> None:
    for y, step in enumerate(steps):
        if step["ratio"] is None:
            axes.text(0.01, y, "not measured", va="center", color=style.MUTED, fontsize=8.5)
            continue
        face = style.READ if y == len(steps) - 1 else style.DONE
        axes.barh([y], [step["ratio"]], height=0.66, color=face)
        said = dict(va="center", ha="right", fontsize=8.5, color=style.ON_FILL)
        said["bbox"] = dict(facecolor=face, edgecolor="none", pad=0.8)  # no rival's line crosses it
        axes.text(step["ratio"] - 0.01, y, f"{step['ratio']:.2f}", **said)
    _rows(axes, [step["label"] for step in steps])
    names = list(rivals)
    for name, ratio in rivals.items():
        dash = "-" if name == names[-1] else _DASHES[names.index(name) % len(_DASHES)]
        axes.axvline(ratio, color=style.INK, linewidth=1.2, linestyle=dash)
        place = dict(ha="center", va="bottom", fontsize=8.3, color=style.MUTED)
        axes.text(ratio, _TOP - 0.08, neutral(name, 24), **place)
    most = max([*rivals.values(), *(s["ratio"] or 0 for s in steps)])
    axes.set_xlim(0, 1.08 * most)


def _rows(axes: Axes, labels: Sequence[str]) -> None:
    style.bare(axes, "bottom left")
    axes.spines["left"].set_visible(False)
    axes.tick_params(axis="y", length=0, labelcolor=style.INK)
    axes.set_yticks(range(len(labels)), [neutral(label, 34) for label in labels])
    axes.set_ylim(len(labels) - 0.4, _TOP)


def _gains(axes: Axes, steps: Sequence[Mapping], guesses: Mapping[str, float]) -> None:
    style.bare(axes, "bottom")
    axes.axvline(1, color=style.MUTED, linewidth=0.8)
    seen = [1.0]
    for y, step in enumerate(steps):
        gain, expect, guess = step["gain"], step["expect"], guesses.get(step["label"])
        known = [value for value in (gain, expect, guess) if value]
        seen += known
        if len(known) > 1:
            axes.plot([min(known), max(known)], [y, y], color=style.CELL, linewidth=3, zorder=1)
        hollow = dict(markerfacecolor="none", markeredgewidth=1.4, color=style.INK, zorder=3)
        if expect:
            axes.plot([expect], [y], "o", markersize=6.5, **hollow)
        if guess:
            axes.plot([guess], [y], "D", markersize=6, **hollow)
        if gain:
            axes.plot([gain], [y], "o", color=style.OUTSIDE, markersize=6.5, zorder=4)
            # In a column of their own: beside a mark it could be read as the prediction's.
            column = dict(transform=axes.get_yaxis_transform(), ha="right", fontsize=8.5)
            axes.text(1, y, f"{gain:.2f}", va="center", **column)
    if any(step["gain"] for step in steps):
        head = dict(transform=axes.get_yaxis_transform(), ha="right", va="bottom", fontsize=8.3)
        axes.text(1, _TOP - 0.08, "measured", color=style.MUTED, **head)
    low, high = min(seen), max(seen)
    axes.set_xlim(low - 0.08 * (high - low) - 0.02, high + 0.3 * (high - low) + 0.03)
    axes.set_ylim(len(steps) - 0.4, _TOP)


def _key(figure: Figure, guessed: bool) -> None:
    from matplotlib.lines import Line2D

    look = dict(linestyle="none", markersize=6.5)
    hollow = look | dict(color=style.INK, markerfacecolor="none", markeredgewidth=1.4)
    handles = [
        Line2D([], [], marker="o", color=style.OUTSIDE, label="gain, measured", **look),
        Line2D([], [], marker="o", label="predicted from the reason", **hollow),
    ]
    if guessed:
        handles.append(Line2D([], [], marker="D", label="your guess", **hollow))
    figure.legend(handles=handles, loc="outside lower left", ncols=3)


def ratios(title: str, facts: str, panels: Sequence[Mapping]) -> Figure:
    """Small pictures of speed by size, each over its own last rival.

    A panel: ``title``; ``sizes``; ``vendor``, who is 1; ``own`` and ``rivals``, name → ratios at
    the sizes (None: not measured); ``wanted``, the least ratios at the sizes that were aimed at.
    """
    columns = 2 if len(panels) in (2, 4) else 3
    rows = -(-len(panels) // columns)
    with style.look():
        figure = style.new_figure(2.3 * rows + 0.3, title, facts)
        places = list(figure.subplots(rows, columns, squeeze=False).flat)
        looks: dict[str, dict] = {}
        for axes, panel in zip(places, panels, strict=False):
            _panel(axes, panel, looks)
        for axes in places[len(panels) :]:
            axes.set_visible(False)
        _sizes_key(figure, looks, any(any(p["wanted"]) for p in panels))
    return figure


def _panel(axes: Axes, panel: Mapping, looks: dict[str, dict]) -> None:
    places = range(len(panel["sizes"]))
    heading = textwrap.fill(neutral(panel["title"], 80), 36)
    axes.set_title(heading, fontsize=8.8, color=style.INK)
    axes.axhline(1, color=style.MUTED, linewidth=0.9)
    vendor = dict(fontsize=8, color=style.MUTED, ha="right", va="bottom")
    axes.text(len(places) - 0.55, 1, neutral(panel["vendor"], 24), **vendor)
    for i, (name, values) in enumerate(panel["own"].items()):
        look = looks.setdefault(name, _own_look(i))
        axes.plot(*_known(places, values), zorder=4 if i == 0 else 3, **look)
    for name, values in panel["rivals"].items():
        dark = dict(color=style.INK, linewidth=0.9, linestyle=":", markersize=4.5)
        count = sum(look["color"] == style.INK for look in looks.values())
        look = looks.setdefault(name, dark | {"marker": _SHAPES[count % len(_SHAPES)]})
        axes.plot(*_known(places, values), zorder=2, **look)
    for x, least in zip(places, panel["wanted"], strict=True):
        if least:
            axes.plot([x - 0.22, x + 0.22], [least, least], color=style.OUTSIDE, linewidth=2.2)
    axes.set_xticks(places, [_short(size) for size in panel["sizes"]])
    axes.set_xlim(-0.5, len(places) - 0.5)
    drawn = [v for values in (*panel["own"].values(), *panel["rivals"].values()) for v in values]
    seen = [1.0, *(v for v in (*drawn, *panel["wanted"]) if v)]
    room = 0.12 * (max(seen) - min(seen)) + 0.02
    axes.set_ylim(max(0, min(seen) - room), max(seen) + room)


def _own_look(i: int) -> dict:
    if i == 0:
        return dict(color=style.READ, marker=_OWN[0], linewidth=1.6, markersize=5.5)
    shape = _OWN[i % len(_OWN)]
    hollow = dict(markerfacecolor=style.PAPER, markersize=5.5, linewidth=1.0)
    return dict(color=style.READ, marker=shape, **hollow)


def _known(places: Sequence[int], values: Sequence[float | None]) -> tuple[list, list]:
    pairs = [(x, value) for x, value in zip(places, values, strict=True) if value]
    return [x for x, _ in pairs], [value for _, value in pairs]


def _short(size: int) -> str:
    if size >= 1 << 20 and not size & (size - 1):
        return f"2^{size.bit_length() - 1}"
    return f"{size:,}".replace(",", " ")


def _sizes_key(figure: Figure, looks: Mapping[str, dict], wanted: bool) -> None:
    from matplotlib.lines import Line2D

    ordered = sorted(looks.items(), key=lambda pair: pair[1]["color"] == style.INK)
    handles = [Line2D([], [], label=neutral(name, 30), **look) for name, look in ordered]
    if wanted:
        handles.append(Line2D([], [], color=style.OUTSIDE, linewidth=2.2, label="target, at least"))
    figure.legend(handles=handles, loc="outside lower left", ncols=5)
