"""What a student is told before anything runs is what then happens."""

from __future__ import annotations

import re

import pytest
import torch

from autograder.checking import load_solution
from course.stubs import ClearSolutionsByCell
from tests.test_house import ROOT

PAGES = ("course/student/README.md", "lab_setup/hub/START_HERE.md")
TEXTS = sorted((ROOT / "course/assignments").glob("*.py"))


@pytest.mark.parametrize("page", PAGES)
def test_pages_name_the_comment_that_marks_a_students_place(page):
    comment = re.search("#.*", ClearSolutionsByCell.DEFAULT)[0]
    assert f"`{comment}`" in (ROOT / page).read_text(encoding="utf-8")


@pytest.mark.parametrize("text", TEXTS, ids=lambda path: path.stem)
def test_a_quiz_with_a_check_cell_says_what_the_check_looks_at(text):
    source = text.read_text(encoding="utf-8")
    if re.search(r'^# %% check="\d\d\.quiz"', source, re.M):
        assert "no check" not in source
        assert "the check below looks at the form" in source or "the form that is asked" in source


@pytest.mark.skipif(torch.cuda.is_available(), reason="a card runs what is launched")
def test_a_launch_without_a_card_says_what_the_students_page_explains():
    (said,) = re.findall(r"`(0 active [a-z]+)`", (ROOT / PAGES[0]).read_text(encoding="utf-8"))
    add = load_solution(str(ROOT / "tests/submissions/right/02_add_plain.py"))["add"]
    with pytest.raises(RuntimeError, match=said):
        add(torch.ones(5), torch.ones(5))
