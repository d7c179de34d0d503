"""What is installed here: Python, torch, Triton and the card, in a line for the top of a lesson."""

from __future__ import annotations

import importlib.util
import platform
from importlib.metadata import PackageNotFoundError, version

__all__ = ["TritonMissing", "installed", "versions"]


class TritonMissing(ImportError):
    """There is no Triton for this machine. Jupyter shows the sentence and no traceback."""

    def _render_traceback_(self) -> list[str]:  # IPython asks an exception for this first
        return [str(self)]


def versions() -> str:
    """One line: Python, torch, Triton and the card with its compute capability, if there is one.

    Raises TritonMissing, with one sentence that says what to do, where Triton cannot be imported.
    """
    if importlib.util.find_spec("triton") is None or importlib.util.find_spec("torch") is None:
        raise TritonMissing(
            "This notebook needs torch and Triton, and Triton exists for Linux only (this is "
            f"{platform.system()}): open it on a Linux machine, or on Windows under WSL2 "
            "(docs/WSL2.md has the steps); the cells below would fail; unit 01 works right here."
        )
    import torch

    found = [f"Python {platform.python_version()}"]
    for package in ("torch", "triton"):
        found.append(f"{package} {installed(package) or '(version unknown)'}")
    if torch.cuda.is_available():
        capability = torch.cuda.get_device_capability()
        found.append(f"{torch.cuda.get_device_name()}, compute capability {capability}")
    else:
        found.append("no GPU: kernels are checked on the CPU")
    return " · ".join(found)


def installed(package: str) -> str:
    """The version of a package, or "" where it tells none."""
    try:
        return version(package)
    except PackageNotFoundError:
        return ""
