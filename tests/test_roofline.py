"""The roofline without a card: counts against closed forms, predictions, JSON, figure, command."""

from __future__ import annotations

import json
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
from torch.testing import assert_close

from autograder.ir.cards import card
from autograder.ir.l2 import EFFECTIVE, fetched, grouped, matmul_programs
from autograder.records import Rejected, Tensor
from lab_setup.__main__ import main
from lab_setup.roofline import machine, records, rivals
from lab_setup.roofline.command import chosen, function_of, predicted
from lab_setup.roofline.extract import code_of, script_for
from lab_setup.roofline.kernels import KERNELS, counted, least_ms
from lab_setup.roofline.model import Work, above_roof, extrapolated, peak_of, predict
from lab_setup.roofline.plot import figure_of, write
from tests.lesson_pages import said_in

RTX = card()
BY_ID = {kernel.id: kernel for kernel in KERNELS}


def work(id, tmp_path, on=RTX, **changes):
    kernel = replace(BY_ID[id], **changes)
    return counted(kernel, function_of(kernel, None, tmp_path, on_card=False), on)


def test_add_moves_twelve_bytes_an_element_and_does_one_operation(tmp_path):
    n = 1 << 27
    assert work("02.add", tmp_path) == Work(12 * n, 8 * n, 4 * n, 0, n, "")


def test_a_backward_pass_is_counted_without_its_forward(tmp_path):
    found = work("03.softmax_backward", tmp_path)
    plane = 2 * 4096 * 16384  # reads y and dy, writes dx, in bfloat16
    assert (found.requested, found.fetched, found.written) == (3 * plane, 2 * plane, plane)


def test_weights_that_rows_share_are_fetched_once(tmp_path):
    found = work("04.rmsnorm", tmp_path)
    assert found.fetched == 2 * (4096 * 16384 + 16384)
    assert found.requested == 2 * 3 * 4096 * 16384  # asked for they are by every row


@pytest.mark.parametrize("name", ["RTX 4080", "H200 SXM"])
def test_a_slice_of_a_matmul_tells_what_the_whole_fetches(tmp_path, name):
    """Against the L2 model's description of the whole, tile by tile."""
    on, n = card(name), 2048
    sizes = dict(size=n, tensors=lambda k: (Tensor((n, k), "bfloat16"), Tensor((k, n), "bfloat16")))
    found = work("05.grouping", tmp_path, on, **sizes)
    tiles = n // 64
    whole = matmul_programs(n, n, n, grouped(tiles, tiles, 8), (64, 64, 32))
    model = fetched(whole, on.sms, EFFECTIVE * on.l2_mb * 2**20)
    assert found.fetched == pytest.approx(model, rel=0.01)
    assert found.dot == 2 * n**3 and found.written == 2 * n * n and found.dtype == "bfloat16"


def test_the_slowest_of_bytes_and_operations_is_the_bound():
    memory = predict(Work(0, 8e9, 4e9, 0, 1e9), RTX, (0.8, 0.9))
    assert memory.bound == "memory" and memory.ms == pytest.approx(12e9 / 716.8e9 * 1e3)
    assert memory.band == pytest.approx((memory.ms / 0.9, memory.ms / 0.8))
    assert memory.tflops == pytest.approx(716.8e9 / 12 / 1e12)
    dots = predict(Work(0, 1e6, 0, 97.5e12, 0, "bfloat16"), RTX)
    assert dots.bound == "tensor cores" and dots.ms == pytest.approx(1000)
    exps = predict(Work(0, 1e6, 0, 0, 48.7e12), RTX)
    assert exps.bound == "fp32 units" and exps.ms == pytest.approx(1000)
    assert peak_of("float32", RTX) == 97.5 / 2 and peak_of("float8", card("A100 80 GB SXM")) == 312


def test_a_line_through_two_counts_gives_the_third():
    once, twice = Work(10, 7, 3, 100, 5, "float16"), Work(16, 10, 3, 200, 5, "float16")
    assert extrapolated(once, twice, 4) == Work(28, 16, 3, 400, 5, "float16")


def test_no_kernel_is_predicted_faster_than_its_task_allows(tmp_path):
    for id in ("03.softmax_long", "06.flash_boss"):
        said = predict(work(id, tmp_path), RTX)
        assert said.ms >= least_ms(BY_ID[id], RTX) * (1 - 1e-9), id


def test_what_is_above_the_roof_is_told():
    assert above_roof(RTX, 716.7, 97.4) == "" and above_roof(None, 1e9) == ""
    assert "720 GB/s is above the card's 717" in above_roof(RTX, 720)
    assert "98 TFLOP/s is above" in above_roof(RTX, 1, 98)


def test_every_rival_computes_what_the_reference_does():
    """On the CPU, in float32, so that only a wrong formula can differ; compiled ones apart."""

    def small(kernel):
        made = torch.Generator().manual_seed(0)
        shapes = [tuple(min(n, 64) for n in t.shape) for t in kernel.tensors(64)]
        return [torch.randn(s, generator=made, requires_grad=kernel.backward) for s in shapes]

    seen = 0
    for kernel in KERNELS:
        names = [name for name in kernel.rivals if name != "compile"]
        calls = [rivals._rival(kernel, name) for name in names if name != "cuDNN"]
        tensors = small(kernel)
        *others, expected = [call(*tensors) for call in calls]
        for other in others:
            assert_close(other, expected, rtol=1e-4, atol=1e-5, msg=kernel.id)
            seen += 1
    assert seen >= 6


def test_a_rival_that_a_machine_lacks_is_left_out_with_a_sentence(monkeypatch):
    kernel = replace(BY_ID["06.flash_boss"], call=lambda function: function)
    heads = [torch.randn(1, 1, 32, 16) for _ in range(3)]
    monkeypatch.setattr(rivals, "on_card", lambda kernel: heads)
    reference = rivals._rival(kernel, "eager")
    found, absent = rivals.functions_of(kernel, reference)
    assert list(found) == ["triton", "eager", "FlashAttention-2"]  # cuDNN wants a card
    assert len(absent) == 1 and "cuDNN does not run here" in absent[0]


def test_a_function_is_taken_out_of_its_page_with_what_it_names(tmp_path):
    page = tmp_path / "page.ipynb"
    cells = [
        "import math\nprint('not this')",
        "%timeit nothing",
        "scale = 2",
        "def double(x):\n    return scale * x",
        "def double(x):\n    return math.nan",
    ]
    grade_ids = ["", "", "", "solution-02-add", ""]
    page.write_text(
        json.dumps(
            {
                "cells": [
                    {
                        "cell_type": "code",
                        "source": source,
                        "metadata": {"nbgrader": {"grade_id": grade_id}},
                    }
                    for source, grade_id in zip(cells, grade_ids, strict=True)
                ]
            }
        )
    )
    script = script_for(page, "double", "02.add")
    assert "scale = 2" in script and "return scale * x" in script
    assert "print" not in script and "nan" not in script and "timeit" not in code_of(page)
    with pytest.raises(Rejected, match="does not define triple"):
        script_for(page, "triple")


def test_a_card_that_the_table_lacks_gets_its_peaks_from_its_clock(monkeypatch):
    """An RTX 4080 by its clock of 2505 MHz and its memory's 11 201 MHz at 256 bit."""
    seen = SimpleNamespace(
        name="NVIDIA X1", major=8, minor=9, multi_processor_count=76, L2_cache_size=64 * 2**20
    )
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: seen)
    monkeypatch.setattr(machine, "_clock", lambda which: 2505)
    answers = {"nvmlDeviceGetMemoryBusWidth": 256, "nvmlDeviceGetMaxClockInfo": 11201}
    monkeypatch.setattr(machine, "_ask", lambda question, *_: answers[question.__name__])
    found = machine.card_here()
    assert found.bandwidth == pytest.approx(RTX.bandwidth, rel=1e-3)
    assert found.bf16_tflops == pytest.approx(RTX.bf16_tflops, rel=1e-3)
    assert found.fp32_tflops == pytest.approx(RTX.fp32_tflops, rel=1e-3)


# ---------------------------------------------------------------- record, figure, command


@pytest.fixture
def record():
    found = records.new(RTX, {"card": "RTX 4080", "date": "2026-11-30", "predicted": True})
    for id, counts in (
        ("02.add", Work(12e9, 8e9, 4e9, 0, 1e9)),
        ("05.matmul", Work(4e9, 5e7, 3e7, 137e9, 0, "bfloat16")),
    ):
        found["kernels"].append(records.predicted_row(BY_ID[id], counts, RTX))
    return found


def test_a_record_is_drawn_anywhere(record, tmp_path, capsys):
    source, target = tmp_path / "r.json", tmp_path / "r.svg"
    records.save(record, source)
    assert main(["roofline", "--plot", str(source), "--out", str(target)]) == 0
    assert "<svg" in target.read_text() and str(target) in capsys.readouterr().out
    words = said_in(figure_of(record))
    for part in ("RTX 4080", "hollow points are predicted", "predicted 2026-11-30", "matmul"):
        assert part in words
    assert "cuBLAS" not in words


def test_measured_points_and_rivals_are_named_in_the_figure(record):
    for row in record["kernels"]:
        row["measured"] = [{"name": "triton", "ms": 20.0}, {"name": "cuBLAS", "ms": 10.0}]
    record["made"] |= {"predicted": False, "card": "X1"}
    record["reference"] = {"copy_gbs": 650.0, "matmul_tflops": 80.0}
    words = said_in(figure_of(record))
    for part in ("X1", "measured 2026-11-30", "cuBLAS", "a copy: 650 GB/s", "80 TFLOP/s"):
        assert part in words
    assert "hollow" not in words
    record["kernels"][0]["measured"] = [{"name": "cuBLAS", "ms": 10.0}]  # its own run failed
    assert "hollow" in said_in(figure_of(record))


def test_one_kernel_is_predicted_from_a_students_file(tmp_path, capsys):
    mine = tmp_path / "mine.py"
    script = script_for(chosen_source("02_vector_add"), "add", "02.add")
    mine.write_text(script + "\nraise SystemExit('this line is no definition')\n")
    out = tmp_path / "r.json"
    call = ["roofline", "--kernel", "02.add", "--file", str(mine), "--json", str(out)]
    assert main(call) == 0
    said = capsys.readouterr().out
    assert "predictions; nothing is measured" in said and "2.2469 ms" in said
    assert records.load(out)["kernels"][0]["bound"] == "memory" and out.with_suffix(".png").exists()


def chosen_source(name):
    from lab_setup.roofline.command import ROOT

    return ROOT / "source" / name / f"{name}.ipynb"


def test_a_file_that_does_not_have_the_function_is_a_note(tmp_path):
    other = tmp_path / "other.py"
    other.write_text("x = 1\n")
    assert predicted("02.add", RTX, other) == {
        "note": "02.add: not predicted: other.py does not define add."
    }


def test_a_released_notebook_that_nobody_filled_in_is_a_sentence(capsys, tmp_path):
    released = "release/02_vector_add/02_vector_add.ipynb"
    figures = ["--json", str(tmp_path / "a.json")]
    assert main(["roofline", "--kernel", "02.add", "--file", released, *figures]) == 1
    assert "02.add: not predicted: its kernels load and store nothing." in capsys.readouterr().out


@pytest.mark.parametrize(
    "words, sentence",
    [
        (["--card", "RTX 9999"], "no card called 'RTX 9999' in the table"),
        (["--kernel", "02.sub"], "No kernel is measured for '02.sub'. There are: 02.add"),
        (["--file", "mine.py"], "Which exercise is the file for?"),
        (["--plot", "no/such.json"], "There is no file no/such.json."),
    ],
)
def test_bad_input_gets_a_sentence(words, sentence, capsys):
    assert main(["roofline", *words]) == 2
    assert sentence in capsys.readouterr().err


def test_other_json_and_other_figures_are_refused(record, tmp_path):
    wrong = tmp_path / "wrong.json"
    for text in ("[1]", "{}", "nothing"):
        wrong.write_text(text)
        with pytest.raises(Rejected, match="is no record of|is not JSON"):
            records.load(wrong)
    with pytest.raises(Rejected, match="written as .png or .svg"):
        write(record, tmp_path / "r.gif")
    with pytest.raises(Rejected, match="holds no kernel"):
        write(record | {"kernels": []}, tmp_path / "r.png")


def test_every_exercise_with_a_kernel_for_a_card_is_in_the_table():
    from autograder import exercises

    known = {id for id in exercises.ids() if exercises.get(id).machine == "triton"}
    assert set(BY_ID) <= known and {id for id in known if id[:2] in "02 03 04 05 06"} == set(BY_ID)
    assert chosen([]) == KERNELS
