"""Where a course keeps releases, submissions, hidden cases, the secret and the journal.

A course directory is the one that holds ``nbgrader_config.py``; nbgrader's own layout stays.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from autograder import exercises
from autograder.exercises.tables import hidden_cases, read_hidden
from autograder.records import Case, Rejected

_SECRET_BYTES = 32
# A course may be a directory of its own whose nbgrader_config.py loads the checkout's.
_CHECKOUT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Course:
    """A course directory. Paths only; nothing is read before it is asked for."""

    root: Path

    @property
    def gradebook(self) -> Path:
        return self.root / "gradebook.db"

    def release(self, assignment: str) -> Path:
        """The released notebook, the skeleton of every submission. Raises Rejected if missing."""
        path = self.root / "release" / assignment / f"{assignment}.ipynb"
        if not path.is_file():
            raise Rejected(
                f"release/{assignment}/{assignment}.ipynb is missing: run `make build` (or "
                f"`nbgrader generate_assignment {assignment}`) in the course directory first."
            )
        return path

    def submissions(self, assignment: str) -> Iterator[tuple[str, Path]]:
        """(student, directory) of everything in submitted/, sorted by student."""
        submitted = self.root / "submitted"
        if not submitted.is_dir():
            return
        for entry in sorted(os.scandir(submitted), key=lambda entry: entry.name):
            directory = Path(entry.path) / assignment
            if entry.name.startswith(".") or not os.path.lexists(directory):
                continue
            yield entry.name, directory

    def state(self, assignment: str) -> Path:
        """The directory of journal and staged submissions of an assignment; created on demand."""
        path = self.root / ".grading" / assignment
        path.mkdir(parents=True, exist_ok=True, mode=0o700)
        return path

    def secret(self) -> bytes:
        """The salt of all graded inputs: made once, mode 0600, so that regrading is byte-equal."""
        path = self.root / ".secret"
        try:
            fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            value = path.read_bytes()
            if len(value) < _SECRET_BYTES:
                raise Rejected(
                    f"{path.name} in the course directory is shorter than {_SECRET_BYTES} bytes: "
                    "delete it, and grade every submission again with --regrade."
                ) from None
            return value
        with os.fdopen(fd, "wb") as file:
            value = secrets.token_bytes(_SECRET_BYTES)
            file.write(value)
            file.flush()
            os.fsync(file.fileno())
        return value

    def hidden(self, assignment: str) -> dict | None:
        """What stands in ``course/hidden/NN_name.json`` of the course, or of the checkout that this
        package belongs to; None where neither exists (a student's bundle)."""
        for root in (self.root, _CHECKOUT):
            path = root / "course" / "hidden" / f"{assignment}.json"
            found = read_hidden(path, exercises.of_assignment(assignment))
            if found is not None:
                return found
        return None

    def cases(self, exercise_id: str, hidden: dict | None) -> tuple[Case, ...]:
        """Public cases of an exercise, then its hidden ones."""
        public = exercises.get(exercise_id).cases
        return public + hidden_cases(exercise_id, hidden)


def find(start: str | os.PathLike | None = None) -> Course:
    """The course at ``start`` or in the nearest directory above the working directory."""
    here = Path(start or os.getcwd()).resolve()
    candidates = [here] if start else [here, *here.parents]
    for directory in candidates:
        if (directory / "nbgrader_config.py").is_file():
            return Course(directory)
    raise Rejected(
        f"There is no course in {here}: it has no nbgrader_config.py. Run this in the course "
        "directory, or name it with --course."
    )
