"""Answers of the judge that hold for a classmate's record as well.

Most of a class hands in the same few kernels and answers. The judge is a function of the records,
the cases and the secret, so where two records differ in nothing that it computes with, it would say
the same twice: only lines and the text of a kernel are left out of the comparison, and only an
answer that tells nothing of a line is kept.
"""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any

_MOST_TEXT = 1 << 20  # characters of records that are compared; honest ones have a tenth of it
_MOST_KEPT = 256  # answers, the oldest go first
_MOST_LINE = 1_000_000

# Of locations only those go that the interpreter's parser leaves out as well, wherever they stand:
# no escapes in names, whole words, and of their table no line that holds an operation's name.
_LOCATION = re.compile(r' loc\((?:#loc\d*|"\w*"\(#loc\d*\))\)(?=[,) \n]|$)')
_TABLE = re.compile(r'^#loc\d* = loc\([\w"<>:#() -]*\)\n', re.M)


class Alike:
    """``answers``: what the judge said, by ``key_of`` of its job."""

    def __init__(self) -> None:
        self.answers: dict[str, dict] = {}

    def keep(self, key: str | None, answer: dict) -> None:
        """``answer["lineless"]``: all is right, and nothing in it comes from a line."""
        if key is None or answer.get("lineless") is not True:
            return
        if len(self.answers) >= _MOST_KEPT:
            del self.answers[next(iter(self.answers))]
        self.answers[key] = answer


def key_of(job: dict) -> str | None:
    """What the judge's answer to ``job`` depends on; None where nothing alike is to be expected."""
    records = [line["trace"] for line in job["lines"] if "trace" in line]
    quiz = any("answers" in line for line in job["lines"])
    if job["problem"] or not (records or quiz):
        return None
    try:
        if sum(map(len, records)) > _MOST_TEXT:
            return None
        lines = [
            line | {"trace": _lineless(line["trace"])} if "trace" in line else line
            for line in job["lines"]
        ]
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError):
        return None  # forged: the judge says what it is
    told = [job[name] for name in ("exercise", "hidden", "salt", "proof", "key")]
    return hashlib.sha256(json.dumps([told, lines]).encode()).hexdigest()


def _lineless(text: str) -> Any:
    """A record without lines and without the kernels' text, which nothing is computed from. What is
    not of the type that a record has there stays as it is."""
    trace = json.loads(text)
    for kernel in trace["kernels"]:
        kernel["ir"] = _LOCATION.sub("", _TABLE.sub("", kernel["ir"]))
        for name in ("source", "file"):
            if isinstance(kernel[name], str):
                kernel[name] = ""
        _forget_line(kernel)
    for event in trace["events"]:
        if "line" in event:
            _forget_line(event)
    return trace


def _forget_line(record: dict) -> None:
    if type(record["line"]) is int and 0 <= record["line"] < _MOST_LINE:
        record["line"] = 0
