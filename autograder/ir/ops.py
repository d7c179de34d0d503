"""All operations: name → NumPy. `ops_table` says what an entry is; one module a subject fills it.

An operation that is not in the table makes the run end in CouldNotCheck, which names it.
"""

from __future__ import annotations

from autograder.ir import (  # noqa: F401 - each fills the table
    ops_cast,
    ops_dot,
    ops_float,
    ops_int,
    ops_libdevice,
    ops_shape,
)
from autograder.ir.ops_table import COUNTED, TABLE, whole
from autograder.ir.parse import Op

__all__ = ["COUNTED", "NO_EFFECT", "TABLE", "unknown", "whole"]

# tl.device_print and tl.device_assert change no value; without debug a card skips the assertion.
NO_EFFECT = frozenset(
    {
        "tt.print",
        "tt.assert",
        "ttg.barrier",
        "gpu.barrier",
        "llvm.intr.assume",
        "ttg.async_wait",
        "ttg.local_barrier",
    }
)

# What is not interpreted, and why.
REFUSED = {
    "tt.elementwise_inline_asm": "inline assembly (tl.inline_asm_elementwise) is text for the card",
    "tt.dot_scaled": "tl.dot_scaled needs number formats with scales that are not interpreted",
}


def unknown(op: Op) -> str:
    """One sentence on an operation that is not in the table."""
    if op.name in REFUSED:
        where = f" (line {op.line})" if op.line else ""
        return f"The IR interpreter does not run {op.name}{where}: {REFUSED[op.name]}."
    return f"The IR interpreter does not know the operation {op.name}."
