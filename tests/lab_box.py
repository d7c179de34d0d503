"""A whole lab for one test: the installer's accounts and places under names of our own, and a hub.

Needs root, because file rights between real accounts are what is tested. All of it is gone
afterwards: processes by their ids, accounts by their names, places by one directory.
"""

from __future__ import annotations

import grp
import os
import pwd
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from lab_setup.hub.site import Site
from lab_setup.hub.trial import proxy

ROOT = Path(__file__).resolve().parents[1]
ADA, BEN, INES = "ada", "ben", "ines"  # two students, an instructor
_TOOLS = (
    "useradd",
    "userdel",
    "runuser",
    "unshare",
    "nsenter",
    "mount",
    "bwrap",
    "git",
    "node",
)


def missing(*more: str) -> list[str]:
    """What this machine lacks for such a lab, in words."""
    lacks = [] if os.geteuid() == 0 else ["root's rights"]
    return lacks + [tool for tool in (*_TOOLS, proxy(), *more) if shutil.which(tool) is None]


def wait_for(what: str, ready: Callable[[], object], seconds: float = 120):
    """What ``ready`` returns once it is true."""
    end = time.monotonic() + seconds
    while not (found := ready()):
        if time.monotonic() > end:
            raise TimeoutError(f"Waited {seconds:g} s for: {what}.")
        time.sleep(0.2)
    return found


@dataclass
class LabBox:
    """``with LabBox() as box``: installed, the hub answers at ``box.site.url``."""

    prefix: str = field(default_factory=lambda: f"tc{os.getpid()}-")
    passwords: dict[str, str] = field(default_factory=dict)

    def __enter__(self) -> LabBox:
        _remove_left_over()
        self.place = Path(tempfile.mkdtemp(prefix="tc", dir="/tmp"))
        self.place.chmod(0o755)
        self.processes: list[subprocess.Popen] = []
        self.entered: list[str] = []
        place = self.place
        ports = _free_ports(4)
        self.site = Site(
            url=f"http://127.0.0.1:{ports[0]}",
            hub_port=ports[1],
            grader_port=ports[3],
            proxy=shutil.which(proxy()),
            settings=place / "etc",
            package=place / "package",
            grading_package=place / "grading",
            course=place / "course",
            exchange=place / "exchange",
            state=place / "state",
            runtime=place / "run",
            caches=place / "caches",
            units=place / "units",
            tmpfiles=place / "tmpfiles",
            grader=f"{self.prefix}grader",
            student_group=f"{self.prefix}students",
            instructor_group=f"{self.prefix}instructors",
            pretended_cards=2,
        )
        try:
            self._show_python_to_all()
            self._checkout()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *error) -> None:
        for process in reversed(self.processes):
            process.terminate()
        for process in reversed(self.processes):
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        _remove_accounts(self.prefix)
        shutil.rmtree(self.place)

    # ------------------------------------------------------------ what a test does with it

    def name(self, who: str) -> str:
        return self.prefix + who

    def home(self, who: str) -> Path:
        return Path(pwd.getpwnam(self.name(who)).pw_dir)

    def install(self, *options: str, expect: int = 0) -> str:
        done = self.run(
            [sys.executable, "-m", "lab_setup.hub.install", "--roster", "roster.csv", *options],
            cwd=self.checkout,
        )
        assert done.returncode == expect, done.stdout + done.stderr
        noted = self.site.settings / "first-passwords"
        if noted.exists():
            self.passwords = dict(line.split(":", 1) for line in noted.read_text().splitlines())
        return done.stdout + done.stderr

    def start_hub(self) -> None:
        log = (self.place / "hub.log").open("ab")
        environ = dict(
            line.split("=", 1) for line in (self.site.settings / "hub.env").read_text().splitlines()
        )
        config = self.site.package / "lab_setup/jupyterhub_config.py"
        command = [sys.executable, "-P", "-m", "jupyterhub", "-f", str(config)]
        hub = subprocess.Popen(
            [*self.entered, "env", f"--chdir={self.site.state}", *command],
            env=_plain() | environ, stdout=log, stderr=log,
        )  # fmt: skip
        self.processes.append(hub)
        self.hub = hub

        def answers() -> bool:
            assert hub.poll() is None, (self.place / "hub.log").read_text()[-4000:]
            return _status(f"{self.site.url}/hub/health") == 200

        wait_for("the hub to answer", answers)

    def stop_hub(self) -> None:
        self.hub.terminate()
        self.hub.wait(60)

    def run(self, command: list[str], who: str = "", cwd: Path | None = None, **environ: str):
        """A command inside the lab, with the rights of ``who`` (root where empty)."""
        as_who = ["runuser", "-u", self.name(who), "--"] if who else []
        return subprocess.run(
            [*self.entered, "env", f"--chdir={cwd or '/'}", *as_who, *command],
            capture_output=True, text=True, timeout=300,
            env=_plain() | self.site.environment() | environ,
        )  # fmt: skip

    def reads(self, who: str, path: Path) -> bool:
        """Whether that account can read a file or list a directory (which is there)."""
        assert path.exists(), path
        command = ["ls" if path.is_dir() else "cat", str(path)]
        done = self.run(command, who)
        assert done.returncode == 0 or "Permission denied" in done.stderr, done.stderr
        return done.returncode == 0

    # ------------------------------------------------------------ the machine around it

    def _show_python_to_all(self) -> None:
        """Students' servers must be able to run our Python, which may lie in root's home.

        Then the lab runs in a mount namespace of its own, in which a bare directory stands for the
        closed one, with nothing in it but the Python; the machine itself stays as it is.
        """
        node = [Path(os.path.realpath(shutil.which(name))) for name in ("node", proxy())]
        trees = {Path(sys.prefix), Path(sys.base_prefix), node[0].parents[1], _packages(node[1])}
        closed: dict[Path, list[Path]] = {}
        for tree in sorted(trees):
            walls = [p for p in reversed(tree.parents) if not p.stat().st_mode & 0o001]
            if walls:
                closed.setdefault(walls[0], []).append(tree)
        if not closed:
            return
        script = ["set -e"]
        for wall, inside in closed.items():
            behind = self.place / "behind"
            behind.mkdir(mode=0o700, exist_ok=True)
            script += [f"mount --rbind {wall} {behind}", f"mount -t tmpfs -o mode=755 tmpfs {wall}"]
            for tree in inside:
                script += [
                    f"mkdir -p {tree}",
                    f"mount --rbind {behind / tree.relative_to(wall)} {tree}",
                ]
            script += [f"umount -l {behind}"]
        script += ["echo ready", "exec sleep infinity"]
        keeper = subprocess.Popen(
            ["unshare", "--mount", "--propagation", "private", "sh", "-c", "\n".join(script)],
            stdout=subprocess.PIPE, text=True, cwd="/",
        )  # fmt: skip
        self.processes.append(keeper)
        assert keeper.stdout.readline() == "ready\n", "cannot make a mount namespace"
        self.entered = ["nsenter", f"--mount=/proc/{keeper.pid}/ns/mnt"]

    def _checkout(self) -> None:
        """The administrator's copy of this checkout, with a roster in it."""
        self.checkout = self.place / "checkout"
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=ROOT, capture_output=True, text=True, check=True,
        )  # fmt: skip
        for name in filter(None, listed.stdout.split("\0")):
            if (ROOT / name).is_file():
                (self.checkout / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(ROOT / name, self.checkout / name)
        rows = [
            (ADA, "Ada L.", "student"),
            (BEN, "Ben O.", "student"),
            (INES, "Ines", "instructor"),
        ]
        roster = "".join(f"{self.name(who)},{full},{role}\n" for who, full, role in rows)
        (self.checkout / "roster.csv").write_text("username,name,role\n" + roster)


def _remove_accounts(prefix: str) -> None:
    """Accounts and groups of that prefix, with their processes and homes."""
    accounts = [account for account in pwd.getpwall() if account.pw_name.startswith(prefix)]
    uids = {account.pw_uid for account in accounts}
    wait_for("the accounts' processes to end", lambda: not _end(uids), 30)
    for account in accounts:
        subprocess.run(["userdel", "--remove", account.pw_name], capture_output=True, check=True)
    for group in [group.gr_name for group in grp.getgrall() if group.gr_name.startswith(prefix)]:
        subprocess.run(["groupdel", group], check=True)


def _remove_left_over() -> None:
    """What a run that was killed could not remove: its process is no more."""
    for account in pwd.getpwall():
        left = re.match(r"tc(\d+)-", account.pw_name)
        if left and not Path("/proc", left[1]).exists():
            _remove_accounts(left[0])


def _plain() -> dict[str, str]:
    """The environment of a login on the machine, nothing of the test's."""
    kept = ("LANG", "PATH", "TZ")
    return {"HOME": "/", "PYTHONDONTWRITEBYTECODE": "1"} | {
        key: os.environ[key] for key in kept if key in os.environ
    }


def _packages(program: Path) -> Path:
    """The folder of packages that a program of node's stands in."""
    return next((p for p in reversed(program.parents) if p.name == "node_modules"), program.parent)


def _free_ports(count: int) -> list[int]:
    """Ports that nobody listens on; the third is the second's neighbour."""
    while True:
        sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count - 1)]
        ports = [s.getsockname()[1] for s in sockets]
        try:
            sockets.append(socket.create_server(("127.0.0.1", ports[1] + 1)))
            return [*ports[:2], ports[1] + 1, ports[2]]
        except OSError:
            continue
        finally:
            for each in sockets:
                each.close()


def _status(url: str) -> int:
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code
    except OSError:
        return 0


def _end(uids: set[int]) -> list[int]:
    """Kills the processes of these accounts, which only this lab has, and returns which."""
    ours = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and entry.stat().st_uid in uids:
                ours.append(int(entry.name))
                os.kill(int(entry.name), signal.SIGKILL)
        except (FileNotFoundError, ProcessLookupError):
            continue
    return ours
