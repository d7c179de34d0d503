"""What is measured, as data: tasks, whom a kernel is compared with, ladders, targets."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Check", "Ladder", "Launch", "Target", "Task", "Variant"]

Make = Callable[..., Callable[[], object]]
"""From a task's tensors to a function without arguments that returns the result. It allocates what
it can beforehand, so that a call is the kernel's work and nothing else."""

Check = tuple[str, Callable[[], float], float]
"""A check at full size: what it is, a function that returns an error, and the largest that is
right; NaN is wrong."""


@dataclass(frozen=True)
class Variant:
    """One way to do a task: a fast kernel, or one step of a ladder.

    ``reason``: one sentence, what is different from the step before and why that should help;
    ``needs``: the least compute capability, 89 for 8.9; ``expect``: the gain over the step before
    that the reason promises, as a ratio of times (1.2: 20 % faster), a prediction.
    """

    label: str
    make: Make
    reason: str = ""
    needs: int = 80
    expect: float | None = None


@dataclass(frozen=True)
class Target:
    """A line of docs/KERNELS.md: ``own``'s speed over ``rival``'s, at each of ``sizes``.

    ``at_least`` and ``stretch`` are ratios of times, rival's over own: above 1 own is faster.
    """

    own: str
    rival: str
    at_least: float
    stretch: float | None = None
    sizes: tuple[int, ...] = ()  # () means all of the task's


@dataclass(frozen=True)
class Task:
    """Something that kernels compute, at sizes ``size`` by which ``tensors`` are made.

    * ``tensors(size)``: fresh ones on the card, the same for all who are measured in turn;
    * ``own``: ours; ``rivals``: label → make, the last one is the reference for correctness
      unless it is in ``unchecked``;
    * ``bytes(size)`` and ``flop(size)``: what the task cannot do without (flop 0: memory decides);
    * ``atol(size)``: absolute difference to allow besides torch's relative one;
    * ``unchecked``: labels that compute something else, such as a copy of the same size.
    """

    name: str
    title: str  # for people, with the unit of size: "matmul bf16, n × n × n"
    sizes: tuple[int, ...]
    tensors: Callable[[int], tuple[Any, ...]]
    own: tuple[Variant, ...]
    rivals: Mapping[str, Make]
    bytes: Callable[[int], int]
    flop: Callable[[int], float] | None = None
    dtype: str = "bfloat16"
    atol: Callable[[int], float] | None = None
    unchecked: tuple[str, ...] = ()
    targets: tuple[Target, ...] = ()


@dataclass(frozen=True)
class Ladder:
    """Steps from the plain kernel to the fast one, measured in turn beside a task's rivals."""

    name: str
    task: Task
    sizes: tuple[int, ...]
    steps: tuple[Variant, ...]
    rivals: tuple[str, ...] = ()  # labels of the task's rivals that stand beside


@dataclass(frozen=True)
class Launch:
    """One compilation to check without a card: ``kernel.warmup(*args, grid=(1,), **options)``.

    ``args`` are tensors on torch's meta device, TensorDescriptors of them, and numbers; ``needs``
    as in Variant.
    """

    label: str
    kernel: Any
    args: tuple[Any, ...]
    options: dict[str, Any] = field(default_factory=dict)
    needs: int = 80
