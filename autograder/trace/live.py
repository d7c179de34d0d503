"""Launches on tensors that are really there: run at once, written in place, and watched.

Where the recorder notes what a call does for a judge to repeat, this does it: host code sees the
numbers that its kernels wrote, and torch computes in between what it likes. Cells still remember
whether anybody wrote them, so that a kernel which reads what ``torch.empty`` left is told so.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any

import torch

from autograder.floats import ITEMSIZE
from autograder.ir import memory as mem
from autograder.ir.hook import hooked
from autograder.ir.memory import Buffer
from autograder.records import (
    Allocate,
    Copy,
    CouldNotCheck,
    Event,
    Kernel,
    Launch,
    Output,
    Rejected,
    Run,
    View,
)
from autograder.trace.launches import Launches, bound_views, parsed, writes
from autograder.trace.lines import student_line
from autograder.trace.listen import Listen, Looks
from autograder.trace.pretend import pretend_card
from autograder.trace.tape import Tape, as_bytes, has_storage
from autograder.trace.undefined import told_undefined

__all__ = ["Live", "live"]

_SWEEP = 1 << 28  # bytes of new tensors, after which those that nobody else holds are let go


class Live(Tape):
    """Runs every launch on the tensors it is given and appends what came of it to ``launches``.

    ``order`` is that of programs. Lanes for pictures are kept of each kernel's first launch.
    """

    def __init__(self, launches: list[tuple[Kernel, Launch, Run]], order: str = "forward") -> None:
        super().__init__()
        self.launches = launches
        self._order = order
        self._drawn: set[str] = set()
        self._buffers: dict[int, Buffer] = {}
        self._next_sweep = _SWEEP
        self._addressed: dict[int, tuple[str, View]] = {}

    # ------------------------------------------------------------ what the host does

    def _emit(self, event: Event) -> None:
        """Nothing is kept but what it means for the state of cells."""
        if isinstance(event, Allocate):
            data = as_bytes(self._storages[event.buffer])
            self._buffers[event.buffer] = Buffer(event.buffer, event.nbytes, 8, data=data)
        elif isinstance(event, Copy):  # a resized storage keeps what it held
            self._copied(event.destination, event.source)

    def _new(self, storage: Any) -> int:
        if self._total > self._next_sweep:
            self._let_go()
            self._next_sweep = self._total + _SWEEP
        return super()._new(storage)

    def _let_go(self) -> None:
        """Forget the storages that nobody else holds any more."""
        for address, number in list(self._numbers.items()):
            if torch._C._storage_Use_Count(address) == 1:
                del self._numbers[address], self._buffers[number]
                self._storages[number] = None
                self._total -= self._sizes[number]
        for address, (_, view) in list(self._addressed.items()):
            if view.buffer not in self._buffers:
                del self._addressed[address]

    def _buffer(self, tensor: torch.Tensor) -> int:
        known = self.knows(tensor)
        number = super()._buffer(tensor)
        if not known:  # it was there before anybody listened
            self._buffers[number].state[:] = mem.CONSTANT
        return number

    def settle(self, tensor: torch.Tensor) -> None:
        """Bytes stay where they are."""

    def is_tainted(self, tensor: torch.Tensor) -> bool:
        return False  # what torch computes is as good as any number

    def fill(self, tensor: torch.Tensor, value: Any) -> None:
        self.constant([tensor])

    def constant(self, tensors: Sequence[torch.Tensor]) -> None:
        for tensor in tensors:
            number = self._buffer(tensor)
            view = self._look(tensor)
            if view.dtype in ITEMSIZE:
                self._refined(view).mark(view, mem.CONSTANT)
            else:
                self._buffers[number].state[:] = mem.CONSTANT

    def copy(self, destination: torch.Tensor, source: torch.Tensor) -> None:
        self._copied(self._look(destination), self._look(source))

    def _copied(self, destination: View, source: View) -> None:
        states = self._refined(source).states(source)
        self._refined(destination).mark(destination, states)

    def _refined(self, view: View, unit: int = 8) -> Buffer:
        """A view's buffer, in cells no larger than the view's elements."""
        buffer = self._buffers[view.buffer]
        buffer.refine(min(unit, ITEMSIZE[view.dtype]))
        return buffer

    # ------------------------------------------------------------ launches

    def _binding(self, value: Any, name: str, kernel: str) -> Any:
        if isinstance(value, torch.Tensor) and not has_storage(value):
            raise Rejected(
                f"{kernel} got a tensor on {value.device} for `{name}`; the interpreter works on "
                "dense tensors in the computer's memory: pass x.cpu().",
                line=student_line(),
                kernel=kernel,
            )
        return super()._binding(value, name, kernel)

    def addressed(self, tensor: torch.Tensor) -> None:
        with torch._C.DisableTorchFunction():
            if not has_storage(tensor):
                return
            shape = " × ".join(map(str, tensor.shape)) or "1"
            view = self.view(tensor)
            self._addressed[tensor.data_ptr()] = f"a tensor of {shape} by its address", view

    def launch(self, kernel: Kernel, grid: tuple[int, int, int], values: tuple) -> None:
        with torch._C.DisableTorchFunction():
            launch = Launch(0, grid, self.bindings(kernel, values), student_line())
            smallest = parsed(kernel.ir)[2]
            addresses = self._addressed if "tt.int_to_ptr" in kernel.ir else {}
            known = [view for _, view in addresses.values()]
            views = [*(view for _, view in bound_views(kernel, launch)), *known]
            for view in views:
                self._refined(view, smallest)
            numbers = writes(kernel, launch)[0] | {view.buffer for view in known}
            written = [self._buffers[number] for number in sorted(numbers)]
            draw = kernel.name not in self._drawn
            self._drawn.add(kernel.name)
            before = [(b.data.copy(), b.state.copy()) for b in written]

            def once(poison: str = "nan", site: tuple | None = None, draw: bool = False) -> Run:
                for buffer, (data, state) in zip(written, before, strict=True):
                    buffer.data[...], buffer.state[...] = data, state
                launches = Launches(
                    order=self._order, poison=poison, poisoned=site, keep_accesses=draw
                )
                launches.buffers = {view.buffer: self._buffers[view.buffer] for view in views}
                launches.addresses = addresses
                launches.homes = {view.buffer: ITEMSIZE[view.dtype] for view in views}
                try:
                    launches.launch(kernel, launch)
                except CouldNotCheck as error:
                    raise CouldNotCheck(f"{kernel.name}: {error}") from None
                held = tuple(Output(b.data.copy(), "uint8") for b in written)
                return launches.result(held)

            run = once(draw=draw)
            if run.undefined:
                after = [b.state.copy() for b in written]
                run = told_undefined(run, once)
                for buffer, output, state in zip(written, run.outputs, after, strict=True):
                    buffer.data[...], buffer.state[...] = output.values, state
            self.launches.append((kernel, launch, replace(run, outputs=())))


@contextmanager
def live(
    launches: list[tuple[Kernel, Launch, Run]],
    notes: list[str],
    order: str = "forward",
    config: int = 0,
) -> Iterator[None]:
    """While it lasts, launches run in the IR interpreter on the CPU tensors that they are given,
    and host code that asks for a card finds one.

    What each launch did is appended to ``launches``, what autotuning has to say to ``notes``.
    ``order`` is that of programs, ``config`` picks an autotune configuration.
    """
    tape = Live(launches, order)
    with ExitStack() as stack:
        hook = stack.enter_context(hooked(tape.launch, config))
        stack.enter_context(pretend_card())
        stack.enter_context(Looks(tape))
        stack.enter_context(Listen(tape))
        try:
            yield
        finally:
            notes += hook.warnings
