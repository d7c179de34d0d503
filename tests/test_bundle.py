"""What students get works by itself, and holds nothing that they must not see."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from course import bundle
from course.build import ROOT

FOLDERS = ("autograder/", "lab_setup/", "notebooks/", "release/")
FILES = {"LICENSE", "Makefile", "README.md", "requirements.txt"}
FILES |= {"docs/INTERPRETER.md", "docs/WSL2.md", "docs/measured/kernels_h200.json"}


@pytest.fixture(scope="module")
def unzipped(tmp_path_factory) -> Path:
    """The bundle, unpacked where no git repository is."""
    folder = tmp_path_factory.mktemp("student")
    bundle.write(ROOT, folder / "course.zip")
    with zipfile.ZipFile(folder / "course.zip") as archive:
        archive.extractall(folder)
    return folder / "triton-course"


def files(root: Path) -> dict[str, str]:
    return {
        path.relative_to(root).as_posix(): path.read_text(encoding="utf-8")
        for path in root.rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    }


def run(folder: Path, *command: str) -> subprocess.CompletedProcess:
    environment = {**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120
    )


def test_it_holds_lessons_releases_and_the_packages_only(unzipped):
    held = files(unzipped)
    stray = [path for path in held if not path.startswith(FOLDERS) and path not in FILES]
    assert stray == [] and set(held) >= FILES
    kept_back = ("autograder/grading", "lab_setup/hub", "lab_setup/kernels", "lab_setup/jupyter")
    assert not [path for path in held if path.startswith(kept_back)]
    for folder in ("notebooks", "release"):
        kept = {path.relative_to(ROOT).as_posix() for path in (ROOT / folder).rglob("*.ipynb")}
        assert {path for path in held if path.startswith(f"{folder}/")} == {
            path for path in kept if ".ipynb_checkpoints" not in path
        }


def test_without_make_notebooks_find_the_package_too(unzipped):
    """A notebook's kernel runs in the notebook's folder, so a relative path would not do."""
    told = re.search(r"`(PYTHONPATH=\S+) \.venv/bin/jupyter", (unzipped / "README.md").read_text())
    inside = "cd notebooks && python -c 'import autograder; print(autograder.__file__)'"
    command = f"export {told[1]}; {inside.replace('python', sys.executable)}"
    done = subprocess.run(["sh", "-c", command], cwd=unzipped, capture_output=True, text=True)
    assert done.stdout.startswith(str(unzipped)), done.stderr


def test_documents_that_it_names_are_in_it(unzipped):
    held = files(unzipped)
    for path, content in held.items():
        if not path.endswith(".ipynb"):
            for name in re.findall(r"\bdocs/\w+\.md", content):
                assert name in held, f"{path} sends students to {name}"


def test_lesson_11_has_its_figures_and_not_the_kernels_behind_them(unzipped):
    """It must say so where it cannot measure, and not stop for want of lab_setup/kernels."""
    program = (
        "from lab_setup.roofline.ladders import here, stored; from autograder.render.lesson11 "
        "import Climb; Climb(**stored('matmul', 4096)).start(); print(here('matmul', 4096))"
    )
    done = run(unzipped, sys.executable, "-c", program)
    assert "measured on one NVIDIA H200" in done.stdout, done.stderr
    assert done.stdout.endswith("None\n")


def test_no_solution_and_no_marker_is_in_it(unzipped):
    for path, content in files(unzipped).items():
        if path.endswith(".ipynb"):
            assert not re.search("SOLUTION|HIDDEN TESTS|hidden=", content), path
        assert "course/hidden/0" not in content, path


def test_the_same_course_gives_the_same_bytes(tmp_path):
    for name in ("a.zip", "b.zip"):
        bundle.write(ROOT, tmp_path / name)
    assert (tmp_path / "a.zip").read_bytes() == (tmp_path / "b.zip").read_bytes()


def test_requirements_and_makefile_stop_where_the_instructors_part_begins(unzipped):
    held = files(unzipped)
    pins = {line.split("==")[0] for line in held["requirements.txt"].splitlines() if "==" in line}
    assert {"torch", "jupyterlab", "numpy"} <= pins
    assert not pins & {"nbgrader", "dask", "pytest", "jupytext"}
    listed = run(unzipped, "make").stdout
    assert "make lab" in listed and "make grade" not in listed and "make build" not in listed


def test_make_lab_would_start_on_the_first_lesson_without_building(unzipped):
    done = run(unzipped, "make", "-n", "lab")
    assert done.returncode == 0, done.stderr
    assert "/lab/tree/notebooks/01_" in done.stdout
    assert "?" not in done.stdout  # Jupyter puts ?token=… behind it in the address that it prints


SOLUTION = """
def add_kernel(pid, x, y, out, n, BLOCK):
    from autograder.minitriton import arange, load, store
    offs = pid[0] * BLOCK + arange(BLOCK)
    mask = offs < n
    store(out, offs, load(x, offs, mask) + load(y, offs, mask){mask})
"""


@pytest.mark.parametrize(("mask", "status"), [(", mask", 0), ("", 1)])
def test_check_runs_from_the_unpacked_copy(unzipped, mask, status):
    (unzipped / "mine.py").write_text(SOLUTION.format(mask=mask))
    where = run(unzipped, sys.executable, "-c", "import autograder; print(autograder.__file__)")
    assert where.stdout.startswith(str(unzipped))
    done = run(unzipped, sys.executable, "-m", "autograder", "check", "01.add", "mine.py")
    assert done.returncode == status, done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr


def test_the_doctor_looks_over_a_students_machine(unzipped):
    done = run(unzipped, sys.executable, "-m", "lab_setup", "doctor", "--json")
    assert {line["subject"] for line in json.loads(done.stdout)} >= {"Python", "cards"}, done.stderr


def test_hidden_cases_are_a_sentence_for_a_student(unzipped):
    (unzipped / "mine.py").write_text(SOLUTION.format(mask=", mask"))
    command = ("-m", "autograder", "check", "01.add", "mine.py", "--hidden")
    done = run(unzipped, sys.executable, *command)
    assert done.returncode == 2
    assert "Traceback" not in done.stdout + done.stderr
    assert "hidden" in (done.stdout + done.stderr).lower()
