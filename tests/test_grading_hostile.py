"""The hostile corpus: every attack gets its verdict, earns nothing, and harms no classmate.

Each file of tests/submissions/hostile/ is the solution cell of 02.add of one student. Its head says
how the code may end (``status``) and which finding it must get (``finding``).
"""

import re
from pathlib import Path

import pytest

from autograder.grading.confine import Limits
from autograder.grading.grader import Budget, Grader, Request
from tests.sample_class import solutions

CORPUS = sorted((Path(__file__).parent / "submissions" / "hostile").glob("*.py"))
SHARDS = 2  # so that two processes can share the work
SETUP = ("cell 1", "import torch\nimport triton\nimport triton.language as tl")
HIDDEN = {
    "02.add": [{"label": "hidden length", "sizes": {"n": 3137, "dtype": "float32"}}],
    "02.fma_relu": [{"label": "hidden length", "sizes": {"n": 3137, "dtype": "float32"}}],
    "02.quiz": {f"q{i}": {"answer": a} for i, a in enumerate(("c", 3520, 0.25, ["a"]), 1)},
}
SALT = "5a" * 32
BUDGET = Budget(
    solve=Limits(cpu=2, step=10, wall=20, memory=1 << 30),
    compile=Limits(memory=4 << 30, may_fork=True),
    judge=Limits(cpu=15, memory=2 << 30),
    attempts=3,
)


def _request(student: str, add: str, fma_relu: str = "") -> Request:
    cells = (SETUP, ("solution-02-add", add), ("check-02-add", ""))
    cells += (("solution-02-fma_relu", fma_relu), ("check-02-fma_relu", ""))
    own = ("solution-02-add", "solution-02-fma_relu")
    return Request(student, "02_vector_add", cells, own, hidden=HIDDEN, salt=SALT)


@pytest.fixture(scope="module")
def grader():
    grader = Grader(budget=BUDGET)
    yield grader
    grader.close()


def _honest(grader):
    right = solutions("right", "02.add")["plain"], solutions("right", "02.fma_relu")["plain"]
    return grader.grade(_request("honest", *right))


def _expected(text: str) -> tuple[set[str], str]:
    status = re.search(r"^# status: (.*)$", text, re.M)[1].split()
    finding = re.search(r"^# finding: (\w+)$", text, re.M)
    return set(status), finding[1] if finding else ""


def test_the_corpus_is_large_and_every_file_says_what_it_must_get():
    assert len(CORPUS) >= 50
    for path in CORPUS:
        assert _expected(path.read_text())[0], path.name


@pytest.mark.parametrize("shard", range(SHARDS))
def test_no_attack_earns_a_point_and_no_classmate_is_harmed(grader, shard):
    before = _honest(grader)
    assert before.points == 18.0 + 0.0, before  # all but the quiz
    faults, counted = [], 0
    for path in CORPUS[shard::SHARDS]:
        text = path.read_text()
        statuses, finding = _expected(text)
        graded = grader.grade(_request(path.stem, text))
        mark = graded.marks[0]
        kinds = {fault["kind"] for fault in mark.json.get("faults", ())}
        if mark.points:
            faults.append(f"{path.stem} earned {mark.points}")
        if mark.status not in statuses or (finding and finding not in kinds):
            faults.append(f"{path.stem} got {mark.status} {sorted(kinds)}: {mark.message}")
        faults += [f"{path.stem}: its feedback holds {word}" for word in _leaks(graded)]
        counted += 1
    after = _honest(grader)
    print(f"{counted} attacks, {len(faults)} faults")
    assert not faults, "\n".join(faults)
    assert _same(before, after)


def _leaks(graded) -> list[str]:
    """What must not come back to a student: hidden sizes, the secret, markup, escape codes."""
    html = " ".join(mark.html for mark in graded.marks)
    said = html + graded.message + " ".join(m.message + repr(dict(m.json)) for m in graded.marks)
    found = [word for word in ("3137", SALT) if word in said]
    raw = [html, graded.message, *(m.message for m in graded.marks)]
    found += [repr(c) for c in ("\x1b", "\u202e") if any(c in text for text in raw)]
    return found + [word for word in ("<script", "<img", "<svg") if word in html]


def _same(before, after) -> bool:
    """Byte-equal but for the seconds it took."""
    return before.marks == after.marks and before.status == after.status == "ok"
