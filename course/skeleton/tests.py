"""Unit NN: right and wrong work gets the verdict it deserves."""

from __future__ import annotations

import pytest

from autograder import exercises
from tests.submitted import assert_right, assert_wrong, exercise_of, files, hidden_cases, judged

NAME = "NN_NAME"


@pytest.mark.parametrize("path", files("NN", "right"))
def test_right_work_has_full_marks(path):
    id = exercise_of(path).id
    assert_right(path, judged(path))
    assert_right(path, judged(path, hidden_cases(NAME, id), proof=False))


@pytest.mark.parametrize("path", files("NN", "wrong"))
def test_wrong_work_is_named(path):
    assert_wrong(path)


@pytest.mark.parametrize("exercise", exercises.of_assignment(NAME), ids=lambda e: e.id)
def test_every_exercise_has_three_hints(exercise):
    assert len(exercise.hints) == 3
