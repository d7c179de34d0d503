"""Starts warm processes: the students' side inside bubblewrap, the judge beside us.

Inside bubblewrap: the system and Python read-only, this package (a copy of what students have), an
empty /tmp, no network, no capabilities. Nothing of the course is there: no source/, no hidden
cases, no secret, no gradebook, no other submission.
"""

from __future__ import annotations

import compileall
import contextlib
import functools
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from autograder.grading.confine import Limits
from autograder.grading.forkserver import End
from autograder.grading.frames import read_frame, write_frame
from autograder.records import Rejected

_PACKAGE = Path(__file__).resolve().parents[1]
_LAB = _PACKAGE.parent / "lab_setup"  # notebooks take `measure` from it
_INSIDE = "/opt/course"  # where both packages stand in the sandbox
Later = Callable[[list[dict]], dict | None]
_UID = 61000  # an ordinary user that no distribution gives to anybody
_MOST = 1 << 30
_MOST_LINES = 5000

INSTALL = (
    "Grading needs bubblewrap, which keeps students' code away from this machine: "
    "`apt install bubblewrap` (or `dnf install bubblewrap`). Only if all submissions are trusted: "
    "--unsafe-no-sandbox."
)


class SandboxFailed(Exception):
    """Our side of a sandbox broke (not the student's code). The message says how."""


class Warm:
    """One warm process, started in the background; ``run`` waits until it is ready.

    ``confinement``: ``namespaces`` or ``filter`` (bubblewrap around it) or ``limits`` (nothing).
    """

    def __init__(self, role: str, confinement: str):
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the process
        self._ready, self.confinement = False, confinement
        _write_bytecode()
        inner = ["-s", "-m", "autograder.grading.forkserver", role, confinement]
        if confinement == "limits":
            command = [sys.executable, *inner]
            environment = _environment(str(_PACKAGE.parent), dict(os.environ))
        else:
            command, environment = [*bubblewrap(), _interpreter(), *inner], None
            if os.geteuid() == 0:
                command.append(str(_UID))
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env=environment,
            cwd="/",
            bufsize=0,
        )

    def wait_ready(self) -> dict:
        """What the process said when it was warm. Raises SandboxFailed."""
        if not self._ready:
            try:
                self.hello = json.loads(read_frame(self._process.stdout.fileno(), _MOST, 300))
            except EOFError as error:
                raise SandboxFailed(self._complaint() or str(error)) from None
            self._ready = True
        return self.hello

    def run(self, job: dict, limits: Limits, later: Later | None = None) -> tuple[End, list[dict]]:
        """Perform ``job`` in a fork. Returns how it ended and the JSON lines that it emitted; lines
        that are no JSON objects are dropped (a student's code can write what it likes there).

        A job of two parts: ``later`` gets the lines of the first one, if the fork comes so far, and
        returns the second one (None: there is none); then the lines of that one are returned."""
        self.wait_ready()
        try:
            job = job | {"limits": limits.__dict__, "later": later is not None}
            jobs, answers = self._process.stdin.fileno(), self._process.stdout.fileno()
            write_frame(jobs, json.dumps(job).encode())
            patience = limits.wall + 60
            end = End(**json.loads(read_frame(answers, _MOST, patience)))
            data = read_frame(answers, _MOST, patience)
            if end.how == "more":
                rest = later(list(_lines(data)))
                write_frame(jobs, json.dumps(rest).encode() if rest else b"")
                end = End(**json.loads(read_frame(answers, _MOST, patience)))
                data = read_frame(answers, _MOST, patience)
        except (EOFError, OSError) as error:
            raise SandboxFailed(self._complaint() or str(error)) from None
        if end.how == "setup":
            raise SandboxFailed(end.detail)
        return end, list(_lines(data))

    def _complaint(self) -> str:
        self.close()
        self._errors.seek(0)
        said = self._errors.read()[-2000:].decode(errors="replace").strip().splitlines()
        return said[-1] if said else ""

    def close(self) -> None:
        """End the process; everything in the sandbox dies with it. An idle one ends by itself when
        its jobs do: of one that is killed inside a pid namespace nobody learns the processor time.
        """
        self._process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(1)
        self._process.kill()
        self._process.wait()
        self._process.stdout.close()


_MOST_LINE = 8 << 20  # bytes of one line
_MOST_STRUCTURE = 1 << 20  # bytes outside strings, and quotes, of all lines together


def _structure(line: bytes) -> int:
    """What of a line becomes objects when it is read. A trace is one string; a line of nothing but
    empty lists would take forty times its size of memory here."""
    bare = line.replace(b"\\\\", b"").replace(b'\\"', b"")
    quotes = bare.count(b'"')
    if quotes > _MOST_STRUCTURE:
        return quotes
    return quotes + sum(map(len, bare.split(b'"')[::2]))


def _lines(data: bytes) -> Iterator[dict]:
    """The JSON objects among the first lines; a class's worth of traces has some hundred."""
    left = _MOST_STRUCTURE
    for line in data.split(b"\n", _MOST_LINES)[:_MOST_LINES]:
        if not line.startswith(b"{") or len(line) > _MOST_LINE:
            continue
        left -= _structure(line)
        if left < 0:
            return
        try:
            yield json.loads(line)
        except (ValueError, RecursionError):
            continue


class Sandbox:
    """Student code goes through here. Keeps one warm process; starts another when it dies."""

    def __init__(self, unsafe: bool = False):
        self._unsafe = unsafe
        if not unsafe:
            require_bubblewrap()
        self._confinement = "limits" if unsafe else "namespaces"
        self._warm: Warm | None = Warm("worker", self._confinement)
        self._closed = False

    def run(self, job: dict, limits: Limits, later: Later | None = None) -> tuple[End, list[dict]]:
        """See ``Warm.run``. Raises SandboxFailed when our side broke twice in a row."""
        for attempt in range(2):
            try:
                return self._take().run(job, limits, later)
            except SandboxFailed:
                self._end()
                if self._confinement == "filter":  # whoever is alone in a sandbox can end it
                    return End("crash", "it killed the process that watched it"), []
                if attempt:
                    raise
            finally:
                if self._confinement == "filter":  # one bubblewrap for one job
                    self._end()
        raise AssertionError("unreachable")

    def _take(self) -> Warm:
        if self._closed:
            raise SandboxFailed("it is closed")
        if self._warm is None:
            self._warm = Warm("worker", self._confinement)
        if "refused" in self._warm.wait_ready():
            # The kernel lets nobody make namespaces inside a sandbox (some distributions forbid
            # it): a bubblewrap of its own for every job guards submissions from each other, slower.
            self._end()
            self._confinement = "filter"
            self._warm = Warm("worker", self._confinement)
        return self._warm

    @property
    def confinement(self) -> str:
        return self._confinement

    def close(self) -> None:
        """For good: a job that another thread waits for fails."""
        self._closed = True
        self._end()

    def _end(self) -> None:
        if self._warm is not None:
            self._warm.close()
            self._warm = None


def require_bubblewrap() -> None:
    """Raises Rejected with one sentence where no sandbox can be made."""
    if shutil.which("bwrap") is None:
        raise Rejected(INSTALL)
    trial = subprocess.run(
        [*bubblewrap(), "true"], stdin=subprocess.DEVNULL, capture_output=True, text=True
    )
    if trial.returncode != 0:
        said = (trial.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise Rejected(
            f"bubblewrap is installed and cannot make a sandbox here ({said}). In a container, "
            "allow namespaces (docker: --security-opt seccomp=unconfined --cap-add SYS_ADMIN). "
            "Only if all submissions are trusted: --unsafe-no-sandbox."
        )
    shown = {sys.prefix, "/usr", *_python()}
    for name in ("numpy", "torch", "triton"):
        spec = importlib.util.find_spec(name)
        place = spec.origin if spec and spec.origin else sys.prefix + "/"
        if not any(place.startswith(f"{root}/") for root in shown):
            raise Rejected(
                f"Students' code runs where only {sys.prefix} and its Python are seen, and {name} "
                f"is in {Path(place).parent}. Move .venv away, and `make setup` installs one that "
                "holds everything."
            )


@functools.cache
def bubblewrap() -> tuple[str, ...]:
    """The command line up to the command that it shall run."""
    arguments = ["bwrap", "--die-with-parent", "--new-session", "--clearenv", "--cap-drop", "ALL"]
    if os.geteuid() == 0:
        # Root inside a user namespace is still root to the kernel's limits on processes and to file
        # permissions, so become an ordinary user instead; forkserver does it first of all.
        arguments += ["--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"]
        arguments += ["--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts"]
        arguments += ["--unshare-cgroup-try"]
    else:
        arguments += ["--unshare-all", "--uid", str(_UID), "--gid", str(_UID)]
    arguments += ["--hostname", "sandbox", "--proc", "/proc", "--dev", "/dev"]
    for path in ("/bin", "/sbin", "/lib", "/lib32", "/lib64"):
        if os.path.islink(path):
            arguments += ["--symlink", os.readlink(path), path]
        elif os.path.isdir(path):
            arguments += ["--ro-bind", path, path]
    mounts = {path: path for path in (*_SYSTEM, *_python()) if os.path.exists(path)}
    mounts[str(_PACKAGE)] = f"{_INSIDE}/autograder"
    mounts[str(_LAB)] = f"{_INSIDE}/lab_setup"
    if sys.prefix != sys.base_prefix:
        mounts[sys.prefix] = f"{_INSIDE}/venv"
    # bubblewrap makes missing parents for itself alone; the user that we become has to pass.
    parents = {str(parent) for place in mounts.values() for parent in Path(place).parents}
    for parent in sorted(parents - {"/", "/usr"}):
        arguments += ["--perms", "0755", "--dir", parent]
    for path, place in mounts.items():
        arguments += ["--ro-bind", path, place]
    arguments += ["--perms", "1777", "--tmpfs", "/tmp"]
    arguments += ["--remount-ro", "/dev", "--remount-ro", "/", "--chdir", "/tmp"]
    for name, value in _environment(_INSIDE, {}).items():
        arguments += ["--setenv", name, value]
    return tuple(arguments)


@functools.cache
def _write_bytecode() -> None:
    """Warm processes write nothing: what nobody else imports would be compiled every time."""
    if not sys.dont_write_bytecode:
        for place in (_PACKAGE, _LAB):
            compileall.compile_dir(place, quiet=2)


_HUGE = "/sys/kernel/mm/transparent_hugepage"  # where malloc reads whether there are large pages
_SYSTEM = ("/usr", "/nix/store", "/etc/ld.so.cache", "/etc/alternatives", "/etc/localtime", _HUGE)


def _python() -> set[str]:
    """What the interpreter was installed as, which may lie in somebody's home; only that is shown,
    not the home. A virtual environment stands at a place of its own, because it may lie in /tmp."""
    roots = {sys.base_prefix, sys.base_exec_prefix}
    roots |= {os.path.realpath(root) for root in roots}
    roots.add(str(Path(os.path.realpath(sys.executable)).parents[1]))
    return {root for root in roots if not f"{root}/".startswith("/usr/") and root != "/"}


def _interpreter() -> str:
    """The interpreter's path inside the sandbox."""
    if sys.prefix == sys.base_prefix:
        return sys.executable
    return f"{_INSIDE}/venv/{Path(sys.executable).relative_to(sys.prefix)}"


def _environment(package_root: str, base: dict[str, str]) -> dict[str, str]:
    kept = {k: v for k, v in base.items() if not k.startswith(("TRITON_", "NBGRADER", "PYTHON"))}
    return kept | {
        "PATH": base.get("PATH", "/usr/bin:/bin"),
        "HOME": base.get("HOME", "/tmp"),
        "USER": base.get("USER", "student"),
        "LANG": "C.UTF-8",
        "PYTHONPATH": package_root,
        "PYTHONDONTWRITEBYTECODE": "1",
        # One thread before the fork: a fork copies only the thread that forks.
        "OMP_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        # Keep freed memory: a fork that maps and unmaps every array spends its time in page faults.
        "MALLOC_MMAP_THRESHOLD_": "1000000000",
        "MALLOC_TRIM_THRESHOLD_": "1000000000",
        "MALLOC_TOP_PAD_": "67108864",
        # In pages of 2 MB, where the kernel has them: a fork copies one entry for 512.
        "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1",
        "CUDA_VISIBLE_DEVICES": "",
        "TRITON_CACHE_DIR": "/tmp/triton",
        "MPLBACKEND": "agg",
    }
