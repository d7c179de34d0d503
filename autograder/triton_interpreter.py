"""Runs a script under Triton's own interpreter, which is where a kernel can ``print``.

It needs a process of its own: Triton reads TRITON_INTERPRET while it is imported, and a store
outside an array there overwrites the process's own memory.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

__all__ = ["interpret"]


def interpret(script: str, *, timeout: float = 120) -> str:
    """What ``script`` (Python source) prints when a fresh Python runs it with TRITON_INTERPRET=1.

    A script that fails adds one line: its exit code and the last line of its error output.
    ``timeout`` in seconds.
    """
    with tempfile.TemporaryDirectory() as folder:
        # A file and not `python -c`: Triton reads a kernel's source from the file it stands in.
        path = Path(folder) / "script.py"
        path.write_text(script, encoding="utf-8")
        try:
            done = subprocess.run(
                [sys.executable, str(path)],
                env={**os.environ, "TRITON_INTERPRET": "1", "PYTHONIOENCODING": "utf-8"},
                capture_output=True,
                text=True,
                encoding="utf-8",
                timeout=timeout,
            )
        except subprocess.TimeoutExpired:
            return f"The script was stopped after {timeout:g} seconds."
    if done.returncode == 0:
        return done.stdout
    last = (done.stderr.strip().splitlines() or ["without an error message"])[-1]
    return f"{done.stdout}The script ended with exit code {done.returncode}: {last}"
