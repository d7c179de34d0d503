"""The one writer of the gradebook: runs nbgrader's own Autograde on submissions already judged.

nbgrader gets the canonical notebook, never the file that a student handed in, so a link, a device
or a hundred megabytes in submitted/ cannot reach it.
"""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import warnings
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import jsonschema
from nbgrader.api import Gradebook, MissingEntry
from nbgrader.converters import Autograde, GenerateFeedback
from nbgrader.converters.base import BaseConverter, NbGraderException
from nbgrader.coursedir import CourseDirectory
from nbgrader.nbgraderformat import common
from sqlalchemy.exc import SAWarning
from traitlets.config import Config
from traitlets.config.loader import PyFileConfigLoader

from autograder.grading.course import Course
from autograder.grading.grader import Graded
from autograder.grading.preprocessors import already
from autograder.grading.submission import SECRET, Submission
from autograder.records import Rejected


class NotRecorded(Exception):
    """nbgrader could not take a result. The message is its own."""


class Recorder:
    """Writes results of one assignment: gradebook, autograded/, and feedback/ on demand."""

    def __init__(self, course: Course, assignment: str):
        self._course, self._assignment = course, assignment
        self._staged = course.state(assignment) / "staged"
        self._config = load_config(course)
        self._log = logging.getLogger("autograder.nbgrader")
        self._log.propagate = False
        self._log.handlers = [logging.FileHandler(course.state(assignment) / "nbgrader.log", "w")]
        self._log.setLevel(logging.INFO)
        self._opened: dict[str, Gradebook] = {}
        self._converters: dict[type, BaseConverter] = {}
        self._valid: set[str] = set()
        self._known = self._check_assignment()

    def _check_assignment(self) -> str:
        """The gradebook's address. Raises Rejected if it does not know the assignment."""
        directory = CourseDirectory(config=self._config)
        try:
            if not self._course.gradebook.is_file() and directory.db_url.startswith("sqlite"):
                raise MissingEntry(self._assignment)
            with _kept_open(self._opened):
                gradebook = Gradebook(directory.db_url, directory.course_id)
                gradebook.find_assignment(self._assignment)
        except MissingEntry:
            raise Rejected(
                f"The gradebook does not know {self._assignment}: run "
                f"`nbgrader generate_assignment {self._assignment} --force` in the course "
                "directory first."
            ) from None
        return directory.db_url

    def stands(self, student: str) -> bool:
        """Whether autograded/ and the gradebook still hold a result of this student."""
        path = self._course.root / "autograded" / student / self._assignment
        if not (path / f"{self._assignment}.ipynb").is_file():
            return False
        with _kept_open(self._opened):
            try:
                Gradebook(self._known).find_submission(self._assignment, student)
            except MissingEntry:
                return False
        return True

    def record(self, submission: Submission, notebook, graded: Graded) -> None:
        """Write one result. ``notebook``, the canonical one, is used up. Raises NotRecorded."""
        self._stage(submission)
        try:
            with already(graded, notebook):
                self._convert(_Autograde, submission.student, str(self._staged))
        finally:
            shutil.rmtree(self._staged / submission.student, ignore_errors=True)

    def feedback(self, student: str) -> None:
        """Write feedback/STUDENT/ASSIGNMENT. Raises NotRecorded."""
        self._convert(GenerateFeedback, student, "submitted")

    def _stage(self, submission: Submission) -> None:
        """A directory for nbgrader to find. The notebook's place is empty: it is in memory."""
        directory = self._staged / submission.student / self._assignment
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir(parents=True)
        (directory / f"{self._assignment}.ipynb").touch()
        if submission.timestamp:
            (directory / "timestamp.txt").write_text(submission.timestamp)
        if submission.secret:
            (directory / SECRET).write_text(submission.secret)

    def _convert(self, converter_class, student: str, submitted: str) -> None:
        converter = self._converters.get(converter_class)
        if converter is None:
            directory = CourseDirectory(config=self._config)
            directory.submitted_directory = submitted
            directory.assignment_id = self._assignment
            converter = converter_class(coursedir=directory, config=self._config)
            converter.log, converter.force = self._log, True
            self._converters[converter_class] = converter
        converter.coursedir.student_id = student
        here = os.getcwd()
        try:
            with _kept_open(self._opened), _valid_once(self._valid), warnings.catch_warnings():
                warnings.simplefilter("ignore", SAWarning)  # of nbgrader's own queries
                converter.start()
        except OSError as error:
            raise NotRecorded(str(error)) from error
        except NbGraderException as error:  # its own words are "see the traceback above"
            said = f".grading/{self._assignment}/nbgrader.log says why"
            raise NotRecorded(said) from error
        finally:
            os.chdir(here)


class _Autograde(Autograde):
    """Makes its steps once, not twice for every submission: traitlets reads all settings for each.
    None of them keeps anything of a notebook."""

    def __init__(self, **settings):
        super().__init__(**settings)
        self._steps: dict[bool, list] = {}

    def _init_preprocessors(self) -> None:
        if self._sanitizing not in self._steps:
            super()._init_preprocessors()
            self._steps[self._sanitizing] = self.exporter._preprocessors
        self.exporter._preprocessors = self._steps[self._sanitizing]


@contextlib.contextmanager
def _kept_open(opened: dict[str, Gradebook]):
    """While it lasts, every ``with Gradebook(…)`` of nbgrader's steps gets one that is open, and
    all that they write is one transaction.

    nbgrader opens one for every step of every notebook: a new engine, thirteen looks for its
    tables, and all compiled statements lost. That was most of the time that recording took. And it
    commits every grade, after which everything is read again.
    """
    start, stop = Gradebook.__init__, Gradebook.close

    def init(self, db_url: str, course_id: str = "default_course", authenticator=None):
        if db_url not in opened:
            start(self, db_url, course_id, authenticator)
            self.db.commit = lambda: None
            opened[db_url] = self
        self.__dict__.update(opened[db_url].__dict__)

    Gradebook.__init__, Gradebook.close = init, lambda self: None
    try:
        yield
        for gradebook in opened.values():
            gradebook.db().commit()
    finally:
        Gradebook.__init__, Gradebook.close = start, stop
        for gradebook in opened.values():
            gradebook.db.remove()  # no transaction stays open between submissions


@contextlib.contextmanager
def _valid_once(valid: set[str]):
    """While it lasts, nbgrader's schemas look at equal metadata of cells once. A class has those of
    the release, twice in every submission, and looking at them was a quarter of recording."""

    def validate(instance, schema) -> None:
        key = repr((schema, instance))
        if key not in valid:
            jsonschema.validate(instance, schema)
            valid.add(key)

    with mock.patch.object(common, "jsonschema", SimpleNamespace(validate=validate)):
        yield


def load_config(course: Course) -> Config:
    """The course's nbgrader_config.py, with the course's root."""
    loader = PyFileConfigLoader("nbgrader_config.py", path=str(course.root))
    config = loader.load_config()
    config.CourseDirectory.root = str(course.root)
    return config


def clear_staged(path: Path) -> None:
    """Remove what a killed run left staged."""
    shutil.rmtree(path, ignore_errors=True)
