"""The hub's words, the roster, the installer's steps: what can be tested without accounts."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from traitlets.config import PyFileConfigLoader

from lab_setup.hub import install, steps, trial
from lab_setup.hub.accounts import Person, read_roster
from lab_setup.hub.server import bring_lessons
from lab_setup.hub.site import COURSE, Site, proxy_fault

ROOT = Path(__file__).resolve().parents[1]


def test_the_environment_says_all_of_a_site():
    site = Site(hub_port=9000, course=Path("/a/b"), trial="word", spawner="systemd")
    assert Site.from_environment(site.environment()) == site
    assert Site.from_environment({}) == Site()


@pytest.mark.parametrize(
    "name, word, said",
    [
        ("COURSE_HUB_PORT", "many", "COURSE_HUB_PORT is 'many', and should be a whole number"),
        ("COURSE_HUB_PORT", "80810", "from 1 to 65535"),
        ("COURSE_SERVERS_PER_CARD", "-3", "from 0 to 65535"),
        ("COURSE_IDLE_MINUTES", "0", "from 1 to 65535"),
        ("COURSE_EXCHANGE", "here", "should be a path that begins with /"),
        ("COURSE_SPAWNER", "docker", "local or systemd"),
    ],
)
def test_a_word_that_cannot_be(name, word, said):
    with pytest.raises(ValueError, match=said):
        Site.from_environment({name: word})


def test_the_administrators_file_goes_over_the_environment(tmp_path):
    (tmp_path / "hub.env").write_text("# mine\nCOURSE_IDLE_MINUTES=5\n")
    given = {"COURSE_SETTINGS": str(tmp_path), "COURSE_IDLE_MINUTES": "7", "COURSE_GRADER": "g"}
    site = Site.kept(given)
    assert (site.idle_minutes, site.grader) == (5, "g")
    (tmp_path / "hub.env").write_text("COURSE_IDLE_MINUTE=5\n")
    with pytest.raises(ValueError, match="COURSE_IDLE_MINUTE is no setting"):
        Site.kept(given)


def test_each_role_has_its_settings():
    site = Site(trial="word", grader="g")
    first = {u: site.config_path(u).split(":")[0] for u in ("student1", "instructor", "g")}
    assert {user: Path(path).name for user, path in first.items()} == {
        "student1": "student",
        "instructor": "instructor",
        "g": "grader",
    }
    assert all(Path(place).is_dir() for place in site.config_path("g").split(":"))
    assert "trial" not in Site(grader="g").config_path("g")


def test_a_roster():
    text = "\ufeffrole,username,name\nstudent,ada,Ada Lovelace\ninstructor,ines,Ines\n"
    assert read_roster(text, "g") == [
        Person("ada", "Ada Lovelace", "student"),
        Person("ines", "Ines", "instructor"),
    ]


@pytest.mark.parametrize(
    "row, said",
    [
        ("Ada,Ada,student", "line 2 of the roster: 'Ada' is no username"),
        ("-rf,Ada,student", "is no username"),
        ("ada,Ada,teacher", "ada has the role 'teacher'"),
        ("ada,Ada,student\nada,Eda,student", "line 3 of the roster: ada stands there twice"),
        ("root,Ada,student", "take another username"),
        ("daemon,Ada,student", "take another username"),
        ("grader,Ada,student", "take another username"),
        ("ada,a:b,student", "cannot hold a colon"),
        ("ada", "ada has the role ''"),
    ],
)
def test_a_roster_that_cannot_be(row, said):
    with pytest.raises(ValueError, match=said):
        read_roster(f"username,name,role\n{row}\n", "grader")
    with pytest.raises(ValueError, match="first line"):
        read_roster(row, "grader")


def test_a_roster_from_a_spreadsheet(tmp_path, capsys):
    with pytest.raises(ValueError, match="it is 'username;name;role'"):
        read_roster("username;name;role\nada;Ada;student\n", "grader")
    with pytest.raises(ValueError, match="names nobody"):
        read_roster("username,name,role\n", "grader")
    (tmp_path / "roster.csv").write_bytes("username,name,role\nada,Änne,student\n".encode("latin1"))
    assert install.main(["--dry-run", "--roster", str(tmp_path / "roster.csv")]) == 2
    assert "roster.csv is not in UTF-8" in capsys.readouterr().err


def made(place: Path) -> list[steps.Step]:
    files = {"a/b.py": b"1", "c.txt": b"2"}
    return [
        steps.text_file(place / "x" / "hub.env", "A=1\n", 0o600),
        steps.tree(place / "t", files, "x"),
    ]


def test_a_second_run_changes_nothing_and_a_dry_run_never_does(tmp_path):
    told: list[str] = []
    assert steps.run(made(tmp_path), dry=True, say=told.append) == 2
    assert list(tmp_path.iterdir()) == [] and all(line.startswith("would do: ") for line in told)
    assert steps.run(made(tmp_path), dry=False, say=told.append) == 2
    assert (tmp_path / "x/hub.env").stat().st_mode & 0o777 == 0o600
    assert steps.run(made(tmp_path), dry=False, say=told.append) == 0


def test_a_step_mends_what_somebody_changed(tmp_path):
    steps.run(made(tmp_path), dry=False, say=str)
    (tmp_path / "t/old.py").write_text("of the last version")
    (tmp_path / "t/c.txt").write_text("edited")
    (tmp_path / "x/hub.env").chmod(0o644)
    assert steps.run(made(tmp_path), dry=False, say=str) == 2
    assert sorted(p.name for p in (tmp_path / "t").rglob("*") if p.is_file()) == ["b.py", "c.txt"]
    assert (tmp_path / "t/c.txt").read_text() == "2"


def test_a_step_without_effect_is_an_error():
    with pytest.raises(RuntimeError, match="no effect: nothing"):
        steps.run([steps.Step("nothing", lambda: False, lambda: None)], dry=False, say=str)


def test_the_hub_s_package_has_no_grading(monkeypatch):
    """What all can read is the students' bundle and lab_setup."""
    assert not [name for name in install._lab() if not name.startswith("lab_setup/")]
    assert "course/hidden/02_vector_add.json" in install._grading()


def test_the_installer_wants_root_and_says_so(monkeypatch, tmp_path, capsys):
    (tmp_path / "roster.csv").write_text("username,name,role\nada,Ada,student\n")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert install.main(["--roster", str(tmp_path / "roster.csv")]) == 2
    assert "sudo" in capsys.readouterr().err
    assert install.main(["--roster", str(tmp_path / "none.csv")]) == 2
    assert "none.csv: No such file" in capsys.readouterr().err


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can try Python as another account")
def test_a_python_in_a_private_home_is_refused_with_the_mend(monkeypatch, tmp_path):
    tmp_path.chmod(0o700)
    (tmp_path / "python").symlink_to(sys.executable)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    said = install._unusable()
    assert "Other accounts cannot use" in said and "VENV=/opt/" in said


def test_lessons_are_brought_once(tmp_path):
    lessons, home = tmp_path / "from", tmp_path / "home"
    for place in (lessons, home):
        place.mkdir()
    for name in ("01.ipynb", "02.ipynb"):
        (lessons / name).write_text("new")
    (home / "lessons").mkdir()
    (home / "lessons/01.ipynb").write_text("mine")
    bring_lessons(home, lessons)
    assert (home / "lessons/01.ipynb").read_text() == "mine"
    assert (home / "lessons/02.ipynb").read_text() == "new"
    first = home / "START_HERE.md"
    assert "Assignment List" in first.read_text()
    first.write_text("mine")
    bring_lessons(home, lessons)
    assert first.read_text() == "mine"


def test_the_first_page_is_installed_and_leads_to_a_lesson():
    page = "lab_setup/hub/START_HERE.md"
    assert page in install._lab()
    (lesson,) = re.findall(r"\]\(lessons/([^)]+)\)", (ROOT / page).read_text())
    assert (ROOT / "notebooks" / lesson).is_file()
    config = (ROOT / "lab_setup/jupyterhub_config.py").read_text()
    assert 'default_url = "/lab/tree/START_HERE.md"' in config


def test_a_trial_s_configuration_is_dummies_on_loopback(monkeypatch, tmp_path):
    site = trial.trial_site(tmp_path, 8000, cards=4)
    for name, word in site.environment().items():
        monkeypatch.setenv(name, word)
    c = PyFileConfigLoader("jupyterhub_config.py", path=str(ROOT / "lab_setup")).load_config()
    assert c.JupyterHub.authenticator_class == "shared-password"  # one word for all accounts
    assert c.JupyterHub.bind_url == "http://127.0.0.1:8000"
    assert c.JupyterHub.spawner_class.__name__ == "TrialOneCard"
    assert len(c.OneCard.cards()) == 4
    admin = [s for s in c.JupyterHub.services if s.get("admin") or s.get("api_token")]
    assert admin == [] and c.JupyterHub.services[0]["name"] == COURSE


def test_a_lab_s_configuration_asks_pam_for_members_of_two_groups(monkeypatch, tmp_path):
    site = Site(grader="nobody", runtime=tmp_path / "run", caches=tmp_path / "caches")
    monkeypatch.setattr(os, "chown", lambda *a, **k: None)
    for name, word in site.environment().items():
        monkeypatch.setenv(name, word)
    c = PyFileConfigLoader("jupyterhub_config.py", path=str(ROOT / "lab_setup")).load_config()
    assert c.JupyterHub.authenticator_class == "pam"
    assert c.LocalAuthenticator.allowed_groups == {"triton-students", "triton-instructors"}
    assert c.JupyterHub.cleanup_servers is False
    assert c.JupyterHub.spawner_class.__name__ == "LocalOneCard"


def test_a_trial_without_the_proxy_says_how_to_get_it(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "lab_setup.hub.trial", "--place", str(tmp_path / "hub")],
        cwd=ROOT, capture_output=True, text=True, env=os.environ | {"COURSE_PROXY": "/none"},
    )  # fmt: skip
    assert done.returncode == 1
    assert "npm install" in done.stderr and not (tmp_path / "hub").exists()


def test_a_proxy_without_its_node(tmp_path):
    program = tmp_path / "configurable-http-proxy"
    program.write_text("#!/usr/bin/env no-such-node\n")
    program.chmod(0o755)
    said, mend = proxy_fault(str(program), "npm install …")
    assert "no-such-node" in said and "Node.js" in mend
    assert proxy_fault(sys.executable, "") is None


def test_a_trial_whose_port_is_taken_says_so_before_it_starts(monkeypatch, tmp_path, capsys):
    """Else the hub that has the port would answer for the new one."""
    monkeypatch.setenv("COURSE_PROXY", sys.executable)
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        place = tmp_path / "hub"
        assert trial.main(["--port", str(port - 1), "--place", str(place)]) == 1
    said = capsys.readouterr().err
    assert re.search(rf" \d+ to \d+\. ({port - 1}|{port}): ", said) and "--port 8100" in said
    assert not place.exists()


def test_a_trial_reads_this_checkout_s_settings_where_another_has_been(tmp_path):
    site = trial.trial_site(tmp_path, 8000, cards=0)
    (site.exchange / COURSE / "outbound" / trial.FIRST).mkdir(parents=True)
    site.course.mkdir()
    (site.course / "nbgrader_config.py").write_text("load_subconfig('x', path='/moved/away')\n")
    trial.course_directory(site)
    assert str(ROOT) in (site.course / "nbgrader_config.py").read_text()
