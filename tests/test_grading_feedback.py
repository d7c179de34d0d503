"""The feedback page of what no lexer gets through in time: shown as it is, escaped."""

import nbformat
import pytest
from nbconvert.exporters import HTMLExporter
from nbformat.v4 import new_code_cell, new_notebook

from autograder.grading import preprocessors
from tests.grading_course import make_course  # noqa: F401 - keeps a slow grammar from loading


def _page(monkeypatch, source):
    """(HTML, sources that the highlighter was given) of a notebook with one solution cell."""
    marks = {"grade_id": "solution-02-add", "solution": True, "grade": False, "task": False}
    notebook = new_notebook(cells=[new_code_cell(source, metadata={"nbgrader": marks})])
    resources = {
        "nbgrader": {
            "assignment": "02_vector_add",
            "notebook": "02_vector_add",
            "score": 0,
            "max_score": 1,
            "late_penalty": 0,
        }
    }
    notebook, resources = preprocessors.FeedbackOnly().preprocess(notebook, resources)
    exporter = HTMLExporter(
        template_name="course_feedback",
        extra_template_basedirs=[str(preprocessors.TEMPLATES)],
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
