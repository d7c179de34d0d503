"""What nbgrader runs in place of its own reading and executing; nbgrader_config.py names these.

``CanonicalExporter`` reads submissions, ``Judge`` stands where Execute stood, ``SaveTogether`` and
``KeepUndecided`` where SaveAutoGrades did. All else is nbgrader's own, but for the feedback page.
"""

from __future__ import annotations

import ast
import base64
import contextlib
import functools
import json
import os
from collections.abc import Iterable
from pathlib import Path

import nbformat
from nbconvert.exporters import NotebookExporter
from nbformat import NotebookNode, from_dict
from nbgrader import utils
from nbgrader.api import Gradebook
from nbgrader.preprocessors import Execute, NbGraderPreprocessor, SaveAutoGrades
from traitlets import Bool

from autograder.grading import course as course_directory
from autograder.grading.grader import Graded, Mark, Request
from autograder.grading.remote import the_grader
from autograder.grading.solving import check_id
from autograder.grading.submission import (
    MAX_FILE,
    SECRET,
    canonical,
    read_release,
    read_secret,
    read_submission,
    read_timestamp,
)
from autograder.records import Rejected

KEY = "autograder"  # in the autograded notebook's metadata: status and one sentence

# What the driver has graded already, and the canonical notebook that it made.
_known: dict[tuple[str, str], tuple[Graded, NotebookNode]] = {}


@contextlib.contextmanager
def already(graded: Graded, notebook: NotebookNode):
    """While it lasts, nbgrader gets this result and this canonical notebook, which is its own from
    then on; nothing is read or run again."""
    key = (graded.student, graded.assignment)
    _known[key] = graded, notebook
    try:
        yield
    finally:
        del _known[key]


def code_cells(notebook) -> tuple[tuple[str, str], ...]:
    """(name, source) of the code cells that define things. Of a check cell only the place counts;
    of the course's own cells imports, definitions and assignments: what only shows is for readers.
    """
    cells = []
    for number, cell in enumerate(notebook.cells, 1):
        if cell.cell_type == "code":
            name = cell.metadata.get("nbgrader", {}).get("grade_id", f"cell {number}")
            if utils.is_solution(cell):
                cells.append((name, cell.source))
            else:
                cells.append((name, "" if utils.is_grade(cell) else _definitions(cell.source)))
    return tuple(cells)


@functools.lru_cache(maxsize=256)  # the course's own cells are the same in every submission
def _definitions(source: str) -> str:
    try:
        body = ast.parse(source).body
    except SyntaxError:  # a magic; the worker leaves such lines out
        return source
    return "\n".join(ast.unparse(node) for node in body if isinstance(node, _DEFINING))


_DEFINING = (
    ast.Import,
    ast.ImportFrom,
    ast.Assign,
    ast.AnnAssign,
    ast.FunctionDef,
    ast.ClassDef,
)


def make_request(
    course: course_directory.Course,
    student: str,
    assignment: str,
    notebook,
    *,
    own: Iterable[str],
    problem: str = "",
    notes: Iterable[str] = (),
) -> Request:
    """What the grader needs to know of a canonical ``notebook``, self-contained; ``own`` are the
    solution cells that the student handed in."""
    return Request(
        student=student,
        assignment=assignment,
        cells=code_cells(notebook),
        own=tuple(own),
        problem=problem,
        notes=tuple(notes),
        hidden=course.hidden(assignment),
        salt=course.secret().hex(),
    )


class CanonicalExporter(NotebookExporter):
    """Writes notebooks, and reads a submission as the released notebook with the student's cells.

    Reading is where a broken notebook would stop a class, before any preprocessor has a say.
    """

    def from_filename(self, filename, resources=None, **kwargs):
        names = (resources or {}).get("nbgrader", {})
        if self._sanitising():
            notebook = self._canonical(filename, names)
        else:  # the second pass over what the first one left
            notebook, self._sanitised = self._sanitised, None
        if notebook is None:
            return super().from_filename(filename, resources=resources, **kwargs)
        return self.from_notebook_node(notebook, resources=resources, **kwargs)

    def _sanitising(self) -> bool:
        return getattr(self.parent, "_sanitizing", False)

    _sanitised: NotebookNode | None = None

    def _canonical(self, filename: str, names) -> NotebookNode:
        known = _known.get((names["student"], names["assignment"]))
        if known is not None:
            return known[1]
        course = course_directory.Course(Path(self.parent.coursedir.root))
        release = read_release(course.release(names["assignment"]))
        submission = read_submission(
            Path(filename).parent, names["student"], names["assignment"], release
        )
        notebook = canonical(release, submission.sources)
        notebook.metadata[KEY] = {
            "problem": submission.problem,
            "notes": list(submission.notes),
            "own": sorted(submission.sources),
        }
        return notebook

    def from_notebook_node(self, nb, resources=None, **kwargs):
        """nbconvert's steps without its copies: ``nb`` was made or read for nobody else. What the
        first pass leaves is kept for the second one and looked at there."""
        resources = self._init_resources(resources)
        for preprocessor in self._preprocessors:
            nb, resources = preprocessor(nb, resources)
        if self._sanitising():
            self._sanitised = nb
            return json.dumps(nb), resources
        try:
            nbformat.validate(nb)  # by the rules for reading it, which are compiled already
        except nbformat.ValidationError:
            self._validate_preprocessor(nb, preprocessor)
        return nbformat.v4.writes(nb) + "\n", resources


class Judge(Execute):
    """In the place of Execute: no kernel runs here; the judge's points and feedback become the
    output of each check cell, in the form that ``utils.determine_grade`` reads."""

    unsafe_no_sandbox = Bool(
        False, help="Run students' code on this machine without a sandbox: only if all are trusted."
    ).tag(config=True)

    def preprocess(self, nb, resources=None, km=None):
        names = resources["nbgrader"]
        known = _known.get((names["student"], names["assignment"]))
        graded = known[0] if known else self._grade(nb, names)
        marks = {check_id(mark.exercise): mark for mark in graded.marks}
        for cell in nb.cells:
            if cell.cell_type != "code":
                continue
            cell.outputs, cell.execution_count = [], None
            if utils.is_grade(cell):
                cell.outputs = _outputs(cell, marks.get(cell.metadata.nbgrader.grade_id))
        nb.metadata[KEY] = {
            "status": graded.status,
            "message": graded.message,
            "notes": list(graded.notes),
            "undecided": sorted(id for id, mark in marks.items() if mark.points is None),
        }
        return nb, resources

    def _grade(self, nb, names) -> Graded:
        course = course_directory.Course(Path(self.parent.parent.coursedir.root))
        read = nb.metadata.get(KEY, {})
        request = make_request(
            course,
            names["student"],
            names["assignment"],
            nb,
            own=read.get("own", ()),
            problem=read.get("problem", ""),
            notes=read.get("notes", ()),
        )
        if request.hidden is None:
            self.log.warning("No hidden cases for %s: public ones only", names["assignment"])
        return the_grader(self.unsafe_no_sandbox).grade(request)


def _outputs(cell, mark: Mark | None) -> list:
    """One result that is a number in [0, points], with the feedback as its HTML. They are looked at
    with the whole notebook, not one by one as ``new_output`` does."""
    if mark is None:
        # Without an output nbgrader would give full points.
        said = "This check cell belongs to no exercise that the judge knows."
        return [_output("error", ename="Unjudged", evalue=said, traceback=[said])]
    most = float(cell.metadata.nbgrader.points)
    share = (mark.points or 0.0) / mark.max_points if mark.max_points else 0.0
    score = round(min(max(share, 0.0), 1.0) * most, 4)
    outputs = []
    if mark.picture:
        # formgrader would show a PNG of 160 dots an inch pixel by pixel, wider than its page.
        dots = int.from_bytes(base64.b64decode(mark.picture[:32])[16:20])  # IHDR: the width
        size = {"image/png": {"width": dots * 96 // 160}}
        outputs.append(_output("display_data", data={"image/png": mark.picture}, metadata=size))
    # formgrader's page typesets formulas, and a student's words are none.
    html = f'<div class="tex2jax_ignore mathjax_ignore">{mark.html}</div>'
    data = {"text/plain": repr(score), "text/html": html}
    outputs.append(_output("execute_result", data=data, metadata={}, execution_count=None))
    return outputs


def _output(output_type: str, **fields) -> NotebookNode:
    return from_dict({"output_type": output_type, **fields})


class SaveTogether(SaveAutoGrades):
    """Looks for a grade without writing the one before, so that all are written together."""

    def preprocess_cell(self, cell, resources, cell_index):
        with self.gradebook.db.no_autoflush:
            return super().preprocess_cell(cell, resources, cell_index)


class KeepUndecided(NbGraderPreprocessor):
    """After SaveAutoGrades: a score that nobody decided is blank and waits for a person, not 0."""

    def preprocess(self, nb, resources):
        undecided = nb.metadata.get(KEY, {}).get("undecided", ())
        names = resources["nbgrader"]
        with Gradebook(names["db_url"]) as gradebook:
            for grade_id in undecided:
                grade = gradebook.find_grade(
                    grade_id, names["notebook"], names["assignment"], names["student"]
                )
                grade.auto_score = None
                grade.needs_manual_grade = True
            gradebook.db.commit()
        return nb, resources


def set_aside(assignment: str, student: str, notebooks: list[str]) -> None:
    """nbgrader's pre_convert_hook: moves everything but the notebook, a time stamp that is one and
    the exchange's secret out of a submission, before nbgrader would copy it, links followed, into
    autograded/ and feedback/. nbgrader goes on after an exception here, so one entry must not keep
    the next."""
    for directory in {Path(notebook).parent for notebook in notebooks}:
        if directory.is_symlink():
            continue  # CanonicalExporter refuses it
        wanted = {Path(notebook).name for notebook in notebooks}
        if read_timestamp(directory):
            wanted.add("timestamp.txt")
        if read_secret(directory):
            wanted.add(SECRET)
        failed = []
        for entry in list(os.scandir(directory)):
            regular = entry.is_file(follow_symlinks=False)
            small = regular and entry.stat(follow_symlinks=False).st_size <= MAX_FILE
            if not (entry.name in wanted and small):
                try:
                    _move_aside(entry, directory)
                except OSError as error:
                    failed.append(f"{entry.name!r}: {error.strerror}")
        if failed:
            raise Rejected(f"Not set aside, look at {directory} yourself: {', '.join(failed)}")


def _move_aside(entry: os.DirEntry, directory: Path) -> None:
    """To set_aside/STUDENT/ASSIGNMENT/, under a number where the name is taken already."""
    aside = directory.parents[2] / "set_aside" / directory.parent.name / directory.name
    aside.mkdir(parents=True, exist_ok=True)
    if entry.is_dir(follow_symlinks=False):
        os.chmod(entry.path, 0o700)  # a directory that nobody may write to cannot be moved
    number, target = 0, aside / entry.name
    while os.path.lexists(target):
        number += 1
        target = aside / f"{entry.name[:100]}.{number}"
    os.rename(entry.path, target)
