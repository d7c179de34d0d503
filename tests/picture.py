"""The README's picture of a failed check: ``python -m tests.picture`` runs the check, draws it.

One SVG on paper of its own, light or dark as the reader's browser asks for, so that it can be read
on any page.
"""

from __future__ import annotations

import sys
import tempfile
from html import escape
from pathlib import Path

from autograder import exercises
from autograder.checking import check_functions
from autograder.records import Access, Verdict
from autograder.render import style
from autograder.render.lanes import lanes_over_array
from autograder.render.text import verdict_text
from autograder.solutions import load_solution
from course.build import ROOT

FILE = "docs/pictures/failed_check.svg"
ANSWER = "tests/submissions/wrong/02_add_missing_load_mask.py"
_CASE = "five elements"  # small enough to see every lane
_WIDTH, _LEFT, _LINE = 806, 16, 17  # pixels
_SPACE = "\u00a0"  # browsers make one of several ordinary ones
_LOOK = ".paper{fill:%(paper)s;stroke:%(edge)s}svg{color:%(ink)s}.fault{fill:%(fault)s}"
_THEMES = f"{_LOOK % style.LIGHT}@media(prefers-color-scheme:dark){{{_LOOK % style.DARK}}}"


def failed(root: Path = ROOT) -> Verdict:
    """The check of a vector addition whose loads have no mask: five numbers, blocks of eight."""
    exercise = exercises.get("02.add")
    cases = [case for case in exercise.cases if case.label == _CASE]
    with tempfile.TemporaryDirectory() as folder:
        answer = Path(folder) / "answer.py"
        text = (root / ANSWER).read_text(encoding="utf-8").replace("1024", "8")
        answer.write_text(text, encoding="utf-8")
        return check_functions(exercise, load_solution(str(answer)), cases, pictures=True)


def words(verdict: Verdict) -> list[str]:
    """What a terminal shows: points by aspect, and the first fault."""
    lines = verdict_text(verdict, exercises.get("02.add")).splitlines()
    starts = [i for i, line in enumerate(lines) if line.startswith("✗")]
    table = [line for line in lines[1 : starts[1]] if line.startswith(("  ✓", "  ✗"))]
    return [lines[0], *table, *lines[starts[1] : [*starts, len(lines)][2]]]


def drawn(verdict: Verdict) -> str:
    """The SVG: the words, and below them the lanes of the first fault."""
    lines = words(verdict)
    access: Access = next(f.access for f in verdict.findings if f.access is not None)
    figure = lanes_over_array(access)
    top = _LINE * len(lines) + 22
    width, height = (round(96 * inches) for inches in figure.get_size_inches())
    text = "".join(
        f'<text x="{_LEFT}" y="{22 + _LINE * i}" {_ink(line)} '
        f'font-weight="{"bold" if line.startswith("✗") else "normal"}">'
        f"{escape(line).replace(' ', _SPACE)}</text>"
        for i, line in enumerate(lines)
    )
    lanes = style.svg(figure).replace("<svg ", f'<svg x="0" y="{top}" ', 1)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" '
        f'role="img" width="{_WIDTH}" height="{top + height + 8}" '
        f'viewBox="0 0 {max(_WIDTH, width)} {top + height + 8}">'
        f"<title>{escape(lines[0])}</title><style>{_THEMES}</style>"
        f'<rect class="paper" x="0.5" y="0.5" width="{_WIDTH - 1}" height="{top + height + 7}" '
        f'rx="6"/><g font-size="13" font-family="ui-monospace,Menlo,Consolas,'
        f"'DejaVu Sans Mono',monospace\">{text}</g>{lanes}</svg>\n"
    )


def _ink(line: str) -> str:
    return 'class="fault"' if line.startswith("✗") else 'fill="currentColor"'


def main() -> int:
    picture = drawn(failed())
    (ROOT / FILE).parent.mkdir(parents=True, exist_ok=True)
    (ROOT / FILE).write_text(picture, encoding="utf-8")
    print(f"{FILE}: {len(picture) // 1024} KB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
