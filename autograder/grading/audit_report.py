"""The ``audit`` command: the graders' own grade, as tables or JSON."""

from __future__ import annotations

import argparse
import itertools
import json
import resource
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from importlib.metadata import version

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from autograder import exercises
from autograder.grading import agreement, audit
from autograder.grading.corpus import Answer, Said, corpus, judged, sample
from autograder.grading.kept import Kept
from autograder.records import Exercise, Rejected


def audit_command(options: argparse.Namespace, check: Callable) -> int:
    """0 when every wrong answer failed and every right one passed, else 1. Raises Rejected."""
    for name in ("sample", "workers"):
        if getattr(options, name) is not None and getattr(options, name) < 1:
            raise Rejected(f"--{name} takes a number from 1 on.")
    start, used = time.monotonic(), _processor_seconds()
    chosen = _chosen(options.ids)
    console = Console(stderr=options.json)
    if not console.is_terminal:
        console = Console(stderr=options.json, width=120)  # a file is as wide as the tables
    answers: list[Answer] = []
    for exercise in chosen:
        if exercise.machine != "quiz":
            answers += sample(list(corpus(exercise.id)), options.sample)
    with ExitStack() as stack:
        kept = options.keep and stack.enter_context(
            Kept(options.keep, "agree" if options.agree else "audit")
        )
        if options.agree:
            record, lines = _agreement(answers, check, options, console, kept)
        else:
            record, lines = _audit(chosen, answers, check, options, console, kept)
    record["seconds"] = round(time.monotonic() - start, 1)
    record["processor_seconds"] = round(_processor_seconds() - used, 1)
    if options.json:
        json.dump(record, sys.stdout, indent=1, ensure_ascii=False)
        print()
    else:
        for line in (*lines, *_closing(record)):
            console.print(line)
    return 1 if record["wrongly"] else 0


def _processor_seconds() -> float:
    """Of this process and of all that it started and that ended."""
    both = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(used.ru_utime + used.ru_stime for used in both)


def _audit(chosen, answers, check, options, console: Console, kept) -> tuple[dict, list]:
    table, quizzes, through = audit.blind(chosen)
    console.print("Blind answers: right ones that pass; wrong ones that fail, where they differ.")
    console.print(table, *quizzes, sep="\n")
    with _progress(console, "Judging answers", len(answers)) as advance:
        said = judged(answers, check, options.workers, advance, kept=kept)
    record = as_json(said) | {"blind_through": through}
    record["wrongly"] = through + len(record["faults"])
    return record, [*_tables(said), *_words(record)]


def _agreement(answers, check, options, console: Console, kept) -> tuple[dict, list]:
    with _progress(console, "Comparing verdicts", len(answers)) as advance:
        pairs = agreement.compared(answers, check, options.workers, advance, kept)
    apart = [
        {"exercise": p.answer.exercise, "name": p.answer.name, "differences": p.differences}
        for p in pairs
        if p.differences
    ]
    turns = sum(len(p.judged) for p in pairs)
    record = {"answers": len(pairs), "judged": turns, "apart": apart}
    record |= {"triton": version("triton"), "wrongly": len(apart)}
    lines = [
        Text(f"{row['exercise']} {row['name']}: {'; '.join(row['differences'])}", "bold red")
        for row in apart
    ]
    words = (
        f"Triton {record['triton']}: notebook and judge agree on {len(pairs) - len(apart)} of "
        f"{len(pairs)} answers, judged {turns} times."
    )
    return record, [*lines, Text(words, "bold red" if apart else "green")]


@contextmanager
def _progress(console: Console, what: str, total: int) -> Iterator[Callable]:
    """A bar that each call takes one answer further; a line now and then where there is no
    terminal."""
    if not console.is_terminal:
        counter = itertools.count(1)

        def advance(said) -> None:
            done = next(counter)
            if done % 100 == 0 or done == total:
                console.print(f"{what}: {done} of {total}, {said.answer.exercise}")

        yield advance
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TimeElapsedColumn(), console=console) as bar:
        task = bar.add_task(what, total=total)
        yield lambda said: bar.advance(task)


def _chosen(ids: Sequence[str]) -> list[Exercise]:
    """Exercises by id or by unit ("02"); all where none is named. Raises Rejected."""
    chosen: list[str] = []
    for id in ids or exercises.ids():
        of_unit = [i for i in exercises.ids() if i.startswith(f"{id[:2]}.")]
        chosen += of_unit if len(id) == 2 and of_unit else [exercises.get(id).id]
    return [exercises.get(id) for id in dict.fromkeys(chosen)]


# ---------------------------------------------------------------- counts


def as_json(said: Sequence[Said]) -> dict:
    """``{exercises: {id: counts}, aspects: {name: counts}, faults, other_reason, equivalent}``."""
    ids = list(dict.fromkeys(s.answer.exercise for s in said))
    wrong = [s for s in said if s.answer.aspects and not s.answer.equivalent]
    aspects = list(dict.fromkeys(s.answer.aspects[0] for s in wrong))
    killed = [s for s in wrong if not s.fault]
    return {
        "all": _counts(said),
        "exercises": {id: _counts([s for s in said if s.answer.exercise == id]) for id in ids},
        "aspects": {a: _counts([s for s in wrong if s.answer.aspects[0] == a]) for a in aspects},
        "faults": [_line(s) | {"fault": s.fault} for s in said if s.fault],
        "other_reason": [_line(s) for s in killed if not s.for_its_reason],
        "equivalent": [
            {"exercise": s.answer.exercise, "name": s.answer.name, "why": s.answer.equivalent}
            for s in said
            if s.answer.equivalent
        ],
    }


def _counts(said: Sequence[Said]) -> dict:
    def count(chosen: Callable[[Said], bool], good: Callable[[Said], bool]) -> list[int]:
        members = [s for s in said if chosen(s)]
        return [sum(map(good, members)), len(members)]

    def wrong(s: Said) -> bool:
        return bool(s.answer.aspects) and not s.answer.equivalent

    return {
        "right": count(lambda s: not s.answer.aspects, lambda s: not s.fault),
        "wrong": count(lambda s: wrong(s) and not s.answer.mutant, lambda s: not s.fault),
        "mutants": count(lambda s: wrong(s) and s.answer.mutant, lambda s: not s.fault),
        "own_aspect_first": count(lambda s: wrong(s) and not s.fault, lambda s: s.for_its_reason),
        "seen_by_public_cases": count(lambda s: wrong(s) and not s.fault, lambda s: s.public),
        "equivalent": sum(bool(s.answer.equivalent) for s in said),
        "seconds": round(sum(s.seconds for s in said), 1),
    }


def _line(s: Said) -> dict:
    expected = list(s.answer.aspects)
    line = {"exercise": s.answer.exercise, "name": s.answer.name, "expected": expected}
    return line | {"outcome": s.outcome, "aspect": s.aspect, "message": s.message}


# ---------------------------------------------------------------- words


_HEADS = {"own_aspect_first": "own\naspect first", "seen_by_public_cases": "public cases\nsuffice"}


def _tables(said: Sequence[Said]) -> list[Table]:
    record = as_json(said)
    tables = []
    for name in ("exercises", "aspects"):
        rows = record[name] | ({"all": record["all"]} if name == "exercises" else {})
        table = Table(box=None, header_style="bold", pad_edge=False)
        table.add_column("" if name == "exercises" else "by aspect")
        keys = [k for k in record["all"] if name == "exercises" or k != "right"]
        for key in keys:
            table.add_column(_HEADS.get(key, key), justify="right")
        for row, counts in rows.items():
            table.add_row(row, *(_cell(key, counts[key]) for key in keys))
        tables.append(table)
    return tables


def _cell(key: str, count) -> Text:
    if not isinstance(count, list):
        return Text(f"{count:g}")
    good, total = count
    must = key in ("right", "wrong", "mutants")
    return Text(f"{good}/{total}", "bold red" if must and good < total else "")


def _words(record: dict) -> list[Text]:
    lines = []
    for row in record["other_reason"]:
        words = f"{row['exercise']} {row['name']}: {row['aspect'] or row['outcome']} is named, not "
        lines.append(Text(words + " or ".join(row["expected"]), "dim"))
    for row in record["faults"]:
        words = f"{row['exercise']} {row['name']}: {row['fault']}"
        lines.append(Text(words + f" ({row['message']})" * bool(row["message"]), "bold red"))
    number = record["wrongly"]
    said = f"{number} answers were judged wrongly." if number else "Every answer got its verdict."
    return [*lines, Text(said, "bold red" if number else "green")]


def _closing(record: dict) -> list[str]:
    return [f"{record['seconds']:.0f} s, {record['processor_seconds']:.0f} s of a processor."]
