"""Lesson 07: its cells show what the text says; the model of two clocks; torch.compile's code."""

from __future__ import annotations

import inspect
import json
import re
from pathlib import Path

import pytest
import torch
import triton
from triton.runtime.driver import driver

from autograder import interpret
from autograder.clock import ModelCard
from autograder.generated import generated
from autograder.render.lesson07 import answers, timeline
from autograder.render.lesson07_questions import QUESTIONS
from autograder.render.questions import questions_text
from autograder.render.style import svg
from lab_setup.roofline.measure import Measured, Timing
from lab_setup.roofline.results import entries, note, table
from tests.device.cells import script_of_lesson
from tests.lesson_pages import cells_of, shown, words_of

NAME = "07_measuring"
TEXT = (Path(__file__).resolve().parent.parent / f"course/lessons/{NAME}.py").read_text()


@pytest.fixture(scope="module")
def printed(tmp_path_factory) -> str:
    done = shown(tmp_path_factory.mktemp("lesson"), cells_of(NAME, complete=True))
    ours = [line for line in done.stderr.splitlines() if not line.startswith("USDT:")]  # profiler's
    assert not ours
    return done.stdout


@pytest.mark.parametrize(
    "claim",
    [
        "n = 67,108,864: the stopwatch shows 17.0 µs; the card is done after   1141.5 µs",
        "third  call:         22.4 µs",
        "do_bench_cudagraph        2.1      5.4     18.6    282.1  µs",
        "do_bench                  5.4     18.6     71.2    281.9  µs",
        "return_mode='mean'",
        "at least 0.374 ms on a 4080",
        "softmax    79% of roof",
        "aten::amax",
        'tl.where(r0_mask & xmask, tmp3, float("-inf"))',
        " 1024 columns: {'torch.compile': '2.00 passes', 'yours': '2.00 passes'}",
        " 1025 columns: {'torch.compile': '3.00 passes', 'yours': '2.00 passes'}",
        "   32                 1         14       0 of  1              128               1",
    ],
)
def test_cells_show_what_the_text_claims(printed, claim):
    assert claim in printed


def test_do_bench_counts_milliseconds(printed):
    calls = [int(n) for n in re.findall(r"called +(\d+) times", printed)]
    assert calls[0] > 3 * calls[-1] and 125 not in calls


def test_the_first_call_is_the_compilers(printed):
    first, second = (
        float(us.replace(",", ""))
        for us in re.findall(r"(?:first|second) +call: +(\S+) µs", printed)
    )
    assert first > 100 * second


def test_eight_passes_take_four_times_as_long_where_nothing_stays_in_l2(printed):
    small, large = (float(p) for p in re.findall(r"([\d.]+) %\n", printed)[:2])
    assert small < 300 and 380 < large < 410
    assert printed.count("model of an RTX 4080") >= 3


def test_gpu_cells_say_what_they_would_show_and_make_a_script(printed):
    assert printed.count("Expected on a GPU: ") == 4
    script = script_of_lesson(TEXT)
    for name in ("def softmax_fwd_kernel", "def profiled", "def adds", "note(entries("):
        assert name in script
    assert "ModelCard" not in script


def test_the_page_with_its_holes_runs(tmp_path):
    """The cells that a hole reaches: least times, and the student's kernel beside the other."""
    holes = [s for s in cells_of(NAME) if "def least_ms" in s or "def softmax_fwd_kernel" in s]
    assert len(holes) == 2 and all("SOLUTION" not in s for s in holes)
    before = "from autograder.ir.cards import card\nimport torch, triton, triton.language as tl\n"
    before += "from lab_setup.roofline.measure import gpu\nfrom autograder import interpret\n"
    cells = [before, *holes, "with interpret() as run:\n    triton_softmax(torch.randn(4, 100))"]
    done = shown(tmp_path, [*cells, "print(run.bytes)"])
    assert done.stdout.splitlines()[-1] == "3200"


# ---------------------------------------------------------------- the two clocks


def test_a_kernel_takes_the_time_of_its_bytes():
    model = ModelCard()
    launch = model.kernel("copy", x=100e6, y=100e6)  # more than L2 holds
    for _ in range(2):
        launch()
    (first, second) = (s for s in model.spans if s.where == "card")
    for span in (first, second):
        assert span.end - span.start == pytest.approx(1.0 + 200e6 / 716.8e3)
    assert first.start == 17.0 and second.start == first.end and model.host == 34.0


def test_l2_keeps_what_was_touched_last():
    model = ModelCard(l2_speed=4.0, kernel_us=0.0)
    a, b = model.kernel("a", a=40e6), model.kernel("b", b=40e6)

    def took(launch):
        launch()
        return model.spans[-1].end - model.spans[-1].start

    cold = 40e6 / 716.8e3
    assert [took(a), took(a), took(b), took(a)] == pytest.approx([cold, cold / 4, cold, cold])


def test_do_bench_runs_on_the_model_and_leaves_nothing_behind():
    before = torch.cuda.Event, torch.cuda.CUDAGraph, driver._active
    model = ModelCard()
    with model:
        cold = triton.testing.do_bench(model.kernel("k", x=7.168e6))
        warm = triton.testing.do_bench_cudagraph(model.kernel("k", x=7.168e6))
    assert cold == pytest.approx(11e-3) and 3.5e-3 < warm < 4e-3
    assert (torch.cuda.Event, torch.cuda.CUDAGraph, driver._active) == before
    assert "mean" in inspect.signature(triton.testing.do_bench).parameters["return_mode"].default


# ---------------------------------------------------------------- torch.compile's code


def softmax(x):
    e = torch.exp(x - x.amax(dim=1, keepdim=True))
    return e / e.sum(dim=1, keepdim=True)


@pytest.mark.parametrize("n_cols, passes", [(100, 2), (1500, 3)])
def test_generated_code_computes_and_moves_what_is_said(n_cols, passes):
    (made,) = generated(softmax, torch.empty(4096, n_cols, device="meta"))
    assert made.name in made.source and made.call.startswith(f"{made.name}.run(")
    blocks = {"XBLOCK": 2} | ({"R0_BLOCK": 256} if "R0_BLOCK" in made.kernel.arg_names else {})
    x = torch.randn(4, n_cols)
    out = torch.empty_like(x)
    record = interpret(made.kernel)[(2,)](x, out, 4, n_cols, **blocks)
    exact = torch.softmax(x.double(), dim=1)
    # exp, sum of n terms, division: a few roundings each, relative to a weight of at most 1
    assert (out - exact).abs().max() < 16 * 2**-24
    assert record.bytes == passes * x.nbytes and not record.findings


def test_several_kernels_come_in_order_and_torch_is_as_before():
    def two(x):
        return torch.softmax(x.sum(dim=0), dim=0)

    made = generated(two, torch.empty(4096, 64))
    assert len(made) >= 2 and len({g.name for g in made}) == len(made)
    assert not torch.cuda.is_available() or torch.cuda.device_count()


# ---------------------------------------------------------------- journal, pictures, questions


def measured() -> Measured:
    timings = [
        Timing(n, 64, ms, ms, ms, 2 / ms, 1 / ms) for n, ms in (("mine", 2.0), ("torch", 1.0))
    ]
    return Measured(tuple(timings), "NVIDIA H200", 4.0, 2.0)


def test_a_journal_grows_and_reads_back(tmp_path):
    path = tmp_path / "results.jsonl"
    for _ in range(2):
        note(entries("k", measured(), "mine", "torch", "torch 2"), path)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert len(lines) == 2 and lines[0]["torch_percent"] == 50.0
    assert lines[0]["roof_percent"] == 25.0 and lines[0]["versions"] == "torch 2"
    assert table(path).count("NVIDIA H200") == 2 and "50 %" in table(path)


def test_a_journal_refuses_what_it_cannot_read(tmp_path):
    path = tmp_path / "results.jsonl"
    path.write_text('{"kernel": "k"}\n')
    with pytest.raises(ValueError, match="Line 1 of"):
        table(path)
    with pytest.raises(ValueError, match="There are timings of mine, torch"):
        entries("k", measured(), "your", "torch", "")
    assert entries("k", Measured((), note="no GPU"), "mine", "torch", "") == []


def test_pictures_say_their_point():
    spans = [("host", "launch", 0, 17), ("card", "add", 17, 40), ("host", "wait", 17, 40)]
    figure = timeline({"a case": spans}, "a title")
    words = words_of(figure)
    assert {"host", "card", "a case", "launching", "waiting for the card"} <= set(words)
    assert "emptying L2" not in words
    bars = answers(["2¹⁸"], {"do_bench": [5.0]}, [4.4])
    assert "do_bench" in str(words_of(bars))
    assert svg(figure).startswith("<svg") and svg(bars).startswith("<svg")


def test_the_answers_to_the_questions_are_right():
    text = questions_text(*QUESTIONS)
    assert f"1. {200e6 / 0.4e-3 / 1e9:.0f}." in text and f"4. {100 // 2}." in text
