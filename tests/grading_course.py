"""A course directory for tests of grading: the checkout's assignments and a gradebook."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from pathlib import Path

# jsonschema would build a grammar for internationalised addresses when it is imported: seconds.
sys.modules.setdefault("rfc3987_syntax", None)

CHECKOUT = Path(__file__).resolve().parents[1]


def make_course(root: Path, *assignments: str) -> Path:
    """``root`` with nbgrader_config.py, source/, release/ and gradebook.db of ``assignments``."""
    from nbgrader.converters import GenerateAssignment
    from nbgrader.coursedir import CourseDirectory

    from autograder.grading.course import Course
    from autograder.grading.gradebook import load_config

    root.mkdir(parents=True, exist_ok=True)
    (root / "nbgrader_config.py").write_text(
        f"load_subconfig('nbgrader_config.py', path={str(CHECKOUT)!r})\n"
    )
    config = load_config(Course(root))
    with _path_with_this_python(), contextlib.chdir(root):
        for assignment in assignments:
            shutil.copytree(CHECKOUT / "source" / assignment, root / "source" / assignment)
            directory = CourseDirectory(config=config)
            directory.assignment_id = assignment
            GenerateAssignment(coursedir=directory, config=config).start()
    return root


@contextlib.contextmanager
def _path_with_this_python():
    """nbgrader calls ``alembic`` by name when it makes a gradebook."""
    before = os.environ["PATH"]
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{before}"
    try:
        yield
    finally:
        os.environ["PATH"] = before
