"""Buffers, and what the launches on them did: findings, traffic, lanes for pictures.

The judge's replay of a trace and launches on tensors that are really there both run through here.
"""

from __future__ import annotations

import math
import re
from dataclasses import replace
from functools import lru_cache

import numpy as np

from autograder.ir import memory as mem
from autograder.ir.access import Memory
from autograder.ir.blocks import Tile
from autograder.ir.findings import Faults
from autograder.ir.lanes import settled
from autograder.ir.memory import Buffer, Pointer, Window
from autograder.ir.needed import needed
from autograder.ir.parse import Function, parse
from autograder.ir.races import Races
from autograder.ir.reach import may_write
from autograder.ir.run import Execution
from autograder.records import (
    CouldNotCheck,
    Descriptor,
    Finding,
    Input,
    Kernel,
    Launch,
    Operations,
    Output,
    Run,
    Traffic,
    View,
)

MAX_LANES = 1 << 34  # that touch memory in one run
KEPT_PROGRAMS = 64  # whose accesses are kept for pictures


@lru_cache(maxsize=256)
def parsed(ir: str) -> tuple[Function, frozenset[int] | None, int, frozenset[str]]:
    """A kernel's function, the parameters it may write, the smallest pointee it casts to, and the
    loads whose undefined lanes cannot matter."""
    function = parse(ir)
    casts = re.findall(r"tt\.(?:bitcast|int_to_ptr)[^\n]*!tt\.ptr<(\w+)", ir)
    width = {"i1": 1, "i8": 1, "f8E5M2": 1, "f8E4M3FN": 1, "i16": 2, "f16": 2, "bf16": 2}
    smallest = min([8, *(width.get(c, 4) for c in casts)])
    return function, may_write(function), smallest, settled(function)


def _locks(ir: str) -> bool:
    """Whether a kernel may wait for a lock: by compare-and-swap, or by exchanges in a loop."""
    return "tt.atomic_cas" in ir or ("tt.atomic_rmw exch" in ir and "scf.while" in ir)


def bound_views(kernel: Kernel, event: Launch) -> list[tuple[str, View]]:
    """(parameter, view) of every tensor that a launch is given."""
    found = []
    for name, binding in zip(kernel.parameters, event.bindings, strict=True):
        view = binding.view if isinstance(binding, Descriptor) else binding
        if isinstance(view, View):
            found.append((name, view))
    return found


def writes(kernel: Kernel, event: Launch) -> tuple[frozenset[int], frozenset[str]]:
    """Numbers of the buffers that a launch may write, and the parameters that it writes through."""
    reached = parsed(kernel.ir)[1]
    names = {name for i, name in enumerate(kernel.parameters) if reached is None or i in reached}
    views = [(name, view) for name, view in bound_views(kernel, event) if name in names]
    return frozenset(view.buffer for _, view in views), frozenset(name for name, _ in views)


class Launches:
    """``buffers`` by number, the options of ``replay``, and what has come of the launches so far.

    ``homes`` are the bytes of a tensor's own elements, by buffer: traffic counts in these, whatever
    views and casts claim. ``inputs`` are the buffers that belong to the caller.
    """

    def __init__(
        self,
        *,
        order: str = "forward",
        poison: str = "nan",
        poisoned: tuple[int, str] | None = None,
        keep_accesses: bool = False,
        count_only: bool = False,
        budget: int = MAX_LANES,
        keep_touches: bool = False,
        tf32: bool = False,
        only: np.ndarray | None = None,
        watch: bool = False,
    ):
        self.order, self.poison, self.poisoned = order, poison, poisoned
        self.keep_accesses, self.count_only, self.budget = keep_accesses, count_only, budget
        self.tf32, self.only, self.watch = tf32, only, watch
        self.buffers: dict[int, Buffer] = {}
        self.homes: dict[int, int] = {}
        self.addresses: dict[int, tuple[str, View]] = {}  # tensors to be found by address
        self.inputs: dict[int, Input] = {}
        self.findings: list[Finding] = []
        self.traffic: dict[str, Traffic] = {}
        self.operations = Operations()
        self.accesses: list = []
        self.touches: list | None = [] if keep_touches else None
        self.undefined: list = []
        self.changed: dict[str, None] = {}
        self.names: dict[int, str] = {}  # of buffers: the first parameter that they came through
        self.blamed: set[int] = set()  # inputs whose change is told already: one name is enough
        self.warnings: dict[str, None] = {}
        self.digest: list[int] = []

    def result(self, outputs: tuple[Output, ...] = ()) -> Run:
        return Run(
            outputs=outputs,
            findings=tuple(self.findings),
            traffic=tuple(self.traffic.values()),
            operations=self.operations,
            accesses=tuple(self.accesses),
            warnings=tuple(self.warnings),
            changed=tuple(self.changed),
            undefined=tuple(self.undefined),
            digest=hash(tuple(self.digest)),
            touches=tuple(self.touches or ()),
            unread=tuple(self._unread()),
        )

    def _unread(self):
        """(argument, elements that no program loaded) of every input that was loaded in part."""
        for number, event in self.inputs.items():
            buffer = self.buffers[number]
            if buffer.seen is not None and number in self.names:
                missing = buffer.unseen(event.view)
                if missing.any() and not missing.all():
                    yield self.names[number], missing

    def buffer(self, view: View) -> Buffer:
        if view.buffer not in self.buffers:
            raise CouldNotCheck("The trace uses a buffer that it never made.")
        return self.buffers[view.buffer]

    def launch(self, kernel: Kernel, event: Launch) -> None:
        """Run one launch on the buffers. Raises CouldNotCheck for what does not fit its IR."""
        function, _, _, harmless = parsed(kernel.ir)
        if len(event.bindings) != len(function.parameters):
            raise CouldNotCheck(f"The launch of {kernel.name} does not fit its IR.")
        if min(event.grid) < 0:
            raise CouldNotCheck("A grid has a negative size.")
        if 0 in event.grid:
            return
        windows: list[Window] = []
        arguments = [
            self._bound(binding, name, function.parameters[i][1], windows)
            for i, (binding, name) in enumerate(zip(event.bindings, kernel.parameters, strict=True))
        ]
        written, writers = writes(kernel, event)
        addresses = []
        for address, (name, view) in sorted(self.addresses.items()):
            window = self._window(name, view)
            addresses.append((address, address + window.nbytes, len(windows)))
            windows.append(window)
            written |= {view.buffer}
        faults = Faults(kernel.name, event.grid)
        races = Races(faults, [frozenset()] if _locks(kernel.ir) else None)
        memory = Memory(
            windows,
            faults,
            races,
            self.poison,
            self.poisoned,
            written,
            keep=self._kept(event.grid) if self.keep_accesses else None,
            touches=self.touches,
            launch=len(self.digest),
            budget=self.budget,
            settled=harmless,
            addresses=addresses,
        )
        slice_ = needed(function) if self.count_only else None
        execution = Execution(
            function,
            event.grid,
            arguments,
            memory,
            self.order,
            self.only,
            needed=slice_,
            tf32=self.tf32,
        )
        counts = execution.run()
        self.budget = memory.budget
        self.warnings.update(execution.warnings)
        self.operations = Operations(
            self.operations.dot + counts.dot, self.operations.elementwise + counts.elementwise
        )
        for window in windows:
            self.names.setdefault(window.buffer.number, window.argument)
            self.count(window.traffic)
            # The same tensor may be bound twice: to blame is the name that is stored through.
            known = window.buffer.number in self.blamed
            if window.buffer.number in self.inputs and window.argument in writers and not known:
                view = self.inputs[window.buffer.number].view
                if (window.buffer.states(view) == mem.KERNEL).any():
                    self.changed[window.argument] = None
                    self.blamed.add(window.buffer.number)
        self.findings += faults.findings()
        self.accesses += memory.accesses
        for (line, argument), (lanes, program) in memory.undefined.items():
            self.undefined.append((kernel.name, event.grid, argument, line, lanes, program))
        self.digest.append(memory.digest)

    def _bound(self, binding, name: str, type_, windows: list[Window]):
        if isinstance(binding, View):
            self.buffer(binding).check(binding)
            windows.append(self._window(name, binding))
            return Pointer(len(windows) - 1, np.zeros(1, np.int64), type_.dtype)
        if isinstance(binding, Descriptor):
            view = binding.view
            windows.append(self._window(name, view))
            return Tile(
                Pointer(len(windows) - 1, np.zeros(1, np.int64), view.dtype),
                tuple(np.array([n], np.int64) for n in view.shape),
                tuple(np.array([s], np.int64) for s in view.strides),
                tuple(np.zeros(1, np.int64) for _ in view.shape),
                tuple(binding.block_shape),
                binding.padding,
            )
        return binding

    def _window(self, name: str, view: View) -> Window:
        window = Window(name, self.buffer(view), view)
        window.home = self.homes.get(view.buffer, min(4, window.itemsize))
        return window

    @staticmethod
    def _kept(grid) -> np.ndarray:
        programs = math.prod(grid)
        spread = np.linspace(0, programs - 1, min(programs, KEPT_PROGRAMS)).astype(np.int64)
        return np.array(sorted({*spread.tolist()}), np.int64)  # np.unique would load numpy.ma

    def count(self, traffic: Traffic) -> None:
        name = traffic.argument
        before = self.traffic.get(name)
        if before is None:
            self.traffic[name] = traffic
            return
        self.traffic[name] = replace(
            before,
            loaded=before.loaded + traffic.loaded,
            stored=before.stored + traffic.stored,
            masked=before.masked + traffic.masked,
            sectors=before.sectors + traffic.sectors,
        )
