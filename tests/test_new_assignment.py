"""`make new`: what it makes is built, checked, graded and audited before anybody fills it in."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from autograder import exercises
from course import new
from tests.grading_course import CHECKOUT
from tests.test_house import tracked

NAME, ID = "97_smooth", "97.smooth"


@pytest.fixture(scope="module")
def checkout(tmp_path_factory) -> Path:
    """A copy of the checkout with a new assignment in it."""
    root = tmp_path_factory.mktemp("new") / "course"
    for path in tracked():
        target = root / path.relative_to(CHECKOUT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)
    done = python(root, "course.new", NAME, "smooth")
    assert done.returncode == 0, done.stderr
    return root


def python(root: Path, module: str, *arguments: str) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", module, *arguments]
    return subprocess.run(command, cwd=root, capture_output=True, text=True)


def submission(root: Path, kind: str, style: str) -> str:
    return str(root / f"tests/submissions/{kind}/97_smooth_{style}.py")


def test_the_built_notebooks_are_what_the_new_texts_say(checkout):
    done = python(checkout, "course.build", "--check")
    assert (done.returncode, done.stderr) == (0, "")
    released = (checkout / f"release/{NAME}/{NAME}.ipynb").read_text(encoding="utf-8")
    assert f'check(\\"{ID}\\", smooth)' in released and "factor * x, mask" not in released


def test_no_name_of_the_skeleton_is_left(checkout):
    made = [path for path in new.files(CHECKOUT, NAME, "smooth") if "__init__" not in path]
    assert len(made) == 12
    for path in made:
        text = (checkout / path).read_text(encoding="utf-8").replace("EXERCISES = (", "")
        assert "EXERCISE" not in text and "NN" not in text + path, path
    for command in (("check",), ("format", "--check")):
        done = python(checkout, "ruff", *command, ".")
        assert done.returncode == 0, done.stdout


def test_its_own_tests_pass(checkout):
    done = python(checkout, "pytest", "-p", "no:cacheprovider", "tests/test_unit97.py")
    assert done.returncode == 0, done.stdout
    assert "8 passed" in done.stdout  # two right, five wrong, the hints


def test_the_marks_that_are_listed_are_the_authors_own(checkout):
    words = ["git", "init", "-q"], ["git", "grep", "-l", "--untracked", new.MARK, "--"]
    subprocess.run(words[0], cwd=checkout, check=True)
    told = subprocess.run([*words[1], *new.MARKED.split()], cwd=checkout, capture_output=True)
    listed, made = set(told.stdout.decode().split()), new.files(CHECKOUT, NAME, "smooth")
    assert listed == {path for path, text in made.items() if new.MARK in text}
    assert f'"{new.MARK}" -- {new.MARKED}' in (CHECKOUT / "docs/NEW_EXERCISE.md").read_text()


def test_a_verdict_that_was_not_expected_is_told_in_the_checks_words(checkout):
    right = Path(submission(checkout, "right", "plain")).read_text()
    for verdict, text, told in (
        ("right", right.replace("mask=mask)\n", "mask=mask, other=0)\n", 1), ""),
        ("right", right.replace("(x_ptr + offsets, mask=mask)", "(x_ptr + offsets)"), "past the"),
        ("wrong", f"# expect: race races\n{right}", "Found was [], and [] failed"),
        ("wrong", f"# expect: raze races\n{right}", "expects 'raze'"),
        ("wrong", "# expect: race races\n1 +", "expects race: "),
    ):
        path = Path(submission(checkout, verdict, "told"))
        path.write_text(text)
        done = python(checkout, "pytest", "-n0", "tests/test_unit97.py", "-k", path.stem)
        path.unlink()
        assert done.returncode == bool(told) and told in done.stdout, done.stdout


def test_right_passes_and_wrong_fails_on_the_command_line(checkout):
    right = python(checkout, "autograder", "check", ID, submission(checkout, "right", "plain"))
    assert right.returncode == 0, right.stdout + right.stderr
    path = submission(checkout, "wrong", "missing_load_mask")
    wrong = python(checkout, "autograder", "check", ID, path)
    assert wrong.returncode == 1 and "past the end" in wrong.stdout
    assert "Which condition tells a lane" in wrong.stdout  # the note of the new table


def test_a_class_is_graded(checkout):
    assert python(checkout, "tests.sample_class", ".", "97").returncode == 0
    made = python(checkout, "nbgrader", "generate_assignment", NAME, "--force")
    assert made.returncode == 0, made.stderr
    done = python(checkout, "autograder", "grade", "97", "--workers", "1", "--json")
    assert done.returncode == 0, done.stderr
    points = {row["student"]: row["points"] for row in json.loads(done.stdout)["submissions"]}
    assert points.pop("right_1") == points.pop("right_2") == points.pop("right_3") == 8
    assert points.pop("blank") == 0 and points.pop("half_done") == 8  # there is one exercise
    assert len(points) == 5 and all(0 <= scored < 8 for scored in points.values())


def test_the_audit_lets_nothing_through(checkout):
    done = python(checkout, "autograder", "audit", ID, "--workers", "1", "--json")
    record = json.loads(done.stdout)
    assert record["faults"] == [] and record["blind_through"] == 0 and done.returncode == 0
    counts = record["exercises"][ID]
    assert counts["right"] == [2, 2] and counts["wrong"] == [5, 5] and counts["mutants"][1] >= 10


@pytest.mark.parametrize(
    ("name", "exercise", "sentence"),
    [
        ("02_more", "smooth", "Number 02 is taken by 02_vector_add: choose another one."),
        ("10_more", "smooth", "Number 10 is taken by 10_where_to_go_next: choose another one."),
        ("smooth", "smooth", "'smooth' is no assignment's name: two digits, _, small letters"),
        ("97_smooth", "97.smooth", "'97.smooth' cannot name an exercise"),
        ("97_smooth", "lambda", "'lambda' cannot name an exercise"),
        ("97_smooth", "sum", "'sum' cannot name an exercise"),
        ("97_smooth", "quiz", "'quiz' cannot name an exercise"),
        ("97_smooth", "tl", "'tl' cannot name an exercise"),
    ],
)
def test_a_name_that_cannot_be_is_refused_in_a_sentence(capsys, name, exercise, sentence):
    assert new.main([name, exercise]) == 1
    said = capsys.readouterr().err
    assert said.startswith(sentence) and said.count("\n") == 1


def test_the_register_stays_in_order():
    register = new.files(CHECKOUT, NAME, "smooth")["autograder/exercises/__init__.py"]
    rows = dict(exercises.ASSIGNMENTS, **{"97": NAME})
    assert all(f'    "{number}": "{name}",\n' in register for number, name in rows.items())
    places = [register.index(f'"{name}"') for name in rows.values()]
    assert places == sorted(places)
