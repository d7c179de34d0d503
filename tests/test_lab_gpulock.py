"""The benchmark lock: one at a time, in the order of arrival, whatever happens to the holder."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from lab_setup import gpulock

ROOT = Path(__file__).resolve().parents[1]
HOLDER = """
import sys, time
from lab_setup.gpulock import hold
with hold("GPU-1", tell=lambda text: print(text, flush=True)):
    print("has it", flush=True)
    sys.stdin.readline()
"""


@pytest.fixture(autouse=True)
def locks(monkeypatch, tmp_path):
    monkeypatch.setenv("COURSE_GPU_LOCKS", str(tmp_path))
    return tmp_path


def holder() -> subprocess.Popen:
    """A process that asks for the lock, and keeps it until it gets a line or is killed."""
    return subprocess.Popen([sys.executable, "-c", HOLDER], cwd=ROOT, text=True,
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE)  # fmt: skip


def let_go(process: subprocess.Popen) -> None:
    process.communicate("\n", timeout=60)


def wait_for(condition) -> None:
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end, "it did not come about within a minute"
        time.sleep(0.02)


def test_those_who_wait_are_told_for_whom_and_served_in_order():
    first = holder()
    assert first.stdout.readline() == "has it\n"
    others = []
    for place in ("you are next", "2 are before you", "3 are before you"):
        others.append(holder())
        said = others[-1].stdout.readline()
        assert f"process {first.pid}" in said and place in said
        wait_for(lambda: len(gpulock.queue("GPU-1").waiting) == len(others))
    assert gpulock.queue("GPU-1").holder == first.pid
    let_go(first)
    for process in others:
        assert process.stdout.readline() == "has it\n"
        assert gpulock.queue("GPU-1").holder == process.pid
        let_go(process)
    assert gpulock.queue("GPU-1") == gpulock.Queue(None)


def test_a_killed_holder_holds_nothing():
    first = holder()
    assert first.stdout.readline() == "has it\n"
    second = holder()
    assert "you are next" in second.stdout.readline()
    first.send_signal(signal.SIGKILL)
    assert second.stdout.readline() == "has it\n"
    let_go(second)
    first.communicate()


def test_one_who_gives_up_leaves_the_queue():
    first = holder()
    assert first.stdout.readline() == "has it\n"
    second = holder()
    assert "you are next" in second.stdout.readline()
    second.send_signal(signal.SIGINT)
    second.communicate(timeout=60)
    assert second.returncode != 0
    let_go(first)
    with gpulock.hold("GPU-1"):
        assert gpulock.queue("GPU-1").holder == os.getpid()


def test_giving_up_inside_a_process_that_lives_on(monkeypatch):
    """A notebook's stop button: the kernel goes on, and the lock must not stay with it."""
    first = holder()
    assert first.stdout.readline() == "has it\n"

    def stop(waiter):
        raise KeyboardInterrupt

    monkeypatch.setattr(gpulock._Waiter, "join_interruptibly", stop)
    with pytest.raises(KeyboardInterrupt), gpulock.hold("GPU-1", tell=lambda text: None):
        pass
    let_go(first)
    wait_for(lambda: all(t.name != "gpulock" for t in threading.enumerate()))
    assert gpulock.queue("GPU-1") == gpulock.Queue(None)


def test_the_same_thread_may_ask_again_and_another_card_is_another_lock():
    with gpulock.hold("GPU-1"), gpulock.hold("GPU-1"), gpulock.hold("GPU-2"):
        assert gpulock.queue("GPU-1").holder == gpulock.queue("GPU-2").holder == os.getpid()
    assert gpulock.queue("GPU-1").holder is None


def test_threads_of_one_process_take_turns():
    inside, most = [], []

    def work():
        with gpulock.hold("GPU-1", tell=lambda text: None):
            inside.append(1)
            most.append(len(inside))
            time.sleep(0.02)
            inside.pop()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1, 1, 1, 1]


def test_an_error_inside_lets_go():
    with pytest.raises(ZeroDivisionError), gpulock.hold("GPU-1"):
        1 / 0  # noqa: B018
    assert gpulock.queue("GPU-1").holder is None


def test_files_cannot_be_written_and_a_link_is_not_followed(locks):
    with gpulock.hold("GPU-1"):
        assert (locks / "GPU-1").stat().st_mode & 0o222 == 0
    (locks / "GPU-2").symlink_to(locks / "elsewhere")
    with pytest.raises(OSError), gpulock.hold("GPU-2"):
        pass
    assert not (locks / "elsewhere").exists()


def command(*words: str) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, "-m", "lab_setup", "gpulock", *words], cwd=ROOT,
                          capture_output=True, text=True)  # fmt: skip


def test_the_command_runs_another_one_and_hands_on_its_status():
    run = command("--gpu", "GPU-1", "--", sys.executable, "-c", "print('measured'); exit(7)")
    assert (run.returncode, run.stdout) == (7, "measured\n")


@pytest.mark.parametrize(
    "words, status, says",
    [
        (("--gpu", "GPU-1"), 2, "Which command?"),
        (("--gpu", "77", "--", "true"), 2, "There is no card 77"),
        (("--gpu", "GPU-1", "--", "no-such-program"), 127, "no-such-program"),
    ],
)
def test_the_command_says_what_it_misses(words, status, says):
    run = command(*words)
    assert run.returncode == status and says in run.stderr and "Traceback" not in run.stderr
