"""The two tables and how a row is written.

A row is a host function under ``@faulty(label, arguments, *faults)`` or ``@right(label, …)``.
Arguments are ``Tensor`` records or numbers. A fault names the kernel, the argument at fault, the
marker of its line, the first program at fault and the lanes at fault over all programs.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from autograder.exercises.inputs import make
from autograder.records import Case, Finding, Tensor

__all__ = ["FAULTY", "RIGHT", "Example", "Fault", "T", "faulty", "key", "right", "unwritten"]


@dataclass(frozen=True)
class Fault:
    """One finding that must be there. ``at`` is the word after ``# <--`` on the line at fault."""

    kind: str
    kernel: Any  # the @triton.jit function, None for faults of an output
    argument: str
    program: tuple[int, ...] | None
    lanes: int
    at: str = "here"
    marked: Any = None  # the function whose line is marked, where that is a helper of the kernel

    @property
    def line(self) -> int:
        """Line of the marker in the kernel's file; 0 for faults that have no line."""
        if self.kernel is None:
            return 0
        lines, first = inspect.getsourcelines((self.marked or self.kernel).fn)
        found = [
            first + i for i, text in enumerate(lines) if text.rstrip().endswith(f"<-- {self.at}")
        ]
        if len(found) != 1:
            raise ValueError(f"{self.kernel.fn.__name__} has {len(found)} lines marked {self.at!r}")
        return found[0]

    def key(self) -> tuple:
        name = self.kernel.fn.__name__ if self.kernel is not None else ""
        return (self.kind, name, self.argument, self.line, self.program, self.lanes)


def key(finding: Finding) -> tuple:
    """What of a finding a row fixes."""
    return (
        finding.kind,
        finding.kernel,
        finding.argument,
        finding.line,
        finding.program,
        finding.lanes,
    )


@dataclass(frozen=True)
class Example:
    label: str
    host: Callable
    arguments: tuple
    faults: tuple[Fault, ...] = ()

    def made(self) -> list:
        """The call's arguments: a torch tensor for every Tensor, and what lies in its gaps."""
        case = Case(self.label, {})
        return [
            _made(case, argument, i) if isinstance(argument, Tensor) else argument
            for i, argument in enumerate(self.arguments)
        ]


def _made(case: Case, tensor: Tensor, index: int) -> torch.Tensor:
    empty = torch.empty(tensor.shape, device="meta")
    strides = tensor.strides or empty.stride()
    steps = sum((n - 1) * s for n, s in zip(tensor.shape, strides, strict=True))
    flat = make(
        case, T(1 + steps if empty.numel() else 0, dtype=tensor.dtype, fill=tensor.fill), index
    )
    storage = torch.from_numpy(flat).to(getattr(torch, tensor.dtype))
    return storage.as_strided(tensor.shape, strides)


FAULTY: list[Example] = []
RIGHT: list[Example] = []


def faulty(label: str, arguments: list, *faults: Fault):
    def add(host):
        FAULTY.append(Example(label, host, tuple(arguments), faults))
        return host

    return add


def right(label: str, arguments: list):
    def add(host):
        RIGHT.append(Example(label, host, tuple(arguments)))
        return host

    return add


def unwritten(lanes: int) -> Fault:
    return Fault("unwritten", None, "", None, lanes)


def T(*shape: int, dtype: str = "float32", strides=None, fill: str = "normal") -> Tensor:
    return Tensor(shape, dtype, strides, fill)
