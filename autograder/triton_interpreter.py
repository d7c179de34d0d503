"""Runs a script under Triton's own interpreter, which is where a kernel can ``print``.

It needs a process of its own: Triton reads TRITON_INTERPRET while it is imported, and a store
outside an array there overwrites the process's own memory.
"""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Callable
from pathlib import Path

__all__ = ["interpret"]


_HEAD = "import torch\nimport triton\nimport triton.language as tl\n"


def interpret(*parts: str | Callable, timeout: float = 120) -> str:
    """What a script prints when a fresh Python runs it with TRITON_INTERPRET=1.

    The script is ``parts`` in order, after the imports of torch, triton and tl: a string is Python
    source, a kernel or function stands for its own source. A script that fails adds one line: its
    exit code and the last line of its error output. ``timeout`` in seconds.
    """
    script = _HEAD + "\n".join(part if isinstance(part, str) else _source(part) for part in parts)
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


def _source(function: Callable) -> str:
    """The text of a kernel or function as it stands in its cell or file, decorators included."""
    return textwrap.dedent(inspect.getsource(getattr(function, "fn", function)))
