"""Sets up the lab box: ``sudo PYTHON -m lab_setup.hub.install --roster FILE``, any time again.

Run it from the administrator's checkout, with the Python of an environment that all accounts can
use. It prints what it does, a line a step, and skips what is done; ``--dry-run`` only prints.
docs/LAB.md says what to do before and after.
"""

from __future__ import annotations

import argparse
import json
import os
import pwd
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from course.build import ROOT
from course.bundle import contents
from lab_setup import gpulock
from lab_setup.gpus import gpus
from lab_setup.hub.accounts import Person, account_steps, passwords, read_roster
from lab_setup.hub.site import INSTALL_PROXY, Site, proxy_fault
from lab_setup.hub.steps import Step, directory, run, text_file, tree

UNIT = "triton-course.service"

_UNIT = """\
[Unit]
Description=JupyterHub of the Triton course
After=network-online.target

[Service]
EnvironmentFile={settings}/hub.env
ExecStart={python} -P -m jupyterhub -f {package}/lab_setup/jupyterhub_config.py
WorkingDirectory={state}
Restart=on-failure
# Students keep their servers when the hub is restarted (systemctl restart).
KillMode=process

[Install]
WantedBy=multi-user.target
"""

_COURSE_CONFIG = """\
# The course of this lab; its settings and hidden cases belong to root and are read from there.
load_subconfig("nbgrader_config.py", path="{grading_package}")  # noqa: F821
"""


def steps(site: Site, people: list[Person]) -> Iterator[Step]:
    """Everything, in order."""
    yield Step(
        f"this checkout ({ROOT}): closed to others, because it holds hidden cases",
        lambda: not ROOT.stat().st_mode & 0o007,
        lambda: ROOT.chmod(ROOT.stat().st_mode & 0o770),
    )
    yield directory(site.settings, 0o700)
    yield from account_steps(site, people)
    yield directory(site.package, 0o755)
    yield tree(site.package, contents(ROOT) | _lab(), "what students and the hub run")
    # Root's, so that the grading account cannot change the judge; group: that account alone.
    yield directory(site.grading_package, 0o750, group=site.grader)
    yield tree(site.grading_package, _grading(), "judge, settings and hidden cases")
    yield from _course(site, people)
    yield directory(site.exchange, 0o1777)
    yield directory(site.state, 0o700)
    yield directory(site.runtime, 0o711)
    yield directory(site.caches, 0o711)
    yield from _hub(site)


def _lab() -> dict[str, bytes]:
    kept = [p for p in (ROOT / "lab_setup").rglob("*") if p.suffix in (".py", ".json", ".md")]
    return {p.relative_to(ROOT).as_posix(): p.read_bytes() for p in kept}


def _grading() -> dict[str, bytes]:
    # The judge's sandbox shows lab_setup beside autograder, as the students' package has it.
    files = {"nbgrader_config.py": (ROOT / "nbgrader_config.py").read_bytes()} | _lab()
    for folder in ("autograder", "course"):
        for path in sorted((ROOT / folder).rglob("*.*")):
            if path.is_file() and path.suffix != ".pyc":
                files[path.relative_to(ROOT).as_posix()] = path.read_bytes()
    return files


def _course(site: Site, people: list[Person]) -> Iterator[Step]:
    """The grading account's directory. Instructors work in it: what is there stays."""
    yield directory(site.course, 0o700, site.grader)
    files = {"nbgrader_config.py": _COURSE_CONFIG.format(grading_package=site.grading_package)}
    for path in sorted((ROOT / "source").glob("*/*.ipynb")):
        files[path.relative_to(ROOT).as_posix()] = path.read_text(encoding="utf-8")
    for name, text in files.items():
        yield Step(
            f"{site.course / name}",
            (site.course / name).is_file,
            lambda name=name, text=text: _as_grader(site, _WRITE, str(site.course / name), text),
        )
    names = json.dumps({p.username: p.name for p in people if p.role == "student"})
    noted = site.course / ".roster.json"  # what the gradebook was told last
    yield Step(
        "the gradebook knows the students by name",
        lambda: noted.is_file() and noted.read_text(encoding="utf-8") == names,
        lambda: _as_grader(site, _ENROL, str(site.course), names),
    )


_WRITE = """
import pathlib, sys
file = pathlib.Path(sys.argv[1])
file.parent.mkdir(parents=True, exist_ok=True)
file.write_text(sys.stdin.read(), encoding="utf-8")
"""

_ENROL = """
import json, pathlib, sys
from nbgrader.api import Gradebook
course, names = pathlib.Path(sys.argv[1]), sys.stdin.read()
with Gradebook(f"sqlite:///{course}/gradebook.db") as gradebook:
    for user, name in json.loads(names).items():
        first, _, last = name.rpartition(" ")
        gradebook.update_or_create_student(user, first_name=first, last_name=last)
(course / ".roster.json").write_text(names, encoding="utf-8")
"""


def _as_grader(site: Site, program: str, place: str, text: str) -> None:
    """With that account's rights: root does not write where somebody else may have left a link."""
    path = f"{Path(sys.executable).parent}:/usr/bin:/bin"  # nbgrader calls alembic by name
    subprocess.run(
        [sys.executable, "-I", "-c", program, place],
        input=text, text=True, check=True, cwd="/", user=site.grader, group=site.grader,
        extra_groups=[], env={"PATH": path, "HOME": "/"}, stdout=subprocess.DEVNULL,
    )  # fmt: skip


def _hub(site: Site) -> Iterator[Step]:
    place = site.settings / "hub.env"
    words = "".join(f"{key}={word}\n" for key, word in site.environment().items())
    written = text_file(place, words, 0o600)
    yield Step(f"{place}: the hub's settings, yours to edit", place.is_file, written.do)
    unit = _UNIT.format(python=sys.executable, **{k: getattr(site, k) for k in _PLACES})
    yield text_file(site.units / UNIT, unit)
    # /run is empty after every start of the machine.
    lines = [f"d {site.runtime} 0711 root root -"]
    cards = gpus()
    if cards:
        lines.append(f"d {gpulock.SYSTEM} 0755 root root -")
        lines += [f"f {gpulock.SYSTEM / card.uuid} 0444 root root -" for card in cards]
        yield directory(gpulock.SYSTEM, 0o755)
    for card in cards:
        yield text_file(gpulock.SYSTEM / card.uuid, "", 0o444)
    yield text_file(site.tmpfiles / "triton-course.conf", "\n".join(lines) + "\n")


_PLACES = ("settings", "package", "state")


def _unusable() -> str:
    """Why other accounts cannot use this Python; empty if they can."""
    try:
        tried = subprocess.run(
            [sys.executable, "-I", "-c", "import jupyterhub, nbgrader"],
            capture_output=True, text=True, cwd="/", extra_groups=[],
            user="nobody", group=pwd.getpwnam("nobody").pw_gid,
        )  # fmt: skip
        said = (tried.stderr.strip().splitlines() or [""])[-1] if tried.returncode else ""
    except PermissionError:
        said = "permission denied"
    if not said:
        return ""
    real = Path(sys.executable).resolve()
    via = "" if real == Path(sys.executable) else f" (which is {real})"
    return (
        f"Other accounts cannot use {sys.executable}{via}: {said}. Make an environment outside "
        "all homes, from a Python that is outside too: sudo make setup VENV=/opt/triton-venv "
        "PYTHON=/usr/bin/python3.12"
    )


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m lab_setup.hub.install", description=__doc__)
    parser.add_argument("--roster", required=True, type=Path, help="CSV: username,name,role")
    parser.add_argument("--dry-run", action="store_true", help="print the steps, change nothing")
    options = parser.parse_args(arguments)
    try:
        site = Site.kept()
        people = _roster(options.roster, site)
        if os.geteuid() != 0 and not options.dry_run:
            raise ValueError("Accounts and services are root's work: sudo, or --dry-run to look.")
        if os.geteuid() == 0 and (said := _unusable()):
            raise ValueError(said)
    except OSError as error:
        print(f"{error.filename}: {error.strerror}", file=sys.stderr)
        return 2
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    changed = run(steps(site, people), options.dry_run)
    if options.dry_run:
        print(f"{changed} steps to do." if changed else "Nothing to do.")
        return 0
    print(f"{changed} steps done." if changed else "Nothing to do: all is in place.")
    if changed:
        _next(site)
    return 0


def _roster(file: Path, site: Site) -> list[Person]:
    try:
        text = file.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise ValueError(
            f"{file} is not in UTF-8. Save it as CSV UTF-8, or: iconv -f latin1 -t utf-8 {file}"
        ) from None
    return read_roster(text, site.grader)


def _next(site: Site) -> None:
    if passwords(site).is_file():
        print(f"First passwords, to hand out: {passwords(site)}")
    if fault := proxy_fault(site.proxy, INSTALL_PROXY):
        print(f"The hub's proxy {fault[0]}. Mend it: {fault[1]}")
    print(f"Then: systemctl daemon-reload; systemctl enable {UNIT}; systemctl restart {UNIT}")


if __name__ == "__main__":
    sys.exit(main())
