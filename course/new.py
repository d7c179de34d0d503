"""A new assignment that works before it is filled: ``python -m course.new NN_name [EXERCISE]``.

Copies course/skeleton/ (lesson, assignment, tables, hidden cases, right and wrong solutions, tests)
under the new names, enters the assignment in the register and builds. ``docs/NEW_EXERCISE.md``
goes on from there.
"""

from __future__ import annotations

import argparse
import builtins
import keyword
import re
import subprocess
import sys
from pathlib import Path

from autograder import exercises
from course.build import ROOT
from course.text import CourseError

MARK = "FILL IN"  # stands where the author writes; tests/test_house.py finds what is left
MARKED = "autograder/exercises course/assignments course/lessons tests/submissions"
_REGISTER = "autograder/exercises/__init__.py"
_MEANT = {"torch", "triton", "tl", "np", "autograder", "check", "hint", "interpret", "quiz"}


def files(root: Path, name: str, exercise: str) -> dict[str, str]:
    """What a new assignment ``NN_name`` with one exercise adds: path from the checkout → content.

    Raises CourseError, in one sentence, for a name that is none or is taken.
    """
    if not re.fullmatch(r"\d\d_[a-z][a-z0-9_]*", name):
        raise CourseError(
            f"'{name}' is no assignment's name: two digits, _, small letters, e.g. 12_scale."
        )
    if not re.fullmatch(r"[a-z][a-z0-9_]*", exercise):
        raise CourseError(
            f"'{exercise}' cannot name an exercise: it is its function's name as well, so small "
            "letters, digits and _, without a number in front, e.g. scale."
        )
    if keyword.iskeyword(exercise) or hasattr(builtins, exercise) or exercise in _MEANT:
        raise CourseError(
            f"'{exercise}' cannot name an exercise: it is its function's name as well, and means "
            "something else in a notebook. Choose another one, e.g. scale."
        )
    number = name[:2]
    taken = exercises.ASSIGNMENTS.get(number) or next(
        (text.stem for text in (root / "course/lessons").glob(f"{number}_*.py")), None
    )
    if taken:
        raise CourseError(f"Number {number} is taken by {taken}: choose another one.")
    made = {}
    for source in sorted((root / "course/skeleton").iterdir()):
        if source.is_file():
            text = source.read_text(encoding="utf-8").replace("NN_NAME", name)
            text = re.sub(r"\bEXERCISE(?=\b|_kernel\b)", exercise, re.sub(r"\bNN\b", number, text))
            made[_target(source, name, exercise)] = text
    made[_REGISTER] = _entered((root / _REGISTER).read_text(encoding="utf-8"), number, name)
    return made


def _target(source: Path, name: str, exercise: str) -> str:
    number, kind, style = name[:2], *source.stem.partition("_")[::2]
    if style:  # right_plain.py, wrong_torch.py
        return f"tests/submissions/{kind}/{number}_{exercise}_{style}.py"
    return {
        "unit": f"autograder/exercises/unit{number}.py",
        "hidden": f"course/hidden/{name}.json",
        "lesson": f"course/lessons/{name}.py",
        "assignment": f"course/assignments/{name}.py",
        "tests": f"tests/test_unit{number}.py",
    }[kind]


def _entered(register: str, number: str, name: str) -> str:
    """The register's text with a row for the new assignment, in the order of the numbers."""
    head, table, tail = re.split(r"(?<=ASSIGNMENTS = \{\n)((?:    .*\n)*)(?=\})", register)
    rows = sorted([*table.splitlines(True), f'    "{number}": "{name}",\n'])
    return head + "".join(rows) + tail


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m course.new", description=__doc__)
    parser.add_argument("name", metavar="NN_name", help="the assignment, e.g. 12_scale")
    parser.add_argument("exercise", nargs="?", default="scale", help="its exercise (default scale)")
    options = parser.parse_args(arguments)
    try:
        made = files(ROOT, options.name, options.exercise)
    except CourseError as error:
        print(error, file=sys.stderr)
        return 1
    for path, content in made.items():
        (ROOT / path).write_text(content, encoding="utf-8")
    # A process of its own: this one has read the register as it was.
    status = subprocess.run([sys.executable, "-m", "course.build"], cwd=ROOT).returncode
    if status:
        return status
    number, id = options.name[:2], f"{options.name[:2]}.{options.exercise}"
    python = Path(sys.executable)
    python = python.relative_to(ROOT) if python.is_relative_to(ROOT) else python
    print("\nWritten:", *(f"  {path}" for path in made), sep="\n")
    print(
        f"""
It works as it stands. Replace the example wherever {MARK} is written (docs/NEW_EXERCISE.md):
  git grep -n --untracked "{MARK}" -- {MARKED}
then
  make build
  make test TESTS=tests/test_unit{number}.py
  {python} -m autograder audit {id}
  make demo A={number}
Not the name that you meant? Take its row out of {_REGISTER}, then
  git clean -d -i -- '*{options.name}*' '*{number}_{options.exercise}_*' '*unit{number}.py'"""
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
