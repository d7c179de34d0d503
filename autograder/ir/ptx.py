"""What a kernel's PTX text holds, and what NVIDIA's assembler ptxas says about it."""

from __future__ import annotations

import re

from autograder.ir.compile_answers import INSTRUCTIONS
from autograder.records import CouldNotCheck

__all__ = ["counts", "failure", "registers_and_spills"]


def failure(log: str) -> dict:
    """Why ptxas refused, as an answer of the child."""
    if re.search(
        r"Register allocation failed|Insufficient registers|too many registers", log, re.I
    ):
        return {"failure": "registers", "detail": ""}
    reasons = re.findall(r"^ptxas.*?(?:error|fatal)\s*: (.*)", log, re.M)
    return {"failure": "ptxas", "detail": reasons[0] if reasons else "no reason given"}


def registers_and_spills(log: str) -> tuple[int, int]:
    """(registers a thread, bytes of spill stores a thread) from the words of ``ptxas -v``."""
    registers = re.search(r"Used (\d+) registers", log)
    spills = re.search(r"(\d+) bytes spill stores", log)
    if not registers or not spills:
        raise CouldNotCheck("ptxas -v did not say how many registers the kernel uses.")
    return int(registers[1]), int(spills[1])


def counts(ptx: str) -> dict[str, int]:
    """How often each of ``INSTRUCTIONS`` stands in the text."""
    count = dict.fromkeys(INSTRUCTIONS, 0)
    found = re.findall(
        r"\b(mma\.sync|wgmma\.mma_async|(?:ld|st)\.global|cp\.async\.bulk\.tensor|cp\.async\.c[ag]"
        r"|(?:atom|red)\.global)(?:\.\w+|::\w+)*",
        ptx,
    )
    names = {
        "wgmma.mma_async": "wgmma",
        "cp.async.bulk.tensor": "cp.async.bulk",
        "cp.async.ca": "cp.async",
        "cp.async.cg": "cp.async",
        "red.global": "atom.global",
    }
    for name in found:
        count[names.get(name, name)] += 1
    for name, lanes, bits in re.findall(
        r"\b((?:ld|st)\.global)(?:\.[a-zA-Z]\w*|::\w+)*?\.v(\d)\.[a-z](\d+)", ptx
    ):
        count[f"{name}.v4"] += int(lanes) * int(bits) >= 128
    return count
