"""Runs a solution's own module-level code on a machine without a card."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from autograder.ir.hook import hooked
from autograder.records import Kernel
from autograder.trace.pretend import pretend_card
from autograder.trace.rehearse import rehearse
from autograder.trace.tape import Tape

__all__ = ["loading"]


@contextmanager
def loading() -> Iterator[None]:
    """Inside, code that was written for a card defines what it defines.

    ``device="cuda"``, ``triton.runtime.driver.active`` and the like do no harm, and launches run in
    the IR interpreter on the tensors that they are given. ``torch.cuda.is_available()`` stays
    False, so that cells which measure on a card do nothing.
    """

    def run(kernel: Kernel, grid: tuple[int, int, int], values: tuple) -> None:
        Tape(rehearse).launch(kernel, grid, values)

    with hooked(run), pretend_card(available=False):
        yield
