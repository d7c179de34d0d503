"""The ungraded questions at a lesson's end: clickable where Jupyter runs, readable everywhere."""

from __future__ import annotations

import importlib.util
import textwrap
from collections.abc import Mapping
from typing import Any

from autograder.render.style import CARD, FIELD, INK, OUTSIDE, READ, UNDECIDED

__all__ = ["ask", "questions_text"]

_COLOURS = {
    "--jq-multiple-choice-bg": CARD,
    "--jq-many-choice-bg": CARD,
    "--jq-numeric-bg": CARD,
    "--jq-text-color": INK,
    "--jq-mc-button-bg": FIELD,
    "--jq-mc-button-border": UNDECIDED,
    "--jq-numeric-input-bg": FIELD,
    "--jq-numeric-input-label": "currentColor",  # it stands on the page, light or dark
    "--jq-correct-color": READ,
    "--jq-incorrect-color": OUTSIDE,
}

# jupyterquiz hides the radio button that has the keyboard's focus.
_FOCUS = f"<style>.Quiz .MCButton:focus-within {{outline: 3px solid {READ}}}</style>"


def ask(*questions: Mapping[str, Any]) -> None:
    """Shows questions, each a dict of jupyterquiz's format; its answers are checked at once.

    ``{"question": …, "type": "multiple_choice", "answers": [{"answer": …, "correct": True,
    "feedback": …}, …]}``, or ``"type": "numeric"`` with answers that hold ``"value"``. Outside
    Jupyter, or without jupyterquiz, the questions are printed and the answers below them.
    """
    if _in_jupyter() and importlib.util.find_spec("jupyterquiz"):
        from IPython.display import HTML, display
        from jupyterquiz import display_quiz

        display(HTML(_FOCUS))
        display_quiz([dict(q) for q in questions], shuffle_answers=False, colors=_COLOURS)
    else:
        print(questions_text(*questions))


def questions_text(*questions: Mapping[str, Any]) -> str:
    """The questions as plain text of at most 92 characters a line, the answers at the end."""
    asked, answered = [], []
    for number, question in enumerate(questions, 1):
        options = [a for a in question["answers"] if "answer" in a]
        right = next(a for a in question["answers"] if a.get("correct"))
        if options:
            letters = dict(zip("abcdefgh", options, strict=False))
            asked.append(_wrapped(f"{number}. ", question["question"]))
            asked += [_wrapped(f"   {letter}) ", o["answer"]) for letter, o in letters.items()]
            told = ", ".join(letter for letter, o in letters.items() if o.get("correct"))
        else:
            asked.append(_wrapped(f"{number}. ", question["question"] + " (a number)"))
            told = str(right["value"])
        answered.append(_wrapped(f"{number}. ", f"{told}. {right.get('feedback', '')}".rstrip()))
    return "\n".join((*asked, "", "Answers", *answered))


def _wrapped(mark: str, text: str) -> str:
    return textwrap.fill(text, 92, initial_indent=mark, subsequent_indent=" " * len(mark))


def _in_jupyter() -> bool:
    """Whether output goes to a notebook: an IPython shell that belongs to a Jupyter kernel."""
    try:
        from IPython import get_ipython
    except ImportError:
        return False
    return hasattr(get_ipython(), "kernel")
