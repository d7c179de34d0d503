"""``make sync``: edits made in JupyterLab return to the text, and nothing else changes."""

from __future__ import annotations

import difflib

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_output

from course import build
from course.sync import sync
from course.text import CourseError
from tests.small_course import small_course

LESSON = ("course/lessons/02_vector_add.py", "notebooks/02_vector_add.ipynb")
ASSIGNMENT = ("course/assignments/02_vector_add.py", "source/02_vector_add/02_vector_add.ipynb")


@pytest.fixture
def root(tmp_path, monkeypatch):
    root = small_course(tmp_path, monkeypatch)
    build.build(root)
    return root


def edit(root, path, how):
    notebook = nbformat.read(root / path, as_version=4)
    how(notebook.cells)
    for cell in notebook.cells:
        if cell.cell_type == "code":  # JupyterLab saves what the author ran
            cell.outputs, cell.execution_count = [new_output("stream", text="ran\n")], 3
    nbformat.write(notebook, root / path)


def replace(old, new):
    def how(cells):
        assert any(old in cell.source for cell in cells)
        for cell in cells:
            cell.source = cell.source.replace(old, new)

    return how


def move(cells):
    cell = cells.pop(1)
    cell.id = "pasted"  # cut and paste gives a new id
    cells.append(cell)


EDITS = [
    (LESSON, replace("# Blocks", "# Blocks and tiles"), "-# Blocks +# Blocks and tiles"),
    (LESSON, replace("return mask", "return ~mask"), "-    return mask +    return ~mask"),
    (LESSON, replace("print", "# new\nprint"), "+# new"),
    (LESSON, lambda c: c.append(new_code_cell("last = 1\n")), "+ +# %% +last = 1"),
    (LESSON, lambda c: c.append(new_code_cell("")), ""),
    (LESSON, lambda c: c.pop(2), '-# %% tags=["predict"] -print(masked(3, 4))'),
    (LESSON, lambda c: c[2].metadata.update(tags=["x"]), '-# %% tags=["predict"] +# %% tags=["x"]'),
    (LESSON, move, None),
    (ASSIGNMENT, replace("secret_line = x + y", "secret_line = y + x"), None),
    (ASSIGNMENT, replace("before the check", "now"), '-print("before the check") +print("now")'),
    (
        ASSIGNMENT,
        lambda c: c.insert(1, new_markdown_cell(r"$\alpha$")),
        '+# %% [markdown] +r""" +$\\alpha$ +""" +',
    ),
]


@pytest.mark.parametrize(("pair", "how", "lines"), EDITS)
def test_an_edit_returns_to_the_text_and_builds_the_same_notebook(root, pair, how, lines):
    text, path = pair
    before = (root / text).read_text()
    edit(root, path, how)
    edited = [cell.source.strip("\n") for cell in nbformat.read(root / path, as_version=4).cells]
    synced = sync(root)
    assert synced == ([] if lines == "" else [text])
    build.build(root)
    built = nbformat.read(root / path, as_version=4)
    assert [cell.source for cell in built.cells] == [source for source in edited if source]
    assert all(not cell.get("outputs") for cell in built.cells)
    assert sync(root) == [] and build.drift(root) == []
    after = (root / text).read_text()
    assert after.count("### BEGIN SOLUTION") == before.count("### BEGIN SOLUTION")
    if lines is not None:
        diff = list(difflib.ndiff(before.splitlines(), after.splitlines()))
        changed = [line[0] + line[2:] for line in diff if line[0] in "+-"]
        assert sorted(line for line in changed if line.strip("+-")) == sorted(
            line for line in lines_of(lines) if line.strip("+-")
        )


def lines_of(lines):
    """``"-a +b"`` → its lines; a line begins at `` -`` or `` +``."""
    return lines.replace(" -", "\n-").replace(" +", "\n+").split("\n") if lines else []


def test_running_a_notebook_changes_no_text(root):
    before = {text: (root / text).read_bytes() for text, _ in (LESSON, ASSIGNMENT)}
    for _, path in (LESSON, ASSIGNMENT):
        edit(root, path, lambda cells: None)
    assert sync(root) == []
    assert {text: (root / text).read_bytes() for text in before} == before


def test_a_hole_keeps_its_solution_when_the_cell_around_it_changes(root):
    edit(root, LESSON[1], replace("return mask", "return mask & True"))
    sync(root)
    text = (root / LESSON[0]).read_text()
    assert '# %% stub="mask = offs >= 0  # mend me"' in text
    assert "mask = offs < n\n    ### END SOLUTION\n    return mask & True\n" in text


def test_it_refuses_when_text_and_notebook_both_changed(root):
    text = root / LESSON[0]
    text.write_text(text.read_text().replace("# Blocks", "# Text"))
    newer = text.read_bytes()
    edit(root, LESSON[1], replace("# Blocks", "# Notebook"))
    with pytest.raises(CourseError, match="both changed.*make sync.*FORCE=1"):
        sync(root)
    assert text.read_bytes() == newer


def test_a_newer_text_alone_is_left_to_the_build(root):
    text = root / LESSON[0]
    text.write_text(text.read_text().replace("# Blocks", "# Text"))
    assert sync(root) == []
    build.build(root)
    assert "# Text" in (root / LESSON[1]).read_text()


@pytest.mark.parametrize(
    ("pair", "how", "sentence"),
    [
        (
            LESSON,
            replace("mask = offs >= 0  # mend me", "mask = offs < n"),
            "the stub .* was edited",
        ),
        (LESSON, lambda cells: cells.pop(1), "the cell with a hole .* is gone"),
        (ASSIGNMENT, replace('check("02.add", add)', "check()"), "check cell of 02.add was edited"),
        (ASSIGNMENT, replace("4711", "4712"), "answers of 02.quiz were edited"),
        (ASSIGNMENT, lambda cells: cells.pop(3), 'no cell with the header check="02.add"'),
        (
            LESSON,
            lambda cells: cells[0].update(attachments={"a.png": {"image/png": "aGk="}}),
            "pasted picture",
        ),
    ],
)
def test_an_edit_that_has_no_place_in_the_text_is_refused(root, pair, how, sentence):
    text, path = pair
    before = (root / text).read_bytes()
    edit(root, path, how)
    edited = (root / path).read_bytes()
    with pytest.raises(CourseError, match=sentence):
        sync(root)
    assert (root / text).read_bytes() == before and (root / path).read_bytes() == edited
