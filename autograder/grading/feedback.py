"""The feedback page: what of an autograded notebook a student gets, and how it is shown.

``FeedbackOnly`` runs before nbgrader's HTML exporter, which fills the template in ``templates/``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from nbconvert.preprocessors.sanitize import SanitizeHTML
from nbgrader.api import Gradebook
from nbgrader.preprocessors import NbGraderPreprocessor
from pygments.formatters import HtmlFormatter

from autograder import exercises
from autograder.exercises import levels
from autograder.grading.preprocessors import KEY
from autograder.grading.solving import check_id, exercise_id
from autograder.records import Exercise, Rejected
from autograder.render import style
from autograder.render.html import ATTRIBUTES, STYLES, TAGS

TEMPLATES = Path(__file__).parent / "templates"
# In a light and in a dark browser: colours, and Pygments' style for code.
THEMES = {"light": (style.LIGHT, "default"), "dark": (style.DARK, "github-dark")}
PLAIN = "autograder_plain"  # in a cell's nbgrader metadata: shown without highlighting


class FeedbackOnly(NbGraderPreprocessor):
    """Leaves on the feedback page what a student looks for: own code, points, what the judge said.

    Check cells lose their source, which holds calls and no news; prose cells stay in the notebook.
    """

    def preprocess(self, nb, resources):
        cells = []
        for cell in nb.cells:
            marks = cell.metadata.get("nbgrader", {})
            if marks.get("grade") or marks.get("solution") or marks.get("task"):
                if not _can_be_highlighted(cell.source):
                    marks[PLAIN] = True
                if marks.get("grade") and not marks.get("solution") and cell.cell_type == "code":
                    cell.source = ""
                cells.append(cell)
        nb.cells = cells
        nb, resources = _sanitiser().preprocess(nb, resources)
        about = {"status": "ok", "message": "", "notes": [], "undecided": []}
        about |= dict(nb.metadata.get(KEY, {}))
        about["undecided"] = _still_undecided(about["undecided"], resources["nbgrader"])
        asked = _asked(resources["nbgrader"]["assignment"])
        resources[KEY] = about | {
            "titles": {check_id(e.id): e.heading for e in asked},
            "level": levels.reached(asked, _decided(cells, about["undecided"])),
            "themes": {
                name: {
                    "colours": colours,
                    "code": HtmlFormatter(style=code).get_style_defs(".highlight"),
                }
                for name, (colours, code) in THEMES.items()
            },
        }
        return nb, resources


def _still_undecided(grade_ids: Iterable[str], names) -> list[str]:
    """Those of ``grade_ids`` into which no person has typed a score since."""
    if not grade_ids:
        return []
    with Gradebook(names["db_url"]) as gradebook:
        whose = (names["notebook"], names["assignment"], names["student"])
        scores = {id: gradebook.find_grade(id, *whose).manual_score for id in grade_ids}
    return [id for id, score in scores.items() if score is None]


_MOST_HIGHLIGHTED = 20_000  # characters of a cell
_LONGEST_LINE = 1000
_LONGEST_SPACE = 400  # characters of white space in a row, line ends among them


def _can_be_highlighted(source: str) -> bool:
    """Whether a lexer gets through ``source`` soon. Pygments' rules backtrack: on one long run of
    white space, digits or names they need time that grows with its square, an hour for a cell of
    100 kB, while a class waits. What nobody writes by hand is shown as it is."""
    if len(source) > _MOST_HIGHLIGHTED:
        return False
    longest = max(map(len, source.split("\n")))
    return longest <= _LONGEST_LINE and not re.search(rf"\s{{{_LONGEST_SPACE + 1}}}", source)


def _sanitiser() -> SanitizeHTML:
    """Of HTML only what the judge's feedback uses; the student's text is escaped in it anyway."""
    return SanitizeHTML(tags=list(TAGS), attributes=ATTRIBUTES, styles=list(STYLES), strip=True)


def _asked(assignment: str) -> tuple[Exercise, ...]:
    try:
        return exercises.of_assignment(assignment)
    except Rejected:
        return ()


def _decided(cells, undecided: Iterable[str]) -> dict[str, float]:
    """Points by exercise id, of the check cells that somebody has decided on."""
    marks = [cell.metadata.get("nbgrader", {}) for cell in cells]
    return {
        exercise_id(m["grade_id"]): m["score"] or 0.0
        for m in marks
        if m.get("grade") and m["grade_id"] not in undecided and "score" in m
    }
