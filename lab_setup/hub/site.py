"""What differs from lab to lab, in one record: places, names, ports, how many users a card.

Each field has an environment variable, ``COURSE_`` and its name in capitals. On a lab box they
stand in /etc/triton-course/hub.env, which the installer writes once and the administrator edits.
"""

from __future__ import annotations

import grp
import os
import pwd
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path

from lab_setup.gpus import Gpu

__all__ = ["COURSE", "INSTALL_PROXY", "JUPYTER", "Site", "members", "proxy_fault"]

COURSE = "triton-course"  # nbgrader's course id, the grading service's name, the groups' endings
# The version that our tests run with.
INSTALL_PROXY = "sudo npm install -g configurable-http-proxy@5.3.0"
JUPYTER = Path(__file__).resolve().parent / "jupyter"  # settings of servers, by role


@dataclass(frozen=True)
class Site:
    """The lab. Paths are absolute; what grades work is out of students' reach by file rights."""

    url: str = "http://127.0.0.1:8000"
    hub_port: int = 8081  # and the next one: the hub's API, and the proxy's
    grader_port: int = 9999
    proxy: str = "configurable-http-proxy"  # a program on the hub's PATH, or its path

    settings: Path = Path("/etc/triton-course")  # hub.env, first passwords: root's
    package: Path = Path("/opt/triton-course")  # what all may read, and the hub's own code
    grading_package: Path = Path("/opt/triton-course-grading")  # with hidden cases and solutions
    course: Path = Path("/srv/triton-course")  # source/, gradebook: the grading account's
    exchange: Path = Path("/srv/triton-exchange")
    state: Path = Path("/var/lib/triton-course")  # of the hub
    runtime: Path = Path("/run/triton-course")  # short: kernels' sockets are under it
    caches: Path = Path("/var/tmp/triton-course")  # Triton's, on a local disk
    units: Path = Path("/etc/systemd/system")
    tmpfiles: Path = Path("/etc/tmpfiles.d")

    grader: str = "triton-grader"
    student_group: str = "triton-students"
    instructor_group: str = "triton-instructors"

    spawner: str = "local"  # or systemd, which confines servers (docs/LAB.md)
    memory: str = "8G"  # a server's most, where the spawner can enforce it
    servers_per_card: int = 0  # most of them, 0: no limit
    idle_minutes: int = 60  # then a server is stopped; its kernels after 30

    trial: str = ""  # the password of all dummy accounts; a real lab has none
    pretended_cards: int = 0

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] = os.environ) -> Site:
        """Raises ValueError with a sentence for a word that cannot be."""
        given = {}
        for field in fields(cls):
            name = f"COURSE_{field.name.upper()}"
            if name not in environ:
                continue
            kind, word = type(field.default), environ[name]
            if kind is int:
                least = 0 if field.name in _MAY_BE_0 else 1
                if not word.isdecimal() or not least <= int(word) <= 65535:
                    raise ValueError(
                        f"{name} is {word!r}, and should be a whole number from {least} to 65535."
                    )
            given[field.name] = kind(word)
            if isinstance(field.default, Path) and not given[field.name].is_absolute():
                raise ValueError(f"{name} is {word!r}, and should be a path that begins with /.")
        if given.get("spawner", "local") not in ("local", "systemd"):
            raise ValueError(f"COURSE_SPAWNER is {given['spawner']!r}: local or systemd.")
        return cls(**given)

    @classmethod
    def kept(cls, environ: Mapping[str, str] = os.environ) -> Site:
        """The lab of this machine: the environment, and over it the administrator's hub.env."""
        file = Path(environ.get("COURSE_SETTINGS") or cls.settings) / "hub.env"
        lines = file.read_text(encoding="utf-8").splitlines() if file.is_file() else ()
        words = dict(line.partition("=")[::2] for line in lines if line.startswith("COURSE_"))
        if unknown := sorted(words.keys() - cls().environment().keys()):
            raise ValueError(f"{file}: {unknown[0]} is no setting; {__file__} lists them.")
        return cls.from_environment({**environ, **words})

    def environment(self) -> dict[str, str]:
        """What ``from_environment`` reads."""
        return {f"COURSE_{f.name.upper()}": str(getattr(self, f.name)) for f in fields(self)}

    @property
    def students(self) -> list[str]:
        return [f"student{i}" for i in range(1, 10)] if self.trial else members(self.student_group)

    @property
    def instructors(self) -> list[str]:
        return ["instructor"] if self.trial else members(self.instructor_group)

    def config_path(self, user: str) -> str:
        """JUPYTER_CONFIG_PATH of a server: which extensions a role has, and nbgrader's settings."""
        role = "student"
        if user == self.grader:
            role = "grader"
        elif user in self.instructors:
            role = "instructor"
        roles = (role, "common", "trial") if self.trial else (role, "common")
        return os.pathsep.join(str(JUPYTER / role) for role in roles)

    def server_environment(self, user: str) -> dict[str, str]:
        """The environment of a user's server; its directories are made on the way."""
        package = self.grading_package if user == self.grader else self.package
        return {
            "JUPYTER_CONFIG_PATH": self.config_path(user),
            "JUPYTER_RUNTIME_DIR": self._own(self.runtime, user),
            "TRITON_CACHE_DIR": self._own(self.caches, user),
            "COURSE_EXCHANGE": str(self.exchange),
            # Before the .pth file of the environment, which names the checkout it was made in.
            "PYTHONPATH": str(package),
            "PATH": f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin",
        }

    def pretend_cards(self) -> tuple[Gpu, ...]:
        return tuple(
            Gpu(i, f"GPU-pretended-{i}", "pretended", 89, 15 << 30)
            for i in range(self.pretended_cards)
        )

    def _own(self, parent: Path, user: str) -> str:
        """A directory for ``user`` alone, under one in which only the hub can make any."""
        place = parent / user
        parent.mkdir(mode=0o711, parents=True, exist_ok=True)
        place.mkdir(mode=0o700, exist_ok=True)
        if not self.trial:
            os.chown(place, *pwd.getpwnam(user)[2:4], follow_symlinks=False)
        return str(place)


_MAY_BE_0 = ("servers_per_card", "pretended_cards")


def proxy_fault(program: str, install: str) -> tuple[str, str] | None:
    """What is wrong with the hub's proxy and what mends it; None where it runs."""
    if shutil.which(program) is None:
        npm = "" if shutil.which("npm") else "sudo apt install npm; "
        return "is missing; it comes from npm", npm + install
    tried = subprocess.run([program, "--version"], capture_output=True, text=True)
    if tried.returncode == 0:
        return None
    said = tried.stderr.strip().splitlines() or [f"status {tried.returncode}"]
    error = next((line for line in said if "Error" in line), said[-1])
    return f"does not run ({error})", "sudo apt install npm (Node.js 18 or newer)"


def members(group: str) -> list[str]:
    """Who is in a UNIX group, sorted; nobody where there is no such group."""
    try:
        return sorted(grp.getgrnam(group).gr_mem)
    except KeyError:
        return []
