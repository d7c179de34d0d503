"""One benchmark at a time on a card: a lock by the card's UUID, first come, first served.

    with hold("GPU-5d5b…"):                    in Python; measure does it for notebooks
        …
    python -m lab_setup gpulock -- COMMAND …   from a shell
    python -m lab_setup gpulock --who          who measures, and who waits

The lock is the kernel's ``flock`` on one file a card. It falls with the process that has it, also
under ``kill -9``, and those who wait get it in the order in which they came (a loop that asks again
and again would lose its place). Files are only read, so students cannot write anything into them.
"""

from __future__ import annotations

import errno
import fcntl
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from lab_setup.gpus import Process, owner

__all__ = ["Queue", "hold", "queue"]

# A lab's administrator makes this one, with a file for each card (lab_setup/hub/install).
SYSTEM = Path("/run/lock/triton-course")


@dataclass(frozen=True)
class Queue:
    """Who has a card's lock and who waits for it, by process id, in the order of arrival."""

    holder: int | None
    waiting: tuple[int, ...] = ()

    def __str__(self) -> str:
        if self.holder is None:
            return "free"
        text = f"{owner(self.holder)} measures (process {self.holder})"
        return text + (f", {len(self.waiting)} in the queue" if self.waiting else "")


class _Held(threading.local):
    def __init__(self):
        self.uuids: set[str] = set()


_held = _Held()


@contextmanager
def hold(uuid: str, tell: Callable[[str], object] = print) -> Iterator[None]:
    """Has the lock of card ``uuid`` while the body runs; waits for it as long as it takes.

    ``tell`` gets one sentence when there is somebody to wait for. Within ``hold`` the same thread
    may ask again: it has the lock already. An interrupt (Ctrl-C, the stop button) leaves the queue.
    """
    if uuid in _held.uuids:
        yield
        return
    descriptor = os.open(_file(uuid), os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        _take(descriptor, uuid, tell)
    except BaseException:
        os.close(descriptor)
        raise
    _held.uuids.add(uuid)
    try:
        yield
    finally:
        _held.uuids.discard(uuid)
        # Explicitly: a child that was forked meanwhile has the descriptor too.
        fcntl.flock(descriptor, fcntl.LOCK_UN)
        os.close(descriptor)


def queue(uuid: str) -> Queue:
    """Who has the lock of card ``uuid`` now, and who waits."""
    inode = os.stat(_file(uuid))
    place = f"{os.major(inode.st_dev):02x}:{os.minor(inode.st_dev):02x}:{inode.st_ino}"
    holder, waiting = None, []
    # /proc/locks: "1: FLOCK ADVISORY WRITE 4711 00:1a:99 0 EOF"; "1: -> FLOCK …" for one that waits
    for line in Path("/proc/locks").read_text().splitlines():
        words = line.split()
        waits = words[1] == "->"
        kind, pid, where = (words[i + waits] for i in (1, 4, 5))
        if kind == "FLOCK" and where == place:
            if waits:
                waiting.append(int(pid))
            else:
                holder = int(pid)
    return Queue(holder, tuple(waiting))


def _take(descriptor: int, uuid: str, tell: Callable[[str], object]) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return
    except BlockingIOError:
        state = queue(uuid)
    before = len(state.waiting) + 1
    place = "you are next" if before == 1 else f"{before} are before you"
    who = Process(state.holder) if state.holder else "somebody"
    tell(f"Waiting for the card: {who} is measuring on it; {place}.")
    # The call that waits cannot be interrupted, so a thread makes it, on a descriptor of its own
    # number (the same lock): given up, it takes the lock, finds nobody there and lets it go.
    waiter = _Waiter(os.dup(descriptor))
    try:
        waiter.join_interruptibly()
    except BaseException:
        waiter.give_up()
        raise
    if waiter.error:
        raise waiter.error


class _Waiter(threading.Thread):
    def __init__(self, descriptor: int):
        super().__init__(daemon=True, name="gpulock")
        self.descriptor, self.error, self.wanted = descriptor, None, True
        self.decided = threading.Lock()
        self.start()

    def run(self) -> None:
        try:
            fcntl.flock(self.descriptor, fcntl.LOCK_EX)
        except OSError as error:
            self.error = error
        with self.decided:
            if not self.wanted:
                fcntl.flock(self.descriptor, fcntl.LOCK_UN)
            os.close(self.descriptor)  # the caller's descriptor keeps the lock, if it is wanted

    def join_interruptibly(self) -> None:
        while self.is_alive():
            self.join(0.2)

    def give_up(self) -> None:
        with self.decided:
            self.wanted = False


def _directory() -> Path:
    """Where the files are: the lab's directory, the one of COURSE_GPU_LOCKS, or one in /tmp."""
    named = os.environ.get("COURSE_GPU_LOCKS")
    if named:
        return Path(named)
    if SYSTEM.is_dir():
        return SYSTEM
    shared = Path("/tmp/triton-course-locks")
    with suppress(FileExistsError):
        shared.mkdir()
        shared.chmod(0o1777)  # whoever came first made it, for everybody
    return shared


def _file(uuid: str) -> Path:
    """The card's file; made if it is not there and may be made."""
    path = _directory() / uuid.replace("/", "_")
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDONLY | os.O_NOFOLLOW, 0o444))
    except OSError as error:
        if error.errno != errno.EEXIST and not path.exists():
            raise OSError(
                error.errno,
                f"The card's lock {path} is not there and cannot be made: ask the lab's "
                f"administrator for a file of that name that all can read ({error.strerror})",
            ) from error
    return path


def main(options) -> int:
    """``python -m lab_setup gpulock``: runs a command under the lock, or shows the queues."""
    import subprocess

    from lab_setup.gpus import current, gpus

    if options.who:
        cards = gpus()
        for card in cards:
            print(f"{card.index}  {card.name}  {card.uuid}  {queue(card.uuid)}")
        if not cards:
            print("There is no card in this machine.")
        return 0
    if not options.words:
        print(
            "Which command? For example: python -m lab_setup gpulock -- python bench.py",
            file=sys.stderr,
        )
        return 2
    uuid = options.gpu or current()
    if uuid is None:
        print("There is no card in this machine, so there is nothing to wait for.", file=sys.stderr)
        return 1
    if uuid.isdigit():
        known = {str(card.index): card.uuid for card in gpus()}
        if uuid not in known:
            print(
                f"There is no card {uuid}; there are: {', '.join(known) or 'none'}.",
                file=sys.stderr,
            )
            return 2
        uuid = known[uuid]
    with hold(uuid, tell=lambda text: print(text, file=sys.stderr)):
        try:
            return subprocess.run(options.words).returncode
        except OSError as error:
            print(f"{options.words[0]}: {error.strerror}", file=sys.stderr)
            return 127
