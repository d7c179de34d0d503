"""The compile proof: one reading of a submission's records; no exercise pays for another."""

import pytest

from autograder.grading.forkserver import End
from autograder.grading.proof import Proof, no_proof

OK = End("ok")


def fact(name: str) -> dict:
    return no_proof("") | {"kernel": name, "registers": len(name)}


class Others:
    """A judge and a compiler for records that are names of kernels, separated by spaces."""

    def __init__(self, spoilt: str = "", end: End = OK):
        self.spoilt, self.end, self.jobs = spoilt, end, []

    def judge(self, job: dict):
        self.jobs.append(job)
        lines = [_named(traces) for traces in job["traces"]]
        return OK, lines

    def compiler(self, job: dict):
        self.jobs.append(job)
        if self.spoilt and any(self.spoilt in trace for trace in job["traces"]):
            return self.end, []
        names = [name for trace in job["traces"] for name in trace.split()]
        return OK, [{"facts": [fact(name) for name in names]}]


def _named(traces: list[str]) -> dict:
    names = " ".join(traces).split()
    return {"key": repr(sorted(traces)), "names": names}


def test_what_is_kept_for_classmates_comes_from_a_process_that_met_nothing_else():
    """Kernels of one exercise may take the compiler over, and would answer for another one's."""
    others = Others()
    proof = Proof(others.judge, others.compiler)
    asked = {"a": ["one two", "three"], "b": ["four"]}
    said = {"a": [fact("one"), fact("two"), fact("three")], "b": [fact("four")]}
    assert proof.facts(asked) == said
    assert [job["job"] for job in others.jobs] == ["kernels", "compile", "compile"]
    assert [job["traces"] for job in others.jobs[1:]] == list(asked.values())
    assert proof.facts(asked) == said
    assert [job["job"] for job in others.jobs[3:]] == ["kernels"]


def test_no_exercise_without_records_asks_anybody():
    others = Others()
    assert Proof(others.judge, others.compiler).facts({}) == {} and not others.jobs


@pytest.mark.parametrize("end", [End("timeout", spent=True), End("crash", "SIGSEGV")])
def test_kernels_that_end_the_compiler_cost_no_other_exercise(end):
    others = Others("bomb", end)
    facts = Proof(others.judge, others.compiler).facts(
        {"a": ["bomb"], "b": ["fine"], "c": ["four"]}
    )
    assert facts["b"] == [fact("fine")] and facts["c"] == [fact("four")]
    assert "did not come to an end" in facts["a"][0]["error"]
    assert sum(job["job"] == "kernels" for job in others.jobs) == 1


def test_a_full_machine_decides_nothing():
    others = Others("bomb", End("crash", "SIGKILL"))
    facts = Proof(others.judge, others.compiler).facts({"a": ["bomb"], "b": ["fine"]})
    assert facts == {"a": "the compiler was stopped (SIGKILL)", "b": [fact("fine")]}


@pytest.mark.parametrize(
    ("end", "said"),
    [
        (End("crash", "exit status 70"), "cannot be read"),
        (End("timeout", spent=True), "cannot be read"),
        (End("crash", "SIGKILL"), "the judge was stopped"),
    ],
)
def test_records_that_end_the_judge_cost_no_other_exercise(end, said):
    others = Others()

    def judge(job):
        spoilt = any("bomb" in trace for traces in job["traces"] for trace in traces)
        return (end, []) if spoilt else others.judge(job)

    facts = Proof(judge, others.compiler).facts({"a": ["bomb"], "b": ["fine"]})
    assert facts["b"] == [fact("fine")] and said in str(facts["a"])


def test_too_few_facts_are_nobodys():
    others = Others()

    def compiler(job):
        return OK, [{"facts": [fact("one")]}]

    proof = Proof(others.judge, compiler)
    facts = proof.facts({"a": ["one"], "b": ["two three"]})
    assert facts["a"] == [fact("one")] and "did not answer" in facts["b"]
    assert len(proof.known) == 1
