"""Lesson 10: its kernel is right, its cells show what the text says, its map says who decides."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from autograder.grading.corpus import refusals
from autograder.render.lesson10 import levels
from autograder.render.lesson10_questions import QUESTIONS
from autograder.render.questions import questions_text
from autograder.render.style import svg
from tests.lesson_pages import cells_of, shown, words_of

NAME = "10_where_to_go_next"
TEXT = (Path(__file__).resolve().parent.parent / f"course/lessons/{NAME}.py").read_text()


@pytest.fixture(scope="module")
def printed(tmp_path_factory) -> str:
    done = shown(tmp_path_factory.mktemp("lesson"), cells_of(NAME))
    return done.stdout


def test_the_chunked_kernel_computes_the_formula(printed):
    error, size = re.search(r"largest error (\S+), outputs are about (\d+)", printed).groups()
    # sums of 32 and of up to 200 terms in float32, each rounding relative to the sum so far
    assert float(error) < 232 * 2**-24 * float(size)
    assert printed.count("✓ no findings") == 1


def test_a_tail_without_padding_is_found_where_there_are_block_pointers(printed):
    if words := refusals()["block pointers"]:
        assert re.search(rf"^chunk_state_kernel, line 5 .*: {words}\. Use pointers", printed, re.M)
        return
    bare, padded = re.findall(r'^padding_option="\w*": (.+)$', printed, re.M)
    assert bare.count("lanes are masked off and no `other=` says what they hold") == 2
    assert padded == "no findings"
    (error,) = re.findall(r"largest difference from the state: (\S+)", printed)
    # Sums of 200 products in float32, chunk by chunk and by torch: each errs by no more than
    # 200 · 2⁻²⁴ of the sum of sizes. That is 200 · E|k v| = 127 ± 11 for normal numbers, and none
    # of the 1024 sums is twice as large.
    assert float(error) < 2 * 200 * 2**-24 * 2 * 127


def test_traffic_and_work_are_as_the_text_says(printed):
    assert "BV = 16: 38,400 numbers moved; once each would be 25,600" in printed
    assert "BV = 32: 25,600 numbers moved" in printed
    moved = {
        int(t): int(n.replace(",", "")) for t, n in re.findall(r"T = (\d+): .*, (\S+) n", printed)
    }
    assert moved == {200: 38400, 400: 76800, 800: 153600}


def test_the_two_lines_in_the_other_order_are_wrong(printed):
    (difference,) = re.findall(r"largest difference then: (\d+)", printed)
    assert int(difference) > 50


def test_the_words_and_places_of_the_course_page_are_there():
    for word in ("算子", "内核", "分块", "自动调优", "掩码", "SM70 to SM120", "SM90 and SM100"):
        assert word in TEXT
    for name in (
        "tilelang",
        "TileKernels",
        "flash-linear-attention",
        "llm-algo-leetcode",
        "diy-llm",
    ):
        assert f"/{name})" in TEXT  # each is a link
    assert "30 September 2026" in TEXT and "Qwen3-Next" in TEXT and "Kimi Linear" in TEXT


def test_every_row_of_the_map_decides_no_less_than_the_one_above():
    words = words_of(levels())
    assert words.count("you") == 0 + 0 + 2 + 3 + 4 + 5 and words.count("library") == 5
    assert svg(levels()).startswith("<svg")


def test_the_state_of_the_question_has_its_size():
    assert f"1. {64 * 64 * 4 // 1024}." in questions_text(*QUESTIONS)
