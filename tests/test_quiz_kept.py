"""What a quiz keeps to itself: a script that has the students' bundle alone learns no answer."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from autograder import exercises
from course.build import ROOT
from course.bundle import contents

QUIZZES = [id for id in exercises.ids() if exercises.get(id).machine == "quiz"]
KEY = {
    id: json.loads((ROOT / f"course/hidden/{exercises.assignment(id[:2])}.json").read_text())[id]
    for id in QUIZZES
}

# A student's attempt, run in the unpacked bundle: every letter, every set of letters, a hundred
# numbers to each question, through every door that takes answers; then a look at everything that
# was imported. What it prints is what it learned.
_ATTEMPT = '''
import contextlib, importlib, io, itertools, json, pathlib, pkgutil, sys
sys.path.insert(0, ".")
import autograder
from autograder import check, exercises
from autograder.checking import check_file
from autograder.records import Rejected

page = pathlib.Path("mine.py")


def seen(id, answers):
    """All that is said about these answers, their own text apart."""
    said = []
    for options in ({}, {"hidden": True}):
        out = io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            try:
                said.append(repr(check(id, answers, **options)))
            except Exception as error:
                said.append(f"{type(error).__name__}: {error}")
        said.append(out.getvalue())
    return said


def files(id, answers):
    page.write_text(f"answers = {answers!r}")
    said = []
    for hidden in (False, True):
        out = io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            said.append(str(check_file(id, page, hidden=hidden)))
        said.append(out.getvalue())
    return said


def candidates(form):
    kind, _, letters = form.partition(" of ")
    if kind == "one":
        return letters.split()
    if kind == "some":
        ways = range(1, len(letters.split()) + 1)
        return [list(c) for n in ways for c in itertools.combinations(letters.split(), n)]
    return [*range(50), *(2**n for n in range(20)), 0.25, 0.5, 0.75, 1.5, 8.59, 70.5]


told = {}
for name in KEY_OF:
    form = exercises.get(name).notes
    first = {q: candidates(f)[0] for q, f in form.items()}
    for q in form:
        ways = candidates(form[q])
        looks = {json.dumps(seen(name, first | {q: way})) for way in ways}
        looks.add(json.dumps(seen(name, first | {q: KEY_OF[name][q]})))
        at_files = {json.dumps(files(name, first | {q: way})) for way in (ways[0], ways[-1])}
        told[f"{name} {q}"] = [len(looks), len(at_files)]

for package in ("autograder", "lab_setup"):
    for module in pkgutil.walk_packages([package], package + "."):
        if not module.name.endswith("__main__"):
            with contextlib.suppress(ImportError):
                importlib.import_module(module.name)
ours = [m for name, m in sys.modules.items() if name.startswith(("autograder", "lab_setup"))]
left, met, keys = [vars(m) for m in ours], {}, 0
while left:  # whatever hangs on a module of ours; gc does not list dicts of plain values
    thing = left.pop()
    if id(thing) in met or isinstance(thing, (type(sys), str, bytes)):
        continue
    met[id(thing)] = thing
    if isinstance(thing, dict):
        keys += "explain" in thing and "answer" in thing
        left += thing.values()
    elif isinstance(thing, (list, tuple, set, frozenset)):
        left += thing
    elif type(thing).__module__.startswith(("autograder", "lab_setup")):
        left += [getattr(thing, "__dict__", None)]
print(json.dumps({"told": told, "keys": keys}))
'''


@pytest.fixture(scope="module")
def bundle(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("bundle")
    for name, content in contents(ROOT).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return folder


def attempt(folder: Path, key: dict) -> dict:
    """What the script learns of the quizzes in ``key``, whose answers are tried as well."""
    answers = {id: {q: row["answer"] for q, row in rows.items()} for id, rows in key.items()}
    script = folder / "attempt.py"
    script.write_text(f"KEY_OF = {answers!r}\n{_ATTEMPT}", encoding="utf-8")
    done = subprocess.run(
        [sys.executable, script.name], cwd=folder, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.splitlines()[-1])


def test_a_script_that_tries_everything_learns_no_answer(bundle):
    learned = attempt(bundle, KEY)
    assert set(learned["told"]) == {f"{id} {q}" for id in QUIZZES for q in KEY[id]}
    differing = {q: looks for q, looks in learned["told"].items() if looks != [1, 1]}
    assert not differing, "what is said of an answer depends on it"
    assert learned["keys"] == 0, "a module of the bundle holds a key"


def test_the_attempt_would_find_a_leak(bundle, tmp_path):
    """A bundle that says something about one letter, and one that holds a key."""
    leaky = tmp_path / "bundle"
    shutil.copytree(bundle / "autograder", leaky / "autograder")
    shutil.copytree(bundle / "lab_setup", leaky / "lab_setup")
    checking, quiz = (leaky / f"autograder/{m}.py" for m in ("checking", "exercises/quiz"))
    text = checking.read_text(encoding="utf-8")
    assert text.count('message = "pass", "pass", "Points') == 1
    said = 'message = "pass", "pass", str(answers.get(\'q3\') == \'b\') + "Points'
    checking.write_text(text.replace('message = "pass", "pass", "Points', said))
    quiz.write_text(quiz.read_text(encoding="utf-8") + '\n_K = {"answer": 1, "explain": "so"}\n')
    learned = attempt(leaky, {"07.quiz": KEY["07.quiz"]})
    assert learned["told"]["07.quiz q3"] == [2, 1] and learned["keys"] == 1
    assert learned["told"]["07.quiz q5"] == [1, 1]


def test_no_file_of_the_bundle_is_a_key(bundle):
    sentences = [row["explain"] for rows in KEY.values() for row in rows.values()]
    for path in (p for p in bundle.rglob("*") if p.is_file()):
        content = path.read_text("utf-8", "replace")
        assert not [s for s in sentences if s in content], path
    assert not (bundle / "course").exists()
