"""``python -m lab_setup doctor``: is this machine ready, and if not, what mends it.

One line a finding: green works, yellow works with a limit, red is broken. Where there is no card
that is no fault: everything graded runs on a CPU. Exit status 1 only with a red line.
"""

from __future__ import annotations

import json
import os
import platform
import pwd
import re
import shutil
import stat
import subprocess
import sys
import sysconfig
import tempfile
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from packaging.requirements import Requirement
from rich.console import Console
from rich.markup import escape
from rich.progress import Progress

from lab_setup import gpulock
from lab_setup.gpus import Gpu, gpus

__all__ = ["Line", "examine"]

ROOT = Path(__file__).resolve().parent.parent
GREEN, YELLOW, RED = "green", "yellow", "red"

_SOCKET_LIMIT = 107  # bytes of a UNIX socket's path on Linux (sun_path less its final zero)
_KERNEL_SOCKET = len("/kernel-") + 36 + len("-ipc-5")  # what jupyter_client hangs on the directory
_ROOM = {RED: 1, YELLOW: 5}  # GB free: one released course with caches takes about 1
_BANDWIDTH = 0.75  # of the data sheet: a copy of 1 GB reaches 80 to 92 % where nothing disturbs


@dataclass(frozen=True)
class Line:
    """One finding: ``state`` is green, yellow or red; ``mend`` says what to do, where needed."""

    state: str
    subject: str
    text: str
    mend: str = ""


def examine(environ: dict[str, str] | None = None) -> Iterator[Line]:
    """The findings, one after the other; those of the cards come last and take seconds each."""
    environ = dict(os.environ) if environ is None else environ
    yield from _python()
    yield from _packages((ROOT / "requirements.txt").read_text(encoding="utf-8"))
    yield _sandbox(environ)
    yield _compiler()
    yield from _sockets(environ)
    yield from _exchange(environ)
    yield from _disk(environ)
    yield from _hub(environ)
    if environ.get("TRITON_INTERPRET", "0") not in ("", "0"):
        yield Line(
            YELLOW,
            "TRITON_INTERPRET",
            "is set, so kernels would run in Triton's interpreter, which is blind to faults.",
            "unset TRITON_INTERPRET (lesson 08 sets it for one script only)",
        )
    cards = gpus()
    yield _driver(cards)
    yield from _locks(cards)
    for card in cards:
        yield from _card(card)


# ---------------------------------------------------------------- software


def _python() -> Iterator[Line]:
    found = ".".join(map(str, sys.version_info[:3]))
    if (3, 11) <= sys.version_info[:2] <= (3, 13):
        yield Line(GREEN, "Python", found)
    else:
        yield Line(
            RED,
            "Python",
            f"{found}; the course runs on 3.11 to 3.13.",
            "make lab PYTHON=/path/to/python3.12",
        )


def _packages(requirements: str) -> Iterator[Line]:
    """One line if all packages are as pinned, else one for those missing and for each other one."""
    missing, others, tried = [], 0, 0
    for line in requirements.splitlines():
        text = line.split("#")[0].strip()
        if not text:
            continue
        wanted = Requirement(text)
        if wanted.marker and not wanted.marker.evaluate():
            continue
        try:
            found = version(wanted.name)
        except PackageNotFoundError:
            missing.append(wanted.name)
            continue
        # torch calls its builds 2.13.0+cpu, 2.13.0+cu130: the part behind + is no other version.
        if not wanted.specifier.contains(found.split("+")[0]):
            if found.startswith(tuple(f"{one}." for one in _TRIED.get(wanted.name, ()))):
                tried += 1
                all_tried = ", ".join(_TRIED[wanted.name])
                yield Line(GREEN, wanted.name, f"{found}, one of those tried: {all_tried}")
                continue
            others += 1
            yield Line(
                # Versions next to ours mostly work, but Triton changes its IR between them.
                RED if wanted.name == "triton" else YELLOW,
                wanted.name,
                f"is {found}, and requirements.txt says {wanted.specifier}.",
                f"pip install '{text.split(';')[0].strip()}'",
            )
    if missing:
        yield Line(
            RED,
            "packages",
            f"{', '.join(missing)}: not installed.",
            "pip install -r requirements.txt (make lab and make test do it)",
        )
    elif not others:
        rest = "the others as" if tried else "as"
        yield Line(GREEN, "packages", f"{rest} requirements.txt says")


# Beside the pin: what `make versions` and runs on other machines were green with.
_TRIED = {"torch": ("2.11", "2.12", "2.13", "2.14"), "triton": ("3.6", "3.7", "3.8", "3.9")}


def _sandbox(environ: dict[str, str]) -> Line:
    """Tried with the rights of whoever grades: Ubuntu 24.04 lets root alone make namespaces."""
    release = platform.release()
    if tuple(map(int, re.findall(r"\d+", release)[:2])) < _KERNEL:
        text = f"Linux {release}: all works but grading, which needs {_KERNEL[0]}.{_KERNEL[1]}."
        return Line(YELLOW, "sandbox", text, "a newer system: Ubuntu 22.04, Debian 12")
    mend = "sudo apt install bubblewrap"
    if shutil.which("bwrap") is None:
        return Line(YELLOW, "sandbox", "bubblewrap is missing: all works but grading.", mend)
    grader = _grader(environ)
    rights = {"user": grader.pw_uid, "group": grader.pw_gid, "extra_groups": []} if grader else {}
    tried = subprocess.run(
        ["bwrap", "--unshare-all", "--ro-bind", "/", "/", "true"],
        capture_output=True, text=True, cwd="/", **rights,
    )  # fmt: skip
    if tried.returncode:
        said = tried.stderr.strip().splitlines() or ["no reason given"]
        return Line(
            YELLOW,
            "sandbox",
            f"bubblewrap cannot make namespaces ({said[-1]}): no grading here.",
            f"Ubuntu 24.04: {_ALLOW}; in a container, run it privileged",
        )
    return Line(GREEN, "sandbox", f"bubblewrap works{f' for {grader.pw_name}' if grader else ''}")


_KERNEL = (5, 14)
_ALLOW = (  # in a file, because sysctl -w ends with the next start of the machine
    "echo kernel.apparmor_restrict_unprivileged_userns=0 | sudo tee "
    "/etc/sysctl.d/60-triton-course.conf; sudo sysctl --system"
)


def _grader(environ: dict[str, str]) -> pwd.struct_passwd | None:
    """The lab's grading account, where there is one and root asks."""
    try:
        from lab_setup.hub.site import Site

        return pwd.getpwnam(Site.kept(environ).grader) if os.geteuid() == 0 else None
    except (ModuleNotFoundError, ValueError, KeyError):
        return None  # students' copy; the hub's line names the word; no such account


def _compiler() -> Line:
    """Triton builds its launchers in C when a kernel first runs on a card."""
    compiler = os.environ.get("CC") or next(filter(shutil.which, ("cc", "gcc", "clang")), None)
    header = Path(sysconfig.get_path("include"), "Python.h")
    needed = "Triton needs it to launch kernels on a card."
    if compiler is None or shutil.which(compiler) is None:
        return Line(YELLOW, "C compiler", f"none was found; {needed}", "sudo apt install gcc")
    if not header.is_file():
        package = f"python{sys.version_info[0]}.{sys.version_info[1]}-dev"
        return Line(YELLOW, "Python.h", f"is missing; {needed}", f"sudo apt install {package}")
    return Line(GREEN, "C compiler", f"{compiler}, with Python's headers")


# ---------------------------------------------------------------- places


def _sockets(environ: dict[str, str]) -> Iterator[Line]:
    """Kernels that talk over sockets in files cannot have them under a long path."""
    try:
        from jupyter_core.paths import jupyter_runtime_dir
    except ModuleNotFoundError:
        return  # the packages' line has said that Jupyter is missing
    place = environ.get("JUPYTER_RUNTIME_DIR") or jupyter_runtime_dir()
    length = len(os.fsencode(place)) + _KERNEL_SOCKET
    if length > _SOCKET_LIMIT:
        yield Line(
            RED,
            "socket path",
            f"sockets in {place} would have {length} bytes of path, and {_SOCKET_LIMIT} is the "
            "most: kernels would not start.",
            "export JUPYTER_RUNTIME_DIR=/run/user/$UID/jupyter, or another short directory",
        )
    else:
        yield Line(GREEN, "socket path", f"{length} of {_SOCKET_LIMIT} bytes")


def _exchange(environ: dict[str, str]) -> Iterator[Line]:
    """The directory through which assignments go out and come in; only a lab names one."""
    named = environ.get("COURSE_EXCHANGE")
    if not named:
        yield Line(GREEN, "exchange", "none, right for one person (a lab sets COURSE_EXCHANGE)")
        return
    place = Path(named)
    mend = f"sudo install -d -m 1777 {named}"
    try:
        mode = stat.S_IMODE(place.stat().st_mode)
    except OSError as error:
        yield Line(RED, "exchange", f"{named}: {error.strerror}.", mend)
        return
    if not place.is_dir():
        yield Line(RED, "exchange", f"{named} is no directory.", mend)
    elif mode != 0o1777:
        yield Line(
            RED,
            "exchange",
            f"{named} has mode {mode:04o}; nbgrader wants 1777, so that all can hand in and nobody "
            "can remove another's work.",
            f"sudo chmod 1777 {named}",
        )
    else:
        yield Line(GREEN, "exchange", f"{named}, mode 1777")


def _disk(environ: dict[str, str]) -> Iterator[Line]:
    cache = Path(environ.get("TRITON_CACHE_DIR") or Path.home() / ".triton")
    seen = set()
    for subject, place in (
        ("course", ROOT),
        ("Triton's cache", cache),
        ("temporary files", Path(tempfile.gettempdir())),
    ):
        while not place.exists():
            place = place.parent
        device = place.stat().st_dev
        if device in seen:
            continue
        seen.add(device)
        free = shutil.disk_usage(place).free / 1e9
        state = next((s for s, least in _ROOM.items() if free < least), GREEN)
        yield Line(
            state,
            "disk",
            f"{free:.0f} GB free for {subject}",
            "" if state == GREEN else f"make room on the disk of {place}",
        )
    kind = _filesystem(cache)
    if kind.startswith(("nfs", "cifs", "smb", "fuse.sshfs")):
        yield Line(
            YELLOW,
            "Triton's cache",
            f"{cache} is on a network disk ({kind}): slow, and it has raced.",
            "export TRITON_CACHE_DIR=/var/tmp/$USER/triton",
        )


def _hub(environ: dict[str, str]) -> Iterator[Line]:
    """The course's hub, where one is set up."""
    try:
        from lab_setup.hub.site import INSTALL_PROXY, Site, proxy_fault
    except ModuleNotFoundError:
        return  # students have no hub in their copy
    settings = Path(environ.get("COURSE_SETTINGS") or Site.settings)
    if not settings.exists():
        from lab_setup.hub.trial import INSTALL, proxy

        if fault := proxy_fault(proxy(), INSTALL):
            yield Line(YELLOW, "hub", f"its proxy {fault[0]}: all works but `make hub`.", fault[1])
        return
    try:
        site = Site.kept(environ)
    except PermissionError:
        yield Line(YELLOW, "hub", "its settings are root's.", "sudo … -m lab_setup doctor")
        return
    except ValueError as error:
        yield Line(RED, "hub", str(error), f"mend it in {settings}/hub.env")
        return
    if fault := proxy_fault(site.proxy, INSTALL_PROXY):
        yield Line(RED, "hub", f"its proxy {site.proxy} {fault[0]}.", fault[1])
        return
    try:
        with urllib.request.urlopen(f"{site.url}/hub/health", timeout=5):
            yield Line(GREEN, "hub", f"answers at {site.url}")
    except OSError as error:
        yield Line(
            RED,
            "hub",
            f"does not answer at {site.url} ({error}).",
            "systemctl restart triton-course; journalctl -u triton-course tells why",
        )


def _filesystem(place: Path) -> str:
    """Type of the file system that holds ``place``, from the kernel's table of mounts."""
    place, best, kind = place.resolve(), "", ""
    mounts = Path("/proc/self/mounts")
    for line in mounts.read_text().splitlines() if mounts.exists() else ():
        _, where, found, *_ = line.split()
        if place.is_relative_to(where) and len(where) >= len(best):
            best, kind = where, found
    return kind


# ---------------------------------------------------------------- cards


def _driver(cards: tuple[Gpu, ...]) -> Line:
    import torch

    if not cards:
        return Line(
            YELLOW,
            "cards",
            "no NVIDIA driver or no card. Lessons, checks and grading work; GPU cells say what "
            "they would show.",
            "nothing on a laptop; on the lab box, NVIDIA's driver",
        )
    names = ", ".join(card.name for card in cards)
    if torch.version.cuda is None:
        return Line(
            RED,
            "cards",
            f"{names}; but torch is built for the CPU.",
            "pip install torch from PyTorch's CUDA index (README)",
        )
    old = [card for card in cards if card.cc < 80]
    if old:
        return Line(
            YELLOW,
            "cards",
            f"{old[0].name} is cc {old[0].cc / 10}; bf16 kernels need 8.0.",
        )
    return Line(GREEN, "cards", f"{len(cards)}: {names}; torch for CUDA {torch.version.cuda}")


def _locks(cards: tuple[Gpu, ...]) -> Iterator[Line]:
    """On a lab box the files of the benchmark locks belong to root, and nobody can remove them."""
    if not gpulock.SYSTEM.is_dir():
        if len(cards) > 1:
            yield Line(
                YELLOW,
                "benchmark lock",
                f"no {gpulock.SYSTEM}: locks are in /tmp.",
                "sudo python -m lab_setup.hub.install makes it",
            )
        return
    missing = [card.uuid for card in cards if not (gpulock.SYSTEM / card.uuid).exists()]
    loose = gpulock.SYSTEM.stat().st_uid != 0 or gpulock.SYSTEM.stat().st_mode & 0o022
    if missing or loose:
        what = f"no file for {missing[0]}" if missing else "others than root can write there"
        yield Line(
            RED,
            "benchmark lock",
            f"{gpulock.SYSTEM}: {what}.",
            "sudo python -m lab_setup.hub.install mends it",
        )
    else:
        yield Line(GREEN, "benchmark lock", f"{gpulock.SYSTEM}, one file a card")


def _card(card: Gpu) -> Iterator[Line]:
    """A kernel on the card, in a process that sees this one only; and how fast it copies."""
    subject = f"card {card.index}"
    for process in card.processes:
        yield Line(YELLOW, subject, f"{process} works on it too: figures will be off.")
    environ = os.environ | {"CUDA_VISIBLE_DEVICES": card.uuid, "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
    environ.pop("TRITON_INTERPRET", None)
    try:
        tried = subprocess.run(
            [sys.executable, "-m", "lab_setup.card_test"],
            env=environ,
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=300,
        )
    except subprocess.TimeoutExpired:
        yield Line(
            RED,
            subject,
            f"{card.name}: a small kernel did not end in five minutes.",
            f"nvidia-smi -q -i {card.index} tells the card's errors; restart the machine",
        )
        return
    if tried.returncode:
        said = tried.stderr.strip().splitlines() or [f"status {tried.returncode}"]
        yield Line(
            RED,
            subject,
            f"{card.name}: a small kernel fails: {said[-1][:200]}",
            f"CUDA_VISIBLE_DEVICES={card.uuid} python -m lab_setup.card_test shows it all",
        )
        return
    gbs, sheet = (json.loads(tried.stdout.splitlines()[-1])[key] for key in ("gbs", "sheet"))
    share = f", {gbs / sheet:.0%} of its data sheet's {sheet:g}" if sheet else ""
    slow = bool(sheet) and gbs < _BANDWIDTH * sheet
    yield Line(
        YELLOW if slow else GREEN,
        subject,
        f"{card.name}: a kernel compiles and runs; copies {gbs:.0f} GB/s{share}",
        "look for other work on it, its slot, its temperature: nvidia-smi" if slow else "",
    )


# ---------------------------------------------------------------- telling


def main(options) -> int:
    """Prints the findings, a line each or as JSON; 1 with a red one."""
    lines = []
    console = Console(highlight=False, soft_wrap=True)
    with Progress(console=Console(stderr=True), transient=True, disable=options.json) as progress:
        task = progress.add_task("looking at this machine", total=None)
        for line in examine():
            lines.append(line)
            progress.update(task, description=f"looked at {line.subject}")
    if options.json:
        print(json.dumps([asdict(line) for line in lines], indent=2, ensure_ascii=False))
    else:
        _print(lines, console.print)
    return int(any(line.state == RED for line in lines))


def _print(lines: list[Line], say: Callable[[str], object]) -> None:
    width = max(len(line.subject) for line in lines)
    for line in lines:
        # The word beside the colour: not everybody sees colours, and a file has none.
        mark = {GREEN: "[green]  ok[/]", YELLOW: "[yellow]note[/]", RED: "[bold red]  no[/]"}
        say(f"{mark[line.state]}  {line.subject:{width}}  {escape(line.text)}")
        if line.mend:
            say(f"{'':{width + 6}}  → {escape(line.mend)}")
    red = sum(line.state == RED for line in lines)
    notes = sum(line.state == YELLOW for line in lines)
    say(f"\n{red} broken, {notes} with a limit, {len(lines) - red - notes} in order.")
