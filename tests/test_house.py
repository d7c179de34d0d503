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


@pytest.mark.parametrize(
    "hidden", sorted((ROOT / "course/hidden").glob("*.json")), ids=lambda p: p.stem
)
def test_hidden_data_stands_nowhere_that_students_get(hidden):
    data = json.loads(hidden.read_text(encoding="utf-8"))
    secrets = {
        text
        for rows in data.values()
        for row in (rows.values() if isinstance(rows, dict) else rows)
        for text in (row.get("label"), row.get("explain"))
        if text
    }
    assert secrets, f"{hidden.name} holds nothing to keep."
    public = [ROOT / path for path in FOR_STUDENTS]
    public += [p for p in (ROOT / "autograder").rglob("*.py") if "grading" not in p.parts]
    for path in public:
        content = path.read_text(encoding="utf-8")
        # Notebooks escape quotes, and a public case may have the label of a hidden one only by
        # telling what is hidden.
        told = [s for s in secrets if s in content or json.dumps(s)[1:-1] in content]
        assert not told, f"{path.relative_to(ROOT)} tells {told}."


def test_quiz_answers_are_blank_in_release():
    for path in FOR_STUDENTS:
        for cell in nbformat.read(ROOT / path, as_version=4).cells:
            if cell.metadata.get("nbgrader", {}).get("grade_id", "").endswith("-quiz"):
                if cell.metadata.nbgrader.solution:
                    names: dict = {}
                    exec(cell.source, names)
                    assert set(names["answers"].values()) == {None}, f"{path} answers its quiz."


def test_no_path_of_one_machine_stands_in_the_tree():
    assert lines_matching(r"/(work|root|farm|Users)/|/home/(?!jovyan)\w|/tmp/v/") == []


def test_no_registry_host_stands_in_the_tree():
    hosts = r"pypi\.org|pythonhosted|download\.pytorch|npmjs|ghcr\.io|docker\.io|mcr\.microsoft|quay\.io"
    assert lines_matching(hosts + r"|deb\.debian|anaconda\.org|conda-forge") == []


def test_ci_may_be_run():
    mode = subprocess.run(
        ["git", "ls-files", "-s", ".ci/run"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert mode.stdout.startswith("100755"), "git update-index --chmod=+x .ci/run"
