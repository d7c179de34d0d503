"""The builder: one text a notebook, the same bytes every time, nobody's work overwritten."""

from __future__ import annotations

import nbformat
import pytest

from autograder import exercises
from course import build
from course.build import ROOT, texts
from course.text import CourseError, parse, unparse
from tests.small_course import ASSIGNMENT, LESSON, small_course

NOTEBOOK = "notebooks/02_vector_add.ipynb"
SOURCE = "source/02_vector_add/02_vector_add.ipynb"
RELEASE = "release/02_vector_add/02_vector_add.ipynb"
PAGES = ("solutions/02_vector_add_lesson.ipynb", "solutions/02_vector_add_assignment.ipynb")


@pytest.fixture
def root(tmp_path, monkeypatch):
    return small_course(tmp_path, monkeypatch)


def cells(root, path):
    return {cell.id: cell for cell in nbformat.read(root / path, as_version=4).cells}


def code(root, path):
    return "\n".join(cell.source for cell in cells(root, path).values())


def change(root, path, **sources):
    """Edit cells of a notebook on disk as JupyterLab would: sources by id (- written as _)."""
    notebook = nbformat.read(root / path, as_version=4)
    for cell in notebook.cells:
        cell.source = sources.get(cell.id.replace("-", "_"), cell.source)
    nbformat.write(notebook, root / path)


def test_headers_become_nbgraders_metadata_with_points_from_the_exercise(root):
    build.build(root)
    built = cells(root, SOURCE)
    assert built["check-02-add"].metadata.nbgrader == {
        "grade": True,
        "grade_id": "check-02-add",
        "locked": True,
        "points": 7.5,
        "schema_version": 3,
        "solution": False,
        "task": False,
    }
    solution = built["solution-02-add"].metadata.nbgrader
    assert solution["solution"] and not solution["grade"] and not solution["locked"]
    assert built["check-02-add"].source == (
        'print("before the check")\ncheck("02.add", add)\n### BEGIN HIDDEN TESTS\n'
        'check("02.add", add, hidden=True)\n### END HIDDEN TESTS'
    )


def test_students_get_stubs_and_no_answers(root):
    build.build(root)
    released = cells(root, RELEASE)
    assert released["solution-02-add"].source == (
        "def add_kernel(x, y):\n    pass  # five lines\n\n\n"
        'def add(x, y):\n    """The sum."""\n    raise NotImplementedError(\'add is missing\')'
    )
    assert released["solution-02-quiz"].source == (
        'answers = {\n    "q1": None,  # one of a b\n    "q2": None,  # number\n}'
    )
    assert released["check-02-add"].source.endswith('check("02.add", add)')
    lesson = cells(root, NOTEBOOK)["cell-01"].source
    assert lesson == "def masked(offs, n):\n    mask = offs >= 0  # mend me\n    return mask"
    for path in (NOTEBOOK, RELEASE):
        raw = (root / path).read_text()
        for word in ("SOLUTION", "HIDDEN", "hidden=", "secret", "4711", "offs < n", '"stub"'):
            assert word not in raw, f"{word} stands in {path}"


def test_solution_pages_are_complete_and_hold_no_hidden_call(root):
    build.build(root)
    lesson, assignment = (code(root, page) for page in PAGES)
    assert "mask = offs < n" in lesson and "mend me" not in lesson
    assert "secret_line = x + y" in assignment and '"q2": 4711' in assignment
    assert "# secret reason" in assignment
    for page in (lesson, assignment):
        assert "hidden" not in page and "SOLUTION" not in page


def test_a_second_build_changes_no_byte(root):
    first = {path: (root / path).read_bytes() for path in build.build(root)}
    assert set(first) == {NOTEBOOK, SOURCE, RELEASE, *PAGES}
    assert build.build(root) == []
    for path in first:
        (root / path).unlink()
    build.build(root)
    assert {path: (root / path).read_bytes() for path in first} == first
    assert sorted(p.name for p in root.iterdir()) == sorted((*build.BUILT, "course"))


def test_drift_names_the_notebook_and_the_mend(root):
    build.build(root)
    assert build.drift(root) == []
    text = root / "course/lessons/02_vector_add.py"
    text.write_text(text.read_text().replace("# Blocks", "# Tiles"))
    (root / SOURCE).unlink()
    (root / "notebooks/99_left_over.ipynb").write_text("{}")
    assert build.drift(root) == [
        "notebooks/99_left_over.ipynb has no text in course/: delete it.",
        f"{NOTEBOOK} is not what its text says: run `make build`.",
        f"{PAGES[0]} is not what its text says: run `make build`.",
        f"{SOURCE} is missing: run `make build`.",
    ]


def test_build_keeps_edits_and_answers_unless_forced(root):
    build.build(root)
    for path, cell, words in (
        (NOTEBOOK, "cell_01", "make sync"),
        (SOURCE, "solution_02_add", "make sync"),
        (RELEASE, "solution_02_add", "holds answers"),
    ):
        clean = (root / path).read_bytes()
        change(root, path, **{cell: "def add(x, y): return 1"})
        with pytest.raises(CourseError, match=f"{path}.*{words}"):
            build.build(root)
        assert build.build(root, missing=True) == []
        assert (root / path).read_bytes() != clean
        assert build.build(root, force=True) == [path]
        assert (root / path).read_bytes() == clean


def test_outputs_alone_are_no_edit(root):
    build.build(root)
    clean = (root / NOTEBOOK).read_bytes()
    notebook = nbformat.read(root / NOTEBOOK, as_version=4)
    notebook.cells[1].outputs = [nbformat.v4.new_output("stream", text="ran")]
    notebook.cells[1].metadata["collapsed"] = True
    nbformat.write(notebook, root / NOTEBOOK)
    assert build.build(root) == [NOTEBOOK]
    assert (root / NOTEBOOK).read_bytes() == clean


@pytest.mark.parametrize(
    ("kind", "old", "new", "sentence"),
    [
        ("assignments", 'solution="02.add"', 'solutoin="02.add"', "did you mean solution?"),
        ("assignments", 'check="02.add"', 'check="02.ad"', "names no exercise of 02_vector_add"),
        ("assignments", '# %% check="02.quiz"', "# %%", 'no cell with the header check="02.quiz"'),
        ("assignments", 'check="02.quiz"', 'check="02.add"', "02.add has a second check cell"),
        ("assignments", 'quiz="02.quiz"\n', 'quiz="02.quiz"\nanswers = {}\n', "stays empty"),
        ("assignments", '"q2"', '"q3"', "has no answer to q2 of 02.quiz"),
        ("lessons", 'stub="mask = offs >= 0  # mend me"', 'check="02.add"', "not in a lesson"),
        ("lessons", 'tags=["predict"]', 'solution="02.add"', "belongs in an assignment"),
        ("lessons", "    ### END SOLUTION\n", "", "no end solution statement"),
        (
            "assignments",
            "    ### END SOLUTION\n",
            "",
            "statements, in the cell that begins",
        ),
        ("assignments", 'solution="02.add" ', "", 'no cell with the header solution="02.add"'),
        (
            "assignments",
            "from autograder",
            "### BEGIN SOLUTION\n### END SOLUTION\n#",
            "non-solution",
        ),
        ("lessons", '"mask = offs >= 0  # mend me"', '["a", "b"]', "2 stubs for 1 solution region"),
        ("lessons", '["predict"]', '"predict"', "'predict' is not of type 'array'"),
    ],
)
def test_faults_in_a_text_are_one_sentence_that_names_it(root, capsys, kind, old, new, sentence):
    for path in (
        root / "course" / kind / "02_vector_add.py",
        root / "course/hidden/02_vector_add.json",
    ):
        path.write_text(path.read_text().replace(old, new))
    assert build.main(["--root", str(root)]) == 1
    said = capsys.readouterr().err
    assert f"{kind}/02_vector_add.py: " in said and sentence in said
    assert "Traceback" not in said and said.count("\n") == 1


def test_small_texts_survive_the_round_trip_to_the_byte():
    for text in (LESSON, ASSIGNMENT):
        assert unparse(parse(text)) == text


@pytest.mark.parametrize("text", texts(ROOT), ids=lambda text: f"{text.parent.name}/{text.name}")
def test_course_texts_survive_the_round_trip_to_the_byte(text):
    content = text.read_text(encoding="utf-8")
    assert unparse(parse(content)) == content, (
        "jupytext would write this text another way, so `make sync` would change lines that nobody "
        "edited: mostly blank lines before `# %%`."
    )


def test_every_assignment_is_in_the_register_and_has_its_lesson():
    assignments = {text.stem for text in texts(ROOT) if text.parent.name == "assignments"}
    lessons = {text.stem for text in texts(ROOT) if text.parent.name == "lessons"}
    assert assignments <= set(exercises.ASSIGNMENTS.values())
    assert assignments and assignments <= lessons


def test_the_built_notebooks_are_what_the_texts_say():
    assert build.drift(ROOT) == []
