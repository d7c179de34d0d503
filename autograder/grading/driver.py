"""Grades a class: submissions to Dask workers, results to the journal, then to the gradebook.

Dask is the one executor, on this machine or on a cluster. A worker that dies loses nothing: its
submission is graded by another one. What is journaled is never graded again.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from autograder import exercises
from autograder.grading.course import Course
from autograder.grading.gradebook import NotRecorded, Recorder
from autograder.grading.grader import Graded, undecided
from autograder.grading.journal import Journal
from autograder.grading.preprocessors import make_request
from autograder.grading.remote import grade_on_worker, graded_from, to_json, warm_up
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
        self._ground = hashlib.sha256(release.read_bytes() + hidden + course.secret()).hexdigest()

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
            with _workers(self.options, len(left)) as client:
                for graded in self.computed(client, left):
                    submission = self.read(graded.student)
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
        if not submission.valid_id:
            return True
        return self.journal.recorded(student, self.key(submission)) and self.recorder.stands(
            student
        )

    def record(self, submission: Submission, graded: Graded) -> Row:
        if not submission.valid_id:
            return Row(graded, problem="not in the gradebook: the name is no student id")
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
            if not row.problem and (row.fresh or not path.is_dir()):
                try:
                    self.recorder.feedback(student)
                except NotRecorded as error:
                    rows[student] = replace(row, problem=f"no feedback: {error}")

    # ------------------------------------------------------------ on the workers

    def computed(self, client, students: list[str]) -> Iterator[Graded]:
        """Results in the order in which they come. At most a few submissions a worker are on their
        way at once, so that a large class does not fill the memory."""
        from distributed import as_completed

        waiting = iter(students)
        tries = dict.fromkeys(students, 0)
        on_their_way = as_completed(with_results=False)
        ahead = 2 * max(1, len(client.scheduler_info(n_workers=-1)["workers"]))
        for student in _first(waiting, ahead):
            on_their_way.add(self.submit(client, student, tries))
        for future in on_their_way:
            student = future.key.rsplit("/", 1)[0].split("/", 1)[1]
            graded = self.result(future, student)
            # Collected anew meanwhile: this is the grade of what was handed in before.
            changed = self.key(self.read(student)) != self.sent[student]
            if (changed or graded.status == "infrastructure") and tries[student] < _TRIES:
                on_their_way.add(self.submit(client, student, tries))
                continue
            yield graded
            for following in _first(waiting, 1):
                on_their_way.add(self.submit(client, following, tries))

    def submit(self, client, student: str, tries: dict[str, int]):
        tries[student] += 1
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
        return client.submit(
            grade_on_worker,
            to_json(request),
            self.options.unsafe,
            key=f"{self.assignment}/{student}/{tries[student]}",
            pure=False,
            retries=2,
        )

    def result(self, future, student: str) -> Graded:
        try:
            return graded_from(json.loads(future.result()))
        except Exception as error:  # a worker that was killed again and again, a lost connection
            said = f"{type(error).__name__}: {error}"[:300]
            return undecided(student, self.assignment, "infrastructure", said)


@contextlib.contextmanager
def _workers(options: Options, tasks: int):
    """A connected Dask client: of the scheduler that was named, or of a cluster on this machine."""
    from distributed import Client, LocalCluster

    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    if options.scheduler:
        try:
            client = Client(options.scheduler, timeout=20)
        except (OSError, TimeoutError, ValueError) as error:
            raise Rejected(
                f"No Dask scheduler answers at {options.scheduler} ({error}). Start one with "
                "`dask scheduler`, and workers with `dask worker ADDRESS --nthreads 1`."
            ) from None
        with client:
            yield client
        return
    count = min(options.workers or len(os.sched_getaffinity(0)), tasks)
    cluster = LocalCluster(
        n_workers=max(1, count),
        threads_per_worker=1,  # a warm sandbox serves one submission at a time
        memory_limit=0,  # the forks have limits of their own
        dashboard_address="127.0.0.1:0",  # any free port, so that two runs do not quarrel
        host="127.0.0.1",
        silence_logs=logging.CRITICAL,
    )
    with cluster, Client(cluster) as client:
        # Importing torch and triton takes seconds; begin before the first submission is there.
        client.run(warm_up, options.unsafe)
        yield client


def _first(iterator: Iterator[str], count: int) -> Iterable[str]:
    for _, item in zip(range(count), iterator, strict=False):
        yield item
