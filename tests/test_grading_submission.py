"""What is taken from a submission, and what is refused with a sentence."""

import copy
import json
import os

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from autograder.grading.preprocessors import set_aside
from autograder.grading.submission import (
    MAX_CELL,
    MAX_FILE,
    MAX_PARTS,
    SECRET,
    canonical,
    parse_notebook,
    read_submission,
    solution_sources,
)
from autograder.records import Rejected

NAME = "02_vector_add"


def _cell(source, grade_id, *, grade=False, solution=False, points=None):
    marks = {"grade": grade, "grade_id": grade_id, "locked": not solution, "schema_version": 3}
    marks |= {"solution": solution, "task": False} | ({"points": points} if points else {})
    return new_code_cell(source, id=f"id-{grade_id}", metadata={"nbgrader": marks})


@pytest.fixture
def release():
    return new_notebook(
        cells=[
            new_markdown_cell("# Add"),
            new_code_cell("import torch"),
            _cell("pass  # your lines", "solution-02-add", solution=True),
            _cell('check("02.add", add)', "check-02-add", grade=True, points=8),
            _cell("answers = {}", "solution-02-quiz", solution=True),
        ],
        metadata={"kernelspec": {"name": "python3", "display_name": "Python 3"}},
    )


@pytest.fixture
def hand_in(tmp_path, release):
    """Writes what it is given as a student's notebook and reads the submission."""

    def do(content, student="anna", name=f"{NAME}.ipynb"):
        directory = tmp_path / "submitted" / student / NAME
        directory.mkdir(parents=True)
        if isinstance(content, dict):
            content = json.dumps(content).encode()
        if content is not None:
            (directory / name).write_bytes(content)
        return read_submission(directory, student, NAME, release)

    return do


def _solved(release):
    notebook = copy.deepcopy(release)
    notebook.cells[2].source = "def add(x, y): ..."
    return notebook


def test_takes_solution_cells_and_nothing_else(release, hand_in):
    theirs = _solved(release)
    theirs.cells[1].source = "import os; os.system('rm -rf /')"
    theirs.cells[3].source = "8.0"
    theirs.cells[3].metadata.nbgrader.points = 1000
    theirs.cells[2].outputs = [nbformat.v4.new_output("stream", text="<script>")]
    theirs.metadata.kernelspec = {"name": "evil", "display_name": "E", "argv": ["sh"]}
    submission = hand_in(theirs)
    assert not submission.problem and not submission.notes
    result = canonical(release, submission.sources)
    wanted = copy.deepcopy(release)
    wanted.cells[2].source = "def add(x, y): ..."
    assert result == wanted


@pytest.mark.parametrize("edit", ["schema_version", "grade_false", "no_check", "check_twice"])
def test_edited_locked_cells_are_cured(release, hand_in, edit):
    theirs = _solved(release)
    if edit == "schema_version":
        theirs.cells[3].metadata.nbgrader.schema_version = 1
        theirs.cells[2].metadata.nbgrader.schema_version = 99
    elif edit == "grade_false":
        theirs.cells[3].metadata.nbgrader.grade = False
    elif edit == "no_check":
        del theirs.cells[3]
    else:
        theirs.cells.append(copy.deepcopy(theirs.cells[3]))
    submission = hand_in(theirs)
    assert submission.sources["solution-02-add"] == "def add(x, y): ..."
    assert [c.source for c in canonical(release, submission.sources).cells][3] == (
        'check("02.add", add)'
    )


def test_of_two_cells_with_one_grade_id_the_last_counts_and_it_is_said(release):
    theirs = _solved(release)
    again = copy.deepcopy(theirs.cells[2])
    again.source = "second"
    sources, notes = solution_sources([*theirs.cells, again], release)
    assert sources["solution-02-add"] == "second"
    assert "2 times" in notes[0]


def test_a_lost_grade_id_is_found_by_the_cells_id(release):
    theirs = _solved(release)
    theirs.cells[2].metadata = {}
    sources, notes = solution_sources(theirs.cells, release)
    assert sources["solution-02-add"] == "def add(x, y): ..." and not notes


def test_a_missing_cell_stays_as_released_and_it_is_said(release, hand_in):
    theirs = _solved(release)
    del theirs.cells[2]
    submission = hand_in(theirs)
    assert canonical(release, submission.sources).cells[2].source == "pass  # your lines"
    assert submission.notes == ("The cell solution-02-add was missing.",)


@pytest.mark.parametrize(
    "content, words",
    [
        (None, "There is no 02_vector_add.ipynb"),
        (b"", "not valid JSON"),
        (b'{"cells": [', "not valid JSON"),
        (b"[" * 200_000, "nested too deeply"),
        (b"\xff\xfe{\x00}\x00", "not text in UTF-8"),
        (b"[1, 2]", "not a notebook of format 4"),
        (b'{"worksheets": [], "nbformat": 3}', "not a notebook of format 4"),
        (b'{"cells": 7, "nbformat": 4}', "not a notebook of format 4"),
        (b"9" * 10_000, "not valid JSON"),
    ],
)
def test_what_cannot_be_read_is_one_sentence(hand_in, content, words):
    submission = hand_in(content)
    assert words in submission.problem and submission.sources == {}


def test_strange_cells_are_passed_over(release):
    strange = [
        {"cell_type": "code"},
        {"source": 7, "metadata": {"nbgrader": {"grade_id": "solution-02-add"}}},
        {"source": ["a", 7], "metadata": []},
        {"source": "x", "metadata": {"nbgrader": {"grade_id": ["solution-02-add"]}}},
        {"source": ["def add(x, y):\n", "    ..."], "metadata": {"nbgrader": {
            "grade_id": "solution-02-add"}}},
    ]  # fmt: skip
    cells = parse_notebook(json.dumps({"cells": [*strange, 5, None], "nbformat": 4}).encode())
    assert solution_sources(cells, release)[0] == {"solution-02-add": "def add(x, y):\n    ..."}


def test_a_lone_surrogate_can_be_written_again(release, hand_in):
    theirs = json.loads(nbformat.writes(_solved(release)))
    theirs["cells"][2]["source"] = "x = '\ud800'"
    sources = hand_in(theirs).sources
    nbformat.writes(canonical(release, sources)).encode("utf-8")


def test_a_huge_cell_and_a_huge_file(release, hand_in, tmp_path):
    theirs = _solved(release)
    theirs.cells[2].source = "#" * (MAX_CELL + 1)
    assert "the limit is" in hand_in(theirs).problem
    directory = tmp_path / "submitted" / "big" / NAME
    directory.mkdir(parents=True)
    with open(directory / f"{NAME}.ipynb", "wb") as file:
        file.truncate(MAX_FILE * 5)  # 100 MB that take no room
    problem = read_submission(directory, "big", NAME, release).problem
    assert "100 MB" in problem and "clear its outputs" in problem


@pytest.mark.parametrize("part", ["{}", "[]"])
def test_a_notebook_of_nothing_but_brackets_does_not_fill_the_memory(hand_in, part):
    """20 MB of them would become half a gigabyte of objects in the grader's own process."""
    cells = ",".join([part] * (MAX_PARTS + 1))
    problem = hand_in(b'{"nbformat":4,"cells":[' + cells.encode() + b"]}").problem
    assert "more parts than anybody writes" in problem


def test_file_names_that_are_no_text_are_told_in_escapes(hand_in, tmp_path, release):
    assert hand_in(None).problem
    directory = tmp_path / "submitted" / "anna" / NAME
    (directory / os.fsdecode(b"\xff\x1b[2J.ipynb")).write_text("{}")
    (directory / "\u202e<img src=x>.ipynb").write_text("{}")
    problem = read_submission(directory, "anna", NAME, release).problem
    assert problem.isascii() and problem.isprintable() and "<img" in problem
    json.dumps(problem).encode()


@pytest.mark.parametrize("kind", ["link", "fifo", "directory", "linked_student"])
def test_only_regular_files_are_read(tmp_path, release, kind):
    secret = tmp_path / "source.ipynb"
    nbformat.write(_solved(release), secret)
    directory = tmp_path / "submitted" / "eve" / NAME
    path = directory / f"{NAME}.ipynb"
    if kind == "linked_student":
        real = tmp_path / "elsewhere" / NAME
        real.mkdir(parents=True)
        nbformat.write(_solved(release), real / f"{NAME}.ipynb")
        directory.parent.parent.mkdir(parents=True)
        directory.parent.symlink_to(tmp_path / "elsewhere")
    else:
        directory.mkdir(parents=True)
        if kind == "link":
            path.symlink_to(secret)
        elif kind == "fifo":
            os.mkfifo(path)
        else:
            path.mkdir()
    submission = read_submission(directory, "eve", NAME, release)
    assert submission.problem and not submission.sources


@pytest.mark.parametrize("student", ["<script>", "a b", "-rf", "x" * 65, "ü", "a\x1b[2J", "{0}"])
def test_a_name_that_is_no_student_id_is_refused(hand_in, release, student):
    submission = hand_in(json.loads(nbformat.writes(release)), student=student)
    assert "no student id" in submission.problem and not submission.valid_id


@pytest.mark.parametrize(
    "text, taken",
    [
        ("2026-10-01 12:00:00 UTC", True),
        ("2026-10-01 12:00:00.123 +0200", True),
        ("2026-10-01 12:00:00 Europe/Berlin", True),
        ("<script>", False),
        ("9" * 50, False),
        ("", False),
        ("2026-99-99 12:00:00 UTC", False),  # nbgrader would raise and record nothing
        ("9999-12-31 23:59:59 -2300", False),
        ("0000-01-01 00:00:00 UTC", False),
        ("2026-10-01 12:00:00 /proc/kmsg", False),  # dateutil would open that, and wait
        ("2026-10-01 12:00:00 :/proc/kmsg", False),
    ],
)
def test_the_time_stamp_is_taken_only_if_it_is_one(release, hand_in, tmp_path, text, taken):
    theirs = _solved(release)
    directory = tmp_path / "submitted" / "anna" / NAME
    assert not hand_in(theirs).notes
    (directory / "timestamp.txt").write_text(text + "\n")
    submission = read_submission(directory, "anna", NAME, release)
    assert submission.timestamp == (text if taken else "")
    assert any("no date" in note for note in submission.notes) is not taken


def test_a_time_stamp_that_is_no_file_is_not_read(release, hand_in, tmp_path):
    hand_in(_solved(release))
    stamp = tmp_path / "submitted" / "anna" / NAME / "timestamp.txt"
    stamp.symlink_to("/dev/zero")
    assert read_submission(stamp.parent, "anna", NAME, release).timestamp == ""


def test_what_cannot_be_read_keeps_its_time_stamp(hand_in, release, tmp_path):
    """formgrader compares it with the gradebook's, and would ask for autograding for ever."""
    assert hand_in(b"{").problem
    directory = tmp_path / "submitted" / "anna" / NAME
    (directory / "timestamp.txt").write_text("2026-10-01 12:00:00 UTC\n")
    (directory / f"{NAME}.ipynb").unlink()
    submission = read_submission(directory, "anna", NAME, release)
    assert submission.problem and submission.timestamp == "2026-10-01 12:00:00 UTC"


def test_nothing_but_notebook_and_time_stamp_stays_beside_nbgrader(hand_in, release, tmp_path):
    """Links, a file that was set aside before, a directory that nobody may write to."""
    course = tmp_path / "course"
    for _ in range(2):  # handed in twice, with the same names
        directory = course / "submitted" / "eve" / NAME
        directory.mkdir(parents=True, exist_ok=True)
        nbformat.write(_solved(release), directory / f"{NAME}.ipynb")
        (directory / "timestamp.txt").write_text("2026-99-01 12:00:00 UTC\n")
        (directory / "a").mkdir()
        (directory / "a" / "b").write_text("kept")
        (directory / "a").chmod(0o555)
        (directory / "link").symlink_to("/etc/passwd")
        (directory / SECRET).write_text("../../x")
        (directory / ("ü" * 120)).write_text("long")
        set_aside(NAME, "eve", [str(directory / f"{NAME}.ipynb")])
        assert [path.name for path in directory.iterdir()] == [f"{NAME}.ipynb"]
    (directory / SECRET).write_text("a5" * 64)
    set_aside(NAME, "eve", [str(directory / f"{NAME}.ipynb")])
    assert (directory / SECRET).exists()  # without it nbgrader cannot release feedback
    aside = course / "set_aside" / "eve" / NAME
    assert (aside / "a.1" / "b").read_text() == "kept" and (aside / "link.1").is_symlink()


def test_parse_refuses_with_rejected():
    with pytest.raises(Rejected):
        parse_notebook(b"{}")
