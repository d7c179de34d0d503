"""A user's server, started with his or her rights: lessons into the home, then JupyterLab on a
page that says where they are.

Copies are the user's own: what is there already stays as it is.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

LESSONS = Path(__file__).resolve().parents[2] / "notebooks"
FIRST_PAGE = Path(__file__).with_name("START_HERE.md")


def bring_lessons(home: Path, lessons: Path = LESSONS) -> None:
    """Lessons that ``home``/lessons has not got yet, and the first page."""
    if not (home / FIRST_PAGE.name).exists():
        shutil.copyfile(FIRST_PAGE, home / FIRST_PAGE.name)
    place = home / "lessons"
    place.mkdir(exist_ok=True)
    for lesson in sorted(lessons.glob("*.ipynb")):
        if not (place / lesson.name).exists():
            shutil.copyfile(lesson, place / lesson.name)


if __name__ == "__main__":
    from jupyterhub.singleuser import main

    try:
        bring_lessons(Path.home())
    except OSError as error:  # a full disk: the server must start, to make room in
        print(f"The lessons were not copied: {error}", file=sys.stderr)
    sys.exit(main())
