"""nbgrader's own commands on our course: generate, release, fetch, submit, collect.

A course root and an exchange directory of their own, two students, the configuration of the
checkout; nothing of nbgrader is replaced on this stretch.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

import nbformat
import pytest
from jupyter_core.application import NoStart
from nbgrader.api import Gradebook
from nbgrader.apps import NbGraderApp

from autograder import exercises
from course.build import ROOT

ASSIGNMENT = "02_vector_add"
NOTEBOOK = f"{ASSIGNMENT}/{ASSIGNMENT}.ipynb"
SECRET = "a text with solutions beside the source notebook"


@dataclass(frozen=True)
class Cycle:
    """One course on disk. ``nbgrader(user, *arguments)`` runs a command as an account would."""

    root: Path
    homes: Path
    monkeypatch: pytest.MonkeyPatch

    def nbgrader(self, user: str, *arguments: str) -> None:
        home = self.root if user == "instructor" else self.homes / user
        home.mkdir(parents=True, exist_ok=True)
        with self.monkeypatch.context() as patch:
            patch.chdir(home)
            patch.setenv("JUPYTER_DATA_DIR", str(home / ".jupyter"))
            patch.setenv("JUPYTER_CONFIG_PATH", str(self.root))
            app = NbGraderApp.instance()
            try:
                app.initialize([*arguments, "--log-level=ERROR"])
                app.start()
            except NoStart:  # traitlets' word for: the subcommand ran
                pass
            finally:
                app.reset()
                NbGraderApp.clear_instance()

    def fetched(self, user: str) -> Path:
        return self.homes / user / "triton-course" / NOTEBOOK

    def submitted(self, user: str) -> Path:
        return self.root / "submitted" / user / NOTEBOOK


@pytest.fixture(scope="module")
def cycle(tmp_path_factory):
    """A course after collecting: ada handed in her own add, ben the notebook as he got it."""
    folder = tmp_path_factory.mktemp("cycle")
    root = folder / "course"
    shutil.copytree(ROOT / "source" / ASSIGNMENT, root / "source" / ASSIGNMENT)
    (root / "source" / ASSIGNMENT / f"{ASSIGNMENT}.py").write_text(SECRET)
    (root / "nbgrader_config.py").write_text(
        f'load_subconfig("nbgrader_config.py", path={str(ROOT)!r})\n'
        f"get_config().Exchange.root = {str(folder / 'exchange')!r}\n"
    )
    with pytest.MonkeyPatch.context() as monkeypatch:
        cycle = Cycle(root, folder / "homes", monkeypatch)
        cycle.nbgrader("instructor", "generate_assignment", ASSIGNMENT)
        cycle.nbgrader("instructor", "release_assignment", ASSIGNMENT)
        for user in ("ada", "ben"):
            cycle.nbgrader(user, "fetch_assignment", ASSIGNMENT)
        solve(cycle.fetched("ada"), "def add(x, y):\n    return 'adas own'")
        for user in ("ada", "ben"):
            # Both accounts are one uid here, from which nbgrader would take the name.
            cycle.nbgrader(user, "submit", ASSIGNMENT, f"--student={user}")
        cycle.nbgrader("instructor", "collect", ASSIGNMENT)
        yield cycle


def solve(path: Path, source: str) -> None:
    notebook = nbformat.read(path, as_version=4)
    (cell,) = [c for c in notebook.cells if c.id == "solution-02-add"]
    cell.source = source
    nbformat.write(notebook, path)


def test_the_release_is_the_one_in_the_checkout(cycle):
    """So `make build`, which keeps no gradebook, gives what nbgrader's command gives."""
    made = (cycle.root / "release" / NOTEBOOK).read_bytes()
    assert made == (ROOT / "release" / NOTEBOOK).read_bytes()


def test_a_text_beside_the_source_goes_nowhere(cycle):
    for folder in (cycle.root / "release", cycle.root.parent / "exchange", cycle.homes):
        for path in folder.rglob("*"):
            assert path.suffix != ".py"
            assert not path.is_file() or SECRET not in path.read_text("utf-8", "replace")


def test_the_gradebook_knows_every_exercise_and_its_points(cycle):
    with Gradebook(f"sqlite:///{cycle.root}/gradebook.db") as gradebook:
        cells = gradebook.find_notebook(ASSIGNMENT, ASSIGNMENT).grade_cells
        points = {cell.name: cell.max_score for cell in cells}
    asked = exercises.of_assignment(ASSIGNMENT)
    assert points == {f"check-{e.id.replace('.', '-')}": e.max_points for e in asked}


def test_students_fetch_what_was_released(cycle):
    outbound = cycle.root.parent / "exchange/triton-course/outbound" / NOTEBOOK
    assert outbound.read_bytes() == (cycle.root / "release" / NOTEBOOK).read_bytes()
    assert cycle.fetched("ben").read_bytes() == outbound.read_bytes()


def test_collect_brings_each_notebook_as_it_was_handed_in(cycle):
    for user in ("ada", "ben"):
        assert cycle.submitted(user).read_bytes() == cycle.fetched(user).read_bytes()
        assert (cycle.submitted(user).parent / "timestamp.txt").read_text().strip()
    assert "adas own" in cycle.submitted("ada").read_text()
    assert "adas own" not in cycle.submitted("ben").read_text()


def test_a_submission_without_secret_or_time_stamp_keeps_nobodys_feedback_back(cycle, capsys):
    """nbgrader alone stops at the first of them, with a traceback, and the class gets nothing."""
    secret = "submission_secret.txt"
    for user in ("ada", "ben", "forged", "lost"):
        directory = cycle.root / "feedback" / user / ASSIGNMENT
        directory.mkdir(parents=True)
        (directory / f"{ASSIGNMENT}.html").write_text(f"page of {user}")
        if user in ("ada", "ben"):
            shutil.copy(cycle.submitted(user).parent / secret, directory)
    shutil.copy(cycle.submitted("ben").parent / "timestamp.txt", directory.parents[1] / "ben")
    (cycle.root / "feedback" / "forged" / ASSIGNMENT / secret).write_text("")  # asserts in nbgrader
    cycle.nbgrader("instructor", "release_feedback", ASSIGNMENT)
    said = capsys.readouterr().err
    for user in ("ada", "ben"):  # ada's time stamp is lost, and the page comes back all the same
        cycle.nbgrader(user, "fetch_feedback", ASSIGNMENT)
        (page,) = (cycle.homes / user / "triton-course").rglob("feedback/*/*.html")
        assert page.read_text() == f"page of {user}"
    released = {page.read_text() for page in cycle.root.parent.rglob("exchange/*/feedback/*.html")}
    assert released == {"page of ada", "page of ben"}
    for user in ("forged", "lost"):
        assert f"No feedback is released to {user}: " in said
    assert said.count("No feedback is released") == 2
