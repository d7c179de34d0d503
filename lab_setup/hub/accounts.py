"""roster.csv (username,name,role) into UNIX accounts and two groups.

The grading account is nobody's login: it has no password, owns the course and runs the grading
service, which instructors reach through the hub.
"""

from __future__ import annotations

import csv
import grp
import os
import pwd
import re
import secrets
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from lab_setup.hub.site import Site, members
from lab_setup.hub.steps import Step

__all__ = ["Person", "account_steps", "read_roster"]

ROLES = ("student", "instructor")
FIRST_PERSON = 1000  # below it are the system's accounts: root, daemon, www-data
_NAME = re.compile(r"[a-z][a-z0-9_-]{0,30}")  # what useradd takes, and nbgrader as a directory


@dataclass(frozen=True)
class Person:
    username: str
    name: str
    role: str


def read_roster(text: str, grader: str) -> list[Person]:
    """The rows of a roster. Raises ValueError with one sentence that names the line."""
    rows = csv.DictReader(text.lstrip("\ufeff").splitlines())
    if not {"username", "name", "role"} <= {*(rows.fieldnames or ())}:
        found = ",".join(rows.fieldnames or ())
        raise ValueError(
            "The roster's first line has to be username,name,role, with commas and in small "
            f"letters; it is {found!r}."
        )
    people: dict[str, Person] = {}
    for row in rows:
        user, name, role = ((row[key] or "").strip() for key in ("username", "name", "role"))
        where = f"line {rows.line_num} of the roster"
        if not _NAME.fullmatch(user):
            raise ValueError(
                f"{where}: {user!r} is no username: a small letter, then letters, digits, - or _."
            )
        if role not in ROLES:
            raise ValueError(f"{where}: {user} has the role {role!r}; it is student or instructor.")
        if user in people:
            raise ValueError(f"{where}: {user} stands there twice.")
        account = _account(user)
        if user == grader or (account and account.pw_uid < FIRST_PERSON):
            raise ValueError(f"{where}: {user} is no person's account; take another username.")
        if ":" in name or "\n" in name:
            raise ValueError(f"{where}: a name cannot hold a colon.")
        people[user] = Person(user, name, role)
    if not people:  # rather a spoilt export than a wish to close the hub for all
        raise ValueError("The roster names nobody: a line a person, under username,name,role.")
    return list(people.values())


def account_steps(site: Site, people: list[Person]) -> Iterator[Step]:
    """Groups, the grading account, an account for each person, and who is in which group."""
    groups = {"student": site.student_group, "instructor": site.instructor_group}
    for group in groups.values():
        yield Step(f"group {group}", lambda g=group: _group(g) is not None, _run("groupadd", group))
    yield Step(
        f"grading account {site.grader}, without a password",
        lambda: _account(site.grader) is not None,
        _run("useradd", "--system", "--create-home", "--home-dir", f"/var/lib/{site.grader}",
             "--shell", "/bin/bash", "--user-group", site.grader),
    )  # fmt: skip
    for person in people:
        yield Step(
            f"account {person.username} ({person.name}, {person.role})",
            lambda p=person: _account(p.username) is not None,
            lambda p=person: _add(site, p),
        )
    for role, group in groups.items():
        names = sorted(p.username for p in people if p.role == role)
        yield Step(
            f"group {group}: {len(names)} members, as in the roster",
            lambda g=group, n=names: members(g) == n,
            _run("gpasswd", "--members", ",".join(names), group),
        )


def _add(site: Site, person: Person) -> None:
    """An account with a home of its own and a first password, which is noted for handing out."""
    subprocess.run(
        ["useradd", "--create-home", "--key", "HOME_MODE=0700", "--shell", "/bin/bash",
         "--user-group", "--comment", person.name, person.username],
        check=True,
    )  # fmt: skip
    password = secrets.token_urlsafe(9)
    entry = f"{person.username}:{password}\n"
    subprocess.run(["chpasswd"], input=entry, text=True, check=True)
    noted = os.open(passwords(site), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    with os.fdopen(noted, "a", encoding="utf-8") as file:
        file.write(entry)


def passwords(site: Site) -> Path:
    """The file of first passwords; delete it when they are handed out."""
    return site.settings / "first-passwords"


def _group(name: str) -> grp.struct_group | None:
    try:
        return grp.getgrnam(name)
    except KeyError:
        return None


def _account(name: str) -> pwd.struct_passwd | None:
    try:
        return pwd.getpwnam(name)
    except KeyError:
        return None


def _run(*command: str):
    return lambda: subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
