"""Write GPU kernels in Triton and prove them right on a CPU.

``check("02.add", add)`` runs your kernel through an interpreter of Triton's own IR and says whether
it is right, in bounds, free of races, moves what theory says, and compiles for the card.
``hint("02.add")`` opens the exercise's hints, one after the other.
``interpret(kernel)[grid](...)`` runs any kernel of yours on CPU tensors (docs/INTERPRETER.md).
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # imported on first use: `import autograder` works where there is no Triton
    from autograder.checking import check, hint
    from autograder.interpreting import interpret

# Triton 3.9 warns wherever it compiles and nobody has said whether a product and a sum may become
# one instruction. They may, as in every Triton before.
os.environ.setdefault("TRITON_DEFAULT_FP_FUSION", "1")

__all__ = ["check", "hint", "interpret"]

_HOMES = {"check": "checking", "hint": "checking", "interpret": "interpreting"}


def __getattr__(name: str):
    if name in _HOMES:
        return getattr(import_module(f"autograder.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'autograder' has no attribute {name!r}")
