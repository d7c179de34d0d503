"""A warm process that forks for jobs, confines the fork, and passes its output back.

``python -m autograder.grading.forkserver ROLE CONFINEMENT [UID]`` with frames on stdin and stdout
(8 bytes of length, then that many bytes): a job is one frame of JSON, an answer two, how the fork
ended (JSON) and what it wrote. ROLE is ``worker`` (student code) or ``judge``. CONFINEMENT is
``namespaces``, ``filter`` (inside a bubblewrap of its own for every job) or ``limits``.

A job with ``later`` has two parts. When the fork asks for the second one, what it wrote so far is
answered (``how`` is "more"), and the frame that follows goes to the fork (an empty one: no more).
So whatever was written before cannot know what the second part says.

Student code gets a fork for every job. The judge runs none: its fork stays for some jobs, all of
one part, and a new one takes its place after a crash or a limit.

The warm process of student code holds nothing secret, and it never reads what a fork writes.
"""

from __future__ import annotations

import contextlib
import fcntl
import gc
import importlib
import json
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from autograder.grading import confine
from autograder.grading.confine import Limits
from autograder.grading.frames import Passing, read_frame, write_frame

Emit = Callable[[dict], None]
More = Callable[[], dict | None]
_OUTPUT, _CONTROL, _LATER = 3, 4, 5  # file descriptors in a fork
_ASKS = b'{"more": true}\n'  # a fork's line when its first part is done
_DONE = b'{"done": true}\n'  # a resident fork's line when it waits for the next job


@dataclass(frozen=True)
class End:
    """How a fork ended: ``ok``, ``timeout``, ``output`` (too much), ``crash``, ``setup`` (ours);
    ``more``: it did not, and asks for its second part."""

    how: str
    detail: str = ""
    seconds: float = 0.0
    memory: int = 0  # peak resident bytes, the warm process's pages included
    cpu: float = 0.0  # seconds of processor time
    spent: bool = False  # it used up its own processor time; no other process can cause that


def run_confined(
    task: Callable[[Emit, More], None],
    limits: Limits,
    confinement: str,
    follow: Callable[[bytes], Passing] | None = None,
):
    """Fork, confine, call ``task(emit, more)`` there. Returns (End, bytes): a JSON line for each
    emit. Where the fork calls ``more``, ``follow`` gets the bytes up to there, once, and says what
    is passed to the fork; the bytes that are returned then begin behind that."""
    try:
        return Fork(task, limits, confinement).outcome(follow)
    except OSError as error:
        return End("setup", f"{type(error).__name__}: {error}"), b""


class Fork:
    """A confined process. It performs ``task`` and ends; a ``resident`` one performs what ``give``
    brings, job after job, until it is closed or a job ends it."""

    def __init__(self, task, limits: Limits, confinement: str, resident: bool = False):
        self.limits, self.jobs, self.ended = limits, 0, False
        self._confinement, self._resident = confinement, resident
        self._output, output_end = os.pipe()
        self._control, control_end = os.pipe()
        later_end, self._later = os.pipe()
        who = os.getuid(), os.getgid()
        self._pid = confine.fork(confinement == "namespaces")
        if self._pid == 0:
            ends = (output_end, control_end, later_end)
            _work(task, limits, confinement, who, ends, resident)  # does not return
        for end in (output_end, control_end, later_end):
            os.close(end)
        self._gone = os.pidfd_open(self._pid)  # a fork may close its ends and stay

    def give(self, job: bytes) -> None:
        """The next job of a resident process. One that is gone says so in ``outcome``."""
        self.jobs += 1
        with contextlib.suppress(BrokenPipeError):
            os.set_blocking(self._later, True)
            write_frame(self._later, job)

    def outcome(self, follow: Callable[[bytes], Passing] | None = None) -> tuple[End, bytes]:
        """How the job ended and what it wrote; see ``run_confined``."""
        start = step = time.monotonic()
        limits, output = self.limits, self._output
        os.set_blocking(self._later, False)
        data, said, stopped = bytearray(), bytearray(), ""
        passing: Passing | None = None
        open_ends = {output, self._gone} | ({self._control} if self.jobs < 2 else set())
        while open_ends and not stopped:
            deadline = min(start + limits.wall, step + limits.step)
            left = deadline - time.monotonic()
            feeding = [self._later] if passing and passing.left else []
            ready, room, _ = select.select(list(open_ends), feeding, [], max(left, 0))
            if room:
                passing.some(self._later)
            if not ready and not room:
                stopped = "timeout"
            for end in ready:
                chunk = b"" if end == self._gone else os.read(end, 1 << 16)
                if not chunk:
                    open_ends.discard(end)
                elif end == self._control:
                    said += chunk
                else:
                    data += chunk
                    if b"\n" in chunk:  # an emitted line: the fork has come a step further
                        step = time.monotonic()
                    if follow and passing is None:
                        at = data.find(_ASKS, max(0, len(data) - len(chunk) - len(_ASKS)))
                        if at == 0 or at > 0 and data[at - 1] == 10:
                            waited = time.monotonic()
                            passing = follow(bytes(data[:at]))
                            data.clear()
                            step = time.monotonic()
                            # How long the other side thought is not its time.
                            start += step - waited
                    if len(data) > limits.output:
                        stopped = "output"
                        break
            if self._resident and data.endswith(_DONE):
                return End("ok", seconds=time.monotonic() - start), bytes(data[: -len(_DONE)])
        if passing:
            passing.drop()
        if stopped:
            self._kill()
        status, memory, cpu = self.close()
        seconds = time.monotonic() - start
        return _ending(bytes(said), stopped, seconds, limits, status, memory, cpu), bytes(data)

    def close(self) -> tuple[int, int, float]:
        """Wait for its end: it is gone, or killed, or a resident one that gets no job any longer.
        Returns the wait status, peak resident bytes, seconds of processor time."""
        self.ended = True
        for end in (self._output, self._control, self._later, self._gone):
            os.close(end)
        _, status, usage = os.wait4(self._pid, 0)
        return status, usage.ru_maxrss * 1024, usage.ru_utime + usage.ru_stime

    def _kill(self) -> None:
        """End everything that the fork started. Killing the first process of a pid namespace ends
        all in it; without a namespace the fork's process group is what can be reached."""
        if self._confinement != "namespaces":
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._pid, signal.SIGKILL)
        os.kill(self._pid, signal.SIGKILL)


def _ending(said: bytes, stopped: str, seconds: float, limits: Limits, status, memory, cpu) -> End:
    """``said`` is what the fork complained of while it was confined; the last three are of
    ``wait4``: the status, peak resident bytes, seconds of processor time."""
    if said.startswith(b"F"):
        return End("setup", said[1:].decode(errors="replace").strip(), seconds)
    how, detail = "ok", ""
    if stopped == "timeout":
        how, detail = "timeout", f"no progress in {min(limits.step, limits.wall):g} s"
    elif stopped == "output":
        how, detail = "output", f"more than {limits.output >> 20} MB"
    elif os.WIFSIGNALED(status):
        how, detail = "crash", signal.Signals(os.WTERMSIG(status)).name
        # The first process of a pid namespace is deaf to SIGXCPU; a second later comes SIGKILL.
        if detail == "SIGXCPU" or (detail == "SIGKILL" and cpu >= limits.cpu):
            how, detail = "timeout", f"more than {limits.cpu:g} s of processor time"
            return End(how, detail, seconds, memory, cpu, spent=True)
    elif status != 0:
        how, detail = "crash", f"exit status {os.WEXITSTATUS(status)}"
    return End(how, detail, seconds, memory, cpu)


def _work(task, limits: Limits, confinement: str, who, ends, resident: bool) -> None:
    """In the fork: confine, then the task. Never returns."""
    try:
        os.setsid()  # a signal to its own process group must not reach the warm process
        confine.die_with_parent()
        null = os.open("/dev/null", os.O_RDWR)
        # Above 100 first: one of the ends may stand where another is going to be.
        high = [fcntl.fcntl(end, fcntl.F_DUPFD, 100) for end in (null, *ends)]
        for place, end in ((0, 0), (1, 0), (2, 0), (_OUTPUT, 1), (_CONTROL, 2), (_LATER, 3)):
            os.dup2(high[end], place)
        os.closerange(_LATER + 1, 65536)
        used = confine.address_space()
        if confinement == "namespaces":
            confine.map_user(*who)
            confine.private_files(limits.disk)
        confine.set_limits(limits, used, resident)
        if confinement != "limits":
            confine.drop_rights(limits.may_fork)
        os.close(_CONTROL)
    except BaseException as error:
        _fail(error)
        os._exit(0)
    try:
        task(_emit, _more)
    except BaseException as error:  # nothing of a fork may go on in the warm process's loop
        with contextlib.suppress(BaseException):
            _emit({"error": f"{type(error).__name__}: {error}"[:500]})
        os._exit(70)
    os._exit(0)


def _jobs(perform, emit: Emit, more: More) -> None:
    """The task of a resident process: jobs until there are none."""
    while True:
        try:
            job = json.loads(read_frame(_LATER, 1 << 30))
        except EOFError:
            return
        confine.allow_cpu(Limits(**job["limits"]))
        perform(job, emit, more)
        _write(_DONE)


def _fail(error: BaseException) -> None:
    message = f"F{type(error).__name__}: {error}".replace("\n", " ")[:1000]
    with contextlib.suppress(OSError):
        os.write(_CONTROL, message.encode(errors="replace") + b"\n")


def _emit(value: dict) -> None:
    _write(json.dumps(value).encode() + b"\n")


def _write(data: bytes) -> None:
    while data:
        data = data[os.write(_OUTPUT, data) :]


def _more() -> dict | None:
    """Ask for the second part of the job; None where there is none."""
    _write(_ASKS)
    frame = read_frame(_LATER, 1 << 30)
    return json.loads(frame) if frame else None


def serve(role: str, confinement: str) -> None:
    """Answer jobs until stdin ends."""
    jobs, answers = os.dup(0), os.dup(1)
    null = os.open("/dev/null", os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)
    gc.disable()  # importing torch makes no garbage, and a million objects to look through
    module = importlib.import_module(f"autograder.grading.{role}")
    module.prepare()
    if confinement == "namespaces":
        end, _ = run_confined(lambda emit, more: None, Limits(), confinement)
        if end.how != "ok":
            write_frame(answers, json.dumps({"refused": f"{end.how}: {end.detail}"}).encode())
            return
    gc.freeze()  # so that a fork's collector does not copy every page
    gc.set_threshold(5000)  # a fork is short, and lowering a kernel makes thousands of objects
    gc.enable()
    ready = {"ready": role, "threads": threading.active_count(), "pid": os.getpid()}
    write_frame(answers, json.dumps(ready).encode())
    resident: Fork | None = None
    while True:
        try:
            frame = read_frame(jobs, 1 << 30)
        except EOFError:
            return
        job = json.loads(frame)
        limits = Limits(**job.pop("limits", {}))
        two_parts = job.pop("later", False)

        def task(emit, more, job=job, two_parts=two_parts):
            module.perform(job, emit, more if two_parts else lambda: None)

        def follow(said: bytes) -> Passing:
            write_frame(answers, json.dumps(End("more").__dict__).encode())
            write_frame(answers, said)
            return Passing(jobs)

        follow = follow if two_parts else None
        if module.ahead(job) and resident is not None:
            resident.close()
            resident = None  # the next one has what is new
        if module.JOBS_OF_A_FORK == 1:
            end, data = run_confined(task, limits, confinement, follow)
        else:
            if resident is None:
                resident = Fork(partial(_jobs, module.perform), limits, confinement, resident=True)
            resident.give(frame)
            end, data = resident.outcome()
            if not resident.ended and resident.jobs == module.JOBS_OF_A_FORK:
                resident.close()
            resident = None if resident.ended else resident
        write_frame(answers, json.dumps(end.__dict__).encode())
        write_frame(answers, data)


def main(arguments: list[str]) -> None:
    role, confinement, *uid = arguments
    if uid:
        confine.become(int(uid[0]))
    else:
        confine.die_with_parent()
    serve(role, confinement)


if __name__ == "__main__":
    main(sys.argv[1:])
    os._exit(0)  # what is left of torch needs nobody's tidying
