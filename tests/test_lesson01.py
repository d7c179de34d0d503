"""Lesson 01 runs where Triton, torch and Jupyter are missing, and its cells show what it says."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from autograder.ir.cards import card
from autograder.minitriton import arange, load, store
from autograder.render.lesson01 import blocks, machine, rows, tile_time, tiles
from autograder.render.lesson01_questions import QUESTIONS
from autograder.render.questions import questions_text
from autograder.render.style import svg
from autograder.trace.plain import inspect_launch
from course.build import notebooks_of
from tests.lesson_pages import cells_of, shown

ROOT = Path(__file__).resolve().parent.parent
TEXT = ROOT / "course/lessons/01_programming_model.py"


def test_every_cell_shows_what_the_text_claims(tmp_path):
    complete = cells_of("01_programming_model", complete=True)
    cells = cells_of("01_programming_model") + [s for s in complete if "transpose_kernel" in s]
    without = "sys.modules['torch'] = sys.modules['triton'] = None"
    done = shown(tmp_path, cells, before=without)
    assert done.stderr == ""
    for claim in (
        "272 operations",
        "[ 0.  2.  4.  6.  8. 10. 12. 14.]\n",
        "program (1,) works on offsets [4 5 6 7]",
        "[ 0.  2. nan nan nan nan nan nan]",
        "[ 0.  2.  4.  6.  8. 10. 12. 14. nan nan]",
        "program (2,) loads at offsets 10…11 (2 of 4 lanes)",
        "[ 0.  2.  4.  6.  8. 10. 12. 14. 16. 18.]",
        # The numbers are right though a load goes past the end, and the text says so.
        "[ 0.  2.  4.  6.  8. 10. 12. 14. 16. 18.]\n"
        "✗ load from x: 2 of 4 lanes outside it (program 2: offsets 10…11",
        "{'loads': 10, 'stores': 10}",
        "sum: -12.0  maximum: 0.0",
        "maximum: -3.0",
        "[2. 4. 6. 8.]\n[ 2. nan nan nan]",
        "program 1 reads offset 0 of out, which program 0 writes (",
        "stride 8: [10. 35. 60. 85.]\nstride 5: [  10. 3011. 2024. 1046.]",
        "center_twice_kernel {'loads': 1200, 'stores': 600} right: True",
        "center_once_kernel {'loads': 600, 'stores': 600} right: True",
        "as it stands:      [nan nan]",
        "right: True  read: 1920 = 2·M·N·K = 1920",
        "245760.0 → 15360.0",
        "272 × 272 sums of 4 bytes: 289 KB",
    ):
        assert claim in done.stdout, claim
    assert re.findall("transposed: (.*)", done.stdout) == ["False", "True"]


@pytest.mark.parametrize(
    "name, terms",
    [
        ("01_programming_model", "softmax matmul tiles ragged tail finding race traffic stride"),
        ("02_vector_add", "pointer spills"),
    ],
)
def test_a_term_is_explained_where_it_first_stands(name, terms):
    notebook = notebooks_of(TEXT.with_name(f"{name}.py"))[f"notebooks/{name}.ipynb"]
    prose = [c.source for c in notebook.cells if c.cell_type == "markdown"]
    words = re.sub(r"^#.*$|`[^`]*`", "", "\n".join(prose), flags=re.M)  # titles and code apart
    for term in terms.split():
        first = re.search(rf"\b{term}\b", words, re.I).start()
        bold = [m.span() for m in re.finditer(r"\*\*.+?\*\*", words)]
        assert any(a < first < b for a, b in bold), f"{term} is used before it is explained"


def test_the_lesson_hides_no_answer_of_the_assignment():
    text = TEXT.read_text()
    assert "softmax_kernel" not in text and "matmul_kernel" not in text
    assert "a @ b" not in text


def test_lines_of_the_lesson_are_those_of_the_device_table():
    row, text = card(), TEXT.read_text()
    assert f"{row.bandwidth:g} GB/s" in text and f"{row.fp32_tflops:g} TFLOP/s" in text
    assert f'"bandwidth": {row.bandwidth:g}, "peak": {row.fp32_tflops:g}' in text


@pytest.mark.parametrize(
    "figure, said",
    [
        (lambda: machine(), "RTX 4080"),
        (lambda: machine("RTX 9999"), None),
        (lambda: blocks(8, 4), "2 programs of 4 lanes for 8 numbers"),
        (lambda: blocks(10, 4), "3 programs of 4 lanes for 10 numbers: the last one has 2 lanes"),
        (lambda: blocks(10, 4, masked=False), "the last one has 2 lanes too many"),
        (lambda: blocks(1, 4), "1 program of 4 lanes for 1 number"),
        (lambda: rows(4, 5, 8), "Row 1, column c lies at offset 1 · 8 + c"),
        (lambda: rows(3, 5, 5, row=2), "offset 2 · 5 + c"),
        (lambda: tiles(48, 64, 40, 16, 16, 8), "walks along k in 5 steps"),
        (lambda: tiles(45, 29, 53, 16, 16, 16), "walks along k in 4 steps"),
        (lambda: tile_time(1024), "divides the traffic by T"),
    ],
)
def test_pictures_draw_and_say_their_point(figure, said):
    if said is None:
        with pytest.raises(ValueError, match="no card called"):
            figure()
        return
    picture = figure()
    assert said in picture.title
    assert svg(picture).startswith("<svg")


def test_questions_are_readable_without_jupyter():
    text = questions_text(*QUESTIONS)
    assert "how many lanes of the last program" in text and "Answers" in text


def test_inspect_launch_reports_and_keeps_every_access():
    def kernel(pid, x, out, n):
        offs = pid[0] * 4 + arange(0, 4)
        store(out, offs, load(x, offs), offs < n)

    x, out = np.arange(6.0), np.full(6, np.nan)
    run = inspect_launch(kernel, (2,), x, out, 6)
    (fault,) = run.findings
    assert (fault.kind, fault.argument, fault.program, fault.lanes) == (
        "out_of_bounds",
        "x",
        (1,),
        2,
    )
    assert out.tolist() == [0, 1, 2, 3, 4, 5]  # a lane outside does not end the launch
    loads = run.accesses[0]
    assert loads.programs.tolist() == [0, 1] and loads.offsets.shape == (2, 4)
    with pytest.raises(ZeroDivisionError):
        inspect_launch(lambda pid, x: 1 // 0, (1,), x)
