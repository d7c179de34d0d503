"""A kernel, its launch, and what a recording of a host function gives: for several tests."""

from __future__ import annotations

import numpy as np
import triton
import triton.language as tl

from autograder.records import Tensor
from autograder.trace.record import record
from autograder.trace.replay import replay
from autograder.trace.serial import from_json, to_json

X = Tensor((4, 6))


@triton.jit
def double_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=mask) * 2, mask=mask)


def launch(x, out):
    double_kernel[lambda meta: (triton.cdiv(out.numel(), meta["BLOCK"]),)](
        x, out, out.numel(), BLOCK=64
    )
    return out


def kinds(trace) -> str:
    return " ".join(type(event).__name__ for event in trace.events)


def only(trace, kind):
    return [event for event in trace.events if isinstance(event, kind)]


def outputs(function, *arguments, **options):
    """What replaying a recording of ``function`` gives on fresh random inputs, and those inputs."""
    trace = from_json(to_json(record(function, arguments, **options)))
    generator = np.random.default_rng(99)
    inputs = [
        generator.standard_normal(a.shape).astype(np.float32)
        for a in arguments
        if isinstance(a, Tensor)
    ]
    return [o.values for o in replay(trace, inputs).outputs], inputs
