"""What is wrong with a table or with hidden cases is one sentence, at the build and at grading."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from autograder import exercises
from autograder.exercises import inputs, tables
from autograder.grading.course import Course
from autograder.records import Case, Rejected, Tensor
from course import build
from tests.grading_course import CHECKOUT

NAME = "02_vector_add"
ADD = exercises.get("02.add")


def read(tmp_path, text: str) -> dict | None:
    """A course's hidden file with these contents, as grading reads it."""
    folder = tmp_path / "course/hidden"
    folder.mkdir(parents=True)
    (folder / f"{NAME}.json").write_text(text)
    return Course(tmp_path).hidden(NAME)


@pytest.mark.parametrize("name", exercises.ASSIGNMENTS.values())
def test_the_courses_own_tables_can_judge(name):
    asked = exercises.of_assignment(name)
    for exercise in asked:
        tables.check(exercise)
    hidden = tables.read_hidden(CHECKOUT / f"course/hidden/{name}.json", asked)
    assert all(hidden[exercise.id] for exercise in asked)


def raises(case):
    raise ZeroDivisionError("division by zero")


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"points": {"value": 2}}, "'value', which is no aspect: did you mean 'values'?"),
        ({"points": {"values": -2}}, "gives -2 points for values: give more than 0"),
        ({"notes": {"bounds": "?"}}, "a note on 'bounds', which is no kind"),
        ({"cases": (Case("bare", {}),)}, "Case “bare” of 02.add lacks the size '"),
        ({"limit": raises}, "the table raises ZeroDivisionError: division by zero."),
        ({"arguments": lambda c: (Tensor((1,), fill="norml"),)}, "did you mean 'normal'?"),
    ],
)
def test_a_table_that_cannot_judge_is_told_in_a_sentence(changed, sentence):
    with pytest.raises(Rejected) as error:
        tables.check(replace(ADD, **changed))
    assert sentence in str(error.value) and "02.add" in str(error.value)
    assert str(error.value).count("\n") == 0


GOOD = {"label": "odd", "sizes": {**ADD.cases[0].sizes, "n": 77}}


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        ("{", "is not valid JSON: Expecting property name"),
        ([GOOD], 'needs an object, {"02.add": [rows]}.'),
        ({"02.ad": [GOOD]}, "'02.ad', which is no exercise of the assignment: did you mean"),
        ({"02.add": {"q1": 1}}, "a quiz has an object of answers"),
        ({"02.quiz": [GOOD]}, "a quiz has an object of answers"),
        ({"02.add": [{"sizes": {}}]}, "need a label and sizes in every row (KeyError('label'))"),
        ({"02.add": ["odd"]}, "need a label and sizes in every row"),
        ({"02.add": [{**GOOD, "seeds": 1}]}, "has a 'seeds': did you mean 'seed'?"),
        ({"02.add": [{"label": "odd", "sizes": {}}]}, "Case “odd” of 02.add lacks the size '"),
        ({"02.add": [{**GOOD, "sizes": ADD.cases[0].sizes}]}, "is a public one: change it."),
    ],
)
def test_hidden_cases_that_cannot_judge_are_told_with_their_file(tmp_path, rows, sentence):
    with pytest.raises(Rejected) as error:
        read(tmp_path, rows if isinstance(rows, str) else json.dumps(rows))
    assert str(error.value).startswith(f"course/hidden/{NAME}.json") and sentence in str(
        error.value
    )
    assert str(error.value).count("\n") == 0


def test_good_rows_are_read(tmp_path):
    assert tables.hidden_cases("02.add", read(tmp_path, json.dumps({"02.add": [GOOD]}))) == (
        Case("odd", GOOD["sizes"], hidden=True),
    )


def test_the_build_says_so_too(tmp_path, capsys):
    for path in (f"course/assignments/{NAME}.py", f"course/hidden/{NAME}.json"):
        (tmp_path / path).parent.mkdir(parents=True)
        (tmp_path / path).write_text((CHECKOUT / path).read_text())
    (tmp_path / f"course/hidden/{NAME}.json").write_text("{")
    assert build.main(["--root", str(tmp_path)]) == 1
    said = capsys.readouterr().err
    assert said.startswith(f"course/hidden/{NAME}.json is not valid JSON") and said.count("\n") == 1


def test_ids_and_rows_are_drawn_below_their_bound():
    case = Case("ids", {})
    for dtype in ("int32", "int64", "uint8", "float32"):
        ids = inputs.make(case, Tensor((4000,), dtype, fill="below_40"), 0)
        assert sorted(set(ids.tolist())) == list(range(40)), dtype
    assert not np.any(inputs.make(case, Tensor((9,), "int32", fill="below_1"), 0))
    assert [inputs.below(fill) for fill in ("below_0", "below_", "normal", "below_4x")] == [0] * 4


@pytest.mark.parametrize("listed", [None, [], ("02.add",)])
def test_a_unit_without_its_exercises_is_told_in_a_sentence(monkeypatch, listed):
    monkeypatch.setattr("autograder.exercises.unit05.EXERCISES", listed)
    exercises._table.cache_clear()
    try:
        with pytest.raises(Rejected, match="unit05.py has to end with EXERCISES"):
            exercises.ids()
    finally:
        exercises._table.cache_clear()
