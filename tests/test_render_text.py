"""Text and JSON of a verdict: what a student reads in a terminal, and what a program gets."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest

from autograder.checking import check_functions
from autograder.exercises.quiz import quiz
from autograder.records import (
    ASPECT_OF_KIND,
    FINDING_KINDS,
    Aspect,
    Case,
    CaseResult,
    CompileFacts,
    Finding,
    Run,
    Traffic,
    Verdict,
)
from autograder.render.explain import NOTES, faults
from autograder.render.html import verdict_html
from autograder.render.json import verdict_json
from autograder.render.neutral import count, neutral, spaced, unbroken
from autograder.render.text import WIDTH, hints_text, verdict_text
from tests.render_records import (
    EXERCISE,
    FACTS,
    LESSON,
    ONE,
    OUTSIDE,
    aspects,
    failed,
    passed,
    shown,
    unsure,
)


def blocks(text: str) -> list[list[str]]:
    """The findings of a text, each as its lines."""
    out: list[list[str]] = []
    for line in text.splitlines()[1:]:
        if line.startswith("✗ "):
            out.append([line])
        elif out and line.startswith("  "):
            out[-1].append(line)
    return out


def test_the_first_line_says_verdict_and_points():
    assert verdict_text(passed(), EXERCISE).startswith("✓ 02.add Vector add: pass, 8 of 8 points\n")
    assert verdict_text(failed(), EXERCISE).startswith("✗ 02.add Vector add: fail, 6 of 8 points\n")
    text = verdict_text(unsure(), EXERCISE)
    assert text.startswith("? 02.add Vector add: could not check\n")
    assert "tt.dot_scaled yet. That is a limit of this checker" in text


def test_the_table_marks_every_aspect():
    text = verdict_text(failed(), EXERCISE)
    assert "  ✓ values        2/2  the numbers are right" in text
    assert "  ✗ bounds        0/2  lanes outside their tensor" in text
    assert "on 1 of 2 cases" in text


def test_an_aspect_that_could_not_be_scored_does_not_look_like_a_fault_of_its_own():
    def row(points, results):
        aspect = Aspect("races", "not_reached", points, 1.0)
        text = verdict_text(replace(failed(), aspects=(aspect,), cases=results), EXERCISE)
        return next(line for line in text.splitlines() if " races " in line)

    wrong = Finding("values", "3 of 3 values are wrong.")
    ran = CaseResult(LESSON, "fail", (wrong,), 3, 3)
    assert row(0.0, (ran,)) == "  – races      0/1  no fault seen; scored once the values are right"
    partly = row(0.5, (ran, passed().cases[1]))
    assert partly == "  – races    0.5/1  no fault seen; scored on the cases with right values"
    values = Aspect("values", "fail", 0.0, 1.0)
    stopped = CaseResult(LESSON, "fail", (Finding("compile", "No."),))
    text = verdict_text(replace(failed(), aspects=(values,), cases=(stopped,)), EXERCISE)
    assert "  ✗ values      0/1  not scored: nothing ran" in text
    assert row(0.0, (stopped,)) == "  – races      0/1  not scored: nothing ran"


def test_every_aspect_without_full_points_has_a_reason_beside_it():
    for kind in FINDING_KINDS:
        for results in (failed(Finding(kind, "So.")).cases, failed(Finding(kind, "So.")).cases[:1]):
            name = ASPECT_OF_KIND[kind]
            aspect = Aspect(name, "fail", 0.0, 1.0)
            text = verdict_text(replace(failed(), aspects=(aspect,), cases=results), EXERCISE)
            row = next(line for line in text.splitlines() if line.startswith(f"  ✗ {name}"))
            assert len(row.split("0/1")[1].strip()) > 10, row


def test_numbers_that_no_kernel_stored_have_a_row_also_where_no_points_are_for_that():
    finding = Finding("torch_computed", "NumPy wrote it.")
    rows = tuple(a for a in aspects(values="fail") if a.name != "kernel")
    text = verdict_text(replace(failed(finding), aspects=rows), EXERCISE)
    assert "✗ values · case" in text and "✗ kernel" not in text


def test_a_finding_says_what_where_why_and_what_to_look_at():
    (block,) = blocks(verdict_text(failed(), EXERCISE))
    assert block[0] == "✗ bounds · add_kernel, line 7 · case “the lesson's length”"
    said = " ".join(line.strip() for line in block[1:])
    assert said == f"{shown(OUTSIDE.message)} {EXERCISE.notes['out_of_bounds']}"


@pytest.mark.parametrize("length", [10, 300, 600, 5000])
@pytest.mark.parametrize("word", ["word ", "wördchen, ", "x" * 80 + " ", "x"])
def test_a_finding_takes_at_most_five_lines_and_keeps_its_question(length, word):
    long = replace(OUTSIDE, message=(word * length)[:length], kernel="k" * length)
    (block,) = blocks(verdict_text(failed(long), EXERCISE))
    assert 2 <= len(block) <= 5
    assert max(map(len, block)) <= WIDTH
    said = " ".join(line.strip() for line in block)
    assert said.endswith("Which condition tells a lane that it has a number to work on?")


def test_a_long_message_of_the_compiler_is_worth_more_than_the_question():
    short, long = "tl.arange needs a power of two.", "Say it in a power of two. " * 16
    asking = replace(EXERCISE, notes={"compile": "Which block has a million elements?"})
    for message, asked in ((short, True), (long, False)):
        verdict = failed(Finding("compile", message, "add_kernel", line=7))
        (block,) = blocks(verdict_text(verdict, asking))
        said = " ".join(line.strip() for line in block)
        assert len(block) <= 6 and message.strip() in said and "…" not in said
        assert ("a million elements?" in said) == asked


def test_only_the_first_findings_are_told_and_the_rest_is_counted():
    findings = [replace(OUTSIDE, line=line, argument=f"a{line}") for line in range(1, 9)]
    text = verdict_text(failed(*findings), EXERCISE)
    assert len(blocks(text)) == 3
    assert "… and 5 more" in text
    assert text.count("Which condition tells a lane") == 1  # a question is asked once


def test_the_same_fault_on_several_cases_is_told_once():
    second = CaseResult(ONE, "fail", (replace(OUTSIDE, message="other words"),))
    verdict = failed()
    verdict = replace(verdict, cases=(verdict.cases[0], second))
    (fault,) = faults(verdict, EXERCISE)
    assert fault.cases == "case “the lesson's length” and 1 more"
    assert fault.message == OUTSIDE.message


def test_every_kind_of_finding_has_a_question_or_says_itself_what_to_do():
    assert set(NOTES) == set(FINDING_KINDS)
    assert {kind for kind in NOTES if not NOTES[kind]} == {"compile", "interface"}
    plain = replace(EXERCISE, notes={})
    for kind in set(FINDING_KINDS) - {"compile", "interface"}:
        assert NOTES[kind].rstrip().endswith(("?", ".")), kind
        text = verdict_text(failed(Finding(kind, "It is so.")), plain)
        assert NOTES[kind].split()[0] in text


@pytest.mark.parametrize(
    ("form", "sizes", "elements", "limit", "said"),
    [
        ("3n", {"n": 98432}, 295296, 310060, "moved 295 296 elements = 3.00 n; limit 3n + 5 %"),
        ("2MN", {"M": 10, "N": 20}, 500, 420, "moved 500 elements = 2.50 MN; limit 2MN + 5 %"),
        ("2·M·N", {"M": 10, "N": 20}, 400, 420, "= 2.00 MN; limit 2·M·N + 5 %"),
        ("3n", {"n": 1}, 3072, 3, "moved 3072 elements = 3072 n; limit"),
        ("2MN + N·P", {"M": 9, "N": 9, "P": 9}, 210, 420, "moved 210 elements, 50 % of the limit"),
        ("3n", {"n": 0}, 0, 0, "moved 0 elements; limit 3n + 5 %"),
        ("", {"n": 7}, 5, 10, "moved 5 elements, 50 % of the limit (10)"),
        ("", {"n": 7}, 1, None, "moved 1 element (case"),
    ],
)
def test_traffic_stands_against_its_closed_form(form, sizes, elements, limit, said):
    result = CaseResult(Case("row", sizes), "pass", (), elements, limit)
    verdict = replace(passed(), cases=(result,))
    assert said in verdict_text(verdict, replace(EXERCISE, limit_text=form))


def test_traffic_shows_the_largest_case_or_the_largest_that_goes_over():
    small, large = Case("small", {"n": 1}), Case("large", {"n": 1000})
    inside = CaseResult(large, "pass", (), 3000, 3150)
    text = verdict_text(
        replace(passed(), cases=(CaseResult(small, "pass", (), 3, 3), inside)), EXERCISE
    )
    assert "3000 elements = 3.00 n" in text
    over = CaseResult(small, "fail", (), 2050, 3)
    text = verdict_text(replace(passed(), cases=(over, inside)), EXERCISE)
    assert "2050 elements = 2050 n; limit 3n + 5 % (case “small”)" in text


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (0.0, "no error: equal to the reference to the last bit"),
        (0.314, "every value within its rounding bound (largest error 0.31 of it, case"),
        (1.0, "every value within its rounding bound (largest error 1.00 of it, case"),
        (3.21, "largest error 3.2 times its rounding bound"),
        (54321.0, "largest error 54 321 times its rounding bound"),
        (1e30, "largest error 1e+30 times its rounding bound"),
    ],
)
def test_the_error_stands_against_the_tolerance(error, said):
    result = CaseResult(LESSON, "pass", (), max_error=error)
    assert said in verdict_text(replace(passed(), cases=(result,)), EXERCISE)


@pytest.mark.parametrize("error", [math.nan, math.inf])
def test_an_error_that_is_no_number_is_left_to_the_findings(error):
    result = CaseResult(LESSON, "fail", (OUTSIDE,), max_error=error)
    assert "largest error" not in verdict_text(replace(failed(), cases=(result,)), EXERCISE)


def test_compile_facts_are_one_sentence():
    assert (
        "add_kernel for RTX 4080: 26 registers a thread, all values fit in registers, 4 loads 16 "
        "bytes wide (ld.global.v4)" in " ".join(verdict_text(passed(), EXERCISE).split())
    )
    spilt = replace(FACTS, shared=49152, spills=64, instructions={"mma.sync": 128})
    text = " ".join(verdict_text(replace(passed(), compiled=(spilt,)), EXERCISE).split())
    assert "64 bytes spilled from registers to memory, 49 152 of 101 376 bytes of shared" in text
    assert "128 tensor-core products (mma.sync)" in text
    broken = CompileFacts("k", "RTX 4080", 0, 101376, 0, 0, error="arange needs a power of two.")
    text = verdict_text(replace(passed(), compiled=(broken,)), EXERCISE)
    assert "compiled" not in text  # the finding says it, once


def test_elements_missing_behind_a_mask_ask_about_the_mask_and_others_about_the_grid():
    missing = Finding("unwritten", "The output: no program wrote 896 of its 98432.", lanes=896)
    for masked, asked in ((1024, "The mask switched lanes off"), (128, NOTES["unwritten"])):
        traffic = (Traffic("x_ptr", 4, 98432, 0, 5000), Traffic("out_ptr", 4, 0, 97536, masked))
        result = CaseResult(LESSON, "fail", (missing,), run=Run((), (missing,), traffic))
        text = verdict_text(replace(failed(missing), cases=(result,)), EXERCISE)
        assert asked in " ".join(text.split())


def test_a_quiz_is_a_pass_only_when_its_form_is_complete():
    asked = quiz("02.quiz", "Quiz", {"q1": "number", "q2": "one of a b", "q3": "some of a b c"})

    def said(answers):
        verdict = check_functions(asked, {"answers": answers})
        return verdict, " ".join(verdict_text(verdict, asked).split())

    verdict, text = said({"q1": None, "q2": "a", "q3": None})
    assert verdict.verdict == "could_not_check" and text.startswith("? 02.quiz Quiz: incomplete")
    assert "1 of 3 answered" in text and "Not answered yet: q1, q3." in text
    assert "limit of this checker" not in text and "✓" not in text
    verdict, text = said({"q1": "ten", "q2": "z", "q3": "a", "q4": 1})
    assert verdict.verdict == "fail" and text.startswith("✗ 02.quiz Quiz: form not right")
    for name in ("q1 wants a number", "q2 wants one letter", "q3 wants a list", "answers has 'q4'"):
        assert name in text
    assert "tensor" not in text and "form is right" not in text and "…" not in text
    verdict, text = said({"q1": 1, "q2": "a", "q3": ["b"]})
    assert verdict.verdict == "pass" and text.startswith("✓ 02.quiz Quiz: form complete")
    assert verdict_json(verdict)["aspects"] == {"form": "pass"}
    for answers in ({}, [], None):
        verdict, text = said(answers)
        assert verdict.verdict == "fail" and not verdict.points


def test_a_graded_quiz_asks_nothing_about_tensors():
    asked = quiz("02.quiz", "Quiz", {"q1": "number"})
    findings = (Finding("interface", "q1 wants a number."), Finding("values", "q1: no answer."))
    rows = (Aspect("values", "fail", 0.0, 1.0),)
    verdict = Verdict("02.quiz", "fail", rows, findings)
    assert {fault.note for fault in faults(verdict, asked)} == {""}
    assert "q1: no answer." in verdict_text(verdict, asked)


def test_a_call_that_never_came_to_a_case_counts_no_cases():
    finding = Finding("interface", "add is missing: the exercise asks for that name.")
    verdict = Verdict(
        "02.add", "fail", (), (finding,), (CaseResult(Case("call", {}), "fail", (finding,)),)
    )
    text = verdict_text(verdict, EXERCISE)
    assert "add is missing" in text
    assert "call" not in text.replace("called", "")


def test_it_works_without_an_exercise():
    assert "fail, 6 of 8 points" in verdict_text(failed())


EVIL = (
    "\x1b[31mred\x1b]0;title\x07 \u202etxt.exe\u2066 \u200b\x00\r\n"
    "next\u2028line\ud800 e\u0301\u0301\u0301"
)


def test_foreign_words_cannot_drive_a_terminal():
    finding = replace(OUTSIDE, kernel=EVIL, argument=EVIL, message=EVIL)
    verdict = replace(failed(finding), warnings=(EVIL,), message=EVIL, exercise=EVIL)
    case = Case(EVIL, {"n": 3})
    facts = CompileFacts(EVIL, EVIL, 0, 1, 2, 3, {EVIL + "mma": 3}, error="")
    verdict = replace(
        verdict, cases=(CaseResult(case, "fail", (finding,), 7, 2, 3, 0.5),), compiled=(facts,)
    )
    text = verdict_text(verdict, replace(EXERCISE, title=EVIL, limit_text=EVIL))
    hints = hints_text(replace(EXERCISE, hints=(EVIL,)), 1)
    for character in text + hints:
        assert character.isprintable() or character == "\n", repr(character)
    text.encode("utf-8")  # a lone surrogate would raise
    assert "\\x1b[31mred" in text
    dumped = json.dumps(verdict_json(verdict), ensure_ascii=False)
    assert all(character.isprintable() for character in dumped)


def test_neutral_shortens_and_keeps_ordinary_text():
    assert neutral("größer · 3 × n… 你好") == "größer · 3 × n… 你好"
    assert neutral("a\n\tb  c") == "a b c"
    assert len(neutral("x" * 10**7, 50)) == 50
    assert neutral("x" * 50, 50) == "x" * 50
    assert len(neutral("\x1b" * 1000, 50)) == 50


def test_numbers_are_readable():
    assert [spaced(n) for n in (0, 1024, 98432, -10000)] == ["0", "1024", "98 432", "-10 000"]
    assert [count(1, "lane"), count(2, "lane"), count(2, "axis", "axes")] == [
        "1 lane",
        "2 lanes",
        "2 axes",
    ]


def test_hints_come_one_after_the_other():
    first = hints_text(EXERCISE, 1)
    assert "hint 1 of 3" in first and "Think of one program." in first
    assert "block" not in first and "2 more" in first
    assert "mask = offsets < n" in hints_text(EXERCISE, 3)
    assert hints_text(EXERCISE, 9) == hints_text(EXERCISE, 3)
    assert "Think" not in hints_text(EXERCISE, 0)
    assert hints_text(replace(EXERCISE, hints=()), 1) == "02.add has no hints."


def test_a_warning_about_several_lines_is_told_once():
    said = "tl.dot (line {}) is exact here."
    lone = "The descriptor (line 9) has a stride."
    told = replace(passed(), warnings=(said.format(5), lone, said.format(12), said.format(30)))
    text = verdict_text(told, EXERCISE)
    assert "note: tl.dot (lines 5, 12 and 30) is exact here." in text and lone in text
    assert text.count("exact here") == 1
    assert "(lines 5, 12 and 30)" in verdict_html(told, EXERCISE)


@pytest.mark.parametrize("room", range(60, 92))
def test_a_number_with_a_gap_stays_on_one_line(room):
    sentence = "x" * (room - 14) + " 40 960 of 101 376 bytes"
    text = verdict_text(replace(passed(), warnings=(sentence,)), EXERCISE)
    assert "40 960" in text and "101 376" in text


# ---------------------------------------------------------------- JSON


def test_json_has_exactly_the_promised_shape():
    record = verdict_json(failed())
    assert list(record) == ["exercise", "verdict", "points", "max_points", "aspects", "faults"]
    assert record["verdict"] == "fail" and record["points"] == 6.0 and record["max_points"] == 8.0
    assert record["aspects"]["bounds"] == "fail" and record["aspects"]["values"] == "pass"
    assert record["faults"] == [
        {
            "kind": "out_of_bounds",
            "kernel": "add_kernel",
            "argument": "out",
            "line": 7,
            "program": [96],
            "lanes": 896,
            "message": OUTSIDE.message,
        }
    ]
    assert json.loads(json.dumps(record)) == record


def test_json_takes_numpy_numbers_and_a_missing_program():
    import numpy as np

    finding = replace(OUTSIDE, program=(np.int64(3), np.int32(4)), lanes=np.int64(7))
    assert json.loads(json.dumps(verdict_json(failed(finding))))["faults"][0]["program"] == [3, 4]
    assert verdict_json(failed(replace(OUTSIDE, program=None)))["faults"][0]["program"] is None


def test_json_of_a_file_that_never_ran_still_holds_a_fault():
    verdict = Verdict("02.add", "fail", (), (), message="s.py does not parse.")
    (fault,) = verdict_json(verdict)["faults"]
    assert fault["kind"] == "interface" and fault["message"] == "s.py does not parse."
    assert verdict_json(unsure())["faults"] == []


def test_long_numbers_have_gaps_and_code_has_none():
    said = shown("needs 163840 bytes, offsets 12987…13011 in `x = 163840`, 0.12345678")
    assert said == "needs 163 840 bytes, offsets 12 987…13 011 in `x = 163840`, 0.12345678"
    assert unbroken("float16 of 1024 at 65504.") == "float16 of 1024 at 65\u202f504."
