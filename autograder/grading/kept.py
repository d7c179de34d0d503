"""What a run of the audit was told, answer by answer, in a file: a run that is stopped goes on."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from autograder.grading.forkserver import End
from autograder.records import Rejected


class Kept:
    """One JSON object a line; a last line that was cut off is dropped. ``look`` is what is asked of
    the answers: an audit and a comparison may share a file."""

    def __init__(self, path: str | Path, look: str):
        self._look = look
        self._rows: dict[str, dict] = {}
        try:
            self._file = open(path, "a+b")  # noqa: SIM115 - open as long as the run is
        except OSError as error:
            raise Rejected(f"{path} cannot be written: {error.strerror}.") from None
        self._file.seek(0)
        end = 0
        for line in self._file:
            try:
                row = json.loads(line)
                self._rows[row["key"]] = row
            except (ValueError, KeyError, TypeError):
                break
            end += len(line)
        self._file.truncate(end)

    def __enter__(self) -> Kept:
        return self

    def __exit__(self, *error) -> None:
        self._file.close()

    def of(self, answer) -> tuple[End, dict] | None:
        """How the answer's fork ended and what it said, if this was asked of the same text."""
        row = self._rows.get(self._key(answer))
        return row and (End(**row["end"]), row["said"])

    def note(self, answer, end: End, said: dict) -> None:
        row = {"key": self._key(answer), "exercise": answer.exercise, "name": answer.name}
        row |= {"end": end.__dict__, "said": said}
        self._file.write(json.dumps(row, ensure_ascii=False).encode() + b"\n")
        self._file.flush()

    def _key(self, answer) -> str:
        told = (self._look, answer.exercise, answer.name, answer.source)
        return hashlib.sha256(repr(told).encode()).hexdigest()
