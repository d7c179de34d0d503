"""A course of one unit with two exercises and a quiz, small enough to build in a test."""

from __future__ import annotations

import json
from pathlib import Path

from autograder import exercises
from autograder.records import Exercise

LESSON = r'''# %% [markdown]
r"""
# Blocks

$\lceil n / B \rceil$ programs.
"""

# %% stub="mask = offs >= 0  # mend me"
def masked(offs, n):
    ### BEGIN SOLUTION
    mask = offs < n
    ### END SOLUTION
    return mask


# %% tags=["predict"]
print(masked(3, 4))
'''

ASSIGNMENT = r'''# %% [markdown]
r"""
# Add
"""

# %%
from autograder import check

# %% solution="02.add" stub=["pass  # five lines", "raise NotImplementedError('add is missing')"]
def add_kernel(x, y):
    ### BEGIN SOLUTION
    secret_line = x + y
    ### END SOLUTION


def add(x, y):
    """The sum."""
    ### BEGIN SOLUTION
    return secret_line
    ### END SOLUTION


# %% check="02.add"
print("before the check")

# %% quiz="02.quiz"

# %% check="02.quiz"
'''

KEY = {"02.quiz": {"q1": {"answer": "b", "explain": "secret reason"}, "q2": {"answer": 4711}}}


def _exercise(id: str, name: str, points: float, **fields) -> Exercise:
    return Exercise(
        id=id,
        title=id,
        names=(name,),
        cases=(),
        points={"values": points},
        arguments=lambda case: (),
        reference=lambda: (),
        tolerance=lambda case, arguments, expected: (),
        **fields,
    )


EXERCISES = (
    _exercise("02.add", "add", 7.5),
    _exercise("02.quiz", "answers", 2, machine="quiz", notes={"q1": "one of a b", "q2": "number"}),
)


def small_course(root: Path, monkeypatch) -> Path:
    """Writes the texts under ``root`` and puts EXERCISES in the register's place."""
    monkeypatch.setattr(exercises, "_table", lambda: {e.id: e for e in EXERCISES})
    course = root / "course"
    for folder in ("lessons", "assignments", "hidden"):
        (course / folder).mkdir(parents=True)
    (course / "lessons" / "02_vector_add.py").write_text(LESSON, encoding="utf-8")
    (course / "assignments" / "02_vector_add.py").write_text(ASSIGNMENT, encoding="utf-8")
    (course / "hidden" / "02_vector_add.json").write_text(json.dumps(KEY), encoding="utf-8")
    return root
