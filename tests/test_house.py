"""Rules of the house that a reader of the repository relies on, checked on what git tracks."""

from __future__ import annotations

import ast
import json
import re
import subprocess
from pathlib import Path

import nbformat
import pytest
from IPython.core.inputtransformer2 import TransformerManager

from autograder import exercises
from course.build import texts
from course.text import parse, stubs_of

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOKS = sorted(
    path.relative_to(ROOT).as_posix()
    for folder in ("notebooks", "source", "release", "solutions")
    for path in (ROOT / folder).rglob("*.ipynb")
    if ".ipynb_checkpoints" not in path.parts
)
FOR_STUDENTS = [path for path in NOTEBOOKS if path.startswith(("notebooks/", "release/"))]


def tracked() -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return [ROOT / name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()]


def lines_matching(pattern: str) -> list[str]:
    """``file:line: text`` of every tracked line that matches, this file apart."""
    found = []
    for path in tracked():
        if path == Path(__file__):
            continue
        for number, line in enumerate(path.read_text("utf-8", "replace").splitlines(), 1):
            if re.search(pattern, line):
                found.append(f"{path.relative_to(ROOT)}:{number}: {line.strip()[:120]}")
    return found


@pytest.mark.parametrize("path", NOTEBOOKS)
def test_notebooks_are_valid_and_carry_no_outputs(path):
    notebook = nbformat.read(ROOT / path, as_version=4)
    nbformat.validate(notebook)
    for cell in notebook.cells:
        assert not cell.get("outputs") and cell.get("execution_count") is None, (
            f"{path} was saved with outputs: run `make build`."
        )


@pytest.mark.parametrize("path", NOTEBOOKS)
def test_every_cell_is_python(path):
    """A stub in the wrong place would leave a page that does not even parse."""
    transform = TransformerManager().transform_cell
    for cell in nbformat.read(ROOT / path, as_version=4).cells:
        if cell.cell_type == "code":
            ast.parse(transform(cell.source))


@pytest.mark.parametrize("path", FOR_STUDENTS)
def test_students_see_no_marker_and_no_hidden_call(path):
    raw = (ROOT / path).read_text(encoding="utf-8")
    for word in ("BEGIN SOLUTION", "END SOLUTION", "HIDDEN TESTS", "hidden=True"):
        assert word not in raw, f"{word} stands in {path}."


@pytest.mark.parametrize("text", texts(ROOT), ids=lambda text: f"{text.parent.name}/{text.name}")
def test_no_line_of_a_solution_stands_in_the_cell_that_students_get(text):
    folder = "notebooks" if text.parent.name == "lessons" else f"release/{text.stem}"
    shown = nbformat.read(ROOT / folder / f"{text.stem}.ipynb", as_version=4).cells
    for raw, cell in zip(parse(text.read_text(encoding="utf-8")), shown, strict=True):
        for _, (_, *solution, _) in stubs_of(raw):
            lines = {line.strip() for line in solution if line.strip()}
            left = lines & {line.strip() for line in cell.source.splitlines()}
            assert not left, f"{cell.id} of {text.stem} shows {sorted(left)}."


HIDDEN = sorted((ROOT / "course/hidden").glob("*.json"))


@pytest.mark.parametrize("path", HIDDEN, ids=lambda path: path.stem)
def test_hidden_data_stands_nowhere_that_students_get(path):
    data = json.loads(path.read_text(encoding="utf-8"))
    secrets = set()
    for id, rows in data.items():
        public = [dict(case.sizes) for case in exercises.get(id).cases]
        for row in rows.values() if isinstance(rows, dict) else rows:
            if "sizes" in row:
                assert row["sizes"] not in public, (
                    f"{id}: {row} is a public case, not a hidden one."
                )
                secrets.add(json.dumps(row["sizes"]))
            elif row.get("explain"):
                secrets.add(row["explain"])
    assert secrets, f"{path.name} holds nothing to keep."
    for file in [*(ROOT / name for name in FOR_STUDENTS), *(ROOT / "autograder").rglob("*.py")]:
        content = file.read_text(encoding="utf-8")
        told = [s for s in secrets if s in content or json.dumps(s)[1:-1] in content]
        assert not told, f"{file.relative_to(ROOT)} tells {told}."


def test_quiz_answers_are_blank_in_release():
    for path in FOR_STUDENTS:
        for cell in nbformat.read(ROOT / path, as_version=4).cells:
            grade_id = cell.metadata.get("nbgrader", {}).get("grade_id", "")
            if grade_id.startswith("solution-") and grade_id.endswith("-quiz"):
                answers = ast.literal_eval(cell.source.removeprefix("answers = "))
                assert set(answers.values()) == {None}, f"{path} answers its quiz."


def test_no_path_of_one_machine_stands_in_the_tree():
    assert lines_matching(r"/(work|root|farm)/|/tmp/v/") == []


def test_no_registry_host_stands_in_the_tree():
    python = r"pypi\.org|pythonhosted|download\.pytorch|anaconda\.org|conda-forge"
    other = r"npmjs|ghcr\.io|docker\.io|mcr\.microsoft|quay\.io|deb\.debian|proxy\.golang"
    assert lines_matching(f"{python}|{other}") == []


def test_a_new_assignment_was_filled_before_it_landed():
    """What `make new` leaves to its author (docs/NEW_EXERCISE.md)."""
    own = (
        "tests/page_stories.py",
        "course/skeleton/",
        "course/new.py",
        "docs/NEW_EXERCISE.md",
        "tests/test_new",
    )
    assert [line for line in lines_matching(r"\bFILL IN\b") if not line.startswith(own)] == []


def test_ci_may_be_run():
    mode = subprocess.run(
        ["git", "ls-files", "-s", ".ci/run"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert mode.stdout.startswith("100755"), "git update-index --chmod=+x .ci/run"
