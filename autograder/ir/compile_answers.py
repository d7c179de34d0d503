"""Answers of the compiler's child process: read strictly, kept on disk.

An answer is a dict: ``shared`` (bytes a block), ``registers`` (a thread), ``spills`` (bytes a
thread), ``num_warps`` and ``instructions`` (counts by name), all integers; or ``failure`` (a word
of ``FAILURES``) with ``detail`` (one short line). The child may have been taken over by hostile IR,
so nothing else gets through.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import tempfile
from pathlib import Path

__all__ = ["FAILURES", "INSTRUCTIONS", "cache_directory", "entry", "keep", "kept", "read", "short"]

# What is counted in the PTX, once per place in the code, whatever a loop makes of it. The wide
# ones move 16 bytes a thread (v4.b32, v2.b64); the plain names count every width.
INSTRUCTIONS = (
    "mma.sync",
    "wgmma",
    "ld.global",
    "ld.global.v4",
    "st.global",
    "st.global.v4",
    "cp.async",
    "cp.async.bulk",
    "atom.global",
)
FAILURES = ("threads", "clusters", "fp8", "registers", "ptxas", "compiler", "crash")
_FORMAT = 1  # raise it when an answer changes its meaning, so that old entries are not read
_NUMBERS = ("shared", "registers", "spills", "num_warps")


def read(line: bytes) -> dict:
    """One answer, checked field by field. Raises ``ValueError``."""
    answer = json.loads(line)
    if not isinstance(answer, dict):
        raise ValueError("not an object")
    if "failure" in answer:
        failure, detail = answer["failure"], answer.get("detail", "")
        if failure not in FAILURES or not isinstance(detail, str):
            raise ValueError("a failure that is not in the list")
        return {"failure": failure, "detail": short(detail)}
    counts = answer.get("instructions")
    if not isinstance(counts, dict) or set(counts) - set(INSTRUCTIONS):
        raise ValueError("instructions that are not in the list")
    numbers = {name: answer.get(name) for name in _NUMBERS}
    for value in [*numbers.values(), *counts.values()]:
        if type(value) is not int or not 0 <= value < 2**40:
            raise ValueError("a number that is none")
    return {**numbers, "instructions": counts}


def short(text: str) -> str:
    """One printable line of at most 200 characters, without paths."""
    text = re.sub(r"(?:/[\w.+-]+){2,}(?::\d+)*", "…", text)
    return "".join(c if c.isprintable() else " " for c in text)[:200].strip()


def cache_directory() -> Path:
    """``$AUTOGRADER_CACHE_DIR``, else ``autograder`` in ``$XDG_CACHE_HOME`` or ``~/.cache``."""
    if given := os.environ.get("AUTOGRADER_CACHE_DIR"):
        return Path(given)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "autograder"


def entry(request: dict, cc: int, version: str) -> Path:
    """The file that keeps the answer to ``request`` (IR text and options) for ``cc`` and Triton."""
    key = json.dumps([_FORMAT, version, cc, request], sort_keys=True)
    return cache_directory() / "compile" / f"{hashlib.sha256(key.encode()).hexdigest()}.json"


def kept(file: Path) -> dict | None:
    """The answer kept there, or None where there is none that can be read."""
    try:
        return read(file.read_bytes())
    except (OSError, ValueError):
        return None


def keep(file: Path, answer: dict) -> None:
    """Write through a temporary file, so that a reader sees all of an entry or none."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=file.parent, delete=False) as draft:
            json.dump(answer, draft)
        os.replace(draft.name, file)
    except OSError:
        return  # a full or read-only disk costs time at the next check, nothing else
