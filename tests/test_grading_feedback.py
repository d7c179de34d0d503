"""The feedback page: what no lexer gets through in time, what could not be read, levels."""

import re

import nbformat
import pytest
from nbconvert.exporters import HTMLExporter
from nbformat.v4 import new_code_cell, new_notebook

from autograder import exercises
from autograder.grading import feedback
from autograder.grading.solving import check_id
from autograder.render import style
from tests.figure_looks import ENOUGH, contrast
from tests.grading_course import make_course  # noqa: F401 - keeps a slow grammar from loading


def _page(monkeypatch, source):
    """(HTML, sources that the highlighter was given) of a notebook with one solution cell."""
    marks = {"grade_id": "solution-02-add", "solution": True, "grade": False, "task": False}
    cell = new_code_cell(source, metadata={"nbgrader": marks})
    return _page_of(monkeypatch, new_notebook(cells=[cell]), "02_vector_add")


def _page_of(monkeypatch, notebook, assignment):
    resources = {
        "nbgrader": {
            "assignment": assignment,
            "notebook": assignment,
            "score": 0,
            "max_score": 1,
            "late_penalty": 0,
        }
    }
    # Whether a person has typed points in is the gradebook's to say (test_grading_class).
    monkeypatch.setattr(feedback, "_still_undecided", lambda ids, names: list(ids))
    notebook, resources = feedback.FeedbackOnly().preprocess(notebook, resources)
    exporter = HTMLExporter(
        template_name="course_feedback",
        extra_template_basedirs=[str(feedback.TEMPLATES)],
    )
    highlighted = []

    def highlight(text, **options):
        highlighted.append(text)
        return "<p>highlighted</p>"

    exporter.register_filter("highlight_code", highlight)
    monkeypatch.setattr(
        "nbconvert.exporters.html.Highlight2HTML", lambda *given, **options: highlight
    )
    page, _ = exporter.from_notebook_node(nbformat.from_dict(notebook), resources=resources)
    return page, highlighted


@pytest.mark.parametrize(
    "source",
    [
        "x = 1" + "\n " * 60_000 + "\npass",
        "x = 1" + "\n" * 1500 + "pass",
        "x = '<b>'\n" + "a." * 600,
        "x = '<b>'\n" + "1." * 60_000,
        "x = '<b>'\n" * 3000,
    ],
)
def test_what_takes_a_lexer_hours_is_shown_without_it(monkeypatch, source):
    page, highlighted = _page(monkeypatch, source)
    assert highlighted == []
    body = page[page.index("<body") :]
    assert "<pre>x = " in body and "<b>" not in body


def test_what_people_write_is_highlighted(monkeypatch):
    source = "def add(x, y):\n\n\n    return x + y  # " + "y" * 500
    page, highlighted = _page(monkeypatch, source)
    assert highlighted == [source] and "<p>highlighted</p>" in page


def test_the_page_is_dark_where_the_browser_is_and_light_on_paper(monkeypatch):
    page, _ = _page(monkeypatch, "x = 1")
    looks = page[page.index("<style>") : page.index("</style>")]
    light, dark, rest = looks.split("@media ")[1:4]
    assert light.startswith("print, (prefers-color-scheme: light)")
    assert dark.startswith("screen and (prefers-color-scheme: dark)")
    for theme, colours in ((light, style.LIGHT), (dark, style.DARK)):
        assert all(f"--{part}: {colour};" in theme for part, colour in colours.items())
        code = re.findall(r"\.highlight \.(?!w )\w+ { color: (#\w{6})", theme)
        assert len(code) > 20 and min(contrast(c, colours["wash"]) for c in code) >= ENOUGH
    assert "color-scheme: light" in light and "color-scheme: dark" in dark
    own = dark[dark.index("\nbody {") :] + rest
    assert "print-color-adjust: exact" in own  # else white words on badges are grey on paper
    assert not re.search(r"#[0-9a-f]{3,6}\b", own)
    assert set(re.findall(r"var\(--(\w+)\)", own)) <= style.LIGHT.keys() == style.DARK.keys()


@pytest.mark.parametrize(
    ("undecided", "said"), [([], "· level Boss reached"), (["check-06-flash_boss"], "")]
)
def test_the_page_of_an_assignment_with_levels_says_which_one_is_reached(
    monkeypatch, undecided, said
):
    cells = []
    for exercise in exercises.of_assignment("06"):
        points = exercise.max_points
        marks = {"grade_id": check_id(exercise.id), "grade": True, "solution": False, "task": False}
        missed = exercise.id in ("06.flash_strong", "06.flash_gqa")
        marks |= {"points": points, "score": 0.0 if missed else points}
        cells.append(new_code_cell("check()", metadata={"nbgrader": marks}))
    notebook = new_notebook(cells=cells, metadata={"autograder": {"undecided": undecided}})
    page, _ = _page_of(monkeypatch, notebook, "06_flash_attention")
    assert page.count("FlashAttention, causal · level Boss") == 2  # in the summary, and above
    body = page[page.index("<body") :]
    assert said in body and (bool(said) == ("reached" in body))


@pytest.mark.parametrize("status", ["invalid", "infrastructure"])
def test_of_what_could_not_be_read_the_page_says_only_why(monkeypatch, status):
    """The released stub is not what the student wrote, and 0 points are not what it got."""
    own = {"grade_id": "solution-02-add", "solution": True, "grade": False, "task": False}
    check = {"grade_id": "check-02-add", "grade": True, "solution": False, "task": False}
    cells = [
        new_code_cell(
            "pass  # your lines", metadata={"nbgrader": own | {"comment": "No response."}}
        ),
        new_code_cell("check()", metadata={"nbgrader": check | {"points": 8, "score": 0.0}}),
    ]
    about = {"status": status, "message": "It was <cut> off.", "undecided": ["check-02-add"]}
    notebook = new_notebook(cells=cells, metadata={"autograder": about})
    page, _ = _page_of(monkeypatch, notebook, "02_vector_add")
    body = page[page.index("<body") :]
    assert body.count("It was &lt;cut&gt; off.") == 1
    unread = status == "invalid"
    assert ("Not graded" in body) is unread
    for words in ("Points so far: 0 of 1", "No response.", "not decided yet"):
        assert (words in body) is not unread, words
