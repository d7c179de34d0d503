"""The scripts that a card gets: every GPU cell of an assignment, nothing of the check."""

from __future__ import annotations

import ast

import pytest

from tests.device import cells

TEXTS = sorted(
    path
    for path in (cells.COURSE / "assignments").glob("*.py")
    if "measure(" in path.read_text("utf-8")
)


def calls(tree: ast.AST) -> list[str]:
    named = (node.func for node in ast.walk(tree) if isinstance(node, ast.Call))
    return [name.id for name in named if isinstance(name, ast.Name)]


@pytest.mark.parametrize("text", TEXTS, ids=lambda text: text.stem)
def test_the_script_has_all_gpu_cells_prints_what_they_show_and_checks_nothing(text):
    content = text.read_text(encoding="utf-8")
    found = calls(ast.parse(cells.script_of(content)))
    for name in ("gpu", "measure"):
        assert found.count(name) == calls(ast.parse(content)).count(name) > 0
    # What a cell ends with is shown in a notebook, and has to be printed by a script.
    assert cells.script_of(content).count("print(measured, flush=True)") == found.count("measure")
    assert not {"check", "hint", "inspect_call"} & set(found)


def test_a_text_that_fails_leaves_the_others_running(monkeypatch, capsys, tmp_path):
    folder = tmp_path / "assignments"
    folder.mkdir()
    (folder / "one.py").write_text("# %%\nraise ValueError('this cell broke')\n")
    (folder / "two.py").write_text("# %%\nx = 6 * 7\nx\n")
    monkeypatch.setattr(cells, "COURSE", tmp_path)
    monkeypatch.setattr(cells.torch.cuda, "is_available", lambda: True)
    assert cells.main(["one", "two"]) == 1
    said = capsys.readouterr().out
    assert "this cell broke" in said and "\n42\n" in said and "failed: one" in said
