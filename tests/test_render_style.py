"""The one style file: its colours can be read in both themes and told apart in grey."""

from __future__ import annotations

import ast
import itertools
import re

import numpy as np
import pytest
from matplotlib.colors import is_color_like

from autograder.render import questions, style
from tests.figure_looks import ENOUGH, GROUNDS, assert_readable, contrast
from tests.test_house import ROOT, tracked

# The page's ink in JupyterLab (light, dark) and on GitHub's dark page, and what it stands on.
PAGES = {"#212121": GROUNDS[0], "#ffffff": GROUNDS[1], "#e6edf3": GROUNDS[2]}


def parts(colour: str) -> np.ndarray:
    return np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255


@pytest.mark.parametrize(("ink", "page"), PAGES.items())
def test_both_inks_can_be_read_in_every_theme(ink, page):
    thin = style.FAINT * parts(ink) + (1 - style.FAINT) * parts(page)
    assert contrast(ink, page) > contrast(thin, page) >= ENOUGH


def test_both_inks_can_be_read_on_the_paper_of_a_png():
    assert all(contrast(ink, style.PAPER) >= ENOUGH for ink in style.INKS)


def test_no_colour_can_be_read_on_white_and_on_black():
    """Why words on the page stand in an ink: the best grey of all has 4.3 : 1 on both."""
    best = max(min(contrast((g, g, g), page) for page in GROUNDS) for g in np.linspace(0, 1, 256))
    assert best < ENOUGH


@pytest.mark.parametrize("ground", [*itertools.product((0, 0.3, 0.6, 1), repeat=3)])
def test_words_on_any_fill_can_be_read(ground):
    assert contrast(parts(style.on(*ground)), ground) >= ENOUGH


@pytest.mark.parametrize("fill", [style.CELL, style.READ, style.WRAPPED, style.DONE])
def test_words_on_a_fill_of_the_style_can_be_read(fill):
    assert contrast(style.ON_FILL, fill) >= ENOUGH


@pytest.mark.parametrize("ground", [style.PASSED, style.OUTSIDE, style.UNDECIDED])
def test_badges_and_points_can_be_read(ground):
    assert contrast(style.PAPER, ground) >= ENOUGH


@pytest.mark.parametrize("ground", [style.CARD, style.FIELD, style.PAPER])
def test_questions_can_be_read(ground):
    assert contrast(style.INK, ground) >= ENOUGH


@pytest.mark.parametrize("theme", [style.LIGHT, style.DARK], ids=["light", "dark"])
def test_pages_of_our_own_can_be_read(theme):
    grounds = theme["paper"], theme["wash"]
    words = theme.keys() - {"paper", "wash", "edge"}
    assert len(words) == 5
    for word, ground in itertools.product(words, grounds):
        assert contrast(theme[word], ground) >= ENOUGH, (word, ground)


def lightness(colour: str) -> float:
    """L* of CIE 1976, 0 to 100."""
    light = (contrast(colour, "#000000") - 1) * 0.05
    return 116 * np.cbrt(light) - 16 if light > 216 / 24389 else light * 24389 / 27


def test_states_differ_in_grey():
    """Two states differ by 10 in L*, or by a hatch."""
    looks = list(style.STATES.values())
    for a, b in itertools.combinations(looks, 2):
        faces = [style.PAPER if x["facecolor"] == "none" else x["facecolor"] for x in (a, b)]
        apart = abs(lightness(faces[0]) - lightness(faces[1]))
        assert apart >= 10 or a.get("hatch") != b.get("hatch"), (a, b)
    assert len({look.get("hatch") for look in looks}) == 4


def test_no_other_file_has_colours_of_its_own():
    """Words that matplotlib or a browser take for a colour, in what draws and writes pages."""
    for path in tracked():
        name = path.relative_to(ROOT).as_posix()
        if not name.startswith(("autograder/", "lab_setup/")) or path.suffix != ".py":
            continue
        if name == "autograder/render/style.py":
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                assert not re.search(r"#[0-9a-fA-F]{6}\b", node.value), (name, node.lineno)
            if isinstance(node, ast.keyword) and "color" in (node.arg or ""):
                word = node.value.value if isinstance(node.value, ast.Constant) else "none"
                plain = word in ("none", "currentColor") or not is_color_like(word)
                assert plain, f"{name}:{node.value.lineno}: {word!r}"


@pytest.mark.parametrize(
    ("colour", "fill", "fault"),
    [
        (style.OUTSIDE, None, "'word' stands on the page in #b5330f"),
        (style.PAPER, style.READ, "'word' on #3f8fcb has 3.5 : 1"),
        (style.MUTED, None, ""),
        (style.ON_FILL, style.READ, ""),
    ],
)
def test_a_word_that_cannot_be_read_is_named(colour, fill, fault):
    with style.look():
        figure = style.new_figure(1, "A title")
        axes = figure.subplots()
        if fill:
            axes.axhspan(0, 1, color=fill)
        axes.text(0.5, 0.5, "word", color=colour)
        if not fault:
            return assert_readable(figure)
        with pytest.raises(AssertionError, match=re.escape(fault)):
            assert_readable(figure)


def test_no_figure_sends_its_reader_to_a_colour_by_name():
    """In grey, or to many an eye, "red: …" says nothing; a key has swatches, hatches, markers."""
    names = r"\b(red|blue|yellow|orange|green|grey|brown|violet)\b"
    for path in (ROOT / "autograder/render").glob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        told = [n.value for n in ast.walk(tree) if isinstance(n, ast.Expr)]  # docstrings
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in told:
                assert not re.search(names, node.value), f"{path.name}:{node.lineno}: {node.value}"


def test_svg_takes_both_inks_from_the_page():
    with style.look():
        figure = style.new_figure(1, "A title", "a subtitle")
        figure.subplots().plot([0, 1], color=style.MUTED, alpha=0.5)
    text = style.svg(figure)
    assert not any(ink in text for ink in style.INKS)
    thin = f"fill: currentColor; fill-opacity: {style.FAINT}"
    assert thin in text and "stroke-opacity: 0.5" in text and "stroke-opacity: 0.72; s" in text


def test_a_questions_option_shows_the_keyboards_focus(monkeypatch):
    shown = []
    monkeypatch.setattr(questions, "_in_jupyter", lambda: True)
    monkeypatch.setattr("IPython.display.display", shown.append)
    monkeypatch.setattr("jupyterquiz.display_quiz", lambda asked, **_: shown.append(asked))
    questions.ask({"question": "?", "type": "numeric", "answers": []})
    rule, asked = shown
    assert asked[0]["question"] == "?"
    focus = re.search(r":focus-within {outline: 3px solid (#\w+)}", rule.data)[1]
    assert all(contrast(focus, page) >= 3 for page in GROUNDS)  # WCAG 2, 1.4.11
    assert contrast(questions._COLOURS["--jq-mc-button-border"], style.PAPER) >= 3
