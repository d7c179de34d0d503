"""Every command that README and docs tell somebody to type: the one parser."""

from __future__ import annotations

import re
from pathlib import Path

from tests.test_house import ROOT, tracked

PAGES = sorted(path for path in tracked() if path.suffix == ".md")
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.M | re.S)
SHELL = ("", "bash", "sh")  # blocks of these kinds hold commands, beside drawings and settings
# A program and what it is told. One word alone is a name, but for those of ALONE.
_LIKE = re.compile(r"(?:[A-Z_]+=\S+ )*(?:sudo )?[./~]*[a-z][\w./~-]* [\w.:/~\"'<-]")
ALONE = ("make", "passwd", "nvidia-smi")
# Spans and lines that look like commands and are none.
NO_COMMANDS = {
    "gcc python3-dev": "names of packages",
    "client_max_body_size 50m;": "nginx",
    "location / {": "nginx",
    "name 'check' is not defined": "what a cell prints",
    "with interpret() as record:": "Python",
    "with interpret()": "Python",
    "raise NotImplementedError('add is not written yet')": "Python",
}


def prose(text: str) -> str:
    """A page without fenced blocks."""
    return FENCE.sub("", text)


def spans(text: str) -> list[str]:
    """What a page's prose sets in backticks, line breaks taken for spaces."""
    return [" ".join(span.split()) for span in re.findall(r"`([^`]+)`", prose(text))]


def code(page: Path) -> str:
    """Everything that a page sets as code: fenced blocks and spans in backticks, a line each."""
    text = page.read_text(encoding="utf-8")
    return "\n".join([*(body for _, body in FENCE.findall(text)), *spans(text)])


def _lines(text: str) -> list[str]:
    """Lines of blocks without the remark that follows after two spaces; then the spans."""
    blocks = (body for kind, body in FENCE.findall(text) if kind in SHELL)
    lines = [re.split(r" {2,}", line)[0] for body in blocks for line in body.splitlines()]
    return [*lines, *spans(text)]


def canonical(command: str) -> str:
    """The same command, whoever types it, in whatever environment."""
    return re.sub(r"(^|; |&& )(?:sudo )?(?:\.venv/bin/|/opt/triton-venv/bin/)?", r"\1", command)


def commands_of(text: str) -> list[str]:
    """The commands of a page's text, canonical, in order, each once."""
    like = [line for line in _lines(text) if line in ALONE or _LIKE.match(line)]
    return list(dict.fromkeys(canonical(line) for line in like if line not in NO_COMMANDS))


def found() -> dict[str, list[str]]:
    """Command → the pages that name it."""
    told: dict[str, list[str]] = {}
    for page in PAGES:
        for command in commands_of(page.read_text(encoding="utf-8")):
            told.setdefault(command, []).append(page.relative_to(ROOT).as_posix())
    return told
