"""Lesson 08: its cells show what the text says of findings, interpreters and races."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from autograder.render.lesson08 import interleaved, order_of_work, races, who_sees
from autograder.render.lesson08_questions import QUESTIONS
from autograder.render.questions import questions_text
from autograder.render.style import svg
from tests.lesson_pages import cells_of, shown, words_of

NAME = "08_debugging"
TEXT = Path(__file__).resolve().parent.parent / f"course/lessons/{NAME}.py"
HOLES = "== the cells with holes"


@pytest.fixture(scope="module")
def pages(tmp_path_factory) -> tuple[str, str]:
    """What the complete lesson prints and shows; and what its cells with holes do as handed out."""
    complete, holes = cells_of(NAME, complete=True), cells_of(NAME)
    changed = [a for a, b in zip(holes, complete, strict=True) if a != b]
    reset = next(c for c in holes if "def reference" in c)
    done = shown(
        tmp_path_factory.mktemp("lesson"), (*complete, f"print({HOLES!r})", reset, *changed)
    )
    assert done.stderr == ""
    first, second = done.stdout.split(HOLES)
    return first, second


@pytest.mark.parametrize(
    "claim",
    [
        "tensor([ 2.,  4.,  6.,  8., 10.]) right: True\ndouble_kernel",
        "3 of 8 lanes past the end (program 0, line 4: offsets 5…7, x_ptr has 5\n  elements)",
        "out_of_bounds x_ptr 4 (0,) 3",
        "mask [ True  True  True  True  True False False False]",
        "doubled works: tensor([2., 2., 2., 2., 2.])\nsummed fails: RuntimeError",
        "Cannot call @triton.jit'd outside of the scope of a kernel",
        "where behind the load: 30 numbers loaded\n  ✗ load from x_ptr: 3 of 8 lanes outside",
        "mask without other: 30 numbers loaded\n  ✗ load from x_ptr (line 8): 18 lanes",
        "reads twice: 60 numbers loaded",
        "Triton's interpreter, right: tensor(True)",
        "✗ race on best_ptr",
        "ours\ntorch.float32  16\ntorch.float16  16\ntorch.bfloat16 16",
        "offs <= n: load from x_ptr: 1 of 6 unmasked lanes past the end",
        "the neighbour before: load from x_ptr: 1 of 5 unmasked lanes before the start",
        "none:\n",
        "five numbers, hardly ever the maximum",
        "n = 10  x.......xx  ['out_of_bounds', 'unwritten']",
        "n = 10  x.........\n",
        "[-1  0  1  2] [ True  True  True  True]",
        "n = 10  ..........  []",
        "wrong: []\n✗ race on out_ptr: program 0 writes to element 3",
        "tensor([ 1.,  3.,  5.,  7., 18., 11., 13., 15., 66., 19.])",
        "x_ptr   1999 loaded, 0 stored, 1 lanes off",
    ],
)
def test_cells_show_what_the_text_claims(pages, claim):
    assert claim in pages[0]


def test_triton_finds_all_four_sums_right_and_its_bfloat16_product_wrong(pages):
    assert len(re.findall(r"^[\w ]+ right: True$", pages[0], re.M)) >= 4
    theirs = pages[0].split("Triton's interpreter\n")[1].split("ours\n")[0]
    found = dict(re.findall(r"torch\.(\w+) +(\S+)", theirs))
    assert found["float32"] == found["float16"] == "16" and found["bfloat16"] != "16"


def test_a_store_far_past_the_end_kills_the_other_python(pages):
    assert re.search(r"The script ended with exit code -(6|11):", pages[0])


def test_three_orders_lose_the_maximum(pages):
    lost = re.findall(r"(?:forward|reversed|shuffled) +(\S+), right is (\S+)\n", pages[0])
    assert len(lost) == 3 and all(float(got) < float(right) for got, right in lost)


def test_holes_run_and_leave_the_faults_in(pages):
    assert "n = 10  x.......xx" in pages[1] and "n = 10  ..........  []" not in pages[1]


def test_the_variable_is_unset_again():
    cell = next(c for c in cells_of(NAME) if 'os.environ["TRITON_INTERPRET"]' in c)
    assert cell.rstrip().endswith('del os.environ["TRITON_INTERPRET"]')


# ---------------------------------------------------------------- pictures, questions


def test_two_programs_lose_an_addition_when_they_meet():
    after, together = (interleaved(s, (3, 4)) for s in ((0, 0, 0, 1, 1, 1), (0, 1, 0, 1, 0, 1)))
    assert after[-1] == (1, "store 7", 7) and together[-1] == (1, "store 4", 4)
    words = words_of(races())
    assert words.count("load 0") == 3 and "store 7" in words and "store 4" in words


def test_every_way_of_looking_is_blind_to_something():
    words = words_of(who_sees())
    assert words.count("no") > 10 and "is wrong itself" in words
    assert "how long it takes" in words  # the check's blind spot is in the table too


def test_the_order_of_work_begins_with_the_smallest_case():
    words = words_of(order_of_work())
    steps = [w for w in words if re.match(r"\d  ", w)]
    assert steps == ["1  shrink", "2  values", "3  bounds", "4  races", "5  traffic", "6  by hand"]
    assert svg(order_of_work()).startswith("<svg")


def test_the_answers_to_the_questions_are_right():
    assert f"1. {4 * 256 - 1000}." in questions_text(*QUESTIONS)


def test_the_lesson_hides_no_answer_of_the_assignment():
    kernels = re.findall(r"^@triton\.jit\ndef (\w+)", TEXT.read_text(), re.M)
    assert "total_kernel" not in kernels and "atomic_add" not in TEXT.read_text()
