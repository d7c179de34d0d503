"""Lesson 06: its cells show what the text says, and its pictures say their point."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
import torch

from autograder.render.lesson06 import heads, memory, numerics, online_steps
from autograder.render.lesson06_questions import QUESTIONS
from autograder.render.lesson06_square import causal_blocks, square
from autograder.render.questions import questions_text
from autograder.render.style import svg
from tests.device.cells import script_of_lesson
from tests.lesson_pages import cells_of, names_are_defined, shown, words_of

NAME = "06_flash_attention"
TEXT = Path(__file__).resolve().parent.parent / f"course/lessons/{NAME}.py"

SCRIPT = script_of_lesson(TEXT.read_text())
MARK = "== the script of the GPU cells"


@pytest.fixture(scope="module")
def printed(tmp_path_factory) -> str:
    """What the complete lesson prints and shows, and after it the script of its GPU cells.

    The first of its two checks is left out: the second asks for all of it, and more.
    """
    cells = (*cells_of(NAME, complete=True), f"print({MARK!r})", SCRIPT)
    strong = 'check("06.flash_strong", flash_attention)'
    assert strong in cells
    done = shown(tmp_path_factory.mktemp("lesson"), cells, skip=lambda s: s == strong)
    assert done.stderr == ""
    return done.stdout


@pytest.mark.parametrize(
    "claim",
    [
        "4 kernels, 13,107,200 numbers moved",
        "524,288 asked for, 25 times as many",
        "the whole row at once: 5.2370",
        "3. load from V",
        "numbers read 144,000",
        "score 0 : acc / l = 4.6710; right is 5.2370",
        "score −∞: acc / l = 5.2370; right is 5.2370",
        "T·D + 2·D·keys = 97,152\nskip=True   numbers read 97,152\nskip=False",
        "numbers read 144,000\nT =    250: 63% of the keys are needed",
        "T = 16,384: 50% of the keys are needed",
        "BM =  64, BN = 32: 2,162,688 numbers read\nT = 1024, BM =  64, BN = 64: 2,162,688",
        "k and v 4 MB a head, the scores 537 MB",
        "m, l, acc: 2.0 nan nan\nevery query sees a key of the first block of 32: True",
        "mask between exp and sum: [nan nan nan nan], sum nan",
        "mask after the softmax  : [0. 0. 0. 0.], sum 0.00",
        "log of the sum of exp: inf   m + log l: 200.0",
        "level Boss: pass, 14 of 14 points",
        "768 numbers moved",
        "race on sums_ptr",
        "k with 2 heads: 131,072 numbers; repeated: 524,288",
        "64  torch.float16 64 × 64    40,960 bytes",
    ],
)
def test_cells_show_what_the_text_claims(printed, claim):
    assert claim in printed


def test_neither_blocks_nor_their_order_change_the_result(printed):
    assert re.findall(r"blocks of \d: (.*)", printed) == ["5.2370"] * 6


def test_a_mask_before_the_softmax_is_right_and_one_after_it_is_not(printed):
    before = re.findall(r"mask before the softmax : (.*)", printed)
    assert before == ["[1. 0. 0. 0.], sum 1.00"] * 2
    leaked = re.findall(r"mask after the softmax  : .*, sum (.*)", printed)
    assert len(leaked) == 2 and all(float(total) < 0.5 for total in leaked)


def test_every_formula_of_the_gradients_is_held_against_autograd(printed):
    found = re.findall(r"^(.{14}) largest difference (\S+)$", printed, re.M)
    names = [name.strip() for name, _ in found]
    formulas = ["P by lse", "dv", "dP", "δ, both ways", "dS", "dq", "dk", "dq", "dk", "dv"]
    assert names == formulas
    # float64 and sums of at most 250 terms of size 1: a few hundred roundings of 1e-16
    assert all(float(error) < 250 * 250 * 2**-53 for _, error in found)


def test_the_numpy_kernel_is_right_in_both_ways(printed):
    errors = re.findall(r"causal=(\w+) +largest error (\S+)", printed)
    assert [causal for causal, _ in errors] == ["False", "True"]
    # |o| < 5, exponents of scores < 6 and sums of 250 terms, in float32
    assert all(float(error) < 5 * 250 * 2**-24 for _, error in errors)


def test_sums_of_atomics_depend_on_their_order(printed):
    (count,) = re.findall(r"different sums: (\d+)", printed)
    assert int(count) > 1


def test_what_fits_a_card(printed):
    rows = re.findall(r"^ +(\d+)  torch\.(\w+) .*?([\d,]+) bytes +\d+(.*)$", printed, re.M)
    assert [(d, dtype, bool(over)) for d, dtype, _, over in rows] == [
        ("64", "float16", False),
        ("128", "float16", False),
        ("64", "float32", False),
        ("128", "float32", True),
    ]


def test_gpu_cells_say_what_they_would_show_also_as_a_script(printed):
    lesson, script = printed.split(MARK)
    for part in (lesson, script):
        assert part.count("Expected on a GPU: ") == 2
        assert "sdpa's TFLOP/s" in part and "naive four times" in part
    assert script.count("Nothing was measured") == 2
    # Nothing else was taken along: a picture's cell, or the prints of the lesson.
    own = [line for line in script.splitlines() if line not in lesson.splitlines()]
    assert own in ([], [""]) and len(script.splitlines()) < 12


def test_the_script_of_the_gpu_cells_holds_what_they_need(tmp_path):
    assert "def flash_attention_kernel" in SCRIPT and "def naive_attention" in SCRIPT
    assert "flash_backward" not in SCRIPT and "check(" not in SCRIPT and "render" not in SCRIPT
    names_are_defined(SCRIPT, tmp_path)


def test_the_notebook_has_holes_where_the_solution_page_has_lines():
    holes, complete = ("\n".join(cells_of(NAME, c)) for c in (False, True))
    for line in (
        "end = min(first + BLOCK_M, T) if CAUSAL else T",
        "l = l * shrink + tl.sum(p, axis=1)",
        "acc = tl.dot(p.to(v.dtype), v, acc * shrink[:, None])",
        "lse = m + tl.log(l)",
    ):
        assert line in complete and line not in holes
    assert "SOLUTION" not in holes


def test_the_lesson_hides_no_answer_of_the_higher_levels():
    """Backward and shared heads are derived, in NumPy and in a picture, but written by nobody."""
    kernels = re.findall(r"^@triton\.jit\ndef (\w+)", TEXT.read_text(), re.M)
    assert kernels == ["flash_attention_kernel", "turned_kernel", "count_keys_kernel"]
    assert "autograd.Function)" not in TEXT.read_text()


@pytest.mark.parametrize(
    "term, said",
    [
        ("token", "**tokens**"),
        ("query", "**query**"),
        ("key", "**key**"),
        ("value", "**value**"),
        ("score", "**score**"),
        ("head", "**heads**"),
        ("causal", "**causal**"),
        ("log-sum-exp", "**log-sum-exp**"),
        ("grouped-query", "**grouped-query attention**"),
    ],
)
def test_a_term_is_explained_where_it_first_stands(term, said):
    """After the introduction, which promises only."""
    prose = re.findall(r'^# %% \[markdown\]\nr"""\n(.*?)^"""', TEXT.read_text(), re.M | re.S)
    words = re.sub(r"^#.*$|`[^`]*`|\$[^$]*\$", "", "\n".join(prose[1:]), flags=re.M)
    first = re.search(rf"\b{term}", words, re.I).start()
    assert first == words.index(said) + len("**"), f"{term} is used before it is explained"


# ---------------------------------------------------------------- pictures


def test_the_running_softmax_ends_at_the_softmax_of_the_whole_row():
    scores, values = [0.5, 1.2, -0.3, 0.8, 2.0], [1.0, 2.0, 3.0, 4.0, 5.0]
    figure = online_steps(scores, values, block=2)
    words = words_of(figure)
    weights = np.exp(np.array(scores) - 2)
    title = 2  # the figure's own words come last
    assert [f"{w:.2f}" for w in weights] == words[-10 - title : -5 - title]  # the last line's cells
    m, shrink, total, acc, mean = words[-5 - title : -title]
    assert (m, total, acc) == ("2", f"{weights.sum():.2f}", f"{weights @ values:.2f}")
    assert mean == f"{weights @ values / weights.sum():.2f}"
    assert shrink == f"{np.exp(1.2 - 2):.2f}"  # the third block, of one key, brings the maximum
    assert "after block 3" in words and "after block 4" not in words


@pytest.mark.parametrize("t, block_m, block_n", [(250, 64, 32), (100, 16, 64), (1, 64, 64)])
def test_causal_blocks_are_those_that_some_query_sees(t, block_m, block_n):
    seen = np.tril(np.ones((t, t), bool))
    blocks = [
        seen[i : i + block_m, j : j + block_n].any()
        for i in range(0, t, block_m)
        for j in range(0, t, block_n)
    ]
    figure = causal_blocks(t, block_m, block_n)
    assert f"computes {sum(blocks)} of {len(blocks)} blocks" in figure.title
    last = f"last query {t - 1}, {-(-t // block_n)} block"
    assert last in " ".join(words_of(figure))


def test_the_square_is_what_eager_writes():
    words = words_of(square())
    assert "S, then P" in words and "never written" in words and "FlashAttention" in words
    assert "keeps one block of it" in square().title
    with pytest.raises(ValueError, match="none of 6 × 6 blocks"):
        square(row=6)


def test_what_is_no_number_is_drawn_apart():
    rows = {"plain": [1e-7, np.nan, 1.0], "shifted": [1e-7, 2e-7, 1e-7]}
    words = words_of(numerics([1, 90, 200], rows))
    assert words.count("no number") == 1 and "plain" in words
    assert "no number" not in words_of(numerics([1, 90, 200], {"shifted": rows["shifted"]}))


def test_memory_names_the_last_bytes_and_heads_the_division():
    figure = memory([1024, 2048], {"the scores": [1e9, 4e9], "q, k, v and o": [1e6, 2e6]})
    assert {"4 GB", "0.002 GB"} <= set(words_of(figure))
    assert "share 3 key heads: head h reads h // 4" in heads(queries=12, keys=3).title


def test_pictures_become_svg():
    for figure in (square(), causal_blocks(100, 64, 32), heads(4, 2), online_steps([1], [1], 1)):
        assert svg(figure).startswith("<svg")


# ---------------------------------------------------------------- questions


def test_questions_are_readable_without_jupyter():
    text = questions_text(*QUESTIONS)
    assert "how often is each key read" in text and "Answers" in text


def test_the_answers_to_the_questions_are_right():
    right = {q["question"]: [a for a in q["answers"] if a.get("correct")][0] for q in QUESTIONS}
    number = next(a["value"] for q, a in right.items() if q.startswith("T = 1024"))
    assert number == 1024 // 64
    s = torch.tensor([1.0, 2.0, 0.5, 1.5])  # the second block brings no larger maximum
    assert torch.exp(s[:2].max() - s.max()) == 1
    assert all(
        sum(bool(a.get("correct")) for a in q["answers"]) == 1
        for q in QUESTIONS
        if q["type"] == "multiple_choice"
    )
