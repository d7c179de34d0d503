"""What a student gets, as one archive: ``python -m course.bundle`` writes dist/triton-course.zip.

Lessons, released assignments and the packages without grading and hub; no text with solutions, no
hidden cases. It unpacks into one folder and works there without git: ``make lab``.
"""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path

from course.build import ROOT, products
from course.text import CourseError

ARCHIVE = Path("dist/triton-course.zip")
_FOLDER = "triton-course"
# The packages that notebooks import, and what of them is for graders and the lab only.
_PACKAGES = {
    "autograder": {"grading"},
    "lab_setup": {"hub", "kernels", "jupyterhub_config.py"},
}
_CUT = "# ---- From here on for instructors"  # in Makefile and requirements.txt
_DATE = (2026, 1, 1, 0, 0, 0)  # a fixed one: the same content gives the same bytes


def contents(root: Path) -> dict[str, bytes]:
    """The files of the bundle: path inside its folder → content.

    Notebooks come from the texts, not from disk, so that nobody's outputs travel along.
    """
    files = {
        path: content.encode()
        for path, content in products(root).items()
        if path.startswith(("notebooks/", "release/"))
    }
    for package, kept_back in _PACKAGES.items():
        for path in sorted((root / package).rglob("*.*")):
            inside = path.relative_to(root)
            if path.is_file() and path.suffix != ".pyc" and inside.parts[1] not in kept_back:
                files[inside.as_posix()] = path.read_bytes()
    for name in ("Makefile", "requirements.txt"):
        text = (root / name).read_text(encoding="utf-8")
        head, cut, _ = text.partition(_CUT)
        if not cut:
            raise CourseError(f"{name} has lost the line '{_CUT}', which ends the students' part.")
        files[name] = head.rstrip().encode() + b"\n"
    files["README.md"] = (root / "course/student/README.md").read_bytes()
    # The figures that lesson 11 climbs: the kernels behind them answer exercises and stay here.
    for name in ("docs/INTERPRETER.md", "docs/WSL2.md", "docs/measured/kernels_h200.json"):
        files[name] = (root / name).read_bytes()
    files["LICENSE"] = (root / "LICENSE").read_bytes()
    return files


def write(root: Path, archive: Path) -> int:
    """Writes the archive and returns how many files it holds."""
    files = contents(root)
    archive.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as zipped:
        for path, content in sorted(files.items()):
            entry = zipfile.ZipInfo(f"{_FOLDER}/{path}", _DATE)
            entry.external_attr, entry.compress_type = 0o644 << 16, zipfile.ZIP_DEFLATED
            zipped.writestr(entry, content)
    return len(files)


def main() -> int:
    try:
        count = write(ROOT, ROOT / ARCHIVE)
    except CourseError as error:
        print(error, file=sys.stderr)
        return 1
    print(f"{ARCHIVE}: {count} files, {(ROOT / ARCHIVE).stat().st_size // 1024} KB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
