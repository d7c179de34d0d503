"""GPU cells, pictures and questions of lesson 02, on a machine without a card."""

from __future__ import annotations

import importlib.util
import json
import platform
from contextlib import nullcontext

import pytest
import torch
import triton
import triton.language as tl

from autograder.ir.cards import card
from autograder.records import Finding, Run
from autograder.render.inspected import show
from autograder.render.lesson02 import fusion, roof, tail
from autograder.render.questions import questions_text
from autograder.render.style import svg
from autograder.triton_interpreter import interpret
from lab_setup import gpulock, gpus
from lab_setup.roofline import machine, turns
from lab_setup.roofline import measure as measuring
from lab_setup.roofline.measure import Measured, Timing, TritonMissing, gpu, measure, versions
from tests.lesson_pages import said_in

CARD = "NVIDIA GeForce RTX 4080"


def never(size):
    raise AssertionError("nothing may be timed here")


@pytest.fixture
def a_card(monkeypatch):
    """As if there were one: ``a_card(times)`` says how long functions take, ms a run by name."""
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: CARD)
    monkeypatch.setattr(gpus, "current", lambda: "GPU-0")
    monkeypatch.setattr(gpulock, "hold", lambda uuid: nullcontext())
    monkeypatch.setattr(machine, "card_here", lambda: card(CARD))
    monkeypatch.setattr(machine, "others_on", lambda uuid: ())
    monkeypatch.setattr(turns, "own_stream", nullcontext)
    monkeypatch.setattr(turns, "captured", lambda functions: (dict(functions), {}))

    def times(found):
        monkeypatch.setattr(turns, "in_turn", found if callable(found) else lambda *_: found)

    return times


@pytest.fixture
def no_card(monkeypatch):
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)


def test_without_a_card_nothing_is_timed_and_the_expectation_is_marked_as_one(no_card, capsys):
    result = measure(never, (1024,), bytes_of=lambda n: 12 * n, expect="80–90 % of peak")
    assert result.timings == ()
    assert "there is no GPU here" in repr(result)
    assert "Expected on a GPU: 80–90 % of peak" in repr(result)
    # 12 · 1024 bytes over 716.8 GB/s
    assert "the roof of the RTX 4080: no kernel needs less than 0.0171 µs at n = 1,024" in repr(
        result
    )
    assert gpu("a table") is False
    assert "Expected on a GPU: a table" in capsys.readouterr().out
    # A page of JupyterLab breaks longer lines within a word.
    long = measure(never, range(1, 9), bytes_of=lambda n: 12 * n, expect="a long table " * 20)
    assert max(map(len, repr(long).splitlines())) <= 92
    assert len(versions()) <= 92 + len(torch.__version__)


def test_without_a_card_operations_set_the_predicted_pace_where_they_weigh_more(no_card):
    rates = dict(bytes_of=lambda n: 6 * n * n, flop_of=lambda n: 2 * n**3, expect="")
    # 2 · 4096³ operations over 97.5 TFLOP/s, where the bytes would take 0.14 ms
    assert "1.41 ms at n = 4,096" in repr(measure(never, (4096,), **rates))


def test_the_interpreter_is_never_timed(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    result = measure(never, (1024,), bytes_of=lambda n: 12 * n, expect="80–90 % of peak")
    assert result.timings == () and "TRITON_INTERPRET is set" in repr(result)


def test_a_timing_becomes_bytes_over_time_and_a_share_of_the_cards_peak(a_card):
    a_card({"add": [2.2, 1.9, 2.0, 2.0, 2.0]})
    result = measure(
        lambda n: {"add": lambda: None}, (2**26,), bytes_of=lambda n: 12 * n, expect=""
    )
    (timing,) = result.timings
    assert timing.gbs == pytest.approx(12 * 2**26 / 2e-3 / 1e9)
    assert result.bandwidth == 716.8
    assert "67,108,864" in repr(result) and "403" in repr(result) and "56%" in repr(result)
    faster = Timing("add", 2**26, 1.0, 1.0, 1.0, 805.3)
    assert "112%" in repr(Measured((faster,), CARD, 716.8))


def test_a_figure_above_the_roof_is_refused_and_the_reason_given(a_card):
    a_card({"add": [0.001] * 9, "slow": [1.0] * 9})
    functions = {"add": lambda: None, "slow": lambda: None}
    result = measure(lambda n: functions, (2**20,), bytes_of=lambda n: 12 * n, expect="")
    assert [t.name for t in result.timings] == ["slow"]
    # 12 · 2^20 bytes in a microsecond
    assert "Refused: add at n = 1,048,576: 12,583 GB/s is above the card's 717" in repr(result)
    assert "L2" in repr(result)


def test_more_operations_than_the_card_can_do_are_refused_by_their_type(a_card):
    a_card({"matmul": [1.0] * 9})
    rates = dict(bytes_of=lambda n: n, flop_of=lambda n: 150e9, expect="")  # 150 TFLOP/s
    told = measure(lambda n: {"matmul": lambda: None}, (8,), **rates)
    assert not told.timings and "150 TFLOP/s is above the card's 98" in repr(told)
    told = measure(lambda n: {"matmul": lambda: None}, (8,), dtype="float8_e4m3fn", **rates)
    assert told.timings[0].tflops == pytest.approx(150) and told.peak == 195


def test_who_else_was_on_the_card_and_what_was_no_graph_stand_in_the_note(a_card, monkeypatch):
    a_card({"add": [2.0] * 9})
    monkeypatch.setattr(machine, "others_on", lambda uuid: ("ada (process 7)",))
    monkeypatch.setattr(turns, "captured", lambda f: (dict(f), {"add": "it looks at values"}))
    told = repr(measure(lambda n: {"add": lambda: None}, (8,), bytes_of=lambda n: n, expect=""))
    assert "ada (process 7) had memory on this card meanwhile" in told
    assert "add was not captured as a CUDA graph (it looks at values)" in told


def test_figures_can_be_kept_as_json(a_card, monkeypatch, tmp_path):
    a_card({"add": [2.0] * 9})
    monkeypatch.setattr(machine, "about", lambda: {"state": {"clock_mhz": 1980}})
    kept = tmp_path / "add.json"
    measure(lambda n: {"add": lambda: None}, (8,), bytes_of=lambda n: 12 * n, expect="", save=kept)
    record = json.loads(kept.read_text())
    assert record["state"]["clock_mhz"] == 1980 and record["timings"][0]["ms"] == 2.0
    assert record["card"] == CARD


class FakeCard:
    """A clock that advances by what a run takes, and notes what happened."""

    def __init__(self):
        self.now, self.log = 0.0, []
        self.active = self

    def get_device_interface(self):
        return self

    def get_empty_cache_for_benchmark(self):
        return "cache"

    def clear_cache(self, cache):
        self.log.append("L2 emptied")

    def synchronize(self):
        pass

    def Event(self, enable_timing):
        card = self

        class Event:
            def record(self):
                self.at = card.now

            def elapsed_time(self, end):
                return end.at - self.at

        return Event()

    def takes(self, name, ms):
        def run():
            self.log.append(name)
            self.now += ms

        return run


def test_rivals_take_turns_on_an_empty_cache_and_each_round_begins_with_another(monkeypatch):
    card = FakeCard()
    monkeypatch.setattr("triton.runtime.driver", card)
    functions = {"a": card.takes("a", 1.0), "b": card.takes("b", 3.0), "c": card.takes("c", 2.0)}
    times = turns.in_turn(functions, warmup=4, rep=80)
    assert {name: set(t) for name, t in times.items()} == {"a": {1.0}, "b": {3.0}, "c": {2.0}}
    assert len(times["a"]) == 40  # 80 ms a function, 6 ms a round
    assert card.log[::2] == ["L2 emptied"] * (len(card.log) // 2)
    assert card.log[1::2][-30:-21] == ["a", "b", "c", "b", "c", "a", "c", "a", "b"]


def test_a_slow_rival_still_runs_often_enough_for_a_spread(monkeypatch):
    card = FakeCard()
    monkeypatch.setattr("triton.runtime.driver", card)
    assert len(turns.in_turn({"a": card.takes("a", 500.0)}, 25, 100)["a"]) == 25


@pytest.mark.parametrize("wrong", [torch.zeros(8), None, torch.ones(8, dtype=torch.float16)])
def test_a_wrong_kernel_has_no_speed(a_card, wrong):
    a_card(never)
    result = measure(
        lambda n: {"add": lambda: wrong, "torch": lambda: torch.ones(8)},
        (8,),
        bytes_of=lambda n: 12 * n,
        expect="",
    )
    assert result.timings == ()
    assert "Nothing was measured: at n = 8, add does not give what torch gives" in repr(result)


def test_a_function_that_rounds_at_every_step_may_be_left_unchecked():
    functions = {"naive": lambda: torch.zeros(8), "torch": lambda: torch.ones(8)}
    assert "naive does not give" in measuring._difference(functions, ())
    assert measuring._difference(functions, ("naive",)) == ""


def test_a_sum_that_ends_near_zero_may_differ_by_the_absolute_tolerance():
    functions = {"add": lambda: torch.full((8,), 1e-3), "torch": lambda: torch.zeros(8)}
    assert "add does not give" in measuring._difference(functions, ())
    assert measuring._difference(functions, (), atol=2e-3) == ""
    assert "add does not give" in measuring._difference(functions, (), atol=0.5e-3)


def test_with_operations_the_table_speaks_of_tflops():
    row = Timing("matmul", 4096, 2.0, 1.9, 2.1, 50.0, 68.7)
    told = repr(Measured((row,), CARD, 716.8, 97.5))
    assert "97.5 TFLOP/s by its data sheet" in told and "70%" in told and "GB/s" not in told


def test_versions_name_what_runs_here(no_card):
    assert f"torch {torch.__version__}" in versions() and "no GPU" in versions()


def test_without_triton_the_first_cell_says_one_sentence(monkeypatch):
    monkeypatch.setattr(platform, "system", lambda: "Darwin")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(TritonMissing) as caught:
        versions()
    (sentence,) = caught.value._render_traceback_()  # what Jupyter shows in place of a traceback
    assert "Linux only (this is Darwin)" in sentence and "unit 01 works" in sentence


@triton.jit
def talking_kernel(x_ptr, n, BLOCK_SIZE: tl.constexpr):
    offsets = tl.arange(0, BLOCK_SIZE)
    print("µ", offsets, offsets < n)


def test_a_kernel_prints_from_inside_and_a_failure_is_told():
    told = interpret(
        talking_kernel,
        "talking_kernel[(1,)](torch.zeros(3), 3, BLOCK_SIZE=4)",
        "raise SystemExit(3)",
    )
    assert "µ [0 1 2 3] [ True  True  True False]" in told
    assert "ended with exit code 3" in told


def test_scripts_share_the_imports_and_nothing_else():
    """The lesson has two cells with scripts, and importing torch is what takes the time."""
    assert interpret("import os; print(os.getppid()); left = 1; os.kill(os.getpid(), 11)").endswith(
        "ended with exit code -11: without an error message"
    )
    first = interpret("import os; print(os.getppid())")
    assert interpret("import os; print(os.getppid(), 'left' in globals())") == (
        f"{first.strip()} False\n"
    )


def test_a_script_that_does_not_end_is_stopped_and_the_next_one_runs():
    assert "stopped after 0.5 seconds" in interpret("while True: pass", timeout=0.5)
    assert interpret("print(6 * 7)") == "42\n"


# ---------------------------------------------------------------- pictures and questions


def test_the_last_block_is_drawn_with_its_numbers():
    words = said_in(tail(98432, 1024))
    for part in ("97 programs own 98 432 elements", "128", "896 without", "98 304", "99 327"):
        assert part in words
    assert "without" not in said_in(tail(4096, 1024))


def test_the_roof_has_predicted_points_and_says_so():
    words = said_in(roof({"add": (1, 12), "fma_relu": (2, 16)}))
    assert "below 68 FLOP a byte" in words  # 48.7e12 / 716.8e9
    assert "add, 1/12 FLOP a byte (predicted)" in words
    assert "fma_relu, 2/16 FLOP a byte (predicted)" in words


def test_measured_points_are_told_apart_from_predictions():
    ran = (Timing("add", 2**20, 1.0, 1, 1, 300.0), Timing("add", 2**27, 1.0, 1, 1, 610.0))
    ran += (Timing("torch", 2**27, 1.0, 1, 1, 580.0),)
    words = said_in(roof({"add": (1, 12)}, measured=Measured(ran, CARD, 716.8)))
    assert "add, 610 GB/s" in words and "torch, 580 GB/s" in words
    assert "580 GB/s (predicted)" not in words and "300" not in words  # the largest size
    unknown = said_in(roof({"add": (1, 12)}, measured=Measured(ran, "NVIDIA X1", None)))
    assert "RTX 4080" in unknown and "610" not in unknown


def test_pictures_become_svg():
    for figure in (tail(), fusion(), roof({"add": (1, 12)})):
        assert svg(figure).startswith("<svg")


def test_findings_are_shown_once_each_with_their_question_and_escaped():
    fault = Finding("values", "3 of 5 values are <wrong>.")
    shown = show(Run((), (fault, fault)))
    assert repr(shown).count("should") + repr(shown).count("by hand") == 1
    assert "&lt;wrong&gt;" in shown._repr_html_() and "<wrong>" not in shown._repr_html_()
    assert repr(show(Run((), ()))) == "✓ no findings"


def test_questions_are_readable_as_text():
    text = questions_text(
        {
            "question": "How many?",
            "type": "numeric",
            "answers": [{"type": "value", "value": 5, "correct": True, "feedback": "Count."}],
        },
        {
            "question": "Which?",
            "type": "multiple_choice",
            "answers": [
                {"answer": "this", "correct": False},
                {"answer": "that", "correct": True, "feedback": "Because."},
            ],
        },
    )
    asked, answers = text.split("Answers")
    assert "1. How many? (a number)" in asked and "b) that" in asked and "Because" not in asked
    assert "1. 5. Count." in answers and "2. b. Because." in answers


@pytest.mark.parametrize(
    "driver, row",
    [
        ("NVIDIA H200", "H200 SXM"),
        ("NVIDIA H100 80GB HBM3", "H100 SXM"),
        ("NVIDIA A100-SXM4-80GB", "A100 80 GB SXM"),
        ("NVIDIA GeForce RTX 4090", "RTX 4090"),
    ],
)
def test_a_card_is_known_by_what_the_driver_calls_it(driver, row):
    assert card(driver).name == row
    for unknown in ("NVIDIA", "", "NVIDIA H2000"):
        with pytest.raises(ValueError, match="no card called"):
            card(unknown)
