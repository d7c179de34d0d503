"""Lesson 05: its cells show what the text says, and its pictures say their point."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from autograder.ir.cards import card
from autograder.ir.l2 import EFFECTIVE, fetched, grouped, matmul_programs
from autograder.render.lesson05 import addresses, epilogue, fetches, formats, orders, tile_roof
from autograder.render.lesson05_questions import QUESTIONS
from autograder.render.questions import questions_text
from autograder.render.style import svg
from tests.device.cells import script_of_lesson
from tests.figure_looks import GROUNDS, contrast
from tests.lesson_pages import cells_of, names_are_defined, shown, words_of

NAME = "05_matmul"
TEXT = Path(__file__).resolve().parent.parent / f"course/lessons/{NAME}.py"
SCRIPT = script_of_lesson(TEXT.read_text())
MARK = "== the script of the GPU cells"


@pytest.fixture(scope="module")
def printed(tmp_path_factory) -> str:
    """What the complete lesson prints and shows, and after it the script of its GPU cells.

    The L2 model at 8192³ takes longest and has tests of its own, so its cell is left out.
    """
    cells = (*cells_of(NAME, complete=True), f"print({MARK!r})", SCRIPT)
    done = shown(tmp_path_factory.mktemp("lesson"), cells, skip=lambda s: "def gigabytes" in s)
    assert done.stderr == ""
    return done.stdout


@pytest.mark.parametrize(
    "claim",
    [
        "strides of x (7, 1)  of x.t() (1, 7)",
        "[[ 0.  7. 14. 21. 28.]",
        "player of 4 programs",
        # The numbers are right though one lane of the last row goes past the end.
        "the numbers are right: True\n✗ load from x_ptr: 1 of 4 unmasked lanes past the end",
        "24,576 operations in tl.dot, 9,600 are asked for",
        "rows that come out right: 9\n✗ load from a_ptr: 8 of 160 unmasked lanes past the end",
        "✓ 05.matmul",
        "128 × 128 × 32      3     4      32,768 bytes",
        "0 bytes  more than 101,376!",
        "add_into_kernel changes `total_ptr` in place",
    ],
)
def test_cells_show_what_the_text_claims(printed, claim):
    assert claim in printed


def test_a_sum_in_few_bits_loses_what_the_text_says(printed):
    errors = dict(re.findall(r"torch\.(\w+) +[\d.]+  relative error (\S+)", printed))
    assert abs(float(errors["float32"])) < 4096 * 2**-24
    # Steps of 0.5 near 1000 in float16, 16 times those in bfloat16: 128 additions of them.
    assert 1e-5 < abs(float(errors["float16"])) < 128 * 0.25 / 1000
    assert 1e-3 < abs(float(errors["bfloat16"])) < 128 * 4 / 1000


def test_tf32_costs_three_digits(printed):
    ieee, tf32 = (float(e) for e in re.findall(r"largest error (\S+), the products", printed))
    assert 300 < tf32 / ieee < 3000  # the text says about 900
    assert 1e-4 < tf32 / 23 < 1e-2 and "the products are about 23" in printed


def test_what_l2_has_to_fetch():
    """The factor and the times that the text takes from the model; test_l2 has the H200's bytes."""
    row, text = card("RTX 4080"), TEXT.read_text()
    found = {
        (share, group): fetched(
            matmul_programs(8192, 8192, 8192, grouped(64, 64, group), (128, 128, 1024)),
            row.sms,
            share * row.l2_mb * 2**20,
        )
        for share in (EFFECTIVE, 1.0)
        for group in (1, 8)
    }
    most, whole = (found[share, 1] / found[share, 8] for share in (EFFECTIVE, 1.0))
    assert "Five to six times less" in text and 5 <= round(most) <= round(whole) <= 6
    times = {group: found[EFFECTIVE, group] / row.bandwidth / 1e6 for group in (1, 8)}
    assert f"take {times[1]:.1f} ms" in text and f"GB take {times[8]:.0f} ms" in text.replace(
        "\n", " "
    )
    assert f"{2 * 8192**3 / row.bf16_tflops / 1e9:.1f} ms of tensor cores" in text


def test_at_half_the_size_no_order_is_worth_much():
    row, text = card("RTX 4080"), " ".join(TEXT.read_text().split())
    worst = max(
        fetched(
            matmul_programs(4096, 4096, 4096, grouped(32, 32, group), (128, 128, 1024)),
            row.sms,
            EFFECTIVE * row.l2_mb * 2**20,
        )
        for group in (1, 2, 4, 8, 16, 32)
    )
    assert f"{worst / 1e9:.2f} GB at worst, {worst / row.bandwidth / 1e6:.1f} ms" in text
    assert f"beside {2 * 4096**3 / row.bf16_tflops / 1e9:.1f} ms of arithmetic" in text


def test_the_numbered_map_has_a_last_group_of_one_row():
    tiles = list(grouped(5, 6, 2))
    assert tiles[24:] == [(4, column) for column in range(6)] and tiles[12] == (2, 0)
    assert "where is program 24?" in " ".join(TEXT.read_text().split())


def test_spills_are_where_the_text_says(printed):
    rows = re.findall(r"(\d+) warps: +(\d+) registers a thread, [\d,]+ a block, +([\d,]+)", printed)
    spilled = {int(warps): int(lost.replace(",", "")) > 0 for warps, _, lost in rows}
    assert spilled == {2: True, 4: False, 8: False, 16: False}
    assert re.search(r"256 × 128 × 32 .* 255 +[1-9][\d,]* bytes", printed)


def test_gpu_cells_say_what_they_would_show_also_as_a_script(printed):
    lesson, script = printed.split(MARK)
    for part in (lesson, script):
        assert part.count("Expected on a GPU: ") == 3
        assert "1e-2 for tf32" in part and "where 1 is right" in part and "cuBLAS at 70" in part
    assert len(script.splitlines()) < 12  # nothing else was taken along


def test_the_script_of_the_gpu_cells_holds_what_they_need(tmp_path):
    assert "def matmul_kernel" in SCRIPT and "def precision_kernel" in SCRIPT
    assert "@triton.autotune" in SCRIPT and "check(" not in SCRIPT and "render" not in SCRIPT
    names_are_defined(SCRIPT, tmp_path)


def test_the_notebook_has_holes_where_the_solution_page_has_lines():
    cell = next(s for s in cells_of(NAME) if "def matmul_kernel(" in s)
    complete = next(s for s in cells_of(NAME, complete=True) if "def matmul_kernel(" in s)
    for line in ("(rows[:, None] < M) & (ks[None, :] < K)", "acc = tl.dot(a, b, acc)"):
        assert line in complete and line not in cell
    assert "SOLUTION" not in cell


def test_the_lesson_hides_no_answer_of_the_other_exercises():
    """The order is shown by pictures, the epilogue by a drawing: no kernel has them."""
    kernels = re.findall(r"^@triton\.jit\ndef (\w+)", TEXT.read_text(), re.M)
    assert kernels == [
        "copy_kernel",
        "copy_masked_by_rows_kernel",
        "one_tile_kernel",
        "no_k_mask_of_a_kernel",
        "precision_kernel",
        "matmul_kernel",
        "add_into_kernel",
    ]
    assert "GROUP_M" not in TEXT.read_text() and "tanh" not in TEXT.read_text()


# ---------------------------------------------------------------- pictures


def test_a_block_of_addresses_is_a_sum():
    figure = addresses(rows=range(2, 6), cols=range(5, 9), shape=(5, 7), strides=(7, 1))
    words = words_of(figure)
    assert "rows[:, None] · 7" in words and "+ cols[None, :] · 1" in words
    # 3 · 7 + 6 in the block and in the matrix, 5 · 7 + 8 in the block only
    assert words.count("27") == 2 and words.count("43") == 1
    assert "6 of 16 lanes have an element" in " ".join(words)
    inside = addresses(rows=range(2), cols=range(2), shape=(3, 3), strides=(1, 3))
    assert "lane without an element" in words
    assert "lane without an element" not in words_of(inside)


def test_formats_have_their_bits():
    words = " ".join(words_of(formats()))
    assert "TF32" in words and "bfloat16" in words and "range of float32" in words


def test_a_tile_under_the_roof_has_half_its_side_in_flop_a_byte():
    words = " ".join(words_of(tile_roof((32, 128))))
    row = card("RTX 4080")
    assert "64" in words and f"{row.bf16_tflops:g}" in words


@pytest.mark.parametrize("group, strips", [(1, 35), (8, 18)])
def test_the_first_programs_need_as_many_strips_as_the_text_says(group, strips):
    tiles = list(grouped(32, 32, group))[:76]
    assert len({i for i, _ in tiles}) + len({j for _, j in tiles}) == strips
    figure = orders({"an order": list(grouped(32, 32, group))}, at_once=76)
    (a, b) = re.findall(r"(\d+) strips of [ab]", " ".join(words_of(figure)))
    assert int(a) + int(b) == strips
    assert "35 against 18" in TEXT.read_text()


def test_every_tile_of_an_order_stands_out_from_the_page():
    figure = orders({"an order": list(grouped(32, 32, 8))}, at_once=76)
    faces = [p.get_facecolor() for p in figure.axes[0].patches]
    assert {face[3] for face in faces if face[:3] != (0, 0, 0)} == {1}  # nothing half transparent
    for face in (face[:3] for face in faces if face[3] == 1):
        assert min(contrast(face, ground) for ground in GROUNDS) > 1.3


def test_fetches_keeps_predicted_and_measured_apart():
    figure = fetches(
        (1, 8), {"by the model": [4.0, 2.0]}, {"a card": [4.1, 2.1]}, "what is fetched"
    )
    words = " ".join(words_of(figure))
    assert "by the model" in words and "a card" in words and "measured" in words


def test_an_epilogue_saves_passes():
    words = " ".join(words_of(epilogue()))
    assert "bias" in words


def test_pictures_become_svg():
    for figure in (formats(), epilogue(), tile_roof((64,))):
        assert svg(figure).startswith("<svg")


# ---------------------------------------------------------------- questions


def test_the_answers_to_the_questions_are_right():
    text = questions_text(*QUESTIONS)
    programs = -(-1000 // 128) * -(-1500 // 128)
    assert f"1. {programs}." in text
    assert f"3. {2 * 64 * 128 / (2 * (64 + 128)):.2f}." in text
