"""Grades a class: submissions to graders, results to the journal, then to the gradebook.

On this machine a thread watches each grader, whose work is done by processes of its own; on a
cluster Dask's workers do. A worker that dies loses nothing: its submission is graded by another
one. What is journaled is never graded again.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from autograder import exercises
from autograder.grading.course import Course
from autograder.grading.gradebook import NotRecorded, Recorder
from autograder.grading.grader import Graded, undecided
from autograder.grading.journal import Journal
from autograder.grading.preprocessors import make_request
from autograder.grading.remote import Pool, grade_on_worker, graded_from, to_json
from autograder.grading.sandbox import require_bubblewrap
from autograder.grading.submission import (
    Submission,
    canonical,
    read_release,
    read_submission,
)
from autograder.records import Rejected

_TRIES = 3  # of one submission, where our side fails


@dataclass(frozen=True)
class Options:
    """What ``grade`` was asked for. ``scheduler``: the address of a Dask scheduler; None: a cluster
    on this machine with ``workers`` processes (None: one a core)."""

    students: tuple[str, ...] = ()
    regrade: bool = False
    workers: int | None = None
    scheduler: str | None = None
    feedback: bool = False
    unsafe: bool = False


@dataclass(frozen=True)
class Row:
    """One line of the summary. ``fresh``: graded in this run; ``problem``: why it is not in the
    gradebook, if it is not."""

    graded: Graded
    fresh: bool = True
    problem: str = ""


def grade_class(
    course: Course,
    assignment: str,
    options: Options,
    progress: Callable[[int, int, str], None] = lambda done, total, student: None,
) -> list[Row]:
    """Grade everything in submitted/ (or ``options.students``). Raises Rejected with one sentence.

    ``progress(done, total, student)`` is called after every submission.
    """
    if not options.unsafe:
        require_bubblewrap()
    assignment = exercises.assignment(assignment)
    run = _Run(course, assignment, options)
    try:
        return run.all(progress)
    finally:
        run.journal.close()


class _Run:
    def __init__(self, course: Course, assignment: str, options: Options):
        self.course, self.assignment, self.options = course, assignment, options
        release = course.release(assignment)
        self.release = read_release(release)
        self.directories = self._directories()
        self.recorder = Recorder(course, assignment)
        self.journal = Journal(course.state(assignment) / "journal.jsonl")
        hidden = json.dumps(course.hidden(assignment), sort_keys=True).encode()
        self.sent: dict[str, str] = {}  # student → key of what is being graded
        ground = release.read_bytes() + hidden + exercises.text_of(assignment) + course.secret()
        self._ground = hashlib.sha256(ground).hexdigest()

    def _directories(self) -> dict[str, Path]:
        found = dict(self.course.submissions(self.assignment))
        for student in self.options.students:
            if student not in found:
                raise Rejected(f"There is no submitted/{student}/{self.assignment}.")
        if self.options.students:
            found = {student: found[student] for student in self.options.students}
        if not found:
            raise Rejected(f"There is nothing to grade: no submitted/*/{self.assignment}.")
        return found

    def all(self, progress) -> list[Row]:
        rows: dict[str, Row] = {}
        total = len(self.directories)

        def note(row: Row) -> None:
            rows[row.graded.student] = row
            progress(len(rows), total, row.graded.student)

        left = []
        for student in self.directories:
            submission = self.read(student)
            known = self.journal.graded(student, self.key(submission))
            if submission.problem and known is None:
                problem = submission.problem
                known = undecided(student, self.assignment, "invalid", problem)
                self.journal.note_graded(known, self.key(submission))
            if known is None or (self.options.regrade and not submission.problem):
                left.append(student)
                continue
            fresh = not self.done(submission)
            note(self.record(submission, known) if fresh else Row(known, fresh=False))
        if left:
            with _workers(self.options, len(left)) as workers:
                for student in left if self.options.regrade else ():
                    self.journal.forget(student)
                for submission, graded in self.computed(workers, left):
                    self.journal.note_graded(graded, self.key(submission))
                    note(self.record(submission, graded))
        if self.options.feedback:
            self.write_feedback(rows)
        return [rows[student] for student in sorted(rows)]

    def read(self, student: str) -> Submission:
        """Read again whenever it is needed: a class of submissions is not held in memory."""
        return read_submission(self.directories[student], student, self.assignment, self.release)

    def key(self, submission: Submission) -> str:
        """What a result depends on. Every other file or byte may change without a new grade."""
        parts = (submission.digest, submission.timestamp, submission.problem, self._ground)
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()

    def done(self, submission: Submission) -> bool:
        student = submission.student
        return self.journal.recorded(student, self.key(submission)) and self.recorder.stands(
            student
        )

    def record(self, submission: Submission, graded: Graded) -> Row:
        if not submission.valid_id:
            return Row(graded, False, f"not in the gradebook: {submission.problem}")
        notebook = canonical(self.release, submission.sources)
        try:
            self.recorder.record(submission, notebook, graded)
        except NotRecorded as error:
            return Row(graded, problem=f"nbgrader did not take it: {error}")
        self.journal.note_recorded(submission.student, self.key(submission))
        return Row(graded)

    def write_feedback(self, rows: dict[str, Row]) -> None:
        for student, row in rows.items():
            path = self.course.root / "feedback" / student / self.assignment
            wanted = row.fresh or self.options.regrade or not path.is_dir()
            if wanted and not row.problem:
                try:
                    self.recorder.feedback(student)
                except NotRecorded as error:
                    rows[student] = replace(row, problem=f"no feedback: {error}")

    # ------------------------------------------------------------ on the workers

    def computed(
        self, workers: _Workers, students: list[str]
    ) -> Iterator[tuple[Submission, Graded]]:
        """Results in the order in which they come, with what is handed in by then. At most a few
        submissions a worker are on their way at once, so that a large class does not fill the
        memory."""
        waiting = iter(students)
        tries = dict.fromkeys(students, 0)
        on_their_way: dict[Future, str] = {}

        def begin(student: str) -> None:
            tries[student] += 1
            on_their_way[self.submit(workers, student)] = student

        for student in _first(waiting, 2 * workers.count):
            begin(student)
        while on_their_way:
            for future in wait(on_their_way, return_when=FIRST_COMPLETED).done:
                student = on_their_way.pop(future)
                graded = self.result(future, student)
                # Collected anew meanwhile: this is the grade of what was handed in before.
                submission = self.read(student)
                changed = self.key(submission) != self.sent[student]
                if (changed or graded.status == "infrastructure") and tries[student] < _TRIES:
                    begin(student)
                    continue
                for following in _first(waiting, 1):  # before the result is written down
                    begin(following)
                yield submission, graded

    def submit(self, workers: _Workers, student: str) -> Future:
        submission = self.read(student)
        self.sent[student] = self.key(submission)
        request = make_request(
            self.course,
            student,
            self.assignment,
            canonical(self.release, submission.sources),
            own=submission.sources,
            notes=submission.notes,
        )
        return workers.executor.submit(workers.grade, to_json(request))

    def result(self, future, student: str) -> Graded:
        try:
            return graded_from(json.loads(future.result()))
        except Exception as error:  # a worker that was killed again and again, a lost connection
            said = f"{type(error).__name__}: {error}"[:300]
            return undecided(student, self.assignment, "infrastructure", said)


@dataclass(frozen=True)
class _Workers:
    """Where submissions go: ``executor`` calls ``grade`` (JSON to JSON), ``count`` at a time."""

    executor: Executor
    grade: Callable[[str], str]
    count: int


@contextlib.contextmanager
def _workers(options: Options, tasks: int) -> Iterator[_Workers]:
    """Workers of the Dask scheduler that was named, or threads on this machine."""
    if options.scheduler:
        with _dask(options) as workers:
            yield workers
        return
    count = max(1, min(options.workers or len(os.sched_getaffinity(0)), tasks))
    with Pool(count, options.unsafe) as pool:
        threads = ThreadPoolExecutor(count)
        try:
            yield _Workers(threads, pool.grade, count)
        finally:  # also when somebody presses Ctrl-C: nobody waits for what is running
            threads.shutdown(wait=False, cancel_futures=True)


@contextlib.contextmanager
def _dask(options: Options) -> Iterator[_Workers]:
    from distributed import Client  # most of a second, and most classes are graded without it

    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    try:
        client = Client(options.scheduler, timeout=20)
    except (OSError, TimeoutError, ValueError) as error:
        raise Rejected(
            f"No Dask scheduler answers at {options.scheduler} ({error}). Start one with "
            "`dask scheduler`, and workers with `dask worker ADDRESS --nthreads 1`."
        ) from None
    with client:
        count = max(1, len(client.scheduler_info(n_workers=-1)["workers"]))
        executor = client.get_executor(pure=False, retries=2)
        yield _Workers(executor, partial(grade_on_worker, unsafe=options.unsafe), count)


def _first(iterator: Iterator[str], count: int) -> Iterable[str]:
    for _, item in zip(range(count), iterator, strict=False):
        yield item
