"""Levels: an assignment may be climbed in steps; which one a student has reached."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from autograder.records import Exercise

__all__ = ["reached"]


def reached(asked: Iterable[Exercise], points: Mapping[str, float | None]) -> str:
    """The highest level of an assignment that has full points in all of its exercises, or "".

    ``asked`` are the assignment's exercises, the easiest level first; ``points`` are by exercise
    id, None or missing where nothing is decided. Whatever came of those below: a level asks for all
    that they ask for.
    """
    levels: dict[str, bool] = {}
    for exercise in asked:
        if exercise.level:
            full = (points.get(exercise.id) or 0.0) >= exercise.max_points
            levels[exercise.level] = levels.get(exercise.level, True) and full
    return next((level for level, full in reversed(levels.items()) if full), "")
