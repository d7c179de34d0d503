"""Runs one recorded launch on the recording's own tensors, for host code that looks at values.

A wrapper that checks itself (``assert torch.allclose(out, x + y)``) or sizes a buffer by a counter
needs to see what its kernels wrote. The interpreter runs the launch as a trace of its own, on the
bytes as they are; faults that it finds here are found again, and told, by the judge.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from autograder.floats import ITEMSIZE
from autograder.ir import memory as mem
from autograder.ir.memory import Buffer
from autograder.records import Kernel, Launch
from autograder.trace.launches import Launches, bound_views, parsed


def rehearse(kernel: Kernel, launch: Launch, memory: Mapping[int, np.ndarray]) -> None:
    """Run ``launch`` on ``memory``, the bytes (uint8) of every buffer by number, in place.

    Raises CouldNotCheck for what the interpreter does not know.
    """
    views = [view for _, view in bound_views(kernel, launch)]
    unit = min([parsed(kernel.ir)[2], *(ITEMSIZE[view.dtype] for view in views)])
    launches = Launches()
    for number in {view.buffer for view in views}:
        data = memory[number]
        buffer = Buffer(number, data.size, unit, data=data)
        buffer.state[:] = mem.CONSTANT
        launches.buffers[number] = buffer
    launches.launch(kernel, launch)
