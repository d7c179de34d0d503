"""A sample class, graded before your eyes: ``python -m course.demo [NN]`` (``make demo A=02``).

demo/ becomes a course directory of its own with everything that nbgrader keeps. Who hands in what
comes from tests/submissions/, and every student is named after what he or she handed in.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat

from autograder import exercises
from autograder.records import Rejected
from course.build import ROOT

FOLDER = "demo"
_WORK = ROOT / "tests" / "submissions"
_MISTAKES = {
    "01": (
        "add_missing_load_mask",
        "add_numpy",
        "softmax_tail_read_as_zero",
        "softmax_one_more_pass",
        "matmul_missing_k_mask",
        "matmul_reads_a_tile_twice",
    ),
    "02": (
        "add_missing_load_mask",
        "add_missing_store_mask",
        "add_overlapping_grid",
        "add_torch",
        "add_reads_x_twice",
        "add_does_not_parse",
        "fma_relu_two_passes",
        "fma_relu_always_float32",
    ),
}


def sample_class(assignment: str) -> dict[str, dict[str, Path]]:
    """Student → exercise id → the file that stands in for his or her solution cell."""
    number = assignment[:2]
    ids = [e.id for e in exercises.of_assignment(assignment) if e.machine != "quiz"]
    right = {id: _styles(id) for id in ids}
    plain = {id: styles[0] for id, styles in right.items()}
    students = {
        f"right-{i + 1}": {id: styles[i % len(styles)] for id, styles in right.items()}
        for i in range(3)
    }
    students["half-done"] = {ids[0]: plain[ids[0]]}
    students["blank"] = {}
    for mistake in _MISTAKES.get(number, ()):
        (id,) = [id for id in ids if mistake.startswith(id[3:] + "_")]
        wrong = _WORK / "wrong" / f"{number}_{mistake}.py"
        students[mistake.replace("_", "-")] = plain | {id: wrong}
    return students


def _styles(id: str) -> list[Path]:
    """Right solutions of an exercise, the plain one first."""
    files = sorted((_WORK / "right").glob(f"{id.replace('.', '_')}_*.py"))
    return sorted(files, key=lambda path: not path.stem.endswith("_plain"))


def hand_in(root: Path, assignment: str, students: dict[str, dict[str, Path]]) -> None:
    """Writes submitted/STUDENT/ in a course directory from its released notebook.

    Those who solved everything also answer the quiz, from the hidden key.
    """
    released = root / "release" / assignment / f"{assignment}.ipynb"
    hidden = json.loads((ROOT / "course/hidden" / f"{assignment}.json").read_text("utf-8"))
    for student, solutions in students.items():
        notebook = nbformat.read(released, as_version=4)
        cells = {cell.id: cell for cell in notebook.cells}
        for id, path in solutions.items():
            lines = path.read_text(encoding="utf-8").splitlines()
            kept = [line for line in lines if not line.startswith("# expect:")]
            cells[f"solution-{id.replace('.', '-')}"].source = "\n".join(kept)
        for exercise in exercises.of_assignment(assignment):
            if exercise.machine == "quiz" and student.startswith("right"):
                answers = {q: row["answer"] for q, row in hidden[exercise.id].items()}
                cells[f"solution-{exercise.id.replace('.', '-')}"].source = f"answers = {answers!r}"
        target = root / "submitted" / student / assignment / released.name
        target.parent.mkdir(parents=True, exist_ok=True)
        nbformat.write(notebook, target)


def course_directory(root: Path, assignment: str) -> None:
    """A fresh course directory with the settings of the checkout, and nbgrader's release in it."""
    shutil.rmtree(root, ignore_errors=True)
    shutil.copytree(ROOT / "source" / assignment, root / "source" / assignment)
    (root / "nbgrader_config.py").write_text(
        f'load_subconfig("nbgrader_config.py", path={str(ROOT)!r})\n', encoding="utf-8"
    )
    _run(root, "nbgrader", "generate_assignment", assignment, "--log-level=WARN")


def _run(folder: Path, *module: str) -> None:
    """``python -m …`` in a folder; its failure ends the demo with its status."""
    status = subprocess.run([sys.executable, "-m", *module], cwd=folder).returncode
    if status:
        sys.exit(status)


def main(arguments: list[str] | None = None) -> int:
    """Makes, fills and grades demo/, then says where to look."""
    number = (sys.argv[1:] if arguments is None else arguments) or ["02"]
    try:
        assignment = exercises.assignment(number[0])
    except Rejected as error:
        print(error, file=sys.stderr)
        return 1
    root = ROOT / FOLDER
    students = sample_class(assignment)
    print(f"A class of {len(students)} hands in {assignment}; each is named after his or her work.")
    course_directory(root, assignment)
    hand_in(root, assignment, students)
    _run(ROOT, "autograder", "grade", assignment, "--feedback", "--course", FOLDER)
    _run(root, "nbgrader", "export", "--to=grades.csv", "--log-level=WARN")
    mistaken = next(student for student in students if "-missing-" in student)
    python = Path(sys.executable)
    python = python.relative_to(ROOT) if python.is_relative_to(ROOT) else python
    print(
        f"""
Where to look
  what a student gets    {FOLDER}/feedback/{mistaken}/{assignment}/{assignment}.html
  what was handed in     {FOLDER}/submitted/
  grades as a table      {FOLDER}/grades.csv
  nbgrader's gradebook   {FOLDER}/gradebook.db; in formgrader, menu Nbgrader:
                         cd {FOLDER} && {ROOT / python} -m jupyterlab
  grade once more, which changes nothing:
                         {python} -m autograder grade {assignment[:2]} --course {FOLDER}"""
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
