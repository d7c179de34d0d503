"""The doctor names what is wrong, with the mend, and ends with 1 only where something is broken."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from lab_setup import doctor
from lab_setup.gpus import Gpu, Process

ROOT = Path(__file__).resolve().parents[1]


def lines(subject: str, **environ) -> list[doctor.Line]:
    return [line for line in doctor.examine(os.environ | environ) if line.subject == subject]


@pytest.fixture
def no_cards(monkeypatch):
    monkeypatch.setattr(doctor, "gpus", lambda: ())


@pytest.fixture
def one_card(monkeypatch):
    card = Gpu(0, "GPU-0", "NVIDIA H200", 90, 1, (Process(os.getpid()),))
    monkeypatch.setattr(doctor, "gpus", lambda: (card,))
    return card


def test_a_machine_without_a_card_is_no_broken_machine(no_cards):
    found = list(doctor.examine())
    assert [line for line in found if line.state == "red"] == []
    (cards,) = [line for line in found if line.subject == "cards"]
    assert cards.state == "yellow" and "GPU cells say what they would show" in cards.text
    assert all(line.mend for line in found if line.state != "green")


def test_the_command_tells_it_in_json_and_by_its_status():
    run = subprocess.run(
        [sys.executable, "-m", "lab_setup", "doctor", "--json"],
        cwd=ROOT, capture_output=True, text=True,
        env=os.environ | {"COURSE_EXCHANGE": "/not/there"},
    )  # fmt: skip
    found = json.loads(run.stdout)
    assert run.returncode == 1
    (exchange,) = [line for line in found if line["subject"] == "exchange"]
    assert exchange["state"] == "red" and "install -d -m 1777 /not/there" in exchange["mend"]


def test_an_exchange_that_not_all_may_use(tmp_path, no_cards):
    tmp_path.chmod(0o755)
    (line,) = lines("exchange", COURSE_EXCHANGE=str(tmp_path))
    assert (line.state, line.mend) == ("red", f"sudo chmod 1777 {tmp_path}")
    tmp_path.chmod(0o1777)
    (line,) = lines("exchange", COURSE_EXCHANGE=str(tmp_path))
    assert line.state == "green"


def test_a_socket_path_that_is_too_long(no_cards):
    (line,) = lines("socket path", JUPYTER_RUNTIME_DIR="/home/" + "x" * 60)
    assert line.state == "red" and "JUPYTER_RUNTIME_DIR" in line.mend
    longest = "/" + "x" * 56  # with a kernel's socket behind it 107 bytes
    (line,) = lines("socket path", JUPYTER_RUNTIME_DIR=longest)
    assert (line.state, line.text) == ("green", "107 of 107 bytes")
    (line,) = lines("socket path", JUPYTER_RUNTIME_DIR=longest + "x")
    assert line.state == "red"


def test_no_bubblewrap(monkeypatch, tmp_path, no_cards):
    monkeypatch.setenv("PATH", str(tmp_path))
    (line,) = lines("sandbox")
    assert line.state == "yellow" and line.mend == "sudo apt install bubblewrap"


def test_a_bubblewrap_that_may_not_make_namespaces(monkeypatch, tmp_path, no_cards):
    refusing = tmp_path / "bwrap"
    refusing.write_text("#!/bin/sh\necho 'No permissions to create new namespace' >&2; exit 1\n")
    refusing.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    (line,) = lines("sandbox")
    assert line.state == "yellow" and "No permissions to create new namespace" in line.text
    assert "/etc/sysctl.d/" in line.mend  # it has to outlive a restart


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can try as another account")
def test_root_tries_the_sandbox_with_the_rights_of_the_grading_account(monkeypatch, no_cards):
    """Ubuntu 24.04 lets root make namespaces and nobody else, and root does not grade."""
    with tempfile.TemporaryDirectory() as folder:  # tmp_path is root's alone
        place = Path(folder)
        roots_alone = place / "bwrap"
        roots_alone.write_text('#!/bin/sh\n[ "$(id -u)" = 0 ] || { echo uid map >&2; exit 1; }\n')
        for path in (roots_alone, place):
            path.chmod(0o755)
        monkeypatch.setenv("PATH", f"{place}:{os.environ['PATH']}")
        (line,) = lines("sandbox", COURSE_SETTINGS=folder, COURSE_GRADER="no-such-account")
        assert line.state == "green"
        (line,) = lines("sandbox", COURSE_SETTINGS=folder, COURSE_GRADER="nobody")
        assert line.state == "yellow" and "uid map" in line.text


@pytest.mark.parametrize("release, state", [("5.10.0-28-amd64", "yellow"), ("5.14.0", "green")])
def test_an_old_kernel(monkeypatch, tmp_path, no_cards, release, state):
    (tmp_path / "bwrap").symlink_to("/bin/true")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(doctor.platform, "release", lambda: release)
    (line,) = lines("sandbox")
    assert line.state == state and (state == "green" or release in line.text)


@pytest.mark.parametrize("installed", ["3.5.1", "3.10.0"])
def test_another_triton(monkeypatch, installed):
    monkeypatch.setattr(doctor, "version", lambda name: installed)
    (line,) = doctor._packages("triton==3.7.1")
    assert (line.state, line.mend) == ("red", "pip install 'triton==3.7.1'")
    assert installed in line.text and "3.7.1" in line.text


def test_versions_that_were_tried_are_in_order(monkeypatch):
    found = {"triton": "3.6.0", "torch": "2.11.0+cu130", "numpy": "2.4.6"}
    monkeypatch.setattr(doctor, "version", found.get)
    lines = list(doctor._packages("torch==2.13.0\ntriton==3.7.1\nnumpy==2.4.6"))
    assert {line.state for line in lines} == {"green"}
    assert all(found[name] in " ".join(line.text for line in lines) for name in ("torch", "triton"))
    (line,) = doctor._packages("numpy==2.4.7")
    assert line.state == "yellow"  # nobody tried others of these


def test_a_build_of_torch_is_no_other_version(monkeypatch):
    monkeypatch.setattr(doctor, "version", lambda name: "2.13.0+cu130")
    assert [line.state for line in doctor._packages("torch==2.13.0  # a remark")] == ["green"]


def test_packages_that_are_missing_or_for_another_system():
    (line,) = doctor._packages("nobody==1; sys_platform == 'linux'\nnobody-else==2")
    assert line.state == "red" and line.text == "nobody, nobody-else: not installed."
    assert [x.state for x in doctor._packages("nobody==1; sys_platform == 'plan9'")] == ["green"]


def test_without_jupyter_there_is_no_word_on_its_sockets(monkeypatch, no_cards):
    monkeypatch.setitem(sys.modules, "jupyter_core.paths", None)
    assert lines("socket path") == []


def test_no_compiler(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    line = doctor._compiler()
    assert line.state == "yellow" and "gcc" in line.mend


def test_little_room(monkeypatch, no_cards):
    class Usage:
        free = 0.5e9

    monkeypatch.setattr(doctor.shutil, "disk_usage", lambda place: Usage)
    assert {line.state for line in lines("disk")} == {"red"}
    Usage.free = 3e9
    assert {line.state for line in lines("disk")} == {"yellow"}


def test_a_cache_on_a_network_disk(monkeypatch, no_cards):
    monkeypatch.setattr(doctor, "_filesystem", lambda place: "nfs4")
    (line,) = lines("Triton's cache")
    assert line.state == "yellow" and "TRITON_CACHE_DIR" in line.mend


def test_a_card_whose_kernel_fails_is_broken_and_a_guest_on_it_is_named(one_card):
    """There is no card here, so the kernel's process fails, as it would on a broken one."""
    guest, broken = doctor._card(one_card)
    assert guest.state == "yellow" and f"process {os.getpid()}" in guest.text
    assert broken.state == "red" and "a small kernel fails" in broken.text


@pytest.mark.parametrize("gbs, state", [(4300, "green"), (3000, "yellow")])
def test_a_slow_card(one_card, monkeypatch, gbs, state):
    answer = subprocess.CompletedProcess([], 0, json.dumps({"gbs": gbs, "sheet": 4800}), "")
    monkeypatch.setattr(doctor.subprocess, "run", lambda *a, **k: answer)
    line = list(doctor._card(one_card))[-1]
    assert line.state == state and f"{gbs} GB/s" in line.text


def test_torch_without_cuda_on_a_box_with_cards(one_card, monkeypatch):
    import torch

    monkeypatch.setattr(torch.version, "cuda", None)
    assert doctor._driver((one_card,)).state == "red"
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    assert doctor._driver((one_card,)).state == "green"


def test_lock_files_that_students_could_remove(one_card, monkeypatch, tmp_path):
    monkeypatch.setattr(doctor.gpulock, "SYSTEM", tmp_path)
    (line,) = doctor._locks((one_card,))
    assert line.state == "red" and "GPU-0" in line.text
    (tmp_path / "GPU-0").touch()
    tmp_path.chmod(0o777)
    (line,) = doctor._locks((one_card,))
    assert line.state == "red" and "others than root" in line.text


def test_a_hub_is_looked_at_where_one_is_set_up(no_cards, tmp_path, monkeypatch):
    monkeypatch.setenv("COURSE_PROXY", sys.executable)
    assert lines("hub", COURSE_SETTINGS=str(tmp_path / "none")) == []
    monkeypatch.setenv("COURSE_PROXY", "/no/proxy")
    (line,) = lines("hub", COURSE_SETTINGS=str(tmp_path / "none"))
    assert line.state == "yellow" and "--prefix .cache/node" in line.mend
    (line,) = lines("hub", COURSE_SETTINGS=str(tmp_path), COURSE_PROXY="/no/proxy")
    assert line.state == "red" and "npm install" in line.mend
    asked = {"COURSE_PROXY": sys.executable, "COURSE_URL": "http://127.0.0.1:9"}
    (line,) = lines("hub", COURSE_SETTINGS=str(tmp_path), **asked)
    assert line.state == "red" and "does not answer at http://127.0.0.1:9" in line.text
    (tmp_path / "hub.env").write_text("COURSE_HUB_PORT=x\n")
    (line,) = lines("hub", COURSE_SETTINGS=str(tmp_path))
    assert line.state == "red" and "whole number" in line.text
