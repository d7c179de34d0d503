"""Unit 07: the key of its quiz follows from the questions."""

from __future__ import annotations

import json
from pathlib import Path

from autograder import exercises
from autograder.exercises import quiz
from autograder.ir.cards import card

ROOT = Path(__file__).resolve().parent.parent
KEY = json.loads((ROOT / "course/hidden/07_measuring.json").read_text())["07.quiz"]
QUIZ = exercises.get("07.quiz")


def test_the_key_gives_full_marks_and_ticking_everything_does_not():
    right = {name: row["answer"] for name, row in KEY.items()}
    assert all(answer.right for answer in quiz.score(QUIZ, right, KEY))
    everything = right | {"q4": list("abcde")}
    assert sum(a.points for a in quiz.score(QUIZ, everything, KEY)) < QUIZ.max_points
    assert sum(a.points for a in quiz.score(QUIZ, dict.fromkeys(right), KEY)) == 0


def test_numbers_follow_from_their_questions():
    row = card("RTX 4080")
    exact = {
        "q1": 2 * 2 * 4096 * 8192 / 0.2e-3 / 1e9,
        "q2": 100 * 2 * 4096**3 / row.bf16_tflops / 1e12 / 2e-3,
        "q6": 100 - 40 + 40 / 2,
    }
    assert 3 * 2 * 4096**2 / row.bandwidth / 1e9 < 1.41e-3  # q2: operations decide
    for name, value in exact.items():
        (answer,) = (a for a in quiz.score(QUIZ, {name: value}, KEY) if a.question == name)
        assert answer.right, (name, value)


def test_question_5_has_one_explanation_that_holds():
    """Memory cannot deliver its bytes in the graph's time, L2 can, and they fit."""
    row = card("RTX 4080")
    from_memory = 30e6 / row.bandwidth / 1e3  # µs
    assert 14 < from_memory < 45 and row.l2_mb * 2**20 > 30e6
