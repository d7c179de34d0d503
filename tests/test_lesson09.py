"""Lesson 09: its cells show what the text says, and its pictures say their point."""

from __future__ import annotations

import re
from pathlib import Path

import ml_dtypes
import pytest

from autograder.exercises.shared_memory import LIMIT
from autograder.ir.cards import card
from autograder.render.lesson09 import fp8_formats, split_k
from autograder.render.lesson09_questions import QUESTIONS
from autograder.render.questions import questions_text
from autograder.render.style import svg
from tests.device.cells import script_of_lesson
from tests.lesson_pages import cells_of, names_are_defined, said_in, shown

NAME = "09_production"
TEXT = Path(__file__).resolve().parent.parent / f"course/lessons/{NAME}.py"
SCRIPT = script_of_lesson(TEXT.read_text())
MARK = "== the script of the GPU cells"


@pytest.fixture(scope="module")
def printed(tmp_path_factory) -> str:
    """What the complete lesson prints and shows, and after it the script of its GPU cells."""
    cells = (*cells_of(NAME, complete=True), f"print({MARK!r})", SCRIPT)
    done = shown(tmp_path_factory.mktemp("lesson"), cells)
    assert done.stderr == ""
    return done.stdout


@pytest.mark.parametrize(
    "claim",
    [
        "17.0 → 16.0",
        "1000.0 → 448.0",
        "0.0005 → 0.0",
        "wrong rows: 3 of 3\n✗ race on out_ptr",
        "wrong rows: 0 of 3\n✓ no findings",
        "numbers read: 297 of 300\nwrong rows: 3 of 3",
        "num_stages=1: 16,384 bytes, 1 × the two tiles",
        "num_stages=5: 65,536 bytes, 4 × the two tiles",
        "acc is 100% of the registers, 256 a thread; 255 used",
        "No valid autotuner configs after pruning",
        "after run 3 [300.0, 300.0, 300.0]",
        "float32     kernel loads 300 numbers\nfloat16     kernel loads 0 numbers\n"
        "transposed  kernel loads 0 numbers",
    ],
)
def test_cells_show_what_the_text_claims(printed, claim):
    assert claim in printed


def test_a_scale_helps_by_a_factor_of_ten(printed):
    without, with_scale = (float(e) for e in re.findall(r"typical error ([\d.]+)%", printed))
    assert without > 8 * with_scale and with_scale < 100 * 2**-4 / 2


def test_the_order_of_additions_changes_last_bits_only(printed):
    found = re.search(r"(\d+) different results of 720 orders, apart by at most (\S+)", printed)
    assert int(found[1]) > 1
    assert float(found[2]) < 720 * 2**-24 * 100


def test_only_the_tile_of_the_whole_register_file_spills(printed):
    rows = re.findall(r"(\d+) × +(\d+), \d warps: .* ([\d,]+) bytes spilled", printed)
    assert all(len(line) <= 98 for line in printed.splitlines() if "bytes spilled" in line)
    spilled = {(m, n): int(lost.replace(",", "")) for m, n, lost in rows}
    assert len(spilled) == 4 and spilled.pop(("256", "256")) > 1000
    assert set(spilled.values()) == {0}


def test_gpu_cells_say_what_they_would_show_also_as_a_script(printed):
    lesson, script = printed.split(MARK)
    for part in (lesson, script):
        assert part.count("Expected on a GPU: ") == 3
        assert "too large by a factor" in part and "twice True" in part and "a replay below" in part


def test_the_script_of_the_gpu_cells_holds_what_they_need(tmp_path):
    assert "def capture" in SCRIPT and "tuned_row_sum_kernel" in SCRIPT and "render" not in SCRIPT
    names_are_defined(SCRIPT, tmp_path)


def test_the_notebook_has_a_hole_where_the_solution_page_captures():
    cell = next(s for s in cells_of(NAME) if "def capture(" in s)
    complete = next(s for s in cells_of(NAME, complete=True) if "def capture(" in s)
    assert "torch.cuda.graph(graph)" in complete and "torch.cuda.graph(graph)" not in cell
    assert "SOLUTION" not in cell and "mend it" in cell


def test_the_lesson_gives_no_graded_answer_away():
    """Split sums are rows, without tiles and scales; the one tl.dot has no masks and no splits."""
    text = TEXT.read_text()
    kernels = re.findall(r"^@triton\.jit\ndef (\w+)", text, re.M)
    assert kernels == [
        "row_sum_kernel",
        "atomic_row_sum_kernel",
        "stretch_sum_kernel",
        "tile_kernel",
    ]
    assert "scale_a" not in text and "element_size" not in text and "num_stages - 1" not in text
    assert f"{LIMIT:,}".replace(",", " ") in text


# ---------------------------------------------------------------- pictures


def test_formats_have_their_bits_and_their_range():
    words = said_in(fp8_formats())
    largest = float(ml_dtypes.finfo(ml_dtypes.float8_e4m3fn).max)
    smallest = float(ml_dtypes.finfo(ml_dtypes.float8_e4m3fn).smallest_subnormal)
    assert f"e4m3: largest {largest:.0f}, smallest 2⁻⁹" in words and smallest == 2.0**-9
    assert "8 numbers from 1 to 2" in words and "57,344" in words


def test_a_split_fills_the_card_and_a_second_round_waits():
    sms, words = card("RTX 4080").sms, said_in(split_k(32, 4, 32))
    assert f"32 programs leave {sms - 32} of {sms} SMs" in words
    assert "SPLIT_K = 1: 32 steps" in words
    rounds = -(-32 * 4 // sms)
    assert f"SPLIT_K = 4: {rounds * 8} steps, {32 * 4 - sms} more programs wait" in words
    assert f"128 programs are more than {sms}, so 52 wait" in TEXT.read_text()
    assert "SPLIT_K = 2: 16 steps" in said_in(split_k(32, 2, 32))


def test_pictures_become_svg():
    for figure in (fp8_formats(), split_k(8, 2, 4)):
        assert svg(figure).startswith("<svg")


# ---------------------------------------------------------------- questions


def test_the_answers_to_the_questions_are_right():
    text = questions_text(*QUESTIONS)
    assert f"1. {2048 // 128 * 4}." in text
    assert f"3. {(64 + 64) * 64 * (4 - 1)}." in text
