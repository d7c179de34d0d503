"""Unit 07, measuring: a lesson, and a quiz as its whole assignment."""

from __future__ import annotations

from autograder.exercises.quiz import quiz

QUIZ = quiz(
    "07.quiz",
    "Quiz of unit 07",
    {
        "q1": "number",
        "q2": "number",
        "q3": "one of a b c d",
        "q4": "some of a b c d e",
        "q5": "one of a b c d",
        "q6": "number",
    },
)

EXERCISES = (QUIZ,)
