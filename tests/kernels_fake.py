"""A small family of "kernels" on the CPU, and a measure that reads times off a table, for tests of
the bench."""

from __future__ import annotations

from collections.abc import Callable

import torch
import triton
import triton.language as tl

from lab_setup.kernels.bench.families import Family
from lab_setup.kernels.bench.tasks import Ladder, Launch, Target, Task, Variant
from lab_setup.roofline.measure import Measured, Timing

N = 64


def measured(milliseconds: dict[str, float], note: str = "") -> Callable:
    """Like ``lab_setup.roofline.measure.measure``: the functions are made, times are the table's.
    A function that is not in the table takes 1 ms."""

    def measure(rivals, sizes, *, bytes_of, flop_of=None, **_):
        timings = []
        for size in sizes:
            for name in rivals(size):
                ms = milliseconds.get(name, 1.0)
                tflops = flop_of(size) / ms / 1e9 if flop_of else None
                gbs = bytes_of(size) / ms / 1e6
                timings.append(Timing(name, size, ms, 0.99 * ms, 1.01 * ms, gbs, tflops))
        return Measured(tuple(timings), "a table", note=note)

    return measure


def _double(x):
    return lambda: 2 * x


def _wrong(x):
    return lambda: 2 * x + 1


def _poisoned(x):
    return lambda: torch.full_like(x, torch.nan)


def _raises(x):
    raise ValueError("no such tile")


def _copy(x):
    return lambda: x.clone()


TASK = Task(
    name="double",
    title="double, n numbers",
    sizes=(N, 2 * N),
    tensors=lambda n: (torch.arange(n, dtype=torch.float32) + 1,),
    own=(
        Variant("fast", _double),
        Variant("wrong", _wrong),
        Variant("poisoned", _poisoned),
        Variant("raises", _raises),
        Variant("hopper", _double, needs=90),
    ),
    rivals={"torch": _double, "copy": _copy},
    bytes=lambda n: 8 * n,
    flop=lambda n: n,
    unchecked=("copy",),
    targets=(
        Target("fast", "torch", 0.95, 1.0),
        Target("fast", "copy", 0.9, sizes=(N,)),
        Target("raises", "torch", 0.5, sizes=(N,)),
    ),
)
LADDER = Ladder(
    "double",
    TASK,
    (N,),
    (
        Variant("plain", _double, "As the exercise has it."),
        Variant("wider", _double, "Twice the block.", expect=1.5),
        Variant("descriptors", _double, "The copy engine.", needs=90, expect=1.1),
    ),
    ("copy",),
)


@triton.jit
def double_kernel(x, y, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(y + offsets, 2 * tl.load(x + offsets, mask=mask, other=0.0), mask=mask)


@triton.jit
def unknown_kernel(x, BLOCK: tl.constexpr):
    tl.store(x + tl.arange(0, BLOCK), tl.no_such_name(x))


def launches(cc: int):
    x = torch.empty(1024, device="meta")
    yield Launch("double 256", double_kernel, (x, x, 1024), {"BLOCK": 256})
    yield Launch("unknown", unknown_kernel, (x,), {"BLOCK": 256})
    yield Launch("hopper", double_kernel, (x, x, 1024), {"BLOCK": 512}, needs=90)
    yield Launch("double 512", double_kernel, (x, x, 1024), {"BLOCK": 512, "num_warps": 8})


def checks():
    yield "right", lambda: 0.5, 1.0
    yield "too far", lambda: 2.0, 1.0
    yield "not a number", lambda: float("nan"), 1.0
    yield "raises", lambda: 1 / 0, 1.0


FAMILY = Family("fake", (TASK,), (LADDER,), launches, checks)
TASKS, LADDERS = (TASK,), (LADDER,)
