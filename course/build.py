"""Builds every notebook from its text: ``python -m course.build [--check | --missing | --force]``.

lessons/NN.py → notebooks/, solutions/ · assignments/NN.py → source/, solutions/, and by nbgrader
release/.
The same texts give the same bytes. ``docs/EDITING.md`` has the rules of the texts.
"""

from __future__ import annotations

import argparse
import logging
import sys
import tempfile
from pathlib import Path

import nbformat
from nbformat import NotebookNode
from rich.progress import track

from autograder import exercises
from autograder.exercises import tables
from autograder.records import Rejected
from course.text import (
    CourseError,
    digest,
    is_edited,
    lesson_notebook,
    parse,
    solution_page,
    source_notebook,
    with_holes,
)

ROOT = Path(__file__).resolve().parent.parent
BUILT = ("notebooks", "source", "release", "solutions")


def texts(root: Path) -> list[Path]:
    """The texts of a checkout, lessons before assignments."""
    return [
        text
        for kind in ("lessons", "assignments")
        for text in sorted((root / "course" / kind).glob("*.py"))
    ]


def targets(text: Path) -> tuple[str, ...]:
    """What a text builds, as paths from the checkout. The first is the notebook that authors open
    in JupyterLab, whose edits ``course.sync`` brings back; the second the solution page."""
    name = text.stem
    if text.parent.name == "lessons":
        return f"notebooks/{name}.ipynb", f"solutions/{name}_lesson.ipynb"
    source = f"source/{name}/{name}.ipynb"
    return source, f"solutions/{name}_assignment.ipynb", f"release/{name}/{name}.ipynb"


def notebooks_of(text: Path, content: str | None = None) -> dict[str, NotebookNode]:
    """What one text gives, without nbgrader's part: path from the checkout → notebook.

    ``content`` stands for the file's own. Raises CourseError with the name of the text.
    """
    keys = {} if text.parent.name == "lessons" else _judged(text)
    try:
        cells = parse(text.read_text(encoding="utf-8") if content is None else content)
        if text.parent.name == "lessons":
            complete = lesson_notebook(cells)
            shown = with_holes(complete)
        else:
            complete = shown = source_notebook(cells, text.stem, keys)
            with_holes(complete, solutions_only=True)  # nbgrader would raise with a traceback
    except CourseError as error:
        raise CourseError(f"{text.parent.name}/{text.name}: {error}") from error
    notebook, page, *_ = targets(text)
    return {notebook: shown, page: solution_page(complete)}


def _judged(text: Path) -> dict:
    """The hidden data of an assignment; CourseError where they or its tables cannot judge."""
    try:
        asked = exercises.of_assignment(text.stem)
        for exercise in asked:
            tables.check(exercise)
        return tables.read_hidden(text.parents[1] / f"hidden/{text.stem}.json", asked) or {}
    except Rejected as error:
        raise CourseError(str(error)) from error


def release(sources: dict[str, str], config: Path = ROOT) -> dict[str, str]:
    """What nbgrader's generate_assignment makes of the source notebooks (path → text).

    Runs in a temporary course root with the settings of ``config``/nbgrader_config.py and without
    a gradebook, so nothing but the result remains.
    """
    from nbgrader.converters import GenerateAssignment  # nbgrader takes a second to import
    from nbgrader.coursedir import CourseDirectory
    from traitlets.config import PyFileConfigLoader

    settings = PyFileConfigLoader("nbgrader_config.py", path=str(config)).load_config()
    settings.SaveCells.enabled = False  # these two are generate_assignment's --no-db
    settings.GenerateAssignment.no_database = True
    made = {}
    with tempfile.TemporaryDirectory(prefix="course-") as folder:
        root = Path(folder)
        _write(root, sources)
        settings.CourseDirectory.root = str(root)
        logging.getLogger("traitlets").setLevel(logging.ERROR)
        for path in track(sorted(sources), "nbgrader generate_assignment"):
            settings.CourseDirectory.assignment_id = Path(path).stem
            course = CourseDirectory(config=settings)
            GenerateAssignment(coursedir=course, config=settings).start()
        for path in sorted((root / "release").rglob("*")):
            if path.is_file():
                made[path.relative_to(root).as_posix()] = path.read_text(encoding="utf-8")
    return made


def products(root: Path) -> dict[str, str]:
    """All that the texts of a checkout give: path from the checkout → content."""
    built = {}
    for text in texts(root):
        for path, notebook in notebooks_of(text).items():
            built[path] = nbformat.writes(notebook) + "\n"
    sources = {path: content for path, content in built.items() if path.startswith("source/")}
    return built | release(sources)


def drift(root: Path) -> list[str]:
    """Sentences that say where the built notebooks are not what the texts say; empty when clean."""
    wanted = products(root)
    present = {
        path.relative_to(root).as_posix()
        for folder in BUILT
        for path in (root / folder).rglob("*")
        if path.is_file() and ".ipynb_checkpoints" not in path.parts
    }
    faults = [
        f"{path} has no text in course/: delete it." for path in sorted(present - set(wanted))
    ]
    for path, content in wanted.items():
        if path not in present:
            faults.append(f"{path} is missing: run `make build`.")
        elif (root / path).read_text(encoding="utf-8") != content:
            faults.append(f"{path} is not what its text says: run `make build`.")
    return faults


def build(root: Path, *, missing: bool = False, force: bool = False) -> list[str]:
    """Writes what differs and returns those paths.

    ``missing`` writes only files that do not exist, so that nobody's work is touched. Otherwise
    raises CourseError where work would be lost (edits not in the text, a student's answers in
    release/), unless ``force``.
    """
    there = [(root / path).exists() for text in texts(root) for path in targets(text)]
    if missing and all(there):
        return []  # at once: every `make lab` asks
    changed = {}
    for path, content in products(root).items():
        target = root / path
        if not target.exists():
            changed[path] = content
        elif not missing and target.read_text(encoding="utf-8") != content:
            if not force and (loss := _would_lose(target, content)):
                raise CourseError(f"{path} {loss} `make build FORCE=1` overwrites it.")
            changed[path] = content
    _write(root, changed)
    return list(changed)


def read_notebook(path: Path) -> NotebookNode:
    """A notebook from disk. Raises CourseError where it is none."""
    try:
        return nbformat.read(path, as_version=4)
    except (nbformat.reader.NotJSONError, nbformat.ValidationError, UnicodeDecodeError) as error:
        raise CourseError(f"{path.name} is no notebook: `make build` writes it anew.") from error


def _would_lose(target: Path, content: str) -> str:
    """Why ``content`` must not overwrite the notebook, or nothing."""
    try:
        notebook = read_notebook(target)
    except CourseError:
        return ""  # for example a merge's conflict marks, which a build is there to resolve
    top = target.parent.name if target.parent.name == "notebooks" else target.parent.parent.name
    if top == "release":
        from nbgrader.utils import compute_checksum, is_solution

        answered = any(
            cell.metadata.nbgrader.get("checksum") != compute_checksum(cell)
            for cell in notebook.cells
            if is_solution(cell)
        )
        return "holds answers: move it elsewhere first." if answered else ""
    fresh = nbformat.reads(content, as_version=4)
    if top in ("notebooks", "source") and is_edited(notebook) and digest(notebook) != digest(fresh):
        return "was edited: `make sync` brings the edits into the text."
    return ""


def _write(root: Path, contents: dict[str, str]) -> None:
    for path, content in contents.items():
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(content, encoding="utf-8")


def main(arguments: list[str] | None = None) -> int:
    """The command line; 1 with a sentence where something is wrong."""
    parser = argparse.ArgumentParser(prog="python -m course.build", description=__doc__)
    parser.add_argument("--root", type=Path, default=ROOT, help="another checkout")
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument("--check", action="store_true", help="write nothing; fail on drift")
    mode.add_argument("--missing", action="store_true", help="write only files that do not exist")
    mode.add_argument("--force", action="store_true", help="overwrite edited notebooks too")
    options = parser.parse_args(arguments)
    try:
        if options.check:
            faults = drift(options.root)
        else:
            written = build(options.root, missing=options.missing, force=options.force)
            print("\n".join(f"built {path}" for path in written) or "All notebooks are up to date.")
            faults = []
    except CourseError as error:
        faults = [str(error)]
    for fault in faults:
        print(fault, file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
