"""README and docs: links lead somewhere, commands exist, and what they claim to print is printed.

docs/INTERPRETER.md's own examples are run by test_interpreter_page.py.
"""

from __future__ import annotations

import contextlib
import re
import subprocess
import sys
import tomllib
import urllib.error
import urllib.request
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import urlsplit

import nbformat
import pytest

from autograder import exercises
from tests import links, picture
from tests.page_commands import PAGES, code
from tests.page_commands import prose as prose_of
from tests.test_house import ROOT

NAMES = [path.relative_to(ROOT).as_posix() for path in PAGES]
pages = pytest.mark.parametrize("page", PAGES, ids=NAMES)


def prose(page: Path) -> str:
    """The page without fenced blocks."""
    return prose_of(page.read_text(encoding="utf-8"))


def anchors(page: Path) -> set[str]:
    """The headings of a page as a Markdown viewer names them."""
    heads = re.findall(r"^#+ (.+)$", prose(page), re.M)
    return {re.sub(r"[^\w\- ]", "", head.lower()).strip().replace(" ", "-") for head in heads}


# ---------------------------------------------------------------- links


@pages
def test_links_lead_to_a_file_and_a_heading(page):
    for target in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`]*`", "", prose(page))):
        if re.match(r"https?://|mailto:", target):
            continue
        name, _, anchor = target.partition("#")
        if page.name == "START_HERE.md":  # it lies in a home, whose lessons/ come from notebooks/
            name = name.replace("lessons/", "../../notebooks/")
        path = (page.parent / name).resolve() if name else page
        assert path.exists(), f"{page.name} links to {target}, which does not exist."
        assert path.is_relative_to(ROOT)
        assert not anchor or anchor in anchors(path), f"{path.name} has no heading #{anchor}."


@pages
def test_files_that_are_named_exist(page):
    """A path in backticks, such as `course/hidden/`; with NN or 12 it is a form."""
    tops = "autograder|course|docs|lab_setup|tests|notebooks|release|source|solutions"
    for name in re.findall(rf"`((?:{tops})/[\w./-]*)`", prose(page)):
        made = name.startswith(("course/hidden/12", "course/assignments/12", "course/lessons/12"))
        if "NN" in name or "12_" in name or "unit12" in name or made:
            continue
        assert (ROOT / name).exists(), f"{page.name} names {name}, which does not exist."


def test_links_that_leave_the_repository_are_addresses():
    """CI has no network to follow them: `python -m tests.links` does."""
    found = links.found()
    assert found.keys() >= {"https://triton-lang.org", "https://github.com/tile-ai/tilelang"}
    for address, pages in found.items():
        parts = urlsplit(address)
        assert parts.scheme == "https" and "." in parts.netloc, f"{pages}: {address}"
        assert parts.netloc != "github.com" or len(parts.path.split("/")) >= 3, address


def test_links_are_followed_and_the_broken_are_named(capsys, monkeypatch):
    def answer(request, timeout):
        if "tilelang" in request.full_url:
            raise urllib.error.HTTPError(request.full_url, 404, "Not Found", {}, None)
        return contextlib.nullcontext(SimpleNamespace(status=200))

    monkeypatch.setattr(urllib.request, "urlopen", answer)
    assert links.main() == 1
    said = capsys.readouterr().out.splitlines()
    broken = [line for line in said if not line.startswith("ok ")]
    assert len(said) == len(links.found()) and len(broken) == 1
    assert broken[0].startswith("HTTP Error 404") and "10_where_to_go_next.py" in broken[0]


def test_readme_leads_to_every_page():
    linked = set()
    for target in re.findall(r"\]\(([^)#\s]+)", prose(ROOT / "README.md")):
        linked.add((ROOT / target).resolve())
    assert {path for path in PAGES if path.parent == ROOT / "docs"} <= linked
    assert {ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md", ROOT / "CITATION.cff"} <= linked


@pages
def test_pictures_have_words(page):
    for words in re.findall(r"!\[(.*?)\]", prose(page)):
        assert len(words) > 20, f"a picture of {page.name} has no description"


@pages
def test_drawings_and_lists_of_commands_fit_githubs_column(page):
    """Wider ones scroll there, and their right end is not seen. A fence with a language is code or
    what a program prints."""
    text = page.read_text(encoding="utf-8")
    for language, block in re.findall(r"^```(\w*)\n(.*?)^```$", text, re.M | re.S):
        for line in [] if language else block.splitlines():
            assert len(line) <= 98, f"{page.name}: {line}"


def test_citation_and_changelog_name_the_version():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    version = project["version"]
    assert f"version: {version}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"## {version}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


# ---------------------------------------------------------------- commands


def commands(pattern: str) -> list[tuple]:
    """(page, match) of every command in every page, each once a page."""
    return sorted({(name, m) for name, page in zip(NAMES, PAGES, strict=True)
                   for m in re.findall(pattern, code(page))})  # fmt: skip


@pytest.mark.parametrize(("page", "target"), commands(r"(?m)(?:^|[;&] |sudo )make ([a-z]+)\b"))
def test_make_knows_its_targets(page, target):
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert re.search(rf"^{target}:.*## ", makefile, re.M), f"{page}: make {target}"


@pytest.mark.parametrize(
    ("page", "name"), commands(r"(?m)(?:^|[;&] |sudo )make [^\n]*?\b([A-Z_]{1,12})=")
)
def test_make_knows_its_variables(page, name):
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert f"$({name})" in makefile or f"{name} ?=" in makefile, f"{page}: make … {name}="


MODULE = r"python3? -m ((?:autograder|course|lab_setup|tests)[\w.]*(?: [a-z]+\b(?![./=_]))?)"
MODULES = sorted({command for _, command in commands(MODULE)})
OPTIONS = commands(MODULE + r"([^\n`]*)")
WITH_SUBCOMMANDS = ("autograder", "lab_setup")
# They take no options and begin at once, the last on a card.
NO_HELP = (
    "course.demo",
    "course.bundle",
    "course.sync",
    "tests.picture",
    "tests.device",
    "tests.links",
)


@cache
def helped(command: str) -> str:
    """What ``python -m command --help`` prints."""
    module, *rest = command.split()
    rest = rest if module in WITH_SUBCOMMANDS else []
    done = subprocess.run(
        [sys.executable, "-m", module, *rest, "--help"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0 and "usage: " in done.stdout, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("command", MODULES)
def test_modules_say_how_they_are_called(command):
    module = command.split()[0]
    if module.startswith(NO_HELP):
        assert (ROOT / f"{module.replace('.', '/')}.py").is_file()
    else:
        helped(command)


def test_options_of_commands_exist():
    assert OPTIONS
    for page, (command, rest) in OPTIONS:
        for option in re.findall(r"(?<!\S)--[a-z][a-z-]+", rest.partition(" -- ")[0]):
            assert option in helped(command), f"{page}: {command} knows no {option}"


@pytest.mark.parametrize(
    "command", sorted({c for _, c in commands(r"(?m)(?:^|bin/)nbgrader ([a-z_]+)")})
)
def test_nbgrader_knows_its_commands(command):
    from nbgrader.apps import NbGraderApp

    assert command in {*NbGraderApp.subcommands, "export"}


def test_exercises_and_assignments_that_are_named_exist():
    for page, id in commands(r"(?<![\w.])(0\d\.[a-z]\w*)"):
        if page not in ("docs/NEW_EXERCISE.md", "docs/EDITING.md"):
            assert id in exercises.ids(), f"{page}: {id}"
    for page, name in commands(r"\b(0\d_[a-z]\w+)\b"):
        assert name in exercises.ASSIGNMENTS.values() or name.endswith("_lesson"), f"{page}: {name}"


# ---------------------------------------------------------------- the README's picture


def test_the_picture_of_a_failed_check_is_what_the_check_says():
    verdict = picture.failed()
    drawing = (ROOT / picture.FILE).read_text(encoding="utf-8")
    lines = re.findall(r"<text [^>]*>([^<]*)</text>", drawing)
    assert [line.replace("\u00a0", " ") for line in lines] == picture.words(verdict)
    assert f"<title>{picture.words(verdict)[0]}</title>" in drawing
    assert "3 of 8 lanes are outside" in drawing and "prefers-color-scheme:dark" in drawing
    assert re.findall(r"<text [^>]*>([^<]*)</text>", picture.drawn(verdict)) == lines


# ---------------------------------------------------------------- pages of pictures


def test_no_notebook_shows_a_picture_without_words():
    """Figures are drawn by code and carry aria-label (test_render_figures); pictures in prose."""
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        for cell in nbformat.read(path, as_version=4).cells:
            if cell.cell_type == "markdown":
                for words in re.findall(r"!\[(.*?)\]\(|<img(?![^>]*alt=\"[^\"])", cell.source):
                    assert words, f"{path.name}: a picture without alternative text"
