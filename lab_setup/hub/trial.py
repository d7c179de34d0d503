"""``make hub``: the course's hub on loopback with dummy accounts, to look at; no root, no cards.

All accounts are the one UNIX account that starts it, so nothing is secret between them: file rights
are what the installed hub adds. Everything is kept in one short directory, which may be deleted.
"""

from __future__ import annotations

import argparse
import getpass
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

from lab_setup.hub.site import COURSE, Site, proxy_fault

__all__ = ["INSTALL", "course_directory", "proxy", "trial_site"]

ROOT = Path(__file__).resolve().parents[2]
INSTALL = "npm install --prefix .cache/node configurable-http-proxy@5.3.0"
_INSTALLED = ROOT / ".cache/node/node_modules/.bin/configurable-http-proxy"
FIRST = "02_vector_add"


def proxy() -> str:
    """The hub's proxy: one that the environment names, the machine's, or this checkout's own."""
    named = os.environ.get("COURSE_PROXY")
    return named or shutil.which("configurable-http-proxy") or str(_INSTALLED)


def trial_site(place: Path, port: int, cards: int) -> Site:
    """Everything under ``place``; the password is the course's name."""
    return Site(
        url=f"http://127.0.0.1:{port}",
        hub_port=port + 1,
        grader_port=port + 3,
        proxy=proxy(),
        package=ROOT,
        grading_package=ROOT,
        course=place / "course",
        exchange=place / "exchange",
        state=place / "hub",
        runtime=place / "run",
        caches=place / "caches",
        grader=getpass.getuser(),
        trial=COURSE,
        pretended_cards=cards,
    )


def course_directory(site: Site) -> None:
    """The grading account's directory, with one assignment released; what is there stays."""
    for place in (site.course, site.exchange, site.state / "homes"):
        place.mkdir(parents=True, exist_ok=True)
    site.exchange.chmod(0o1777)
    # Before the look at what is there: a trial of another checkout may have left it.
    (site.course / "nbgrader_config.py").write_text(
        f'load_subconfig("nbgrader_config.py", path={str(ROOT)!r})\n', encoding="utf-8"
    )
    if (site.exchange / COURSE / "outbound" / FIRST).exists():
        return
    shutil.copytree(ROOT / "source", site.course / "source", dirs_exist_ok=True)
    for command in ("generate_assignment", "release_assignment"):
        _nbgrader(site, command, FIRST)


def _nbgrader(site: Site, *words: str) -> None:
    environ = os.environ | {"COURSE_EXCHANGE": str(site.exchange), "PYTHONPATH": str(ROOT)}
    subprocess.run(
        [sys.executable, "-m", "nbgrader", *words, "--log-level=WARN"],
        cwd=site.course, env=environ, check=True,
    )  # fmt: skip


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m lab_setup.hub.trial", description=__doc__)
    parser.add_argument("--port", type=int, default=8000, help="and the three after it")
    parser.add_argument(
        "--cards", type=int, default=4, help="how many to pretend; 0: the real ones"
    )
    parser.add_argument("--place", type=Path, default=Path(f"/tmp/{COURSE}-{os.getuid()}"))
    options = parser.parse_args(arguments)
    if not 1 <= options.port <= 65532:
        parser.error(f"argument --port: {options.port} is not from 1 to 65532")
    site = trial_site(options.place.resolve(), options.port, options.cards)
    if fault := proxy_fault(site.proxy, INSTALL):
        print(f"The hub's proxy {fault[0]}. Mend it: {fault[1]}", file=sys.stderr)
        return 1
    if said := _taken(range(options.port, options.port + 4)):
        print(f"{said} Choose other ones: make hub HUB_FLAGS='--port 8100'", file=sys.stderr)
        return 1
    options.place.mkdir(mode=0o700, parents=True, exist_ok=True)
    if options.place.stat().st_uid != os.getuid():
        print(f"{options.place} is somebody else's; choose another: --place", file=sys.stderr)
        return 1
    print("Starting the hub: half a minute, and a little longer the first time.", flush=True)
    try:
        course_directory(site)
    except KeyboardInterrupt:
        return 130
    return _run(site)


def _taken(ports: range) -> str:
    """A sentence on the first port that cannot be had. Another hub there would answer for ours."""
    for port in ports:
        try:
            socket.create_server(("127.0.0.1", port)).close()
        except OSError as error:
            reason = os.strerror(error.errno)
            return f"The hub takes ports {ports[0]} to {ports[-1]}. {port}: {reason}."
    return ""


def _run(site: Site) -> int:
    """The hub until somebody stops it; its words go to a file, so the address stays in view."""
    config = ROOT / "lab_setup/jupyterhub_config.py"
    log = site.state / "hub.log"
    with log.open("w") as words:
        hub = subprocess.Popen(
            [sys.executable, "-P", "-m", "jupyterhub", "-f", str(config)],
            cwd=site.state, env=os.environ | site.environment(), stdout=words, stderr=words,
        )  # fmt: skip
    signal.signal(signal.SIGTERM, lambda *_: hub.terminate())  # else it would live on without us
    try:
        while not _answers(site.url):
            if hub.poll() is not None:
                return _last_words("The hub did not start", log)
            time.sleep(0.5)
        print(
            f"""
{site.url}   (Ctrl-C stops it)
  password      {site.trial}, for all
  students      {site.students[0]} … {site.students[-1]}: menu Nbgrader, Assignment List ({FIRST})
  instructor    {site.instructors[0]}: menu Nbgrader, Course List
  kept in       {site.state.parent}, which may be deleted; log: {log}""",
            flush=True,
        )
        return _last_words("The hub has ended", log) if hub.wait() else 0
    except KeyboardInterrupt:  # the hub has heard it too, and ends the servers
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        print("\nEnding the servers and the hub: half a minute.", flush=True)
        hub.wait()
        return 0


def _last_words(what: str, log: Path) -> int:
    print(f"{what}; {log} ends with:", file=sys.stderr)
    print("".join(log.read_text().splitlines(True)[-8:]), file=sys.stderr)
    return 1


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/hub/health", timeout=5):
            return True
    except OSError:
        return False


if __name__ == "__main__":
    sys.exit(main())
