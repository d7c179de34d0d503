"""The cards of this machine, as the driver sees them.

The driver's library (NVML) counts every card and every process, whatever ``CUDA_VISIBLE_DEVICES``
says: that variable is a courtesy between programs, and here we want to see them all.
"""

from __future__ import annotations

import os
import pwd
from contextlib import contextmanager
from dataclasses import dataclass

import pynvml

__all__ = ["Gpu", "Process", "current", "driver", "gpus", "owner"]


@dataclass(frozen=True)
class Process:
    """A process that has memory on a card, or its lock."""

    pid: int

    def __str__(self) -> str:
        return f"{owner(self.pid)} (process {self.pid})"


@dataclass(frozen=True)
class Gpu:
    """One card. ``cc`` is the compute capability as one number, 89 for 8.9; ``free`` in bytes.

    ``uuid`` names the card for good (``GPU-…``); ``index`` counts in the order of the PCI bus.
    """

    index: int
    uuid: str
    name: str
    cc: int
    free: int
    processes: tuple[Process, ...] = ()


def gpus() -> tuple[Gpu, ...]:
    """All cards of this machine; none where there is no NVIDIA driver."""
    with driver() as ready:
        if not ready:
            return ()
        return tuple(_gpu(i) for i in range(pynvml.nvmlDeviceGetCount()))


def current() -> str | None:
    """UUID (``GPU-…``) of the card that torch works on in this process; None without one."""
    import torch

    if not torch.cuda.is_available():
        return None
    return f"GPU-{torch.cuda.get_device_properties(torch.cuda.current_device()).uuid}"


def owner(pid: int) -> str:
    """The account that runs process ``pid``; "somebody" where the system does not tell."""
    try:
        return pwd.getpwuid(os.stat(f"/proc/{pid}").st_uid).pw_name
    except (OSError, KeyError):
        return "somebody"


@contextmanager
def driver():
    """Whether the driver's library answers; it is let go afterwards."""
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        yield False
        return
    try:
        yield True
    finally:
        pynvml.nvmlShutdown()


def _gpu(index: int) -> Gpu:
    handle = pynvml.nvmlDeviceGetHandleByIndex(index)
    major, minor = pynvml.nvmlDeviceGetCudaComputeCapability(handle)
    running = pynvml.nvmlDeviceGetComputeRunningProcesses(handle)
    return Gpu(
        index=index,
        uuid=pynvml.nvmlDeviceGetUUID(handle),
        name=pynvml.nvmlDeviceGetName(handle),
        cc=10 * major + minor,
        free=pynvml.nvmlDeviceGetMemoryInfo(handle).free,
        processes=tuple(Process(p.pid) for p in running),
    )
