"""Runs one recorded launch on the recording's own tensors, for host code that looks at values.

A wrapper that checks itself (``assert torch.allclose(out, x + y)``) or sizes a buffer by a counter
needs to see what its kernels wrote. The interpreter runs the launch as a trace of its own, on the
bytes as they are; faults that it finds here are found again, and told, by the judge.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from autograder.floats import ITEMSIZE, encode
from autograder.records import Allocate, Constant, Descriptor, Kernel, Launch, Trace, View
from autograder.trace.replay import replay


def rehearse(kernel: Kernel, launch: Launch, memory: Mapping[int, np.ndarray]) -> None:
    """Run ``launch`` on ``memory``, the bytes (uint8) of every buffer by number, in place.

    Raises CouldNotCheck for what the interpreter does not know.
    """
    dtypes: dict[int, str] = {}
    for binding in launch.bindings:
        view = binding.view if isinstance(binding, Descriptor) else binding
        if isinstance(view, View):
            before = dtypes.setdefault(view.buffer, view.dtype)
            dtypes[view.buffer] = min(before, view.dtype, key=ITEMSIZE.__getitem__)
    events: list = []
    for number in dtypes:
        events.append(Allocate(number, memory[number].size))
        events.append(Constant(number, memory[number].tobytes()))
    cells = {n: memory[n].size // ITEMSIZE[dtype] for n, dtype in dtypes.items()}
    views = [View(n, 0, (cells[n],), (1,), dtype) for n, dtype in dtypes.items()]
    one = Launch(0, launch.grid, launch.bindings, launch.line)
    run = replay(Trace((kernel,), (*events, one), tuple(views)), ())
    for view, output in zip(views, run.outputs, strict=True):
        bits = np.ascontiguousarray(encode(output.values, view.dtype))
        memory[view.buffer][: bits.nbytes] = bits.view(np.uint8)
