"""The corpus of an exercise, judged: right solutions, wrong ones, and mutants of the right ones.

Every answer is judged in a forked process with limits, on the public cases; what passes them meets
the hidden cases and the compile proof as well.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from autograder import exercises
from autograder.grading import course as course_directory
from autograder.grading.confine import Limits
from autograder.grading.forkserver import End
from autograder.grading.kept import Kept
from autograder.grading.mutants import mutants
from autograder.grading.trials import LIMITS, forked
from autograder.ir.compile import triton_version
from autograder.records import Case, Exercise, Rejected, aspect_of
from autograder.solutions import load_solution

SUBMISSIONS = Path(__file__).resolve().parents[2] / "tests" / "submissions"


@dataclass(frozen=True)
class Answer:
    """``aspects`` that may be named first, its own in front; none for a right one. ``name``: the
    file and, of a mutant, its rule and place. ``equivalent``: why a mutant is no mistake;
    ``refused``: the words in which the installed Triton refuses to lower a right one."""

    exercise: str
    name: str
    source: str
    aspects: tuple[str, ...] = ()
    mutant: bool = False
    equivalent: str = ""
    refused: str = ""


@dataclass(frozen=True)
class Said:
    """What became of an answer. ``aspect`` is the one named first, "" if it passed; ``public``:
    the public cases were enough to see it."""

    answer: Answer
    outcome: str  # pass, fail, could_not_check; timeout, crash, output
    aspect: str
    message: str
    public: bool
    seconds: float

    @property
    def fault(self) -> str:
        """What is wrong with the grader, "" if nothing is."""
        passed = self.outcome == "pass"
        if self.answer.refused:
            return "" if self.answer.refused in self.message else "not refused by name"
        if not self.answer.aspects:
            return "" if passed else "right, and failed"
        if self.answer.equivalent:
            return "" if passed else "listed as equivalent, and failed"
        return "survived" if passed or self.outcome == "could_not_check" else ""

    @property
    def for_its_reason(self) -> bool:
        return self.aspect in self.answer.aspects


def solutions(kind: str, exercise: str) -> dict[str, Path]:
    """name → file of ``kind`` ("right", "wrong") for an exercise, sorted. Raises Rejected."""
    start = _start(exercise)
    # 05_matmul_bias_gelu_plain.py begins like a file of 05.matmul, and is none.
    longer = tuple(_start(id) for id in exercises.ids() if id.startswith(f"{exercise}_"))
    if not SUBMISSIONS.is_dir():
        raise Rejected("The audit reads tests/submissions/, which only a clone of the course has.")
    files = sorted((SUBMISSIONS / kind).glob(f"{start}*.py"))
    return {f.stem.removeprefix(start): f for f in files if not f.name.startswith(longer)}


def _start(exercise: str) -> str:
    return exercise.replace(".", "_") + "_"


def refusals() -> dict[str, str]:
    """style, and file of right/ that is written in it → the words in which the installed Triton
    refuses to lower it; "" where it lowers it."""
    table = json.loads((SUBMISSIONS / "refused.json").read_text(encoding="utf-8"))
    here = [int(part) for part in triton_version().split(".")[:2]]
    return {
        name: row["words"] if here >= row["since"] else ""
        for style, row in table.items()
        for name in (style, *row["right"])
    }


def corpus(exercise: str) -> Iterator[Answer]:
    """Right solutions, wrong ones, and mutants of one right one: the plain one, if there is."""
    known = json.loads((SUBMISSIONS / "equivalent.json").read_text(encoding="utf-8"))
    listed = known.get(exercise, {})
    points = exercises.get(exercise).points
    right, refused = solutions("right", exercise), refusals()
    for name, path in right.items():
        words = refused.get(path.stem, "")
        yield Answer(exercise, name, path.read_text(encoding="utf-8"), refused=words)
    for name, path in solutions("wrong", exercise).items():
        text = path.read_text(encoding="utf-8")
        kind, *aspects = text.splitlines()[0].removeprefix("# expect: ").split()
        yield Answer(exercise, name, text, (aspect_of(kind, points), *aspects))
    style = _style(right)
    # Statements that read alike, in one function, give mutants of one name: the first stands.
    named: dict[str, Answer] = {}
    for m in mutants(right[style].read_text(encoding="utf-8")):
        why = listed.get(m.rule, {}).get(m.place, "")
        name = f"{style}: {m.rule}: {m.place}"
        named.setdefault(name, Answer(exercise, name, m.source, m.aspects, True, why))
    yield from named.values()


def _style(right: dict[str, Path]) -> str:
    return "plain" if "plain" in right else next(iter(right))


def plain(exercise: str) -> str:
    """The source of the solution that the mutants of an exercise are made from."""
    right = solutions("right", exercise)
    return right[_style(right)].read_text(encoding="utf-8")


def sample(answers: Sequence[Answer], count: int | None) -> list[Answer]:
    """``count`` of the answers, always the same ones, in their order; None: all."""

    def drawn(answer: Answer) -> bytes:
        return hashlib.sha256(f"{answer.exercise} {answer.name}".encode()).digest()

    chosen = set(sorted(map(drawn, answers))[:count])
    return [answer for answer in answers if drawn(answer) in chosen]


# ---------------------------------------------------------------- judging


def judged(
    answers: Sequence[Answer],
    check: Callable,
    workers: int | None = None,
    told: Callable[[Said], None] = lambda said: None,
    limits: Limits = LIMITS,
    kept: Kept | None = None,
) -> list[Said]:
    """A ``Said`` for every answer, in their order; ``told`` gets each as it comes. ``check`` is
    ``checking.check_functions``, a room that looks into this one."""

    return forked(
        _verdict,
        answers,
        check,
        _as_said,
        workers,
        plain=plain,
        told=told,
        limits=limits,
        kept=kept,
    )


def _as_said(answer: Answer, end: End, said: dict) -> Said:
    if end.how == "ok":
        return Said(answer, **said, seconds=end.cpu)
    return Said(answer, end.how, "", end.detail, True, end.cpu)


def _verdict(exercise: Exercise, path: str, check: Callable) -> dict:
    points = exercise.points
    try:
        functions = load_solution(path)
        result = check(replace(exercise, compiled=None), functions, unread=False)
        public = result.verdict != "pass"
        if not public:
            orders = ("forward", "reversed")
            result = check(exercise, functions, _hidden(exercise), orders=orders, unread=False)
    except Rejected as error:  # the file itself is at fault
        aspect = aspect_of(error.kind, points)
        return {"outcome": "fail", "aspect": aspect, "message": str(error), "public": True}
    first = result.findings[0] if result.findings else None
    return {
        "outcome": result.verdict,
        "aspect": aspect_of(first.kind, points) if first else "",
        "message": first.message if first else result.message,
        "public": public,
    }


def _hidden(exercise: Exercise) -> Sequence[Case]:
    checkout = course_directory.Course(SUBMISSIONS.parents[1])
    table = checkout.hidden(exercises.assignment(exercise.id[:2]))
    return course_directory.hidden_cases(exercise.id, table) or exercise.cases
