"""Runs a script under Triton's own interpreter, which is where a kernel can ``print``.

It needs a process of its own: Triton reads TRITON_INTERPRET while it is imported, and a store
outside an array there overwrites the process's own memory. Importing torch and Triton takes
seconds, so one process does that once and forks for every script.
"""

from __future__ import annotations

import inspect
import os
import select
import signal
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Callable
from pathlib import Path

__all__ = ["interpret"]


_HEAD = "import torch\nimport triton\nimport triton.language as tl\n"

# Reads the path of a script a line; what it prints goes into files beside it. Ends with its stdin.
_SERVER = """
import os, runpy, sys
import torch, triton, triton.language
print("ready", flush=True)
for line in sys.stdin:
    script = line.rstrip("\\n")
    child = os.fork()
    if not child:
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        for number, name in ((1, ".out"), (2, ".err")):
            os.dup2(os.open(script + name, os.O_WRONLY | os.O_CREAT), number)
        runpy.run_path(script, run_name="__main__")
        sys.exit()
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""
_STARTING = 120  # seconds that a busy machine may take for the imports
_server: subprocess.Popen | None = None


def interpret(*parts: str | Callable, timeout: float = 120) -> str:
    """What a script prints when another Python runs it with TRITON_INTERPRET=1.

    The script is ``parts`` in order, after the imports of torch, triton and tl: a string is Python
    source, a kernel or function stands for its own source. A script that fails adds one line: its
    exit code and the last line of its error output. ``timeout`` in seconds, imports not counted.
    """
    script = _HEAD + "\n".join(part if isinstance(part, str) else _source(part) for part in parts)
    with tempfile.TemporaryDirectory() as folder:
        # A file and not `python -c`: Triton reads a kernel's source from the file it stands in.
        path = Path(folder) / "script.py"
        path.write_text(script, encoding="utf-8")
        try:
            status = _run(path, timeout)
        except BaseException as error:  # an interrupt too: a late answer would be the next one's
            _stop()
            if isinstance(error, TimeoutError):
                return str(error)
            raise
        printed, said = (_read(Path(f"{path}{name}")) for name in (".out", ".err"))
    if status == 0:
        return printed
    last = (said.strip().splitlines() or ["without an error message"])[-1]
    return f"{printed}The script ended with exit code {status}: {last}"


def _run(path: Path, timeout: float) -> int:
    """The exit code of the script; minus the signal that killed it. Raises TimeoutError."""
    global _server
    if _server is None or _server.poll() is not None:
        _server = subprocess.Popen(
            [sys.executable, "-c", _SERVER],
            env={**os.environ, "TRITON_INTERPRET": "1", "PYTHONIOENCODING": "utf-8"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,  # a group, so that scripts end with it
        )
        _answer(_STARTING, "Python with torch and Triton did not start")
    _server.stdin.write(f"{path}\n")
    _server.stdin.flush()
    return int(_answer(timeout, "The script was stopped"))


def _answer(seconds: float, otherwise: str) -> str:
    """The server's next line."""
    if not select.select([_server.stdout], [], [], seconds)[0]:
        raise TimeoutError(f"{otherwise} after {seconds:g} seconds.")
    line = _server.stdout.readline()
    if not line:
        raise RuntimeError("the Python that runs scripts ended; its error output says why")
    return line


def _stop() -> None:
    global _server
    if _server is not None:
        if _server.poll() is None:
            os.killpg(_server.pid, signal.SIGKILL)
        _server.communicate()
        _server = None


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""


def _source(function: Callable) -> str:
    """The text of a kernel or function as it stands in its cell or file, decorators included."""
    return textwrap.dedent(inspect.getsource(getattr(function, "fn", function)))
