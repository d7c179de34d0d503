"""Unit 09: right and wrong work gets the verdict it deserves, and the tables mean what they say."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
import triton

from autograder import exercises
from autograder.checking import check_functions
from autograder.exercises import quiz
from autograder.exercises.shared_memory import _BYTES, LIMIT, needed
from autograder.floats import rounded
from autograder.grading.runs import run_from_json, run_to_json
from autograder.ir.compile import compile_all
from autograder.judging import inputs_of
from autograder.records import FINDING_KINDS, Case, Tensor
from autograder.render.text import verdict_text
from autograder.solutions import load_solution
from autograder.trace.plain import run_plain
from autograder.trace.record import record
from autograder.verdict import judge_case
from tests.submitted import (
    SUBMISSIONS,
    answered,
    arrays,
    assert_wrong,
    exercise_of,
    expected_of,
    files,
    hidden,
    hidden_cases,
    judged,
    right_answers,
)

NAME = "09_production"
GEMM, PRUNE = exercises.get("09.fp8_splitk"), exercises.get("09.prune")
# Where mistakes show; the others cost time and say the same.
TELLING = ("sizes that divide nothing", "K one more than whole steps", "padded rows")


def cases_of(*labels: str) -> list[Case]:
    return [case for case in GEMM.cases if case.label in labels]


# ---------------------------------------------------------------- submissions


@pytest.mark.parametrize("path", files("09", "right"))
def test_right_work_has_full_marks(path):
    whole = path.stem.endswith("plain") or exercise_of(path) is PRUNE
    result = judged(path, None if whole else cases_of(*TELLING), proof=whole)
    assert (result.verdict, result.findings, result.message) == ("pass", (), "")
    assert result.points == result.max_points or not whole


@pytest.mark.parametrize("name", ["fp8_splitk_plain", "prune_plain"])
def test_right_work_passes_the_hidden_cases(name):
    path = SUBMISSIONS / "right" / f"09_{name}.py"
    id = exercise_of(path).id
    result = judged(path, hidden_cases(NAME, id), proof=False)
    assert (result.verdict, result.findings) == ("pass", ())


@pytest.mark.parametrize("path", files("09", "wrong"))
def test_wrong_work_is_named(path):
    kind, _ = expected_of(path)
    exercise = exercise_of(path)
    cases = cases_of(*TELLING) if exercise is GEMM else None
    if kind == "compile":
        cases = cases_of("no split")
    if path.read_text().splitlines()[1] == "# cases: hidden":
        cases = hidden_cases(NAME, exercise.id)
    assert_wrong(path, cases, proof=kind == "compile")


def test_a_sum_that_is_not_split_has_right_numbers_and_loses_points_by_its_stores():
    path = SUBMISSIONS / "wrong" / "09_fp8_splitk_split_ignored.py"
    long, short = cases_of("K one more than whole steps"), cases_of("b transposed")
    finding = judged(path, long, proof=False).findings[0]
    assert "SPLIT_K=2" in finding.message and "store 1024 of them" in finding.message
    assert judged(path, short, proof=False).verdict == "pass"  # a split may have nothing to do


def test_a_first_split_that_does_it_all_is_not_split_though_every_split_adds_something():
    """The scales are read by all of them: a program counts where it reads a or b."""
    path = SUBMISSIONS / "wrong" / "09_fp8_splitk_first_split_does_it_all.py"
    finding = judged(path, cases_of("positive numbers"), proof=False).findings[0]
    assert finding.kind == "interface" and "asks for at least 4" in finding.message
    result = judged(path, hidden_cases(NAME, GEMM.id), proof=False)
    assert "eight splits" in [r.case.label for r in result.cases if r.findings]


def test_a_rule_that_keeps_the_wrong_ones_is_told_no_rounding():
    path = SUBMISSIONS / "wrong" / "09_prune_as_given.py"
    text = verdict_text(judged(path), PRUNE)
    assert "drops every configuration" in text and "rounding" not in text
    assert "32 768 bytes" in " ".join(text.split())


def test_a_race_names_the_output_and_the_atomic_version_differs_by_one_word():
    wrong = (SUBMISSIONS / "wrong" / "09_fp8_splitk_store_in_place_of_atomic.py").read_text()
    right = (SUBMISSIONS / "right" / "09_fp8_splitk_plain.py").read_text()
    assert "tl.atomic_add(" in right and wrong.count("tl.store(") == 1
    path = SUBMISSIONS / "wrong" / "09_fp8_splitk_store_in_place_of_atomic.py"
    finding = judged(path, cases_of("17 rows"), proof=False).findings[0]
    assert (finding.kind, finding.argument) == ("race", "out_ptr")


def test_every_trial_of_the_autotuner_is_judged():
    path = SUBMISSIONS / "right" / "09_fp8_splitk_autotune.py"
    text = path.read_text()
    functions = load_solution(str(path))
    shapes = ((16, 256), (256, 128))
    a, b = (Tensor(shape, "float8_e4m3fn") for shape in shapes)
    scale = Tensor((1,), "float32")
    trace = record(functions["fp8_gemm"], (a, b, scale, scale, 2))
    assert text.count("(256, 256, 3)") == 1 and trace.configs == 3  # of four, one is pruned


# ---------------------------------------------------------------- prune


def test_the_table_is_what_the_compiler_says():
    """Some figures anew, near the limit and with one stage. Where a later Triton lays tiles out
    otherwise, make the table of ``shared_memory`` with it."""
    kernel = load_solution(str(SUBMISSIONS / "right" / "05_matmul_grid_of_two_axes.py"))
    jitted = kernel["matmul_kernel"]

    def lowered(dtype: str, bm: int, bn: int, bk: int, warps: int, stages: int):
        def call(a, b):
            (m, k), n = a.shape, b.shape[1]
            c = torch.empty((m, n), dtype=torch.float32)
            strides = (*a.stride(), *b.stride(), *c.stride())
            blocks = {"BLOCK_M": bm, "BLOCK_N": bn, "BLOCK_K": bk}
            options = {"num_warps": warps, "num_stages": stages}
            jitted[(1, 1)](a, b, c, m, n, k, *strides, **blocks, **options)
            return c

        square = Tensor((512, 512), dtype)
        return record(call, (square, square)).kernels[0]

    rows = (
        ("float16", 16, 64, 128, 4, 5),
        ("float16", 16, 64, 128, 4, 6),
        ("float16", 64, 64, 128, 4, 4),
        ("float8_e4m3fn", 16, 64, 128, 4, 6),
        ("float32", 16, 64, 64, 4, 6),
    )
    facts = compile_all([lowered(*row) for row in rows])
    found = {row: fact.shared for row, fact in zip(rows, facts, strict=True)}
    assert found == {row: needed(*row) for row in rows}, f"Triton {triton.__version__}"


def test_the_rule_of_the_hints_is_the_compilers_on_the_whole_table():
    """Copies of a step's tiles, one less than stages; the table was not made from that rule."""
    size = {"float16": 2, "float8_e4m3fn": 1, "float32": 4}
    for dtype, table in _BYTES.items():
        for (m, n, k, _, stages), found in table.items():
            assert found == (m + n) * k * size[dtype] * max(stages - 1, 1)
    every = [found for table in _BYTES.values() for found in table.values()]
    assert LIMIT in every and min(found for found in every if found > LIMIT) == 100 * 1024


def test_every_case_has_what_fits_and_what_does_not_and_its_figures():
    for case in (*PRUNE.cases, *hidden_cases(NAME, PRUNE.id)):
        (kept,) = PRUNE.reference(*PRUNE.arguments(case))
        assert {0.0, 1.0} == set(kept)


def test_the_rule_that_is_handed_out_drops_everything_and_earns_nothing():
    path = SUBMISSIONS / "wrong" / "09_prune_as_given.py"
    result = judged(path, (*PRUNE.cases, *hidden_cases(NAME, PRUNE.id)))
    assert result.points == 0
    assert "drops every configuration" in result.findings[0].message


def test_the_students_process_gets_no_figures():
    sent = json.dumps(inputs_of(PRUNE, PRUNE.cases[0]))
    assert not any(str(found) in sent for found in _BYTES["float16"].values())


def test_what_is_kept_goes_through_the_sandboxes_report():
    case = PRUNE.cases[0]
    arguments = inputs_of(PRUNE, case)
    functions = load_solution(str(SUBMISSIONS / "right" / "09_prune_plain.py"))
    run = run_from_json(json.loads(json.dumps(run_to_json(run_plain(PRUNE, functions, arguments)))))
    assert judge_case(PRUNE, case, run, arguments).status == "pass"


def test_a_rule_gets_what_triton_hands_it():
    seen = {}

    def prune(configs, named_args, **kwargs):
        seen.update(named_args, kwargs=kwargs, configs=configs)
        return configs

    case = next(case for case in PRUNE.cases if case.sizes["given"])
    check_functions(PRUNE, {"prune": prune}, [case])
    assert all(isinstance(config, triton.Config) for config in seen["configs"])
    assert seen["kwargs"] == {"BLOCK_K": 64} and "BLOCK_K" not in seen["configs"][0].kwargs
    assert seen["a_ptr"].dtype == torch.float16 and tuple(seen["a_ptr"].shape) == (64, 4096)


# ---------------------------------------------------------------- tables


def all_cases() -> list:
    cases = (*GEMM.cases, *hidden_cases(NAME, GEMM.id))
    return [pytest.param(case, id=case.label) for case in cases]


def products(a, b, scale, split_k: int) -> list[np.ndarray]:
    """scale a b in float32: from both ends, in steps by splits, operands scaled first."""
    m, k, n = *a.shape, b.shape[1]
    forward, backward = (np.zeros((m, n), np.float32) for _ in range(2))
    for i in range(k):
        forward += a[:, i : i + 1] * b[i]
        backward += a[:, k - 1 - i, None] * b[k - 1 - i]
    parts = [scale * (a[:, s::split_k] @ b[s::split_k]).astype(np.float32) for s in range(split_k)]
    split = np.zeros((m, n), np.float32)
    for part in parts:
        split += part
    return [scale * forward, scale * backward, split]


@pytest.mark.parametrize("case", all_cases())
def test_tolerance_has_room_for_every_honest_rounding(case):
    held, wide = arrays(GEMM, case)
    (expected,) = GEMM.reference(*wide)
    (allowed,) = GEMM.tolerance(case, wide, (expected,))
    a, b, scale_a, scale_b, split_k = held
    honest = products(a, b, scale_a * scale_b, split_k)
    honest += products(a * scale_a, b * scale_b, np.float32(1), split_k)
    for computed in honest:
        assert computed.dtype == np.float32
        assert (np.abs(computed.astype(np.float64) - expected) <= allowed).all()


@pytest.mark.parametrize("case", all_cases())
def test_zeros_constants_inputs_and_narrow_sums_fail(case):
    (expected,) = right_answers(GEMM, case)
    wrong = [0 * expected, 0 * expected + 1]
    if case.sizes["K"] < 4000:  # the bound grows with K: short sums tell narrow types
        wrong.append(rounded(expected, "bfloat16"))
    if expected.size > 1:
        wrong.append(np.roll(expected, 1))
    for answer in wrong:
        if case.sizes["K"] == 1 and (answer == expected).all():
            continue  # a single product of two fp8 numbers may be one of bfloat16 as well
        assert answered(GEMM, case, (answer,)).status == "fail"
    assert answered(GEMM, case, (expected,)).status == "pass"


def test_the_limit_is_the_closed_form_with_whole_tiles_and_five_percent():
    for case in GEMM.cases:
        s = case.sizes
        m, n = -(-s["M"] // 16) * 16, -(-max(s["N"], 64) // 32) * 32
        form = m * n * s["K"] * (1 / 16 + 1 / 32) + (2 * s["SPLIT_K"] + 1) * s["M"] * s["N"]
        scales = 4 * s["SPLIT_K"] * m * n / 512
        assert form <= GEMM.limit(case) <= 1.05 * (form + scales)


@pytest.mark.parametrize("exercise", [GEMM, PRUNE], ids=lambda e: e.id)
def test_hidden_cases_are_other_cases_and_their_labels_tell_no_size(exercise):
    def sizes(case: Case) -> str:
        return json.dumps(dict(case.sizes), sort_keys=True)

    public = {sizes(case) for case in exercise.cases}
    for case in hidden_cases(NAME, exercise.id):
        assert sizes(case) not in public
        assert not any(character.isdigit() for character in case.label)


@pytest.mark.parametrize("exercise", [GEMM, PRUNE], ids=lambda e: e.id)
def test_hints_and_notes_speak_to_students(exercise):
    assert len(exercise.hints) == 3
    assert set(exercise.notes) == set(FINDING_KINDS)
    assert all(len(note) <= 240 for note in exercise.notes.values())
    labels = {case.label for case in exercise.cases}
    for clue in exercise.clues:
        assert clue.kind in FINDING_KINDS and len(clue.question) <= 240
        assert {clue.wrong, clue.right or clue.wrong} <= labels


def test_the_quiz_key_gives_full_marks_and_nothing_else_does():
    exercise, key = exercises.get("09.quiz"), hidden(NAME)["09.quiz"]
    right = {name: row["answer"] for name, row in key.items()}
    assert all(answer.right for answer in quiz.score(exercise, right, key))
    everything = right | {"q3": ["a", "b", "c", "d", "e"]}
    assert sum(a.points for a in quiz.score(exercise, everything, key)) < exercise.max_points
    assert sum(a.points for a in quiz.score(exercise, dict.fromkeys(right), key)) == 0


def test_the_quiz_answers_follow_from_their_questions():
    key = hidden(NAME)["09.quiz"]
    assert key["q1"]["answer"] == triton.cdiv(16, 16) * triton.cdiv(4096, 64)
    assert key["q4"]["answer"] == LIMIT // ((128 + 128) * 64 * 2)
