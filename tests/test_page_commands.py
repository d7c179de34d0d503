"""Every command of README and docs runs, and prints and makes what the page says."""

from __future__ import annotations

import ast
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from tests.page_commands import commands_of, found
from tests.page_stories import BY, LAB, NOT_HERE, STORIES, Step
from tests.test_house import ROOT, tracked

FOUND = found()
STEPS = {command for story in STORIES.values() for step in story for command in step.all}


def is_mention(command: str) -> bool:
    """`nbgrader collect` beside `nbgrader collect 02_vector_add`: the name, not what is typed."""
    return any(other.startswith(command + " ") for other in (*STEPS, *BY, *NOT_HERE))


def test_every_command_is_in_one_class_and_no_class_has_others():
    classes = (STEPS, BY.keys(), NOT_HERE.keys(), set(LAB))
    for command, pages in FOUND.items():
        times = sum(command in kind for kind in classes)
        assert times == 1 or (times == 0 and is_mention(command)), (
            f"{', '.join(pages)}: `{command}` is in {times} classes of tests/page_stories.py."
        )
    stale = {command for kind in classes for command in kind} - FOUND.keys()
    assert not stale, f"no page names {sorted(stale)} any more."


def test_the_parser_finds_commands_and_nothing_else():
    text = (
        "Type `sudo make new\nA=1`, `make`, not `check`, `x = 1`, `f(a, b)`, `course/` or `a.py`.\n"
        "```\nnbgrader collect 02     what it does\n    indented is a setting\nroot ──▶ leaf\n```\n"
        "```python\nmake this\n```\n`X=1 .venv/bin/pip list; sudo ls -l` `docker run it`\n"
    )
    assert commands_of(text) == [
        "nbgrader collect 02", "make new A=1", "make",
        "X=1 .venv/bin/pip list; ls -l", "docker run it",
    ]  # fmt: skip


@pytest.mark.parametrize("command", BY)
def test_the_named_test_exists(command):
    path, _, name = BY[command].partition("::")
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


# ---------------------------------------------------------------- in a copy


class Copy:
    """The tracked files in a repository of their own, with a .venv of their own."""

    def __init__(self, root: Path):
        self.root = root
        for path in tracked():
            target = root / path.relative_to(ROOT)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, target)
        for words in (("init", "-q"), ("add", "-A")):
            subprocess.run(["git", *words], cwd=root, check=True)
        self._environment()

    def _environment(self) -> None:
        """The running environment once more, as hard links: no package is copied, and what `make
        setup` writes is not written into the one that the tests run in."""
        assert sys.prefix != sys.base_prefix, "tests run in a virtual environment: make test"
        venv = self.root / ".venv"
        subprocess.run(["cp", "-al", sys.prefix, venv], check=True)
        for written in (*venv.glob("lib/*/site-packages/triton-course.pth"),
                        *venv.glob("share/jupyter/lab/settings/overrides.json")):  # fmt: skip
            written.unlink()
        for script in (venv / "bin").iterdir():  # their first line names the other environment
            lines = b"" if script.is_symlink() else script.read_bytes()
            if lines.startswith(b"#!") or script.name == "activate":
                mode = script.stat().st_mode
                script.unlink()
                script.write_bytes(lines.replace(os.fsencode(sys.prefix), os.fsencode(venv)))
                script.chmod(mode)
        (venv / ".installed").unlink(missing_ok=True)
        (venv / ".installed").touch()

    def variables(self) -> dict[str, str]:
        """An activated environment, no card, and nothing of the test run's own."""
        own = ("PYTEST_", "PYTHONPATH", "VIRTUAL_ENV", "JUPYTER", "COURSE_", "MAKE")
        kept = {k: v for k, v in os.environ.items() if not k.startswith(own)}
        path = f"{self.root}/.venv/bin{os.pathsep}{kept['PATH']}"
        data = str(self.root / ".jupyter")
        return kept | {"PATH": path, "CUDA_VISIBLE_DEVICES": "", "JUPYTER_DATA_DIR": data}

    def type(self, line: str) -> str:
        """What a shell prints that is given the line; fails where its status is not 0."""
        done = subprocess.run(
            ["bash", "-ec", line], cwd=self.root, env=self.variables(), stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        assert done.returncode == 0, f"`{line}` ends with {done.returncode}:\n{done.stdout[-3000:]}"
        return done.stdout

    def perform(self, step: Step) -> None:
        if step.before:
            self.type(step.before)
        line = step.run or step.all[0]
        said = self.type(line)
        assert re.search(step.says, said), f"`{line}` does not say “{step.says}”:\n{said[-3000:]}"
        for made in step.makes:
            assert (self.root / made).exists(), f"`{line}` does not make {made}."


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    place = tmp_path_factory.mktemp("pages") / "course"
    if os.stat(place.parent).st_dev != os.stat(sys.prefix).st_dev:  # no links across file systems
        place = Path(sys.prefix).parent / ".cache" / f"copy-{os.getpid()}"
    place.mkdir(parents=True)
    try:
        yield Copy(place)
    finally:
        shutil.rmtree(place)


@pytest.mark.parametrize("story", STORIES)
def test_a_story_from_its_first_line_to_its_last(story, copy):
    for step in STORIES[story]:
        copy.perform(step)


def test_what_cannot_run_is_at_least_a_command_that_exists(copy):
    for command, (reason, instead, says) in NOT_HERE.items():
        assert reason
        subprocess.run(["bash", "-nc", command], check=True)
        if instead:
            copy.perform(Step(command, instead, says))


def test_make_lab_opens_the_first_lesson(copy):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    flags = "--no-browser --IdentityProvider.token=t"
    process = subprocess.Popen(
        ["make", "lab", f"PORT={port}", f"LAB_FLAGS={flags}"], cwd=copy.root, env=copy.variables(),
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        start_new_session=True,
    )  # fmt: skip
    try:
        first = "01_programming_model.ipynb"
        page = _answer(process, f"http://127.0.0.1:{port}/lab/tree/notebooks/{first}?token=t")
        assert "JupyterLab" in page
        assert f'"name": "{first}"' in _answer(
            process, f"http://127.0.0.1:{port}/api/contents/notebooks/{first}?content=0&token=t"
        )
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        said = process.communicate()[0]
    assert f"/lab/tree/notebooks/{first}" in said


def _answer(process: subprocess.Popen, address: str) -> str:
    """What the server answers once it is there."""
    while True:
        try:
            with urllib.request.urlopen(address, timeout=60) as answer:
                return answer.read().decode()
        except urllib.error.HTTPError:
            raise
        except urllib.error.URLError:
            assert process.poll() is None, process.communicate()[0][-3000:]
            time.sleep(0.3)
