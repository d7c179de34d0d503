"""Unit NN: right and wrong work gets the verdict it deserves."""

from __future__ import annotations

import pytest

from autograder import exercises
from tests.submitted import assert_right, exercise_of, expected_of, files, hidden_cases, judged

NAME = "NN_NAME"


@pytest.mark.parametrize("path", files("NN", "right"))
def test_right_work_has_full_marks(path):
    id = exercise_of(path).id
    assert_right(path, judged(path))
    assert_right(path, judged(path, hidden_cases(NAME, id), proof=False))


@pytest.mark.parametrize("path", files("NN", "wrong"))
def test_wrong_work_is_named(path):
    kind, aspects = expected_of(path)
    result = judged(path, proof=False)
    assert result.verdict == "fail" and result.findings[0].kind == kind
    assert {aspect.name for aspect in result.aspects if aspect.status == "fail"} >= aspects


@pytest.mark.parametrize("exercise", exercises.of_assignment(NAME), ids=lambda e: e.id)
def test_every_exercise_has_three_hints(exercise):
    assert len(exercise.hints) == 3
