"""A class from submitted/ to grades: driver, journal, gradebook, feedback, export, nbgrader."""

import csv
import json
import os
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import nbformat
import pytest

import autograder.__main__
from autograder import exercises
from autograder.grading.course import Course
from autograder.grading.driver import Options, _Run
from autograder.grading.grader import undecided
from autograder.grading.journal import Journal
from tests.grading_course import CHECKOUT, make_course
from tests.sample_class import answers, solutions, write

NAME = "02_vector_add"
RIGHT = {
    "solution-02-add": solutions("right", "02.add")["plain"],
    "solution-02-fma_relu": solutions("right", "02.fma_relu")["plain"],
    "solution-02-quiz": answers(NAME),
}
WRONG = RIGHT | {
    "solution-02-add": solutions("wrong", "02.add")["missing_load_mask"],
    "solution-02-quiz": answers(NAME, right=False),
}
WARNS = RIGHT | {
    "solution-02-add": "import warnings\nwarnings.warn('costs nothing')\n"
    + RIGHT["solution-02-add"]
}
HOSTILE = (CHECKOUT / "tests/submissions/hostile/words_script.py").read_text()


def _fill(course: Path) -> None:
    """Seven who handed in something, and three whose directories hold traps."""
    write(course, "right", NAME, RIGHT)
    write(course, "warns", NAME, WARNS)
    write(course, "wrong", NAME, WRONG)
    write(course, "blank", NAME, {})
    _infest(write(course, "hostile", NAME, RIGHT | {"solution-02-add": HOSTILE}))
    late = write(course, "late", NAME, RIGHT)
    (late.parent / "timestamp.txt").write_text("2026-10-03 12:00:00 UTC\n")
    broken = write(course, "broken", NAME, RIGHT)
    broken.write_bytes(broken.read_bytes()[:1000])
    os.symlink("/etc/passwd", broken.parent / "notes.txt")
    copied = write(course, "copied", NAME, RIGHT)
    copied.unlink()
    copied.symlink_to(course / "source" / NAME / f"{NAME}.ipynb")
    os.mkfifo(write(course, "fifo", NAME, RIGHT).parent / "pipe")
    write(course, "<img src=x onerror=alert(1)>\x1b[2J", NAME, RIGHT)


LIVE = (
    "<script>pwned=1</script><img src=x onerror=alert(1)><svg onload=alert(2)></svg>"
    "[click](javascript:alert(3)) $\\href{javascript:alert(4)}{x}$ <iframe srcdoc='x'></iframe>"
)


def _infest(path: Path) -> None:
    """Script wherever a notebook can hold it: outputs of every kind, prose, metadata, widgets."""
    notebook = json.loads(path.read_text())
    data = {mime: LIVE for mime in ("text/html", "text/markdown", "text/latex", "image/svg+xml",
                                    "application/javascript")}  # fmt: skip
    view = {"application/vnd.jupyter.widget-view+json": {"model_id": "a", "version_major": 2}}
    for cell in notebook["cells"]:
        cell["metadata"]["title"] = LIVE
        if cell["cell_type"] == "code":
            cell["outputs"] = [
                {"output_type": "display_data", "metadata": {}, "data": data | view},
                {"output_type": "error", "ename": LIVE, "evalue": LIVE, "traceback": [LIVE]},
            ]
        else:
            cell["source"], cell["attachments"] = LIVE, {"a.svg": {"image/svg+xml": LIVE}}
    own = {"grade_id": "mine", "grade": True, "solution": True, "points": 99, "schema_version": 3,
           "locked": False, "task": False}  # fmt: skip
    notebook["cells"].insert(0, {"cell_type": "markdown", "id": "mine", "source": LIVE,
                                 "metadata": {"nbgrader": own}})  # fmt: skip
    notebook["metadata"]["kernelspec"] = {"name": LIVE, "display_name": LIVE, "language": LIVE}
    notebook["metadata"]["language_info"] = {"name": LIVE, "pygments_lexer": LIVE}
    state = {"state": {"a": {"model_name": "HTMLModel", "state": {"value": LIVE}}}}
    notebook["metadata"]["widgets"] = {"application/vnd.jupyter.widget-state+json": state}
    path.write_text(json.dumps(notebook))


STUDENTS = ("blank", "broken", "copied", "fifo", "hostile", "late", "right", "warns", "wrong")
SCORES = {"right": 22.0, "warns": 22.0, "late": 22.0, "fifo": 22.0, "blank": 0.0, "hostile": 14.0}
UNREAD = ("broken", "copied")


@pytest.fixture(scope="module")
def empty(tmp_path_factory):
    return make_course(tmp_path_factory.mktemp("grading") / "course", NAME)


@pytest.fixture(scope="module")
def graded(empty, tmp_path_factory):
    """The class, graded by the command line in another process, with its JSON."""
    course = tmp_path_factory.mktemp("graded") / "course"
    shutil.copytree(empty, course)
    _fill(course)
    return course, _grade(course, "--feedback", "--json")


def _grade(course: Path, *options: str) -> dict:
    done = _command(course, *options)
    assert done.stdout, done.stderr
    return json.loads(done.stdout)


def _command(course: Path, *options: str) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "autograder", "grade", "02", "--course", str(course)]
    return subprocess.run([*command, *options], cwd=CHECKOUT, capture_output=True, text=True)


def _export(course: Path) -> dict[str, dict]:
    from nbgrader.api import Gradebook

    from autograder.grading.export import GradesWithStatus

    path = course / "grades.csv"
    plugin = GradesWithStatus(to=str(path), root=str(course))
    with Gradebook(f"sqlite:///{course}/gradebook.db", "triton-course") as gradebook:
        plugin.export(gradebook)
    with open(path, newline="") as file:
        return {row["student_id"]: row for row in csv.DictReader(file)}


def test_everybody_is_graded(graded):
    course, result = graded
    rows = {row["student"]: row for row in result["submissions"]}
    assert len(rows) == len(STUDENTS) + 1
    for student, score in SCORES.items():
        assert (rows[student]["status"], rows[student]["points"]) == ("ok", score), student
    assert 0 < rows["wrong"]["exercises"]["02.add"]["points"] < 8
    assert rows["wrong"]["exercises"]["02.quiz"]["points"] == 0
    for student in UNREAD:
        assert (rows[student]["status"], rows[student]["points"]) == ("invalid", None)
    strange = next(row for row in rows.values() if "img" in row["student"])
    assert strange["status"] == "invalid" and "\x1b" not in strange["student"]


def test_export_has_a_status_and_blanks(graded):
    rows = _export(graded[0])
    assert set(rows) == set(STUDENTS)
    assert rows["right"]["score"] == "22.0" and rows["right"]["status"] == "ok"
    assert rows["blank"]["score"] == "0.0"
    for student in UNREAD:
        assert rows[student]["score"] == "" and rows[student]["status"] == "invalid"


class Tags(HTMLParser):
    """Collects what a browser would run or fetch."""

    def __init__(self):
        super().__init__()
        self.live = []

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            outside = name in ("src", "href") and not value.startswith(("#", "data:image/png"))
            if name.startswith("on") or outside:
                self.live.append((tag, name, value))
        if tag in ("script", "iframe", "object", "embed", "link", "form", "svg", "base"):
            self.live.append((tag,))


def test_feedback_says_what_it_should_and_nothing_else(graded):
    course, _ = graded
    secret = (course / ".secret").read_bytes().hex()
    for student in STUDENTS:
        page = course / "feedback" / student / NAME / f"{NAME}.html"
        text = page.read_text()
        page = Tags()
        page.feed(text)
        assert not page.live, (student, page.live)
        assert "Content-Security-Policy" in text
        body = text[text.index("<body") :]
        paths = (str(course), str(CHECKOUT), sys.prefix)
        for leak in (*paths, "131101", "70001", secret, "Traceback"):
            assert leak not in body, (student, leak)
        assert "hidden=True" not in text and "HIDDEN TESTS" not in text
    assert "896 of 1024" in (course / "feedback/wrong" / NAME / f"{NAME}.html").read_text()
    assert "not valid JSON" in (course / "feedback/broken" / NAME / f"{NAME}.html").read_text()
    assert not list(course.glob("*/broken/*/notes.txt"))[1:], "a link was followed"


def test_what_formgrader_shows_is_not_live(graded):
    """It renders autograded/ by a template that lets HTML pass and typesets formulas."""
    course, _ = graded
    released = json.loads((course / "release" / NAME / f"{NAME}.ipynb").read_text())
    kept = {cell["source"] if isinstance(cell["source"], str) else "".join(cell["source"])
            for cell in released["cells"]}  # fmt: skip
    for student in STUDENTS:
        path = course / "autograded" / student / NAME / f"{NAME}.ipynb"
        notebook = nbformat.read(path, as_version=4)
        assert notebook.metadata.kernelspec.name == "python3"
        for cell in notebook.cells:
            own = cell.metadata.get("nbgrader", {}).get("solution")
            assert "attachments" not in cell and (own or cell.cell_type == "code" or
                                                  cell.source in kept)  # fmt: skip
            for output in cell.get("outputs", ()):
                assert output.output_type in ("display_data", "execute_result")
                assert set(output.data) <= {"image/png", "text/plain", "text/html"}
                html = output.data.get("text/html", '<div class="tex2jax_ignore')
                page = Tags()
                page.feed(html)
                assert not page.live and html.startswith('<div class="tex2jax_ignore')


def test_points_that_a_person_types_in_stand_on_the_page(graded, empty, tmp_path):
    from nbgrader.api import Gradebook

    course = tmp_path / "course"
    shutil.copytree(empty, course)
    shutil.copytree(graded[0] / "submitted" / "broken", course / "submitted" / "broken",
                    symlinks=True)  # fmt: skip
    _grade(course, "--feedback", "--json")
    page = course / "feedback" / "broken" / NAME / f"{NAME}.html"
    assert "Not graded: your notebook could not be read" in page.read_text()
    assert "No response" not in page.read_text()
    with Gradebook(f"sqlite:///{course}/gradebook.db", "triton-course") as gradebook:
        grade = gradebook.find_grade("check-02-add", NAME, NAME, "broken")
        grade.manual_score, grade.needs_manual_grade = 5.0, False
        gradebook.db.commit()
    _grade(course, "--feedback", "--regrade", "--json")
    text = page.read_text()
    assert "5 of 8" in text and "Points so far: 5 of 22" in text
    assert text.count("not decided yet, of") == 4  # two exercises, in the summary and above each
    shutil.rmtree(page.parent)
    _grade(course, "--feedback", "--json")
    assert page.read_text() == text


def test_a_name_that_is_no_student_id_says_so_and_nothing_of_feedback(graded):
    """It has no page, which is not what there is to mend."""
    (row,) = [row for row in graded[1]["submissions"] if "<img" in row["student"]]
    assert row["message"].startswith("not in the gradebook: The student's directory has a name")


def test_the_picture_of_a_fault_fits_formgraders_page(graded):
    notebook = graded[0] / "autograded" / "wrong" / NAME / f"{NAME}.ipynb"
    cells = json.loads(notebook.read_text())["cells"]
    pictures = [o for c in cells for o in c.get("outputs", []) if "image/png" in o.get("data", {})]
    assert pictures and all(300 < o["metadata"]["image/png"]["width"] < 900 for o in pictures)


def test_the_secret_is_private_and_stays(graded):
    path = graded[0] / ".secret"
    assert path.stat().st_mode & 0o777 == 0o600 and len(path.read_bytes()) == 32


def test_grading_twice_changes_nothing(graded):
    course, first = graded
    before = _export(course)
    again = _grade(course, "--json")
    assert not any(row["fresh"] for row in again["submissions"])
    same = {"student", "status", "points", "exercises"}
    strip = [{k: row[k] for k in same} for row in first["submissions"]]
    assert strip == [{k: row[k] for k in same} for row in again["submissions"]]
    assert _export(course) == before


def test_a_grade_is_kept_for_its_cases_and_points_alone(graded, monkeypatch):
    def key() -> str:
        run = _Run(Course(graded[0]), NAME, Options())
        run.journal.close()
        return run.key(run.read("right"))

    before = key()
    assert key() == before
    text = exercises.text_of(NAME)
    assert b'"02.add"' in text and b'"03.softmax"' not in text
    monkeypatch.setattr(exercises, "text_of", lambda name: text + b"# one case more")
    assert key() != before


def test_a_killed_run_goes_on_and_gives_the_same_grades(graded, empty, tmp_path):
    """What kill -9 can leave behind: results that are not recorded, a line that is cut off, a
    staged submission. Then the rest is graded, and exports are equal to the byte."""
    course, _ = graded
    _export(course)
    journal = (course / ".grading" / NAME / "journal.jsonl").read_bytes().splitlines(keepends=True)
    done = [line for line in journal if json.loads(line)["event"] == "graded"]
    killed = tmp_path / "course"
    shutil.copytree(empty, killed)
    shutil.copytree(course / "submitted", killed / "submitted", symlinks=True,
                    ignore=shutil.ignore_patterns("pipe"))  # fmt: skip
    shutil.copy(course / ".secret", killed / ".secret")
    state = killed / ".grading" / NAME
    (state / "staged" / "right" / NAME).mkdir(parents=True)
    keep = [line for line in done if json.loads(line)["student"] not in ("warns", "wrong")]
    (state / "journal.jsonl").write_bytes(b"".join(keep) + done[0][: len(done[0]) // 2])
    result = _grade(killed, "--json")
    assert result["submissions"]
    _export(killed)
    assert (killed / "grades.csv").read_bytes() == (course / "grades.csv").read_bytes()


def test_a_regrade_that_is_stopped_goes_on_without_the_option(tmp_path):
    journal = Journal(tmp_path / "journal.jsonl")
    for student in ("anna", "ben"):
        journal.note_graded(undecided(student, NAME, "invalid", ""), "key")
        journal.note_recorded(student, "key")
    journal.forget("anna")
    journal.forget("ben")
    journal.note_graded(undecided("anna", NAME, "invalid", ""), "key")
    journal.close()
    left = Journal(tmp_path / "journal.jsonl")
    left.close()
    assert left.graded("anna", "key") and not left.graded("ben", "key")
    assert not left.recorded("anna", "key") and not left.recorded("ben", "key")


@pytest.mark.parametrize(
    "command, words",
    [
        ("grade 02", "Stopped. The same command goes on where it was."),
        (
            "grade 02 --regrade",
            "Stopped. The same command, without --regrade, goes on where it was.",
        ),
        ("check 02.add x.py", "Stopped."),
    ],
)
def test_who_presses_ctrl_c_reads_how_to_go_on(monkeypatch, capsys, command, words):
    def stopped(options):
        raise KeyboardInterrupt

    monkeypatch.setattr(f"autograder.__main__._{command.split()[0]}", stopped)
    assert autograder.__main__.main(command.split()) == 130
    assert capsys.readouterr().err.strip() == words


def test_nbgrader_and_formgraders_button_give_the_same_scores(graded, empty, tmp_path, monkeypatch):
    from nbgrader.apps.api import NbGraderAPI
    from nbgrader.converters import Autograde
    from nbgrader.converters.base import NbGraderException
    from nbgrader.coursedir import CourseDirectory

    from autograder.grading.course import Course
    from autograder.grading.gradebook import load_config

    course = tmp_path / "course"
    shutil.copytree(empty, course)
    for student in ("right", "wrong", "broken", "hostile"):
        shutil.copytree(graded[0] / "submitted" / student, course / "submitted" / student,
                        symlinks=True)  # fmt: skip
    shutil.copy(graded[0] / ".secret", course / ".secret")
    config = load_config(Course(course))
    monkeypatch.chdir(course)
    directory = CourseDirectory(config=config)
    directory.assignment_id = NAME
    Autograde(coursedir=directory, config=config).start()  # what `nbgrader autograde` starts
    assert (course / "set_aside" / "broken" / NAME / "notes.txt").is_symlink()
    assert not (course / "autograded" / "broken" / NAME / "notes.txt").exists()
    theirs, ours = _export(course), _export(graded[0])
    for student, row in theirs.items():
        assert row == ours[student], student

    api = NbGraderAPI(coursedir=CourseDirectory(config=config), config=config)
    result = api.autograde(NAME, "wrong", force=True)  # what formgrader's button calls
    assert result["success"], result.get("error", result.get("log"))
    assert _export(course)["wrong"] == ours["wrong"]
    with pytest.raises(NbGraderException):  # nbgrader's own word where nothing matches
        directory.student_id = "nobody"
        Autograde(coursedir=directory, config=config).start()


def test_what_is_collected_during_a_run_is_graded_itself(graded, empty, tmp_path, monkeypatch):
    """The old grade must not stand beside the new file, which would then never be graded."""
    from autograder.grading import driver
    from autograder.grading.course import Course

    course = tmp_path / "course"
    shutil.copytree(empty, course)
    path = write(course, "anna", NAME, RIGHT)
    submit, files = driver._Run.submit, []

    def replaced(self, workers, student):
        future = submit(self, workers, student)
        if not files:  # while the first one is on its way
            files.append(write(course, "anna", NAME, {}))
        return future

    monkeypatch.setattr(driver._Run, "submit", replaced)
    (row,) = driver.grade_class(Course(course), NAME, driver.Options(workers=1))
    assert files == [path] and row.graded.points == 0.0
    (again,) = driver.grade_class(Course(course), NAME, driver.Options(workers=1))
    assert not again.fresh and again.graded.points == 0.0


def test_a_late_penalty_comes_through_nbgraders_plugin(graded, empty, tmp_path):
    from nbgrader.api import Gradebook

    course = tmp_path / "course"
    shutil.copytree(empty, course)
    with open(course / "nbgrader_config.py", "a") as file:
        file.write("c = get_config()\nc.LateSubmissionPlugin.penalty_method = 'zero'\n")
    with Gradebook(f"sqlite:///{course}/gradebook.db", "triton-course") as gradebook:
        gradebook.update_or_create_assignment(NAME, duedate="2026-10-02 12:00:00 UTC")
    for student in ("late", "right"):
        shutil.copytree(graded[0] / "submitted" / student, course / "submitted" / student)
    shutil.copy(graded[0] / ".secret", course / ".secret")
    (course / ".grading" / NAME).mkdir(parents=True)
    shutil.copy(graded[0] / ".grading" / NAME / "journal.jsonl", course / ".grading" / NAME)
    _grade(course, "--json")  # from the journal: only the gradebook is written
    rows = _export(course)
    assert (rows["late"]["raw_score"], rows["late"]["score"]) == ("22.0", "0.0")
    assert rows["right"]["score"] == "22.0"


@pytest.mark.parametrize(
    "options, words",
    [
        (("--student", "nobody"), "There is no submitted/nobody/02_vector_add."),
        (("--workers", "0"), "--workers takes a number from 1 on."),
        (
            ("--scheduler", "tcp://127.0.0.1:9", "--regrade", "--student", "blank"),
            "No Dask scheduler",
        ),
    ],
)
def test_bad_options_are_one_sentence(graded, options, words):
    done = _command(graded[0], *options)
    assert done.returncode == 1 and words in done.stderr and "Traceback" not in done.stderr


def test_a_directory_that_is_no_course(tmp_path):
    done = _command(tmp_path)
    assert done.returncode == 1 and "no nbgrader_config.py" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_without_bubblewrap_it_refuses_and_says_what_to_install(graded, monkeypatch):
    from autograder.grading import sandbox
    from autograder.records import Rejected

    monkeypatch.setattr(sandbox.shutil, "which", lambda name: None)
    with pytest.raises(Rejected, match="apt install bubblewrap"):
        sandbox.require_bubblewrap()
