"""docs/INTERPRETER.md is true: its examples run, and print what it says they print."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parent.parent / "docs" / "INTERPRETER.md"
BLOCKS = re.findall(r"```python\n(.*?)```\n```text\n(.*?)```", PAGE.read_text("utf-8"), re.S)


@pytest.fixture(scope="module")
def names():
    """The names that blocks define, one after the other."""
    return {"__name__": "example"}


@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_an_example_prints_what_the_page_says(number, names, tmp_path, capsys):
    code, wanted = BLOCKS[number]
    path = tmp_path / "example.py"  # Triton reads a kernel's source from its file
    path.write_text(code, encoding="utf-8")
    exec(compile(code, str(path), "exec"), names)
    assert capsys.readouterr().out.replace("\u202f", " ") == wanted


def test_every_python_block_of_the_page_is_run():
    assert PAGE.read_text("utf-8").count("```python") == len(BLOCKS) >= 4
