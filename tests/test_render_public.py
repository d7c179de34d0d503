"""What students see of hidden cases: aspect, kind, argument, line and label, and no number more."""

from __future__ import annotations

import re
from dataclasses import fields, is_dataclass, replace

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from autograder.records import (
    FINDING_KINDS,
    Aspect,
    Case,
    CaseResult,
    Finding,
    Output,
    Run,
    Traffic,
    Verdict,
)
from autograder.render.html import feedback_html, picture, verdict_html
from autograder.render.json import verdict_json
from autograder.render.public import public_view
from autograder.render.text import verdict_text
from tests.render_records import EXERCISE, LESSON, OUTSIDE, aspects, failed, passed, vector

HIDDEN = Case("ragged length", {"n": 77773, "secret": 55551}, hidden=True, seed=66661)


def leaves(value):
    """Every string and number inside records, tuples, mappings and arrays."""
    if is_dataclass(value):
        for field in fields(value):
            yield from leaves(getattr(value, field.name))
    elif isinstance(value, np.ndarray):
        yield from value.ravel().tolist()
    elif isinstance(value, (tuple, list, set)):
        for part in value:
            yield from leaves(part)
    elif isinstance(value, dict):
        for pair in value.items():
            yield from leaves(pair)
    elif value is not None:
        yield value


def numbers(words: str) -> set[int]:
    """The integers that a text spells, also with gaps between thousands."""
    joined = re.sub(r"(?<=\d)[ \u202f,.](?=\d{3})", "", words)
    return {int(n) for text in (words, joined) for n in re.findall(r"\d+", text)}


def in_pages(verdict: Verdict) -> set[int]:
    """The integers in all that is made of a verdict."""
    pages = (
        verdict_text(verdict, EXERCISE),
        verdict_html(verdict, EXERCISE),
        feedback_html(verdict, EXERCISE),
        repr(verdict_json(verdict)),
    )
    return set().union(*map(numbers, pages))


# What a report without a hidden case holds; a hidden case may have none of these sizes here, or
# the test would take a public number for a leak.
OPEN = CaseResult(LESSON, "pass", (), 295296, 310060, 1181184, 0.5)
PUBLIC = in_pages(Verdict("02.add", "pass", aspects(), (), (OPEN,), ()))
PUBLIC |= {n for n in leaves(OPEN) if isinstance(n, int)}

# Sizes that a hidden case may have: too large and too odd to be a point, a line or a colour.
secrets = st.integers(10_007, 10**9).filter(lambda n: n % 10)


@st.composite
def hidden_verdicts(draw):
    """A verdict with hidden cases, and every number that must not come out of it."""
    kept = draw(st.lists(secrets, min_size=8, max_size=8, unique=True))
    n, lanes, program, low, elements, limit, seed, width = kept
    derived = {4 * elements, low + 64, low + 1}
    assume(not PUBLIC & {*kept, *derived})  # 98432 in a public text gives away no hidden 98432
    findings = []
    for kind in draw(st.lists(st.sampled_from(FINDING_KINDS), min_size=1, max_size=5)):
        message = f"{lanes} lanes of program {program} at {low} of n = {n} ({elements:,} moved)"
        access = draw(st.sampled_from([None, vector(64, 16, [3])]))
        if access is not None:
            access = replace(access, offsets=access.offsets + low, programs=access.programs + n)
        findings.append(
            Finding(
                kind,
                message,
                kernel=draw(st.sampled_from(["add_kernel", f"kernel_{n}", ""])),
                argument=draw(st.sampled_from(["x_ptr", "out", f"x_{n}", f"{n}", "", "é" * 99])),
                line=draw(st.integers(0, 300)),
                program=(program, n),
                lanes=lanes,
                access=access,
            )
        )
    case = Case("ragged length", {"n": n, "block": width}, hidden=True, seed=seed)
    run = Run(
        (Output(np.array([float(n)]), "float32"),),
        tuple(findings),
        (Traffic("x_ptr", 4, elements, limit),),
        warnings=(f"a warning about {n}",),
    )
    status = draw(st.sampled_from(["fail", "could_not_check"]))
    secret = CaseResult(
        case, status, tuple(findings), elements, limit, 4 * elements, float(lanes), "", run
    )
    secret = replace(secret, message=f"tt.dot of {n} elements")
    results = draw(st.permutations([secret, OPEN]))
    verdict = Verdict(
        "02.add",
        status,
        (Aspect("bounds", "fail", 1.0, 2.0, note=f"program {program}"), *aspects()),
        tuple(findings),
        tuple(results),
        (),
        (f"a warning about {n}", f"{lanes} more"),
        f"the call failed for n = {n}",
    )
    return verdict, set(kept) | derived


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(hidden_verdicts())
def test_no_number_of_a_hidden_case_comes_out(made):
    verdict, forbidden = made
    seen = set()
    for leaf in leaves(public_view(verdict)):
        seen |= numbers(leaf) if isinstance(leaf, str) else {leaf}
    assert not seen & forbidden
    assert not in_pages(verdict) & forbidden
    assert picture(verdict) is None


@settings(max_examples=20, deadline=None)
@given(hidden_verdicts())
def test_the_public_view_is_its_own_public_view(made):
    once = public_view(made[0])
    assert public_view(once) == once


def test_what_a_hidden_finding_keeps():
    view = public_view(failed(OUTSIDE, hidden=HIDDEN))
    (finding,) = view.cases[-1].findings
    assert (finding.kind, finding.argument, finding.line) == ("out_of_bounds", "out", 7)
    assert (finding.kernel, finding.program, finding.lanes, finding.access) == ("", None, 0, None)
    assert finding.message == (
        "Lanes go outside out at line 7, on the hidden case “ragged length”."
    )
    assert view.cases[-1] == CaseResult(Case("ragged length", {}, hidden=True), "fail", (finding,))
    assert view.cases[-1].run is None


def test_public_findings_and_points_stay_whole():
    verdict = failed(OUTSIDE, hidden=HIDDEN)
    view = public_view(verdict)
    assert view.findings[0] is verdict.findings[0]
    assert view.cases[:2] == verdict.cases[:2]
    assert view.points == verdict.points and view.compiled == verdict.compiled


def test_without_hidden_cases_nothing_changes():
    for verdict in (passed(), failed()):
        assert public_view(verdict) is verdict


def test_a_finding_of_unknown_origin_is_dropped_and_one_of_the_compiler_stays():
    compiled = Finding("compile", "add_kernel needs 131072 bytes.", "add_kernel")
    lost = Finding("values", "77773 of 77773 values are wrong.")
    verdict = failed(OUTSIDE, hidden=HIDDEN)
    view = public_view(replace(verdict, findings=(*verdict.findings, lost, compiled)))
    assert compiled in view.findings and lost not in view.findings


def test_a_sentence_stays_if_a_public_case_says_it_too():
    verdict = failed(Finding("interface", "add returned None."), hidden=HIDDEN)
    assert public_view(replace(verdict, message="add returned None.")).message
    unsure = replace(verdict.cases[0], message="tt.dot_scaled is not known.")
    verdict = replace(
        verdict, cases=(unsure, verdict.cases[-1]), message="tt.dot_scaled is not known."
    )
    assert public_view(verdict).message == "tt.dot_scaled is not known."


def test_a_repeated_fault_is_told_once_and_few_are_told():
    findings = tuple(replace(OUTSIDE, line=line, lanes=l) for line in range(1, 9) for l in (1, 2))
    view = public_view(failed(*findings, hidden=HIDDEN))
    assert [finding.line for finding in view.cases[-1].findings] == [1, 2, 3]


@pytest.mark.parametrize("name", ["n_98432", "x" * 33, "<b>", "x\x1b[0m", "x y", "", "x٤٢"])
def test_names_that_could_carry_a_number_or_markup_are_left_out(name):
    view = public_view(failed(replace(OUTSIDE, argument=name), hidden=HIDDEN))
    (finding,) = view.cases[-1].findings
    assert finding.argument == ""
    assert finding.message.startswith("Lanes go outside a tensor at line 7")


def test_with_the_source_only_its_own_names_and_lines_pass():
    source = "def add_kernel(x_ptr, out, n):\n" + "    pass\n" * 5
    verdict = failed(replace(OUTSIDE, argument="x_pt"), OUTSIDE, hidden=HIDDEN)
    first, second = public_view(verdict, source).cases[-1].findings
    assert (first.argument, first.line) == ("", 7)
    assert (second.argument, second.line) == ("out", 7)
    far = failed(replace(OUTSIDE, line=98432), hidden=HIDDEN)
    assert public_view(far, source).cases[-1].findings[0].line == 0


def test_a_label_that_a_student_may_see_is_all_that_the_report_says_of_a_hidden_case():
    text = verdict_text(failed(OUTSIDE, hidden=HIDDEN), EXERCISE)
    assert "“ragged length” (hidden)" in text
    page = verdict_html(failed(OUTSIDE, hidden=HIDDEN), EXERCISE)
    for secret in ("77773", "77 773", "55551", "secret"):
        assert secret not in text and secret not in page
