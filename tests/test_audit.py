"""The audit of the graders: its mutants, its counts, and a sample of it on every exercise."""

from __future__ import annotations

import ast
import json
from dataclasses import replace

import pytest

from autograder import exercises
from autograder.__main__ import main
from autograder.checking import check_functions
from autograder.grading import agreement, judge
from autograder.grading.ahead import warm_job
from autograder.grading.audit_report import as_json
from autograder.grading.corpus import (
    SUBMISSIONS,
    Answer,
    Said,
    corpus,
    judged,
    plain,
    sample,
    solutions,
)
from autograder.grading.forkserver import End
from autograder.grading.kept import Kept
from autograder.grading.mutants import RULES, mutants
from autograder.grading.trials import LIMITS
from autograder.verdict import not_checked

ASKED = [id for id in exercises.ids() if solutions("right", id)]
SAMPLE = 2  # answers of an exercise in CI; all of them: python -m autograder audit

KERNEL = """
@triton.jit
def kernel(x_ptr, out_ptr, stride, n, B: tl.constexpr):
    row = tl.program_id(0)  # ü: columns are bytes
    cols = tl.arange(0, B)
    x = tl.load(x_ptr + row * stride + cols, mask=cols < n, other=0.0)
    tl.store(out_ptr + row * n + cols, x, mask=cols < n)
"""


@pytest.fixture(scope="module")
def everything() -> dict[str, list[Answer]]:
    return {id: list(corpus(id)) for id in ASKED}


# ---------------------------------------------------------------- mutants


def test_every_rule_changes_one_place_and_says_how_it_reads():
    found = {(m.rule, m.place) for m in mutants(KERNEL)}
    for rule, statement in (
        ("load mask dropped", "x = tl.load(x_ptr + row * stride + cols)"),
        ("store mask dropped", "tl.store(out_ptr + row * n + cols, x)"),
        ("other dropped", "x = tl.load(x_ptr + row * stride + cols, mask=cols < n)"),
        ("other altered", "x = tl.load(x_ptr + row * stride + cols, mask=cols < n, other=1.0)"),
        ("comparison one wider", "tl.store(out_ptr + row * n + cols, x, mask=cols <= n)"),
        ("offsets one on", "cols = tl.arange(0, B) + 1"),
        ("stride forgotten", "x = tl.load(x_ptr + row + cols, mask=cols < n, other=0.0)"),
        ("every program is the first", "row = 0"),
    ):
        assert (rule, f"kernel: {statement}") in found


def test_mutants_are_python_and_no_two_are_the_same_program(everything):
    for id, answers in everything.items():
        texts = [a.source for a in answers if a.mutant]
        trees = {ast.dump(ast.parse(text)) for text in texts}
        assert len(trees) == len(texts) >= 10, id


def test_what_follows_a_changed_function_stands_in_its_old_lines(everything):
    """Or every kernel behind it would be another one to Triton, and be lowered again."""
    for id, answers in everything.items():
        lines = _lines(plain(id))
        assert all(_lines(a.source) == lines for a in answers if a.mutant), id


def _lines(source: str) -> dict[str, int]:
    return {node.name: node.lineno for node in ast.parse(source).body if hasattr(node, "name")}


def test_every_rule_finds_something_to_change_somewhere(everything):
    used = {a.name.split(": ")[1] for answers in everything.values() for a in answers if a.mutant}
    assert used == {name for name, *_ in RULES}


def test_there_are_enough_mutants_and_right_solutions(everything):
    answers = [a for of_one in everything.values() for a in of_one]
    assert sum(a.mutant and not a.equivalent for a in answers) >= 300
    styles = {id: sum(not a.aspects for a in of_one) for id, of_one in everything.items()}
    assert sum(styles.values()) >= 80 and min(styles.values()) >= 5, styles


def test_what_is_listed_as_equivalent_exists_and_has_a_reason(everything):
    listed = json.loads((SUBMISSIONS / "equivalent.json").read_text(encoding="utf-8"))
    for id, rules in listed.items():
        found = {tuple(a.name.split(": ", 2)[1:]): a.equivalent for a in everything[id] if a.mutant}
        for rule, places in rules.items():
            for place, why in places.items():
                assert found.get((rule, place)) == why != "", (id, rule, place)


# ---------------------------------------------------------------- verdicts


def test_a_sample_of_every_exercise_gets_its_verdict(everything):
    """Few enough for CI, the same ones every time."""
    answers = [a for id in ASKED for a in sample(everything[id], SAMPLE)]
    assert [a for id in ASKED for a in sample(everything[id], SAMPLE)] == answers
    said = judged(answers, check_functions, 1)
    assert [s.answer for s in said] == answers
    assert [(s.answer.name, s.fault, s.message) for s in said if s.fault] == []
    wrong = [s for s in said if s.answer.aspects and not s.answer.equivalent]
    assert sum(s.for_its_reason for s in wrong) >= 0.9 * len(wrong)


def test_wrong_verdicts_are_faults_and_what_never_ends_is_stopped():
    right = Answer("02.add", "plain", solutions("right", "02.add")["plain"].read_text())
    wrong = replace(right, name="mutant", aspects=("bounds",), mutant=True)
    empty, endless = "add = None", "while True:\n    pass\n"
    passed, failed, stopped = judged(  # the right solution called wrong; wrong ones called right
        [wrong, replace(right, source=empty), replace(wrong, source=endless)],
        check_functions,
        1,
        limits=replace(LIMITS, cpu=10),
    )
    assert (passed.outcome, passed.fault) == ("pass", "survived")
    assert failed.fault == "right, and failed"
    assert (stopped.outcome, stopped.fault, stopped.for_its_reason) == ("timeout", "", False)
    equal = Said(replace(wrong, equivalent="no ragged end"), "fail", "bounds", "", True, 0.0)
    record = as_json([passed, failed, stopped, equal])
    assert record["all"]["mutants"] == [1, 2] and record["all"]["right"] == [0, 1]
    assert [row["fault"] for row in record["faults"]] == [
        "survived",
        "right, and failed",
        "listed as equivalent, and failed",
    ]
    assert [row["outcome"] for row in record["other_reason"]] == ["timeout"]


def test_a_verdict_is_the_same_in_a_warm_process(everything):
    """Which hands on kernels and references that the plain solution has in common with it."""
    answers = [a for a in everything["04.layernorm"] if a.mutant][::6]
    warm = judged(answers[:4], check_functions, 1)
    cold = judged(answers[:3], check_functions, 1)  # too few for a warm process
    assert [replace(s, seconds=0) for s in warm[:3]] == [replace(s, seconds=0) for s in cold]


def test_a_run_goes_on_from_what_it_kept(tmp_path):
    path, answer = tmp_path / "kept.jsonl", Answer("01.add", "plain", "text")
    end, said = End("ok", cpu=1.5), {"outcome": "pass"}
    with Kept(path, "audit") as kept:
        assert kept.of(answer) is None
        kept.note(answer, end, said)
    with path.open("ab") as file:
        file.write(b'{"key": "cut o')
    for _ in range(2):
        with Kept(path, "audit") as kept:
            assert kept.of(answer) == (end, said)
            assert kept.of(replace(answer, source="other")) is None
            kept.note(replace(answer, name="another"), end, said)
    with Kept(path, "agree") as kept:
        assert kept.of(answer) is None
    judged([answer], None, 1, kept=_Full())  # nothing is left to be judged


class _Full:
    def of(self, answer):
        return End("timeout"), {}


# ---------------------------------------------------------------- notebook and judge


def test_notebook_and_judge_say_the_same(everything):
    """Of a right answer, a wrong one and mutants; NumPy kernels know one order of programs."""
    chosen = [a for id in ("01.add", "02.add", "08.d") for a in sample(everything[id], 2)]
    chosen += [a for a in everything["01.matmul"] if a.name == "writes_into_a"]
    pairs = agreement.compared(chosen, check_functions, 1)
    assert [(p.answer.name, p.differences) for p in pairs if p.differences] == []
    assert [len(p.judged) for p in pairs] == [1, 1, 3, 3, 3, 3, 1]
    assert all(p.judged[0]["verdict"] == p.notebook["verdict"] for p in pairs)


def test_over_the_turns_every_case_meets_every_order_of_programs(monkeypatch):
    met = []

    def note(exercise, case, traces, arguments, *, orders, **options):
        met.append((case.label, *orders))
        return not_checked(case, "")

    monkeypatch.setattr(judge, "judge_traces", note)
    exercise = exercises.get("02.add")
    (line,) = warm_job()["lines"]
    job = warm_job() | {"lines": [line | {"case": n} for n in range(len(exercise.cases))]}
    for turn in range(agreement.TURNS):
        judge.judged(exercise, exercise.cases, job | {"turn": turn})
    assert sorted(met) == sorted((c.label, o) for c in exercise.cases for o in judge.ORDERS)


def test_what_differs_is_told():
    facts = {"verdict": "fail", "aspects": {"values": "fail"}, "first": ["values", "", 0]}
    other = facts | {"verdict": "pass", "first": []}
    pair = agreement.Pair(Answer("02.add", "x", ""), facts, (facts, other, facts))
    assert pair.differences == [
        "turn 1: verdict is pass for the judge, fail in the notebook",
        "turn 1: first is [] for the judge, ['values', '', 0] in the notebook",
    ]
    lost = agreement.Pair(pair.answer, {}, (), "timeout: 120 s")
    assert lost.differences == ["timeout: 120 s"]


def test_the_command_says_what_it_found(capsys):
    assert main(["audit", "01.add", "--sample", "3", "--workers", "1", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    counts = record["exercises"]["01.add"]
    assert counts["right"][1] + counts["wrong"][1] + counts["mutants"][1] == 3
    assert record["faults"] == [] and record["blind_through"] == 0
    assert main(["audit", "01.add", "--sample", "0"]) == 1
    assert capsys.readouterr().err == "--sample takes a number from 1 on.\n"
