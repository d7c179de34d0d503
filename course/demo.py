"""A sample class, graded before your eyes: ``python -m course.demo [NN]`` (``make demo A=02``).

demo/ becomes a course directory of its own with everything that nbgrader keeps; who hands in what
comes from tests/sample_class.py.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from autograder import exercises
from autograder.records import Rejected
from course.build import ROOT
from tests.sample_class import a_class, write

FOLDER = "demo"
_MISTAKES = {  # typical ones, of the many in tests/submissions/wrong/
    "a_missing_load_mask",
    "add_does_not_parse",
    "add_missing_load_mask",
    "add_missing_store_mask",
    "add_numpy",
    "add_overlapping_grid",
    "add_reads_x_twice",
    "add_torch",
    "b_lowest_finite_number",
    "c_contiguous_copy",
    "d_one_program",
    "e_cast_at_the_end",
    "f_nan_taken_for_zero",
    "flash_backward_race_on_dq",
    "flash_boss_accumulator_in_float16",
    "flash_boss_blocks_right_of_the_diagonal",
    "flash_boss_lse_in_base_two",
    "flash_boss_missing_k_mask",
    "flash_gqa_heads_taken_in_turn",
    "flash_strong_keys_beyond_the_end_count",
    "fma_relu_always_float32",
    "fma_relu_two_passes",
    "fp8_splitk_missing_k_mask",
    "fp8_splitk_store_in_place_of_atomic",
    "g_only_the_length",
    "grouping_row_major",
    "h_whole_tile_stored",
    "layernorm_as_given",
    "matmul_bias_gelu_tanh_overflows",
    "matmul_missing_k_mask",
    "matmul_reads_a_tile_twice",
    "matmul_sum_in_float16",
    "prune_stages_times",
    "quiz_wrong",
    "rmsnorm_backward_plain_addition",
    "rmsnorm_missing_load_mask",
    "softmax_backward_sum_of_dy",
    "softmax_long_sum_not_rescaled",
    "softmax_missing_load_mask",
    "softmax_one_more_pass",
    "softmax_tail_read_as_zero",
}


def hand_in(root: Path, assignment: str) -> list[str]:
    """Fills submitted/ of a course directory and returns the students, named after their work."""
    students = {
        student: sources
        for student, sources in a_class(assignment)
        if student in _MISTAKES or student.startswith(("right", "blank", "half"))
    }
    for student, sources in students.items():
        # The table's first line tells the tests what to expect; a student would not write it.
        own = {id: text.partition("\n")[2] for id, text in sources.items() if "# expect:" in text}
        write(root, student, assignment, {**sources, **own})
    return list(students)


def course_directory(root: Path, assignment: str) -> None:
    """A fresh course directory with the settings of the checkout, and nbgrader's release in it."""
    shutil.rmtree(root, ignore_errors=True)
    shutil.copytree(ROOT / "source" / assignment, root / "source" / assignment)
    # An exchange of its own: without one, formgrader says that it cannot release anything.
    (root / "exchange").mkdir()
    (root / "nbgrader_config.py").write_text(
        f'load_subconfig("nbgrader_config.py", path={str(ROOT)!r})\n'
        f"get_config().Exchange.root = {str(root / 'exchange')!r}\n",
        encoding="utf-8",
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
    course_directory(root, assignment)
    students = hand_in(root, assignment)
    print(f"A class of {len(students)} hands in {assignment}; each is named after his or her work.")
    _run(ROOT, "autograder", "grade", assignment, "--feedback", "--course", FOLDER)
    _run(root, "nbgrader", "export", "--to=grades.csv", "--log-level=WARN")
    mistaken = next((s for s in students if "_missing_" in s), students[-1])
    python = Path(sys.executable)
    python = python.relative_to(ROOT) if python.is_relative_to(ROOT) else python
    root_too = "" if os.geteuid() else " --allow-root"
    print(
        f"""
Where to look
  what a student gets    {FOLDER}/feedback/{mistaken}/{assignment}/{assignment}.html
  what was handed in     {FOLDER}/submitted/
  grades as a table      {FOLDER}/grades.csv
  nbgrader's gradebook   {FOLDER}/gradebook.db; in formgrader, menu Nbgrader:
                         cd {FOLDER} && {ROOT / python} -m jupyterlab{root_too}
  grade once more, which changes nothing:
                         {python} -m autograder grade {assignment[:2]} --course {FOLDER}"""
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
