"""A finding's question leads to its cause; what another finding explains is not asked about."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import pytest
import torch
import triton
import triton.language as tl

from autograder import exercises
from autograder.checking import check_functions, inspect_call
from autograder.records import Finding
from autograder.render.asking import SAME_CAUSE, ask, explained
from autograder.render.explain import NOTES, faults
from autograder.render.inspected import show
from autograder.render.text import verdict_text
from tests.submitted import SUBMISSIONS, exercise_of, judged


@triton.jit
def copy_rows(x_ptr, out_ptr, x_row, x_col, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * x_row + cols * x_col, mask=cols < n_cols, other=0.0)
    tl.store(out_ptr + row * BLOCK + cols, x)


def question(x: torch.Tensor, row: int, col: int, rows: int = 0, n_cols: int = 0) -> str:
    def host(x):
        m, n = x.shape
        out = torch.empty(rows or m, 16)
        copy_rows[(rows or m,)](x, out, row, col, n_cols or n, BLOCK=16)
        return out

    return next(ask(f, NOTES) for f in inspect_call(host, x).findings if f.kind == "out_of_bounds")


PADDED = torch.zeros(6, 20)[:, :13]
SECOND = torch.zeros(6, 40)[:, ::2]


@pytest.mark.parametrize(
    "x, row, col",
    [(PADDED, 13, 1), (SECOND, 40, 1), (torch.zeros(6, 13), 13, 2)],
    ids=["width for stride", "column stride forgotten", "stride of another tensor"],
)
def test_a_wrong_step_asks_about_strides_and_not_about_the_mask(x, row, col):
    said = question(x, row, col, n_cols=min(x.shape[1], 13))
    assert "How far apart do neighbours lie in memory" in said


def test_a_program_without_a_lane_inside_is_asked_what_it_is_for():
    assert "No lane of this program is inside" in question(torch.zeros(6, 13), 13, 1, rows=9)


@pytest.mark.parametrize("x", [torch.zeros(6, 13), PADDED], ids=["contiguous", "padded"])
def test_a_missing_mask_asks_about_the_mask(x):
    assert question(x, x.stride(0), 1, n_cols=16) == NOTES["out_of_bounds"]


def told(name: str, *labels: str):
    path = SUBMISSIONS / "wrong" / f"{name}.py"
    exercise = exercise_of(path)
    cases = [c for c in exercise.cases if c.label in labels]
    return faults(judged(path, cases, proof=False), exercise)


def test_a_store_without_mask_asks_one_question_though_it_also_races():
    bounds, race, *more = told("03_softmax_missing_store_mask", "float16")
    assert (bounds.finding.kind, race.finding.kind) == ("out_of_bounds", "race")
    assert bounds.note.endswith("?") and race.note == SAME_CAUSE
    assert {fault.note for fault in more} == {SAME_CAUSE}


def test_elements_that_a_wrong_stride_left_out_ask_nothing_beside_the_lanes_outside():
    labels = [case.label for case in exercises.get("01.softmax").cases]
    shown = told("01_softmax_row_stride_is_the_block", *labels)
    kinds = [fault.finding.kind for fault in shown]
    assert "out_of_bounds" in kinds and "unwritten" in kinds
    for fault in shown:
        assert "mask switched lanes off" not in fault.note


def test_wrong_numbers_on_other_cases_keep_their_question():
    outside = Finding("out_of_bounds", "Outside.", argument="x_ptr", line=3)
    wrong = Finding("values", "Wrong.")
    assert explained(wrong, ["a"], [(outside, ["a", "b"])])
    assert not explained(wrong, ["a", "c"], [(outside, ["a", "b"])])
    assert not explained(replace(outside, kind="race", line=4), ["a"], [(outside, ["a"])])
    assert ask(replace(wrong, message="Is it rounded?"), NOTES) == ""  # it asks already


@triton.jit
def half_of_the_rows(x_ptr, out_ptr, n_cols, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    at = tl.program_id(0) * n_cols + cols
    tl.store(out_ptr + at, tl.load(x_ptr + at, mask=cols < n_cols), mask=cols < n_cols)


def test_rows_without_a_program_are_named_and_no_mask_is_blamed():
    def host(x):
        out = torch.empty_like(x)
        half_of_the_rows[(6,)](x, out, 33, BLOCK=64)
        return out

    notes = exercises.get("03.softmax").notes
    (finding,) = inspect_call(host, torch.zeros(8, 33)).findings
    assert "no program wrote 66 of its 264 elements, every row from 6 on." in finding.message
    assert ask(finding, notes) == notes["unwritten"]


@triton.jit
def add_into(out_ptr, BLOCK: tl.constexpr):
    tl.atomic_add(out_ptr + tl.arange(0, BLOCK), 1.0)


def test_an_atomic_addition_to_nothing_is_called_so():
    def host(x):
        out = torch.empty(16)
        add_into[(2,)](out, BLOCK=16)
        return out

    text = repr(show(inspect_call(host, torch.zeros(16))))
    assert "atomic on out_ptr: 16 lanes update memory that nobody has written" in text
    assert "What must stand there before the first update?" in text and "load" not in text


@triton.jit
def scale_twice(a_ptr, b_ptr, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    mask = at < n
    tl.store(a_ptr + at, 2 * tl.load(a_ptr + at, mask=mask), mask=mask)
    tl.store(b_ptr + at, 2 * tl.load(b_ptr + at, mask=mask), mask=mask)


def test_an_input_that_two_arguments_name_is_told_of_once():
    def host(x):
        scale_twice[(1,)](x, x, 8, BLOCK=8)
        return x

    assert inspect_call(host, torch.ones(8)).changed == ("a_ptr",)


def test_a_note_on_a_line_of_the_kernel_stands_before_the_findings():
    verdict = judged(SUBMISSIONS / "wrong" / "03_softmax_stores_zeros.py", proof=False)
    line, host = "Line 7 of k stores one number in all lanes.", "The tensor lies on the host."
    text = verdict_text(replace(verdict, warnings=(host, line)), exercises.get("03.softmax"))
    assert text.index(line) < text.index("✗ values ·") < text.index(host)


def test_no_line_ends_within_a_number():
    verdict = judged(SUBMISSIONS / "wrong" / "03_softmax_stores_zeros.py", proof=False)
    for filler in range(80):
        message = f"{'x' * filler} moved 101 376 of 2 847 526 bytes"
        text = verdict_text(replace(verdict, warnings=(message,)), exercises.get("03.softmax"))
        assert "101 376" in text and "2 847 526" in text


def test_a_stub_is_no_forgotten_return_and_nothing_is_left_to_compile():
    exercise = exercises.get("03.softmax")
    verdict = check_functions(exercise, {"triton_softmax": lambda x: None})
    assert verdict.findings[0].message.endswith("Are the lines still to come?")
    assert not verdict.message and verdict.points == 0
    assert {a.status for a in verdict.aspects if a.name == "compiles"} == {"not_reached"}


def test_a_forward_that_returns_nothing_is_not_sent_to_apply():
    class Forgetful(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)

        @staticmethod
        def backward(ctx, dy):
            return dy

    exercise = exercises.get("03.softmax_backward")
    verdict = check_functions(exercise, {"triton_softmax": lambda x: Forgetful.apply(x)})
    assert "returned None: forward" in verdict.findings[0].message


@pytest.mark.parametrize(
    "how, said",
    [("y = ctx.saved_tensors", "is a tuple"), ("(y,) = ctx.saved_tensors[:0]", "no more")],
)
def test_saved_tensors_taken_for_a_tensor_are_named(tmp_path, how, said):
    right = (SUBMISSIONS / "right" / "03_softmax_backward_plain.py").read_text()
    line = next(row for row in right.splitlines() if "ctx.saved_tensors" in row)
    path = tmp_path / "solution.py"
    path.write_text(right.replace(line.strip(), how))
    command = [sys.executable, "-m", "autograder", "check", "03.softmax_backward", str(path)]
    out = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    assert "ctx.saved_tensors" in out and said in out


def test_a_reader_that_leaves_early_sees_no_traceback(tmp_path):
    path = tmp_path / "solution.py"
    path.write_text("def add(x, y):\n    return None\n")
    command = f"{sys.executable} -m autograder check 02.add {path} | true"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True)
    assert done.stderr == ""


def test_code_in_hints_can_be_copied():
    """A minus or a dot of typography in code is a syntax error where it is pasted."""
    for id in exercises.ids():
        for hint in exercises.get(id).hints:
            if "tl." in hint and id[:2] in ("03", "04"):
                assert not set("−·") & set(hint), f"{id}: {hint}"
