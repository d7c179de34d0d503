"""The canonical submission: the released notebook with the student's solution cells, nothing else.

What a student hands in is a file that somebody hostile may have written. Only the text of solution
cells is taken from it, so deleted, duplicated or edited locked cells, ``grade: false``, another
schema version, a hostile kernelspec and all outputs are cured by construction.
"""

from __future__ import annotations

import copy
import hashlib
import json
import os
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import nbformat
from nbformat import NotebookNode
from nbgrader.utils import parse_utc

from autograder.records import Rejected

MAX_FILE = 20 << 20  # bytes; a notebook with every figure of an assignment stays under 2 MB
MAX_PARTS = 1_000_000  # brackets; each becomes an object of 64 bytes in the grader's own memory
MAX_CELL = 200_000  # characters of one solution cell
_STUDENT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@+-]{0,63}")
# A zone that begins with "/" or ":" would be the path of a file that dateutil opens and reads.
_ZONE = r"(?:[A-Za-z][A-Za-z0-9+/_-]{0,39}|[+-][0-9:]{2,6})"
SECRET = "submission_secret.txt"
_SECRET = re.compile(r"[0-9a-f]{128}")
_TIMESTAMP = re.compile(rf"[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}[ T][0-9:.]{{5,15}}(?: ?{_ZONE})?")


@dataclass(frozen=True)
class Submission:
    """What was taken from one student's directory. ``problem`` is empty or says in one sentence why
    nothing could be read; then there are no ``sources``. ``digest`` is the SHA-256 of the file."""

    student: str
    assignment: str
    sources: Mapping[str, str] = field(default_factory=dict)  # grade id → text of the cell
    notes: tuple[str, ...] = ()
    problem: str = ""
    digest: str = ""
    timestamp: str = ""
    secret: str = ""  # from the exchange; feedback goes back under a name made of it

    @property
    def valid_id(self) -> bool:
        """Whether the directory's name may stand in a gradebook."""
        return _STUDENT.fullmatch(self.student) is not None


def read_submission(
    directory: Path, student: str, assignment: str, release: NotebookNode
) -> Submission:
    """Read ``directory/<assignment>.ipynb`` under the rules for size, links, names and encoding."""
    timestamp = digest = secret = ""
    try:
        if not _STUDENT.fullmatch(student):
            raise Rejected(
                "The student's directory has a name that is no student id: letters, digits and "
                ". _ @ + - only, at most 64."
            )
        if directory.is_symlink() or directory.parent.is_symlink() or not directory.is_dir():
            raise Rejected(f"submitted/{student}/{assignment} is not a directory.")
        timestamp = read_timestamp(directory)  # also of what cannot be read: formgrader compares it
        secret = read_secret(directory)
        data = _read_file(directory, f"{assignment}.ipynb")
        digest = hashlib.sha256(data).hexdigest()
        sources, notes = solution_sources(parse_notebook(data), release)
        if not timestamp and os.path.lexists(directory / "timestamp.txt"):
            notes += ("timestamp.txt holds no date, so nobody knows when this was handed in.",)
        if not secret and os.path.lexists(directory / SECRET):
            notes += (f"{SECRET} is not the exchange's, which cannot bring this page back.",)
    except Rejected as error:
        return Submission(student, assignment, {}, (), str(error), digest, timestamp, secret)
    return Submission(student, assignment, sources, notes, "", digest, timestamp, secret)


def _read_file(directory: Path, name: str) -> bytes:
    """The bytes of a regular file of at most MAX_FILE bytes."""
    if not os.path.lexists(directory / name):
        entries = (entry.name for entry in os.scandir(directory))
        found = sorted({*entries} - {"timestamp.txt", SECRET})
        there = f"only {', '.join(repr(n) for n in found[:3])}" if found else "nothing"
        raise Rejected(f"There is no {name} in the submission; it holds {there}.")
    data = _regular(directory / name, MAX_FILE + 1)
    if data is None:
        raise Rejected(f"{name} is a link or no regular file; hand in the file itself.")
    if len(data) > MAX_FILE:
        size = os.stat(directory / name).st_size
        raise Rejected(
            f"{name} has {size >> 20} MB, the limit is {MAX_FILE >> 20} MB: clear its outputs, "
            "save, and hand it in again."
        )
    return data


def _regular(path: Path, most: int) -> bytes | None:
    """At most ``most`` bytes of a regular file; None for what is a link, a device, a directory."""
    try:
        # O_NONBLOCK: opening a FIFO must not wait for a writer.
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            return None
        parts = []
        while most and (part := os.read(fd, min(most, 1 << 20))):
            parts.append(part)
            most -= len(part)
        return b"".join(parts)
    finally:
        os.close(fd)


def read_timestamp(directory: Path) -> str:
    """The text of timestamp.txt if it is a date that nbgrader can read, else nothing."""
    text = (_regular(directory / "timestamp.txt", 100) or b"").decode("ascii", "replace").strip()
    if not _TIMESTAMP.fullmatch(text):
        return ""
    try:
        parse_utc(text)
    except (ValueError, OverflowError):  # a thirteenth month, a year before the first
        return ""
    return text


def read_secret(directory: Path) -> str:
    """What nbgrader's exchange put beside the notebook when it was handed in, if it looks so."""
    text = (_regular(directory / SECRET, 200) or b"").decode("ascii", "replace")
    return text if _SECRET.fullmatch(text) else ""


def parse_notebook(data: bytes) -> list[dict]:
    """The cells of a notebook of format 4. Raises Rejected with one sentence."""
    if data.count(b"{") + data.count(b"[") > MAX_PARTS:
        raise Rejected(
            "The notebook has more parts than anybody writes: clear its outputs, save, and hand it "
            "in again."
        )
    try:
        notebook = json.loads(data.decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise Rejected("The notebook is not text in UTF-8.") from None
    except RecursionError:
        raise Rejected("The notebook's JSON is nested too deeply.") from None
    except ValueError:
        raise Rejected(
            "The notebook is not valid JSON: it was cut off or edited by hand. Open it in "
            "JupyterLab, save, and hand it in again."
        ) from None
    cells = notebook.get("cells") if isinstance(notebook, dict) else None
    if not isinstance(cells, list) or notebook.get("nbformat") != 4:
        raise Rejected("The file is not a notebook of format 4 (JupyterLab writes that).")
    return [cell for cell in cells if isinstance(cell, dict)]


def solution_sources(
    cells: list[dict], release: NotebookNode
) -> tuple[dict[str, str], tuple[str, ...]]:
    """Texts of the solution cells that ``release`` asks for, by grade id, and notes on odd things.

    A cell counts by its grade id, or by its cell id where the grade id was lost. Of several cells
    with one grade id the last counts, as in nbgrader.
    """
    wanted = {cell.metadata.nbgrader.grade_id: cell.get("id") for cell in solution_cells(release)}
    by_grade_id: dict[str, list[str]] = {}
    by_cell_id: dict[str, str] = {}
    for cell in cells:
        source = _source(cell)
        if source is None:
            continue
        if isinstance(cell.get("id"), str):
            by_cell_id.setdefault(cell["id"], source)
        metadata = cell.get("metadata")
        marks = metadata.get("nbgrader") if isinstance(metadata, dict) else None
        grade_id = marks.get("grade_id") if isinstance(marks, dict) else None
        if isinstance(grade_id, str) and grade_id in wanted:
            by_grade_id.setdefault(grade_id, []).append(source)
    sources, notes = {}, []
    for grade_id, cell_id in wanted.items():
        found = by_grade_id.get(grade_id, [])
        if len(found) > 1:
            notes.append(f"The cell {grade_id} was there {len(found)} times; the last one counts.")
        if found:
            source = found[-1]
        elif cell_id in by_cell_id:
            source = by_cell_id[cell_id]
        else:
            notes.append(f"The cell {grade_id} was missing.")
            continue
        if len(source) > MAX_CELL:
            raise Rejected(
                f"The cell {grade_id} has {len(source)} characters, the limit is {MAX_CELL}."
            )
        sources[grade_id] = source
    return sources, tuple(notes)


def solution_cells(notebook: NotebookNode) -> list[NotebookNode]:
    """The cells of a released notebook in which a student writes."""
    return [c for c in notebook.cells if c.metadata.get("nbgrader", {}).get("solution")]


def _source(cell: dict) -> str | None:
    source = cell.get("source")
    if isinstance(source, list) and all(isinstance(line, str) for line in source):
        source = "".join(source)
    if not isinstance(source, str):
        return None
    # A lone surrogate is legal in JSON and cannot be written to a file again.
    return source.encode("utf-8", errors="replace").decode("utf-8")


def read_release(path: Path) -> NotebookNode:
    """The released notebook. Raises Rejected when it is not one that nbgrader made."""
    try:
        release = nbformat.read(path, as_version=4)
    except Exception as error:  # nbformat raises what it likes; the file is the instructor's
        raise Rejected(f"{path.name} in release/ cannot be read: {error}") from None
    if not solution_cells(release):
        raise Rejected(f"{path.name} in release/ has no solution cells: run `make build` again.")
    return release


def canonical(release: NotebookNode, sources: Mapping[str, str]) -> NotebookNode:
    """A copy of ``release`` with ``sources`` in its solution cells and no outputs at all."""
    notebook = copy.deepcopy(release)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
        if cell.metadata.get("nbgrader", {}).get("solution"):
            cell.source = sources.get(cell.metadata.nbgrader.grade_id, cell.source)
    return notebook
