"""What is graded already, so that a killed run goes on where it was.

One JSON object a line, flushed to the disk before the next thing happens. ``graded`` lines hold a
result, ``recorded`` lines say that it stands in the gradebook, ``forgotten`` ones that it has to be
found anew. The last line may be cut off.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path

from autograder.grading.grader import Graded
from autograder.grading.remote import graded_from


class Journal:
    """The journal of one assignment. ``key`` is what a result depends on: the submission's digest
    and that of the release, the cases, the points and the secret."""

    def __init__(self, path: Path):
        self._graded: dict[str, tuple[str, Graded]] = {}
        self._recorded: dict[str, str] = {}
        end = self._read(path)
        self._file = open(path, "ab")  # noqa: SIM115 - open as long as the journal is
        self._file.truncate(end)  # a line that was cut off would spoil the next one

    def _read(self, path: Path) -> int:
        end = 0
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            return 0
        for line in data.splitlines(keepends=True):
            try:
                entry = json.loads(line)
                student, key = entry["student"], entry["key"]
                if entry["event"] == "graded":
                    self._graded[student] = (key, graded_from(entry["graded"]))
                    self._recorded.pop(student, None)
                elif entry["event"] == "forgotten":
                    self._graded.pop(student, None)
                else:
                    self._recorded[student] = key
            except (ValueError, KeyError, TypeError):
                break
            if not line.endswith(b"\n"):
                break
            end += len(line)
        return end

    def graded(self, student: str, key: str) -> Graded | None:
        """The result for this state of the submission, if there is one."""
        known = self._graded.get(student)
        return known[1] if known and known[0] == key else None

    def recorded(self, student: str, key: str) -> bool:
        """Whether that result stands in the gradebook."""
        return self._recorded.get(student) == key and self.graded(student, key) is not None

    def note_graded(self, graded: Graded, key: str) -> None:
        self._write({"event": "graded", "key": key, "graded": asdict(graded)}, graded.student)
        self._graded[graded.student] = (key, graded)
        self._recorded.pop(graded.student, None)

    def note_recorded(self, student: str, key: str) -> None:
        self._write({"event": "recorded", "key": key}, student)
        self._recorded[student] = key

    def forget(self, student: str) -> None:
        """Judge again, also where this run is stopped before it comes to this student."""
        self._write({"event": "forgotten", "key": ""}, student)
        self._graded.pop(student, None)

    def _write(self, entry: dict, student: str) -> None:
        self._file.write(json.dumps({"student": student, **entry}).encode() + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())

    def close(self) -> None:
        self._file.close()
