"""What `check` and the command line say of a call that went past the exercise."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import triton
import triton.language as tl

from autograder.__main__ import main
from autograder.checking import CheckFailed, check, hint, inspect_call
from autograder.render.text import WIDTH


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x + tl.load(y_ptr + offsets, mask=mask), mask=mask)


def undecorated(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    pass


def add_in_place(x, y):
    add_kernel[(triton.cdiv(x.numel(), 1024),)](x, y, x, x.numel(), BLOCK=1024)
    return x


def add_undecorated(x, y):
    out = torch.empty_like(x)
    undecorated[(triton.cdiv(x.numel(), 1024),)](x, y, out, x.numel(), BLOCK=1024)
    return out


def add_list(x, y):
    return (x + y).tolist()


def add_many(x, y):
    return [torch.empty_like(x) for _ in range(50)]


def add(x, y):
    return x + y


def said(*arguments) -> str:
    text = repr(check(*arguments))
    assert max(map(len, text.splitlines())) <= WIDTH or not text.startswith("✗")
    return " ".join(text.split())


def test_hints_in_a_terminal_open_one_after_the_other(capsys):
    assert main(["hint", "02.add"]) == 0
    first = capsys.readouterr().out
    assert "hint 1 of" in first and "python -m autograder hint 02.add 2 after" in first
    assert main(["hint", "02.add", "2"]) == 0
    assert first.split("(")[0].strip() in (second := capsys.readouterr().out)
    assert "hint 2 of" in second
    assert main(["hint", "02.ad"]) == 1
    assert "Did you mean '02.add'?" in capsys.readouterr().err


def test_a_forgotten_id_is_named():
    assert 'a string as in its check cell, such as check("02.add", add)' in said(add)
    assert 'check("02.add", add)' in repr(hint(add))
    assert "0x" not in said(add)


def test_no_argument_at_all_is_a_sentence():
    for nothing in (check(), hint()):
        assert repr(nothing).startswith("Say which exercise")


def test_a_run_at_the_end_of_a_cell_is_a_line_and_not_its_arrays():
    shown = repr(inspect_call(add_in_place, torch.ones(2000), torch.ones(2000)))
    assert "numbers moved 6000. show(run)" in shown and len(shown) < 200


GRADED = {"nbgrader": {"grade_id": "check-02-add"}}


@pytest.mark.parametrize(
    ("metadata", "status"), [((GRADED, {}), 0), (({}, {}), 1), (({}, GRADED), 1)]
)
def test_a_name_means_what_it_meant_at_the_check_cell(tmp_path, capsys, metadata, status):
    own = Path(__file__).parent / "submissions/right/02_add_plain.py"
    sources = (own.read_text(), 'check("02.add", add)', "add = None", "check('02.add', add)", "1/0")
    of = ({}, metadata[0], {}, metadata[1], {})
    cells = [
        {"cell_type": "code", "source": source, "metadata": about}
        for source, about in zip(sources, of, strict=True)
    ]
    (tmp_path / "a.ipynb").write_text(json.dumps({"cells": cells}))
    assert main(["check", "02.add", str(tmp_path / "a.ipynb")]) == status
    assert ("pass, 8 of 8" in capsys.readouterr().out) == (status == 0)


def test_an_unknown_id_lists_no_unit_that_a_student_lacks():
    told = "There is no exercise 'zzzz'. Its check cell names its id, e.g. 02.add."
    assert said("zzzz", add) == told
    assert "Did you mean '02.add'?" in said("02.ad", add)


def test_a_kernel_in_place_of_the_host_function_is_named():
    text = said("02.add", add_kernel)
    assert "add_kernel is a kernel, under @triton.jit" in text
    assert 'The check takes the host function add, which launches it: check("02.add", add).' in text


def test_a_launch_without_the_decorator_names_the_decorator():
    assert "has no @triton.jit above its def" in said("02.add", add_undecorated)


@pytest.mark.parametrize(
    ("function", "told"),
    [
        (add_list, "returned a list of 98 432 items, the first of them a float"),
        (add_many, "returned a list of 50 items; tensors are few."),
    ],
)
def test_a_list_is_one_sentence(function, told):
    text = said("02.add", function)
    assert told in text and text.count(f"{function.__name__} returned") == 1


def test_in_place_blames_the_name_that_is_stored_through_and_no_other():
    text = said("02.add", add_in_place)
    assert text.count("writes into an input") == 1 and "through out_ptr" in text


def test_validate_does_not_pass_an_unfinished_quiz(monkeypatch):
    monkeypatch.setenv("NBGRADER_EXECUTION", "validate")
    with pytest.raises(CheckFailed, match="incomplete"):
        check("02.quiz", dict.fromkeys(("q1", "q2", "q3", "q4")))


def test_what_validate_shows_is_the_report_without_a_traceback(monkeypatch):
    from IPython.core.interactiveshell import InteractiveShell

    monkeypatch.setenv("NBGRADER_EXECUTION", "validate")
    shown = []
    shell = InteractiveShell()
    monkeypatch.setattr(shell, "_showtraceback", lambda kind, error, lines: shown.extend(lines))
    shell.push({"check": check})
    assert not shell.run_cell('check("02.quiz", {"q1": None})').success
    text = "\n".join(shown)
    assert "Not answered yet: q1" in text and "checking.py" not in text


@pytest.mark.parametrize("command", ["grade", "audit"])
def test_without_the_room_for_grading_its_commands_are_one_sentence(monkeypatch, capsys, command):
    monkeypatch.setattr("autograder.__main__._has_grading", lambda: False)
    assert main([command, "02"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"{command} works in the instructor's course directory")
    with pytest.raises(SystemExit):
        main(["--help"])
    assert "audit" not in capsys.readouterr().out


def test_where_grading_is_its_commands_are_offered():
    call = [sys.executable, "-m", "autograder", "--help"]
    done = subprocess.run(call, capture_output=True, text=True, check=True)
    assert "grade" in done.stdout and "audit" in done.stdout
