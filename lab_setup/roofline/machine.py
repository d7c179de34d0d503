"""The card that figures come from: its limits, its clocks, who else works on it, and versions."""

from __future__ import annotations

import os
import platform
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pynvml

from autograder.ir.cards import Card, card
from lab_setup.gpus import current, driver, gpus
from lab_setup.roofline.versions import installed

__all__ = ["about", "card_here", "others_on"]

# Operations a cycle of one SM, dense bf16 with fp32 sums and plain fp32: CUDA C++ Programming
# Guide, table of arithmetic throughput, two a multiply-add.
_PER_CYCLE = {80: (2048, 128), 86: (512, 256), 89: (512, 256), 90: (4096, 256)}


def card_here() -> Card | None:
    """The card that torch works on, with what its driver says of memory and multiprocessors.

    Its L2 stays the data sheet's: the part of it that a launch has was found in proportion to that
    (``autograder.ir.l2``), and the driver of an H200 reports 60 MB for 50.
    A card that the table lacks gets its peaks from its clock; None where these are unknown too.
    Wants a GPU.
    """
    import torch

    seen = torch.cuda.get_device_properties(torch.cuda.current_device())
    try:
        row = card(seen.name)
    except ValueError:
        return _unknown(seen)
    bandwidth = _bandwidth() or row.bandwidth
    return replace(row, sms=seen.multi_processor_count, bandwidth=bandwidth)


def _unknown(seen: Any) -> Card | None:
    cc = 10 * seen.major + seen.minor
    bandwidth, clock = _bandwidth(), _clock(pynvml.NVML_CLOCK_SM)
    if cc not in _PER_CYCLE or not bandwidth or not clock:
        return None
    bf16, fp32 = (n * seen.multi_processor_count * clock / 1e6 for n in _PER_CYCLE[cc])
    shared = getattr(seen, "shared_memory_per_block_optin", 99 * 1024)
    l2_mb = seen.L2_cache_size / 2**20
    return Card(seen.name, cc, seen.multi_processor_count, bandwidth, l2_mb, shared, bf16, fp32)


def others_on(uuid: str) -> tuple[str, ...]:
    """The processes besides this one that have memory on a card, in words."""
    here = (p for gpu in gpus() if gpu.uuid == uuid for p in gpu.processes)
    return tuple(str(p) for p in here if p.pid != os.getpid())


def about() -> dict[str, Any]:
    """For a record beside figures: card, driver, clocks in MHz, watts, degrees, versions, date."""
    import torch

    with driver() as ready:
        handle = _handle() if ready else None
        seen = {
            "clock_mhz": _ask(pynvml.nvmlDeviceGetClockInfo, handle, pynvml.NVML_CLOCK_SM),
            "memory_mhz": _ask(pynvml.nvmlDeviceGetClockInfo, handle, pynvml.NVML_CLOCK_MEM),
            "most_mhz": _ask(pynvml.nvmlDeviceGetMaxClockInfo, handle, pynvml.NVML_CLOCK_SM),
            "limit_mw": _ask(pynvml.nvmlDeviceGetEnforcedPowerLimit, handle),
            "celsius": _ask(pynvml.nvmlDeviceGetTemperature, handle, pynvml.NVML_TEMPERATURE_GPU),
            "driver": pynvml.nvmlSystemGetDriverVersion() if ready else None,
        }
    packages = {
        "python": platform.python_version(),
        "cuda": torch.version.cuda,
        "torch": installed("torch") or torch.__version__,
        "triton": installed("triton"),
    }
    name = torch.cuda.get_device_name()
    date = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    return {"card": name, "date": date, "versions": packages, "state": seen}


def _handle():
    """The driver's handle of torch's card, or None."""
    uuid = current()
    try:
        return pynvml.nvmlDeviceGetHandleByUUID(uuid) if uuid else None
    except pynvml.NVMLError:
        return None


def _ask(question: Any, handle: Any, *more: Any) -> int | None:
    """What the driver answers, or None where it has no answer for this card."""
    if handle is None:
        return None
    try:
        return question(handle, *more)
    except pynvml.NVMLError:
        return None


def _bandwidth() -> float | None:
    """GB/s of the card's memory: two transfers a cycle of its highest memory clock."""
    with driver() as ready:
        handle = _handle() if ready else None
        width = _ask(pynvml.nvmlDeviceGetMemoryBusWidth, handle)
        clock = _ask(pynvml.nvmlDeviceGetMaxClockInfo, handle, pynvml.NVML_CLOCK_MEM)
    return 2 * clock * 1e6 * width / 8 / 1e9 if width and clock else None


def _clock(which: int) -> int | None:
    with driver() as ready:
        return _ask(pynvml.nvmlDeviceGetMaxClockInfo, _handle() if ready else None, which)
