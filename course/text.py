"""One text ↔ the cells of its notebook.

A text is jupytext's percent format. Short headers (``solution="02.add"``) stand for nbgrader's
metadata; ``source_notebook`` and ``lesson_notebook`` expand them, ``header_of`` folds them back.
"""

from __future__ import annotations

import copy
import difflib
import hashlib
import json
import textwrap
from collections.abc import Mapping

import jupytext
import nbformat
from nbformat import NotebookNode

from autograder import exercises
from autograder.records import Exercise, Rejected
from course.stubs import ClearSolutionsByCell

ROLES = ("solution", "check", "quiz")
KEYS = (*ROLES, "stub", "tags")
_BLANK_LINES = "lines_to_next_cell"  # jupytext's note of the blank lines after a cell
_HIDDEN = ("### BEGIN HIDDEN TESTS", "### END HIDDEN TESTS")


class CourseError(Exception):
    """A fault in a text or a notebook: one sentence for the author."""


# ---------------------------------------------------------------- text ↔ raw cells


def parse(text: str) -> list[NotebookNode]:
    """The cells of a text; their metadata hold the header's keys and nothing else of ours.

    Raises CourseError for an unknown key, with the nearest known one, and a value of a wrong type.
    """
    try:
        cells = jupytext.reads(text, "py:percent").cells
    except nbformat.ValidationError as error:
        raise CourseError(f'a header is wrong, {error.message}: tags=["word", "word"].') from error
    for number, cell in enumerate(cells, 1):
        cell.metadata.pop("cell_marker", None)
        for key in set(cell.metadata) - {*KEYS, _BLANK_LINES}:
            near = difflib.get_close_matches(key, KEYS, n=1)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(KEYS)}."
            raise CourseError(f"cell {number} has the unknown header key '{key}': {hint}")
    return cells


def unparse(cells: list[NotebookNode]) -> str:
    """The text of raw cells; ``unparse(parse(text)) == text`` for a text that jupytext wrote."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.from_dict(cell) for cell in cells])
    notebook.metadata["jupytext"] = {"notebook_metadata_filter": "-all"}
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cell.metadata["cell_marker"] = 'r"""'
    return jupytext.writes(notebook, "py:percent")


# ---------------------------------------------------------------- raw cells → notebooks


def source_notebook(
    cells: list[NotebookNode], assignment: str, keys: Mapping[str, Mapping]
) -> NotebookNode:
    """The instructor's notebook of an assignment: solutions, hidden calls, nbgrader's metadata.

    ``keys`` holds the answers of its quizzes: id → question → ``{"answer", "explain"}``. Raises
    CourseError where the headers do not cover the exercises of ``assignment`` exactly once.
    """
    wanted = {exercise.id: exercise for exercise in exercises.of_assignment(assignment)}
    open_ends = {(role, id) for id in wanted for role in ("solution", "check")}
    built = []
    for cell in cells:
        role, id = _role(cell)
        if role is None:
            built.append(_cell(cell, len(built), cell.source, {}))
            continue
        end = ("check" if role == "check" else "solution", id)
        if id not in wanted:
            raise CourseError(f'{role}="{id}" names no exercise of {assignment}: {list(wanted)}.')
        if end not in open_ends:
            raise CourseError(f"exercise {id} has a second {end[0]} cell; it may have one.")
        open_ends.remove(end)
        source, metadata = _expanded(cell, role, wanted[id], keys.get(id, {}))
        built.append(_cell(cell, len(built), source, metadata))
    for role, id in sorted(open_ends):
        raise CourseError(f'exercise {id} has no cell with the header {role}="{id}".')
    return _notebook(built)


def lesson_notebook(cells: list[NotebookNode]) -> NotebookNode:
    """A lesson with solutions and markers; ``with_holes`` and ``solution_page`` go on from it."""
    built = []
    for cell in cells:
        role, _ = _role(cell)
        if role:
            raise CourseError(f"the header key '{role}' belongs in an assignment, not in a lesson.")
        metadata = {"stub": cell.metadata["stub"]} if "stub" in cell.metadata else {}
        built.append(_cell(cell, len(built), cell.source, metadata))
    return _notebook(built)


def with_holes(notebook: NotebookNode, *, solutions_only: bool = False) -> NotebookNode:
    """The notebook as students get it: a stub stands where each solution was.

    Raises CourseError for markers that are no pair and, with ``solutions_only`` (an assignment),
    in a cell that is no solution.
    """
    try:
        notebook, _ = ClearSolutionsByCell(enforce_metadata=solutions_only).preprocess(
            copy.deepcopy(notebook), {}
        )
    except RuntimeError as error:  # nbgrader's word on nested or unclosed markers, or ours on stubs
        raise CourseError(f"{error}.") from error
    return _notebook(notebook.cells)


def solution_page(notebook: NotebookNode) -> NotebookNode:
    """The complete page for after the deadline: solutions kept, markers and hidden calls gone."""
    built = []
    for cell in notebook.cells:
        source = cell.source
        if _HIDDEN[0] in source:
            source = source[: source.index(_HIDDEN[0])].rstrip()
        markers = ClearSolutionsByCell.MARKERS
        lines = [line for line in source.split("\n") if line.strip(" #") not in markers]
        built.append(_cell(cell, len(built), "\n".join(lines), {}))
    return _notebook(built)


def check_call(exercise: Exercise) -> str:
    """What a check cell runs: the student's call, and between nbgrader's markers the hidden one."""
    arguments = ", ".join((f'"{exercise.id}"', *exercise.names))
    hidden = "\n".join((_HIDDEN[0], f"check({arguments}, hidden=True)", _HIDDEN[1]))
    return f"check({arguments})\n{hidden}"


def _role(cell: NotebookNode) -> tuple[str | None, str]:
    roles = [role for role in ROLES if role in cell.metadata]
    if len(roles) > 1:
        raise CourseError(f"a cell is {' and '.join(roles)} at once; give each its own cell.")
    return (roles[0], str(cell.metadata[roles[0]])) if roles else (None, "")


def _expanded(
    cell: NotebookNode, role: str, exercise: Exercise, key: Mapping[str, Mapping]
) -> tuple[str, dict]:
    graded = role == "check"
    end = "check" if graded else "solution"
    metadata = {
        "nbgrader": {
            "grade": graded,
            "grade_id": f"{end}-{exercise.id.replace('.', '-')}",
            "locked": graded,
            "schema_version": 3,
            "solution": not graded,
            "task": False,
        }
    }
    if graded:
        points = exercise.max_points
        metadata["nbgrader"]["points"] = int(points) if points.is_integer() else points
        return "\n".join(part for part in (cell.source, check_call(exercise)) if part), metadata
    if role == "quiz":
        if cell.source:
            raise CourseError(f'the cell quiz="{exercise.id}" stays empty: its answers are data.')
        metadata["stub"] = _answers(exercise, None)
        return _answers(exercise, key), metadata
    if "stub" in cell.metadata:
        metadata["stub"] = cell.metadata["stub"]
    return cell.source, metadata


def _answers(exercise: Exercise, key: Mapping[str, Mapping] | None) -> str:
    """``answers = {…}``: filled and explained from the key, or None a question and its form."""
    lines = [f"{exercise.names[0]} = {{"]
    for question, form in exercise.notes.items():
        if key is None:
            lines.append(f'    "{question}": None,  # {form}')
            continue
        if question not in key:
            raise CourseError(f"course/hidden/ has no answer to {question} of {exercise.id}.")
        explain = textwrap.wrap(key[question].get("explain", ""), 92)
        lines += [f"    # {line}" for line in explain]
        lines.append(f'    "{question}": {json.dumps(key[question]["answer"])},')
    return "\n".join((*lines, "}"))


def _cell(cell: NotebookNode, position: int, source: str, metadata: dict) -> NotebookNode:
    """A fresh cell without outputs; its id follows from its grade id or its position."""
    new = getattr(nbformat.v4, f"new_{cell.cell_type}_cell")
    if cell.metadata.get("tags"):
        metadata["tags"] = list(cell.metadata["tags"])
    id = metadata.get("nbgrader", {}).get("grade_id", f"cell-{position:02}")
    return new(source, metadata=nbformat.from_dict(metadata), id=id)


def _notebook(cells: list[NotebookNode]) -> NotebookNode:
    notebook = nbformat.v4.new_notebook(cells=cells)
    notebook.metadata = nbformat.from_dict(
        {
            "kernelspec": {
                "display_name": "Python 3 (ipykernel)",
                "language": "python",
                "name": "python3",
            },
            "language_info": {"name": "python"},
        }
    )
    notebook.metadata["course"] = {"built": digest(notebook)}
    return notebook


# ---------------------------------------------------------------- notebook → headers


def header_of(cell: NotebookNode) -> dict:
    """The header's keys of a built cell: the inverse of the expansion."""
    header = {}
    grade_id = cell.metadata.get("nbgrader", {}).get("grade_id", "")
    if grade_id:
        end, _, rest = grade_id.partition("-")
        id = rest.replace("-", ".", 1)
        header["quiz" if end == "solution" and id.endswith(".quiz") else end] = id
    if "stub" in cell.metadata and "quiz" not in header:
        header["stub"] = cell.metadata["stub"]
    if cell.metadata.get("tags"):
        header["tags"] = list(cell.metadata["tags"])
    return header


def source_of(cell: NotebookNode) -> str:
    """The text's share of a built cell's source: a check cell without its generated call."""
    header = header_of(cell)
    if "quiz" in header:
        raise CourseError(
            f"the answers of {header['quiz']} were edited, but they are built from course/hidden/."
        )
    if "check" not in header:
        return cell.source
    id = header["check"]
    try:
        call = check_call(exercises.get(id))
    except Rejected as error:
        raise CourseError(str(error)) from error
    if not cell.source.endswith(call):
        raise CourseError(
            f"the call in the check cell of {id} was edited, but it is generated: put other lines "
            "above it, or change the exercise in autograder/exercises/."
        )
    return cell.source.removesuffix(call).removesuffix("\n")


def content_of(cell: NotebookNode) -> list:
    """What an author edits in a cell; outputs, ids and view settings do not count."""
    pictures = sorted(cell.get("attachments", {}))
    return [cell.cell_type, cell.source.strip("\n"), header_of(cell), pictures]


def digest(notebook: NotebookNode) -> str:
    """A digest of what an author edits in a notebook; empty cells do not count either."""
    content = [content_of(c) for c in notebook.cells if c.source.strip() or header_of(c)]
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


def built_digest(notebook: NotebookNode) -> str | None:
    """The digest that the builder left in the notebook, or None."""
    return notebook.metadata.get("course", {}).get("built")


def is_edited(notebook: NotebookNode) -> bool:
    """Whether somebody edited the notebook since the builder wrote it."""
    return digest(notebook) != built_digest(notebook)


def stubs_of(cell: NotebookNode) -> list[tuple[list[str], list[str]]]:
    """For each solution region of a raw cell: the lines that students get, the region's lines."""
    begin, end = ClearSolutionsByCell.MARKERS
    regions, region = [], None
    for line in cell.source.split("\n"):
        if begin in line:
            region = []
        if region is not None:
            region.append(line)
        if end in line and region is not None:
            regions.append(region)
            region = None
    stub = cell.metadata.get("stub", ClearSolutionsByCell.DEFAULT)
    stubs = stub if isinstance(stub, list) else [stub] * len(regions)
    indents = [lines[0][: len(lines[0]) - len(lines[0].lstrip())] for lines in regions]
    shown = [
        [indent + line for line in text.split("\n")]
        for indent, text in zip(indents, stubs, strict=True)
    ]
    return list(zip(shown, regions, strict=True))
