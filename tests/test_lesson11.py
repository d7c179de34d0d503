"""Lesson 11: its cells show what the text says, a guess comes before the figure, and every figure
says where it was measured."""

from __future__ import annotations

import json
import re

import pytest

from autograder.records import Rejected
from autograder.render.ladders import ladder, ratios
from autograder.render.lesson11 import Climb, by_card
from autograder.render.lesson11_questions import QUESTIONS
from autograder.render.questions import questions_text
from autograder.render.style import svg
from lab_setup.roofline import ladders
from lab_setup.roofline.ladders import STORED, beside, climbed, facts_of, stored
from tests.lesson_pages import cells_of, said_in, shown

NAME = "11_from_right_to_fast"
CELLS = cells_of(NAME)
LADDERS = (("matmul", 4096), ("softmax", 256), ("flash", 8192))
STEPS = [
    (name, label)
    for source in CELLS
    for name, label in re.findall(r'(matmul|softmax|flash)\.step\("([^"]+)", guess=None\)', source)
]


@pytest.fixture(scope="module")
def printed(tmp_path_factory) -> str:
    """What the lesson prints to a reader who guesses 1.2 throughout."""
    cells = [source.replace("guess=None", "guess=1.2") for source in CELLS]
    done = shown(tmp_path_factory.mktemp("lesson"), cells)
    assert done.stderr == ""
    return done.stdout


# ------------------------------------------------------------------ what the page says


def test_it_climbs_every_step_of_its_ladders_in_their_order():
    for name, size in LADDERS:
        _, *labels = (step["label"] for step in stored(name, size)["steps"])
        assert [label for of, label in STEPS if of == name] == labels


def test_without_a_guess_no_gain_is_shown(tmp_path):
    before_figures = [source for source in CELLS if ".figure()" not in source]
    said = shown(tmp_path, before_figures).stdout
    assert said.count("Your guess first") == len(STEPS)
    assert "measured         " not in said and "from the reason" not in said


def test_every_measured_gain_stands_beside_its_card_and_date(printed):
    made = json.loads(STORED.read_text(encoding="utf-8"))["made"]
    lines = printed.splitlines()
    gains = [i for i, line in enumerate(lines) if line.startswith("  measured   ")]
    assert len(gains) == len(STEPS)
    for i in gains:
        assert f"measured on one {made['card']}, {made['date'][:10]}" in lines[i + 1]
    assert "Nothing was measured here" in printed


def test_no_line_is_longer_than_a_page_is_wide(printed):
    assert max(map(len, printed.splitlines())) <= 98  # of 960 pixels; JupyterLab breaks a word


def test_counts_are_as_the_text_says(printed):
    assert "the multiplications take 139 µs at least" in printed
    assert re.search(r"64 ×  64:  32 FLOP a byte, 30.9 TB/s", printed)
    assert re.search(r"128 × 256:  85 FLOP a byte.* 128 KB", printed)
    assert "12.5% of the time goes away: 1.14" in printed
    assert "rows 8 and 9 are right: True" in printed
    memory = [int(us) for us in re.findall(r": memory +(\d+) µs", printed)]
    assert len(memory) == 2 and memory[1] < memory[0] < 139  # memory waits in both


def test_the_prose_agrees_with_the_stored_figures():
    """What the page says of them in words; a new run that says otherwise needs other words."""
    matmul = {step["label"]: step for step in stored("matmul", 4096)["steps"]}
    for label in ("BLOCK_K 32 → 64", "128×256, 8 warps"):  # gave less than they promised
        assert 1.01 < matmul[label]["gain"] < matmul[label]["expect"] - 0.03
    assert matmul["descriptors"]["gain"] < 1.015  # gave nothing
    assert beside("matmul_nt", 4096)["pointers"] < 0.85 * beside("matmul", 4096)["pointers"]
    assert beside("matmul_nt", 4096)["descriptors"] > 0.97
    for label in ("128×128×32", "GROUP_M 1 → 8"):  # are worth most at 8192
        gains = [
            next(s["gain"] for s in stored("matmul", n)["steps"] if s["label"] == label)
            for n in (2048, 4096, 8192)
        ]
        assert max(gains) == gains[2] and gains[0] > 1.03
    short, long = (stored("softmax", columns) for columns in (256, 4096))
    gains = {step["label"]: step["gain"] for step in short["steps"]}
    assert gains["tuned"] > 2 and all(
        abs(gain - 1) < 0.03 for label, gain in gains.items() if gain and label != "tuned"
    )
    assert short["steps"][0]["ratio"] < 0.5 * short["rivals"]["copy"]
    assert long["steps"][0]["ratio"] > 0.95 * long["rivals"]["copy"]
    assert all(step["gain"] < 1.03 for step in long["steps"] if step["gain"])


def test_the_prose_on_attention_agrees_with_the_stored_figures(printed):
    gains = {step["label"]: step["gain"] for step in stored("flash", 8192)["steps"]}
    counted = re.findall(r"gain: H200 (\d\.\d+)", printed)
    steps = ("exp2", "no bounds masks", "split loop")
    for step, promised in zip(steps, counted, strict=True):
        assert gains[step] > float(promised) + 0.03  # each gave more
    for step in ("longest rows first", "tuned", "for this card"):
        assert abs(gains[step] - 1) < 0.03


def test_programs_of_short_rows_start_nearly_one_a_cycle(printed):
    rates = [float(x) for x in re.findall(r"µs: (\d\.\d+) a cycle", printed)]
    assert len(rates) == 3 and 0.7 < rates[0] < 1 and max(rates[1:]) < 0.2


def test_what_a_score_costs_depends_on_the_card(printed):
    cycles = re.findall(r"(\d+) cycles in tensor cores, +(\d+) in exp.*, +(\d+) in ten", printed)
    (h200, rtx) = (tuple(map(int, row)) for row in cycles)
    assert h200[2] > max(h200[:2]) and rtx[0] > sum(rtx[1:])


def test_few_blocks_need_the_causal_mask(printed):
    assert "128 of 8,256 blocks lie on the diagonal: 1.6%" in printed


def test_the_schedules_of_the_text_come_in_their_order(printed):
    shares = [float(x) for x in re.findall(r"(1\.\d+) of the time that no schedule", printed)]
    assert len(shares) == 3 and shares == sorted(shares, reverse=True) and shares[2] >= 1


def test_the_table_tells_the_cards_apart(printed):
    assert re.search(r"128×128×32 +yes +yes", printed)
    assert re.search(r"descriptors +– +yes", printed)
    assert re.search(r"one division +yes +yes", printed)
    assert re.search(r"split loop +yes +yes", printed)


# ------------------------------------------------------------------ the climb itself

STEP = [
    {"label": "plain", "reason": "As is.", "needs": 80, "ratio": 0.5, "gain": None, "expect": None},
    {"label": "wide", "reason": "More.", "needs": 80, "ratio": 0.8, "gain": 1.6, "expect": 1.3},
    {"label": "engine", "reason": "TMA.", "needs": 90, "ratio": None, "gain": None, "expect": 1.1},
]
RIVALS = {"other": 0.7, "vendor": 1.0}


def climb() -> Climb:
    return Climb("doubling, n = 8", "measured on one card, today", STEP, RIVALS)


def test_a_guess_is_judged_against_the_gain(capsys):
    ours = climb()
    ours.start()
    ours.step("wide")
    assert "1.60" not in capsys.readouterr().out
    for guess, said in ((1.59, "as close as"), (2.0, "more, by 25%"), (1.2, "less, by 25%")):
        ours.step("wide", guess)
        assert said in capsys.readouterr().out
    ours.step("engine", 1.1)
    assert "it was not measured" in capsys.readouterr().out
    assert ours.guesses == {"wide": 1.2, "engine": 1.1}


def test_slips_of_the_pen_are_named():
    with pytest.raises(ValueError, match="there are plain, wide, engine"):
        climb().step("wider", 1.1)
    for guess in (0, -1.2, float("nan"), float("inf")):
        with pytest.raises(ValueError, match="positive number"):
            climb().step("wide", guess)


def test_the_figure_says_all_of_it():
    ours = climb()
    assert "your guess" not in said_in(ours.figure())
    ours.step("wide", 1.2)
    said = said_in(ours.figure())
    for words in ("0.50", "0.80", "1.60", "not measured", "your guess", "today", "other", "vendor"):
        assert words in said
    assert svg(ours.figure()).startswith("<svg")


def test_the_table_of_cards_follows_what_a_step_needs():
    assert re.search(r"engine +– +yes", by_card(climb()))
    assert re.search(r"wide +yes +yes", by_card(climb()))


def test_a_ladder_without_any_measured_step_still_draws():
    empty = [dict(step, ratio=None, gain=None, expect=None) for step in STEP]
    assert "not measured" in said_in(ladder("t", "f", empty, RIVALS))


def test_ratios_show_what_is_there():
    panel = {
        "title": "doubling",
        "sizes": [1024, 1 << 27],
        "vendor": "torch",
        "own": {"fast": [0.9, None]},
        "rivals": {"copy": [None, 1.1]},
        "wanted": [0.95, None],
    }
    said = said_in(ratios("by size", "facts", [panel]))
    for words in ("1 024", "2^27", "torch", "fast", "copy", "target, at least"):
        assert words in said


# ------------------------------------------------------------------ where figures come from


def _record(**block) -> dict:
    made = {"card": "a card", "date": "2026-01-01 00:00 UTC"}
    made["versions"] = {"torch": "2.0", "triton": "3.0"}
    whole = {"kind": "ladder", "name": "doubling", "title": "doubling", "size": 8}
    whole["rivals"] = ["other", "vendor"]
    whole["steps"] = [{k: s[k] for k in ("label", "reason", "needs", "expect")} for s in STEP]
    times = {"plain": 4.0, "wide": 2.5, "other": 3.0, "vendor": 2.0}
    whole["timings"] = [{"name": name, "ms": ms} for name, ms in times.items()]
    return {"made": made, "blocks": [whole | block]}


def test_gains_are_over_the_last_step_that_was_measured():
    record = _record()
    record["blocks"][0]["steps"].append(dict(STEP[0], label="last"))
    record["blocks"][0]["timings"].append({"name": "last", "ms": 2.0})
    steps, rivals = climbed(record["blocks"][0])
    assert [step["ratio"] for step in steps] == [0.5, 0.8, None, 1.0]
    assert [step["gain"] for step in steps] == [None, 1.6, None, 1.25]
    assert rivals == {"other": pytest.approx(2 / 3), "vendor": 1.0}
    assert facts_of(record) == "measured on one a card, 2026-01-01, triton 3.0, torch 2.0"


def test_what_is_not_stored_is_named(tmp_path):
    path = tmp_path / "kernels.json"
    with pytest.raises(Rejected, match="cannot be read"):
        stored("doubling", 8, path)
    path.write_text(json.dumps(_record()), encoding="utf-8")
    assert stored("doubling", 8, path)["title"] == "doubling, n = 8"
    with pytest.raises(Rejected, match="there are doubling at 8"):
        stored("doubling", 16, path)


def test_it_measures_itself_only_with_a_card_and_the_fast_kernels(monkeypatch):
    import torch

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert ladders.here("matmul", 4096) is None
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert ladders.here("matmul", 4096) is None  # the students' copy
    monkeypatch.undo()
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    from lab_setup.kernels.bench import single

    monkeypatch.setattr(single, "ladder_here", lambda name, size: _record())
    assert ladders.here("doubling", 8)["steps"][1]["gain"] == 1.6
    monkeypatch.setattr(
        single, "ladder_here", lambda name, size: _record(timings=[], notes=["no room"])
    )
    with pytest.raises(Rejected, match="no room"):
        ladders.here("doubling", 8)


def test_the_answers_of_the_questions_are_right():
    said = questions_text(*QUESTIONS)
    assert f"1. {1 / (1 - 1 / 5):g}." in said
