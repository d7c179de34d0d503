"""A ladder that the reader climbs: a guess first, then what was measured."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from autograder.render.ladders import ladder
from autograder.render.text import WIDTH

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Climb", "by_card"]

_NOISE = 0.015  # of a ratio of two kernels that take turns


class Climb:
    """One ladder with the reader's guesses.

    ``steps`` and ``rivals`` as ``render.ladders.ladder`` takes them; ``facts`` says on which card
    and when they were measured, and stands beside every figure.
    """

    def __init__(
        self, title: str, facts: str, steps: Sequence[Mapping], rivals: Mapping[str, float]
    ):
        self.title, self.facts, self.rivals = title, facts, dict(rivals)
        self.steps = {step["label"]: step for step in steps}
        self.guesses: dict[str, float] = {}

    def start(self) -> None:
        """Prints where the climb begins, and beside whom."""
        first = next(iter(self.steps.values()))
        *others, vendor = self.rivals
        _say(f"{self.title}: {self.facts}")
        _say(f"{first['label']}: {first['reason']}")
        print(f"speed, {vendor} = 1: {_number(first['ratio'])}")
        for name in others:
            print(f"beside it: {name} {self.rivals[name]:.2f}")

    def step(self, label: str, guess: float | None = None) -> None:
        """Prints why the step should help and, once there is a ``guess``, what it gained.

        ``guess``: how many times as fast as the step before. Raises ValueError for a label that
        the ladder does not have, and for a guess that is no positive number.
        """
        if label not in self.steps:
            raise ValueError(f"No step is called {label!r}; there are {', '.join(self.steps)}.")
        step = self.steps[label]
        _say(f"{label}: {step['reason']}")
        if guess is None:
            print("Your guess first: guess=1.2 means a fifth faster than the step before.")
            return
        if not 0 < guess < float("inf"):
            raise ValueError(f"A gain is a positive number, such as 1.2, not {guess}.")
        self.guesses[label] = guess
        print(f"  your guess       {guess:.2f}")
        print(f"  from the reason  {_number(step['expect'])}")
        if step["gain"] is None:
            print("  it was not measured")
            return
        vendor = list(self.rivals)[-1]
        print(f"  measured         {step['gain']:.2f}, now {step['ratio']:.2f} of {vendor}")
        print(f"  {_judged(guess, step['gain'])}; {self.facts}")

    def figure(self) -> Figure:
        """All steps, with the predictions from the reasons and the reader's guesses."""
        return ladder(self.title, self.facts, list(self.steps.values()), self.rivals, self.guesses)


def by_card(*climbs: Climb) -> str:
    """A table: which step exists on which compute capability."""
    lines = [f"{'step':28}{'8.9, such as an RTX 4080':>26}{'9.0, such as an H200':>24}"]
    for climb in climbs:
        lines.append(climb.title)
        for label, step in climb.steps.items():
            marks = ["yes" if step["needs"] <= cc else "–" for cc in (89, 90)]
            lines.append(f"  {label:26}{marks[0]:>26}{marks[1]:>24}")
    return "\n".join(lines)


def _say(text: str) -> None:
    print(textwrap.fill(text, WIDTH, subsequent_indent="  ", break_on_hyphens=False))


def _judged(guess: float, gain: float) -> str:
    off = guess / gain - 1
    if abs(off) <= 2 * _NOISE:
        return "as close as such a measurement can tell"
    return f"you expected {'more' if off > 0 else 'less'}, by {abs(off):.0%}"


def _number(value: float | None) -> str:
    return f"{value:.2f}" if value else "–"
