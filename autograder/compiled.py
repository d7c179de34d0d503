"""What Triton makes of one call of a kernel, for lessons: its IR as text, and how long that takes.

No GPU is needed: the compiler aims at compute capability 8.9, the RTX 4080's.
"""

from __future__ import annotations

import re
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from autograder.records import CompileFacts

__all__ = ["compile_seconds", "facts_of", "ir_of"]

_LOCATION = re.compile(r'\s*loc\((?:#\w+|unknown|"[^"]*"\(#\w+\))\)')


def ir_of(kernel: Any, *arguments: Any, **options: Any) -> str:
    """Triton IR of ``kernel`` for these arguments, without the notes on where a line comes from.

    ``arguments`` and ``options`` are what ``kernel[grid](…)`` would get. Two calls with equal text
    share one compiled kernel. Raises Rejected, one sentence, if it does not lower.
    """
    from autograder.ir.lower import lower

    text = lower(kernel, arguments, options)[0].ir
    lines = [_LOCATION.sub("", line) for line in text.splitlines() if not line.startswith("#loc")]
    return "\n".join(line for line in lines if line.strip())


def facts_of(
    kernel: Any, calls: Iterable[tuple[Sequence, Mapping[str, Any]]]
) -> tuple[CompileFacts, ...]:
    """What the compiler says of ``kernel`` for each of ``calls``, pairs of arguments and options.

    Facts hold registers a thread, bytes spilled for want of registers, shared memory, instructions,
    for the default card. They are kept on disk, so the next time they are there at once.
    Raises Rejected if a call does not lower, CouldNotCheck if the compiler cannot run.
    """
    from autograder.ir.compile import compile_all
    from autograder.ir.lower import lower

    return compile_all([lower(kernel, given, dict(options))[0] for given, options in calls])


def compile_seconds(kernel: Any, *arguments: Any, **options: Any) -> float:
    """Seconds from Python source to machine code, with Triton's cache on disk left aside."""
    import triton

    from autograder.ir.lower import TARGET, lower

    with tempfile.TemporaryDirectory() as folder, triton.knobs.cache.scope():
        triton.knobs.cache.dir = folder
        start = time.perf_counter()
        lowered = lower(kernel, arguments, options)[0]
        path = Path(folder) / "kernel.ttir"
        path.write_text(lowered.ir, encoding="utf-8")
        triton.compile(str(path), target=TARGET, options=dict(lowered.options))
        return time.perf_counter() - start
