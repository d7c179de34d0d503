"""Servers as systemd units: a memory limit, and no card but the server's own.

Needs ``pip install jupyterhub-systemdspawner`` and a hub that runs as root under systemd; imported
only where COURSE_SPAWNER=systemd. Written to its documentation and not tried by our tests.
"""

from __future__ import annotations

import pynvml
from systemdspawner import SystemdSpawner

from lab_setup.hub.spawner import OneCard

__all__ = ["SystemdOneCard"]

# What every CUDA program opens beside its card.
_SHARED = ("/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools")


class SystemdOneCard(OneCard, SystemdSpawner):
    """``CUDA_VISIBLE_DEVICES`` names the card, and the device policy closes all others."""

    # A private /dev (isolate_devices) would hide the cards altogether.
    isolate_devices = False

    def _hold(self, uuid: str) -> None:
        super()._hold(uuid)
        allowed = [*_SHARED, f"/dev/nvidia{_minor(uuid)}"] if uuid else []
        self.unit_extra_properties = {
            **self.unit_extra_properties,
            "DevicePolicy": "closed",
            "DeviceAllow": [f"{device} rw" for device in allowed],
        }


def _minor(uuid: str) -> int:
    """The number in the card's device file, which need not be its place on the bus."""
    pynvml.nvmlInit()
    try:
        return pynvml.nvmlDeviceGetMinorNumber(pynvml.nvmlDeviceGetHandleByUUID(uuid))
    finally:
        pynvml.nvmlShutdown()
