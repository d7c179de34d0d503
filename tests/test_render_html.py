"""Reports in HTML: nothing foreign becomes markup, both themes can be read, sanitisers agree."""

from __future__ import annotations

import html
import re
from dataclasses import replace
from html.parser import HTMLParser

import bleach
import numpy as np
import pytest
from bleach.css_sanitizer import CSSSanitizer

from autograder.records import Access, Case, CaseResult, CompileFacts, Finding, View
from autograder.render import style
from autograder.render.html import (
    ATTRIBUTES,
    STYLES,
    TAGS,
    Hints,
    Report,
    feedback_html,
    hints_html,
    picture,
    verdict_html,
)
from autograder.render.text import verdict_text
from tests.figure_looks import contrast
from tests.render_records import EXERCISE, LESSON, OUTSIDE, failed, passed, shown, unsure, vector

EVIL = '<script>alert(1)</script>"\' onload="x" </div></p> &amp; $x_1$ \u202e\x1b[31m'


class Page(HTMLParser):
    """Tags with attributes, the text, and whether every tag is closed in order."""

    VOID = {"img", "br", "path", "use", "rect"}

    def __init__(self, text: str):
        super().__init__()
        self.tags: list[tuple[str, dict]] = []
        self.words: list[str] = []
        self.open: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open and self.open[-1] == tag, f"</{tag}> closes {self.open[-1:]}"
        self.open.pop()

    def handle_data(self, data):
        self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


def hostile():
    view = View(0, 0, (10,), (1,), "float32")
    offsets, on = np.arange(16)[None], np.ones((1, 16), bool)
    access = Access(EVIL, 3, EVIL, "store", np.array([0]), offsets, on, offsets < 10, view)
    finding = replace(OUTSIDE, kernel=EVIL, argument=EVIL, message=EVIL, access=access)
    verdict = failed(finding)
    result = CaseResult(Case(EVIL, {EVIL: EVIL}), "fail", (finding,), 7, 2, 3, 0.5)
    facts = CompileFacts(EVIL, EVIL, 1, 2, 3, 4, {EVIL + "mma": 5}, error=EVIL)
    return replace(
        verdict,
        exercise=EVIL,
        message=EVIL,
        warnings=(EVIL,),
        cases=(result, *verdict.cases),
        compiled=(facts,),
        aspects=(replace(verdict.aspects[2], name=EVIL, note=EVIL), *verdict.aspects),
    )


EVIL_EXERCISE = replace(
    EXERCISE, title=EVIL, limit_text=EVIL, hints=(EVIL, EVIL), notes={"out_of_bounds": EVIL}
)
PAGES = {
    "passed": lambda: verdict_html(passed(), EXERCISE),
    "failed": lambda: verdict_html(failed(), EXERCISE),
    "unsure": lambda: verdict_html(unsure(), EXERCISE),
    "hidden": lambda: verdict_html(failed(hidden=Case("r", {"n": 3}, hidden=True)), EXERCISE),
    "hostile": lambda: verdict_html(hostile(), EVIL_EXERCISE),
    "feedback": lambda: feedback_html(failed(), EXERCISE),
    "hostile feedback": lambda: feedback_html(hostile(), EVIL_EXERCISE),
    "hints": lambda: hints_html(EXERCISE, 1),
    "hostile hints": lambda: hints_html(EVIL_EXERCISE),
    "no exercise": lambda: verdict_html(failed()),
}


@pytest.fixture(scope="module", params=PAGES)
def page(request):
    return PAGES[request.param]()


def test_tags_are_closed_in_order(page):
    assert Page(page).open == []


def test_nothing_in_it_runs_or_is_fetched(page):
    for tag, attributes in Page(page).tags:
        assert tag not in ("script", "style", "iframe", "object", "link", "form", "img"), tag
        for name, value in attributes.items():
            assert not name.startswith("on"), name
            if name.endswith("href"):
                assert value.startswith("#")
            if name == "style":
                assert "url(" not in value or re.fullmatch(r"[^(]*url\(#[\w-]+\).*", value), value
                assert "expression" not in value and "import" not in value


def test_it_holds_no_control_or_direction_character(page):
    bad = [c for c in html.unescape(page) if not c.isprintable() and c not in "\n\u202f"]
    assert bad == []


def test_foreign_words_appear_as_words():
    page = Page(verdict_html(hostile(), EVIL_EXERCISE))
    assert "<script>alert(1)</script>" in page.text
    assert "\\u202e\\x1b[31m" in page.text


def test_the_report_says_what_the_text_says():
    words = Page(verdict_html(failed(), EXERCISE)).text
    for said in (
        "✗ fail",
        "02.add Vector add",
        "6 of 8 points",
        "on 1 of 2 cases",
        "add_kernel, line 7 · case “the lesson's length”",
        shown(OUTSIDE.message),
        EXERCISE.notes["out_of_bounds"],
        "moved 295 296 elements = 3.00 n; limit 3n + 5 %",
        "26 registers a thread",
    ):
        assert said in words, said


def test_the_picture_shows_the_lanes_in_the_ink_of_the_page():
    page = verdict_html(failed(), EXERCISE)
    (svg,) = [attributes for tag, attributes in Page(page).tags if tag == "svg"]
    assert svg["aria-label"] == "store to out, program 96: 896 of 1024 lanes are outside"
    assert "currentColor" in page and style.INK not in page
    assert style.OUTSIDE in page.split("<svg")[1]
    assert "<svg" not in verdict_html(passed(), EXERCISE)
    assert picture(failed())[:8] == b"\x89PNG\r\n\x1a\n"
    assert picture(passed()) is None


@pytest.mark.parametrize("kind", ["race", "uninitialised", "values"])
def test_a_fault_that_lanes_do_not_show_has_no_picture(kind):
    access = replace(vector(64, 16, [3]), active=np.ones((1, 16), bool))
    verdict = failed(Finding(kind, "Two programs meet.", access=access))
    assert "<svg" not in verdict_html(verdict, EXERCISE) and picture(verdict) is None
    both = failed(verdict.findings[0], OUTSIDE)  # the one that lanes show is drawn
    assert "896 of 1024 lanes are outside" in verdict_html(both, EXERCISE)


def test_a_picture_that_fails_leaves_the_verdict_standing(monkeypatch):
    import autograder.render.html as module

    def broken(access):
        raise RuntimeError("no <room>")

    monkeypatch.setattr(module, "lanes_over_array", broken)
    page = Page(verdict_html(failed(), EXERCISE))
    assert "The picture could not be drawn: no <room>." in page.text
    with pytest.warns(RuntimeWarning, match="no <room>"):
        assert picture(failed()) is None
    assert shown(OUTSIDE.message) in page.text


def test_colours_can_be_read_on_light_and_dark_pages(page):
    """Text colours are the page's own, or white on a badge (WCAG AA: 4.5 to 1)."""
    for _, attributes in Page(page).tags:
        look = dict(
            part.split(":", 1) for part in (attributes.get("style") or "").split(";") if ":" in part
        )
        colour, ground = look.get("color"), look.get("background-color", "transparent")
        if colour not in (None, "inherit"):
            assert contrast(colour, ground) >= 4.5, look
        else:
            assert ground == "transparent", look


def test_a_sanitiser_takes_nothing_from_the_feedback():
    for verdict, exercise in ((failed(), EXERCISE), (hostile(), EVIL_EXERCISE)):
        page = feedback_html(verdict, exercise)
        clean = bleach.clean(
            page,
            tags=set(TAGS),
            attributes=ATTRIBUTES,
            css_sanitizer=CSSSanitizer(allowed_css_properties=STYLES),
        )
        before, after = Page(page), Page(clean)
        assert after.text == before.text
        assert [tag for tag, _ in after.tags] == [tag for tag, _ in before.tags]

        def looks(parsed):
            return [
                re.sub(r"[\s;]", "", attributes.get("style") or "") for _, attributes in parsed.tags
            ]

        assert looks(after) == looks(before)


def test_a_long_word_breaks_and_does_not_widen_the_page():
    """As far as can be told without a browser; break-word does nothing to the cells of a table."""
    page = feedback_html(replace(failed(), message="x" * 500), EXERCISE)
    assert "overflow-wrap:break-word" in Page(page).tags[0][1]["style"]
    rows = [re.findall(r'<td style="([^"]*)', row) for row in re.findall(r"<tr.*?</tr>", page)]
    rows = [row for row in rows if row]
    assert rows and all("overflow-wrap:anywhere" in row[-1] for row in rows)
    assert not any("anywhere" in cell for row in rows for cell in row[:-1])
    assert re.search(r'<span style="white-space:nowrap">\d of \d', page)


def test_a_fold_shows_that_it_opens_where_the_page_resets_summaries():
    page = Page(feedback_html(failed(), EXERCISE) + hints_html(EXERCISE, 1))
    folds = [attributes["style"] for tag, attributes in page.tags if tag == "summary"]
    assert len(folds) > 1 and all("display:list-item" in look for look in folds)


def test_the_report_object():
    report = Report(failed(), EXERCISE)
    assert repr(report) == verdict_text(failed(), EXERCISE)
    assert Page(report._repr_html_()).text == Page(verdict_html(failed(), EXERCISE)).text
    assert not report.passed and Report(passed(), EXERCISE).passed
    assert not Report(unsure(), EXERCISE).passed
    assert report.verdict.verdict == "fail"


def test_hints_open_only_one_after_the_other():
    page = hints_html(EXERCISE)
    assert page.index("hint 1 of 3") < page.index("Think of one program.")
    inside = re.search(r"<details.*?>(.*)</details>", page, re.S)[1]
    for number in (2, 3):  # each stands inside the details of the one before
        inside = re.search(r"<details.*?>(.*)</details>", inside, re.S)[1]
        assert f"hint {number} of 3" in inside and f"hint {number - 1} of 3" not in inside
    assert "&lt;block&gt;" in page and " open" not in page
    opened = Hints(EXERCISE, 2)
    assert opened._repr_html_().count("<details open") == 2
    assert "hint 2 of 3" in repr(opened) and "hint 3" not in repr(opened)
    assert "has no hints" in hints_html(replace(EXERCISE, hints=()))


def test_a_table_of_cases_shows_public_sizes_and_names_hidden_cases():
    hidden = Case("ragged length", {"n": 77773}, hidden=True)
    told = feedback_html(failed(hidden=hidden), EXERCISE)
    page = Page(told)
    assert "the 3 cases" in page.text
    assert "n\u202f=\u202f98432, dtype\u202f=\u202f" in told  # a row ends between two sizes only
    assert "n = 98432, dtype = float32" in page.text
    assert "ragged length hidden" in page.text
    assert "77773" not in page.text


def test_a_case_that_moved_nothing_says_so_beside_its_limit():
    none, many = (replace(passed().cases[0], elements=e, limit=15750) for e in (None, 15000))
    told = verdict_html(replace(passed(), cases=(none, many)), EXERCISE)
    assert ">– of 15\u202f750<" in told
    assert ">15\u202f000 of 15\u202f750<" in told


def test_a_report_without_findings_says_what_passed():
    page = Page(verdict_html(replace(passed(), cases=passed().cases[:1]), EXERCISE))
    assert "the only one passes" in page.text
    assert LESSON.label in page.text  # of the traffic and the error
