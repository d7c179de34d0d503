"""Runs a trace on inputs: NumPy and the IR interpreter, no line of the student's Python.

Nothing that a trace claims is believed: geometry is checked against buffers, totals are capped, and
what counts is what comes out. Buffers arrive poisoned; every cell remembers who wrote it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np

from autograder.floats import ITEMSIZE, is_float, rounded
from autograder.ir import memory as mem
from autograder.ir.access import Memory
from autograder.ir.blocks import Tile
from autograder.ir.findings import Faults
from autograder.ir.memory import Buffer, Pointer, Window
from autograder.ir.needed import needed
from autograder.ir.parse import Function, parse
from autograder.ir.races import Races
from autograder.ir.reach import may_write
from autograder.ir.run import Execution
from autograder.records import (
    Allocate,
    Constant,
    Copy,
    CouldNotCheck,
    Descriptor,
    Fill,
    Finding,
    Foreign,
    Input,
    Launch,
    Operations,
    Output,
    Peek,
    Run,
    Trace,
    Traffic,
    View,
)

MAX_BYTES = 1 << 30  # of all buffers together
MAX_COUNTED = 1 << 34  # where they are only counted, and so never touched
MAX_LANES = 1 << 34  # that touch memory in one run
KEPT_PROGRAMS = 64  # whose accesses are kept for pictures


@lru_cache(maxsize=256)
def _parsed(ir: str) -> tuple[Function, frozenset[int] | None, int]:
    """A kernel's function, the parameters it may write, and the smallest pointee it casts to."""
    function = parse(ir)
    casts = re.findall(r"tt\.(?:bitcast|int_to_ptr)[^\n]*!tt\.ptr<(\w+)", ir)
    width = {"i1": 1, "i8": 1, "f8E5M2": 1, "f8E4M3FN": 1, "i16": 2, "f16": 2, "bf16": 2}
    return function, may_write(function), min([8, *(width.get(c, 4) for c in casts)])


def _locks(ir: str) -> bool:
    """Whether a kernel may wait for a lock: by compare-and-swap, or by exchanges in a loop."""
    return "tt.atomic_cas" in ir or ("tt.atomic_rmw exch" in ir and "scf.while" in ir)


def replay(
    trace: Trace,
    inputs: Sequence[np.ndarray],
    gradients: Sequence[np.ndarray] = (),
    *,
    order: str = "forward",
    poison: str = "nan",
    poisoned: tuple[int, str] | None = None,
    keep_accesses: bool = False,
    count_only: bool = False,
    keep_touches: bool = False,
    budget: int = MAX_LANES,
) -> Run:
    """One run of a trace.

    ``inputs``: the tensor arguments' values by index, of the shapes that the trace's Inputs have,
    in the held types of their dtypes; ``gradients``: the incoming gradients of a backward pass.
    ``order``: of programs, "forward", "reversed" or "shuffled". ``poison``: what masked lanes
    without ``other`` hold ("nan", "large", "small", "zero"), in all loads or, where ``poisoned``
    names a (line, argument), in that one. ``keep_accesses``: keep lanes of some programs for
    pictures. ``count_only``: bounds, traffic and operations without values, for sizes at which
    computing would take too long; inputs may then be missing, unless addresses depend on them.
    ``keep_touches``: keep which sectors every program touched, for a model of the L2 cache.
    ``budget``: lanes that may touch memory; more raise Rejected, kind "traffic".
    Raises CouldNotCheck for what the interpreter does not know.
    """
    run = _Replay(
        trace, inputs, gradients, order, poison, poisoned, keep_accesses, count_only, budget
    )
    if keep_touches:
        run.touches = []
    return run.run()


class _Replay:
    def __init__(
        self, trace, inputs, gradients, order, poison, poisoned, keep_accesses, count_only, budget
    ):
        self.trace, self.order = trace, order
        self.poison, self.poisoned = poison, poisoned
        self.keep_accesses, self.count_only = keep_accesses, count_only
        self.budget = budget
        self.given = {i: a for i, a in enumerate(inputs)} | {
            -1 - i: a for i, a in enumerate(gradients)
        }
        self.buffers: dict[int, Buffer] = {}
        self.inputs: dict[int, Input] = {}
        self.before: dict[int, np.ndarray] = {}  # what inputs held when they arrived
        # Bytes of a tensor's own elements: traffic counts in these, whatever views and casts claim.
        self.homes = {o.buffer: ITEMSIZE[o.dtype] for o in trace.outputs if isinstance(o, View)}
        self.findings: list[Finding] = []
        self.traffic: dict[str, Traffic] = {}
        self.operations = Operations()
        self.accesses: list = []
        self.touches: list | None = None
        self.undefined: list = []
        self.changed: dict[str, None] = {}
        self.warnings: dict[str, None] = {}
        self.digest: list[int] = []

    def run(self) -> Run:
        units = self._units()
        total = 0
        for event in self.trace.events:
            if isinstance(event, (Allocate, Input)):
                total += event.nbytes
                limit = MAX_COUNTED if self.count_only else MAX_BYTES
                if total > limit or event.buffer in self.buffers or event.nbytes < 0:
                    raise CouldNotCheck("The trace allocates more memory than a check may use.")
                self.buffers[event.buffer] = Buffer(
                    event.buffer,
                    event.nbytes,
                    units.get(event.buffer, 1),
                    poisoned=not self.count_only,
                )
        for event in self.trace.events:
            _EVENTS[type(event)](self, event)
        outputs: tuple = ()
        if not self.count_only:
            outputs = tuple(self._output(i, o) for i, o in enumerate(self.trace.outputs))
            self._compare_inputs()
        return Run(
            outputs=tuple(o for o in outputs if o is not None),
            findings=tuple(self.findings),
            traffic=tuple(self.traffic.values()),
            operations=self.operations,
            accesses=tuple(self.accesses),
            warnings=(*self.trace.warnings, *self.warnings),
            changed=tuple(self.changed),
            undefined=tuple(self.undefined),
            digest=hash(tuple(self.digest)),
            touches=tuple(self.touches or ()),
        )

    def _units(self) -> dict[int, int]:
        """The cell size of every buffer: its smallest element, or smaller where a kernel casts."""
        units: dict[int, int] = {}

        def see(view: View, limit: int = 8) -> None:
            size = min(ITEMSIZE[view.dtype], limit)
            units[view.buffer] = min(units.get(view.buffer, 8), size)

        for event in self.trace.events:
            if isinstance(event, Launch):
                limit = _parsed(self._kernel(event).ir)[2]
                for binding in event.bindings:
                    if isinstance(binding, View):
                        see(binding, limit)
                    elif isinstance(binding, Descriptor):
                        see(binding.view, limit)
            elif isinstance(event, (Fill, Input)):
                see(event.view)
            elif isinstance(event, Copy):
                see(event.source)
                see(event.destination)
            elif isinstance(event, Foreign):
                for view in event.outputs:
                    see(view)
        for output in self.trace.outputs:
            if isinstance(output, View):
                see(output)
        return units

    def _kernel(self, launch: Launch):
        if not 0 <= launch.kernel < len(self.trace.kernels):
            raise CouldNotCheck("The trace launches a kernel that it does not hold.")
        return self.trace.kernels[launch.kernel]

    def _buffer(self, view: View) -> Buffer:
        if view.buffer not in self.buffers:
            raise CouldNotCheck("The trace uses a buffer that it never made.")
        return self.buffers[view.buffer]

    # ------------------------------------------------------------ events on the host

    def allocate(self, event: Allocate) -> None:
        pass  # made before: every buffer is fresh and poisoned

    def input(self, event: Input) -> None:
        if event.index not in self.given:
            if self.count_only:
                return
            raise CouldNotCheck("The trace asks for an input that the call does not have.")
        values = np.asarray(self.given[event.index])
        if values.shape != event.view.shape:
            raise CouldNotCheck(
                f"The trace was recorded for inputs of shape {event.view.shape}, "
                f"not {values.shape}."
            )
        buffer = self._buffer(event.view)
        self.inputs[event.buffer] = event
        self.homes[event.buffer] = ITEMSIZE[event.view.dtype]
        buffer.write(event.view, values)
        self.before[event.buffer] = buffer.read(event.view)
        buffer.mark(event.view, mem.INPUT)

    def constant(self, event: Constant) -> None:
        if event.buffer not in self.buffers:
            raise CouldNotCheck("The trace fills a buffer that it never made.")
        buffer = self.buffers[event.buffer]
        raw = np.frombuffer(event.data, np.uint8)[: buffer.nbytes]
        buffer.data[: len(raw)] = raw
        buffer.state[: -(-len(raw) // buffer.unit)] = mem.CONSTANT

    def fill(self, event: Fill) -> None:
        buffer = self._buffer(event.view)
        value = np.asarray(event.value)
        if is_float(event.view.dtype):
            value = rounded(value.astype(np.float64), event.view.dtype)
        buffer.write(event.view, value)
        buffer.mark(event.view, mem.CONSTANT)

    def copy(self, event: Copy) -> None:
        source, destination = event.source, event.destination
        if source.shape != destination.shape:
            raise CouldNotCheck("The trace copies between different shapes.")
        old, new = self._buffer(source), self._buffer(destination)
        values, states = old.read(source), old.states(source)
        with np.errstate(all="ignore"):
            values = rounded(values, destination.dtype)
        new.write(destination, values)
        new.mark(destination, states)
        if old.foreign:
            new.foreign += [f for f in old.foreign if f not in new.foreign]
        n = math.prod(source.shape)
        self._count(Traffic("(torch copy)", ITEMSIZE[source.dtype], n, n))

    def foreign(self, event: Foreign) -> None:
        for view in event.outputs:
            buffer = self._buffer(view)
            buffer.write(view, np.asarray(np.nan if is_float(view.dtype) else 1))
            buffer.mark(view, mem.FOREIGN)
            buffer.foreign.append(f"{event.operation} at line {event.line}")

    def peek(self, event: Peek) -> None:
        pass  # reading a dummy's value gains nothing

    # ------------------------------------------------------------ launches

    def launch(self, event: Launch) -> None:
        kernel = self._kernel(event)
        function, writes, _ = _parsed(kernel.ir)
        if len(event.bindings) != len(function.parameters):
            raise CouldNotCheck(f"The launch of {kernel.name} does not fit its IR.")
        if min(event.grid) < 0:
            raise CouldNotCheck("A grid has a negative size.")
        if 0 in event.grid:
            return
        windows: list[Window] = []
        arguments, written, writers = [], set(), set()
        for i, (binding, name) in enumerate(zip(event.bindings, kernel.parameters, strict=True)):
            arguments.append(self._bound(binding, name, function.parameters[i][1], windows))
            if isinstance(binding, (View, Descriptor)) and (writes is None or i in writes):
                written.add(windows[-1].buffer.number)
                writers.add(name)
        faults = Faults(kernel.name, event.grid)
        races = Races(faults, [frozenset()] if _locks(kernel.ir) else None)
        memory = Memory(
            windows,
            faults,
            races,
            self.poison,
            self.poisoned,
            frozenset(written),
            keep=self._kept(event.grid) if self.keep_accesses else None,
            touches=self.touches,
            launch=len(self.digest),
            budget=self.budget,
        )
        slice_ = needed(function) if self.count_only else None
        execution = Execution(function, event.grid, arguments, memory, self.order, needed=slice_)
        counts = execution.run()
        self.budget = memory.budget
        self.warnings.update(execution.warnings)
        self.operations = Operations(
            self.operations.dot + counts.dot, self.operations.elementwise + counts.elementwise
        )
        for window in windows:
            self._count(window.traffic)
            # The same tensor may be bound twice: to blame is the name that is stored through.
            if window.buffer.number in self.inputs and window.argument in writers:
                view = self.inputs[window.buffer.number].view
                if (window.buffer.states(view) == mem.KERNEL).any():
                    self.changed[window.argument] = None
        self.findings += faults.findings()
        self.accesses += memory.accesses
        for (line, argument), (lanes, program) in memory.undefined.items():
            self.undefined.append((kernel.name, event.grid, argument, line, lanes, program))
        self.digest.append(memory.digest)

    def _bound(self, binding, name: str, type_, windows: list[Window]):
        if isinstance(binding, View):
            self._buffer(binding).check(binding)
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
        window = Window(name, self._buffer(view), view)
        window.home = self.homes.get(view.buffer, min(4, window.itemsize))
        return window

    @staticmethod
    def _kept(grid) -> np.ndarray:
        programs = math.prod(grid)
        return np.unique(
            np.linspace(0, programs - 1, min(programs, KEPT_PROGRAMS)).astype(np.int64)
        )

    def _count(self, traffic: Traffic) -> None:
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

    # ------------------------------------------------------------ what comes back

    def _compare_inputs(self) -> None:
        """Inputs belong to the caller: neither a kernel nor torch may leave other numbers there."""
        for number, before in self.before.items():
            now = self.buffers[number].read(self.inputs[number].view)
            if not np.array_equal(now, before, equal_nan=before.dtype.kind == "f"):
                name = f"argument {self.inputs[number].index}"
                if not self.changed:
                    self.changed[name] = None

    def _output(self, number: int, output: View | str) -> Output | None:
        if isinstance(output, str):
            self.findings.append(Finding("interface", output))
            return None
        buffer = self._buffer(output)
        states = buffer.states(output)
        which = "The output" if len(self.trace.outputs) == 1 else f"Output {number}"
        count = states.size
        unwritten = int((states == mem.UNINITIALISED).sum())
        foreign = int((states == mem.FOREIGN).sum())
        untouched = int((states == mem.INPUT).sum())
        if unwritten:
            first = np.argwhere(states == mem.UNINITIALISED)[0]
            place = ", ".join(map(str, first))
            self._say(
                "unwritten",
                f"{which}: no program wrote {unwritten} of its {count} elements, the first at "
                f"[{place}].",
                unwritten,
            )
        if foreign:
            names = ", ".join(dict.fromkeys(buffer.foreign))
            self._say(
                "torch_computed",
                f"{which} was computed by torch ({names}), not by your kernel.",
                foreign,
            )
        if untouched:
            self._say(
                "torch_computed",
                f"{which} holds {untouched} elements of an input that no kernel wrote.",
                untouched,
            )
        if count and (states == mem.CONSTANT).all():
            self._say(
                "torch_computed", f"{which} was filled by torch and written by no kernel.", count
            )
        return Output(buffer.read(output), output.dtype)

    def _say(self, kind: str, message: str, lanes: int) -> None:
        self.findings.append(Finding(kind, message, lanes=lanes))


_EVENTS: Mapping[type, object] = {
    Allocate: _Replay.allocate,
    Input: _Replay.input,
    Constant: _Replay.constant,
    Fill: _Replay.fill,
    Copy: _Replay.copy,
    Foreign: _Replay.foreign,
    Peek: _Replay.peek,
    Launch: _Replay.launch,
}
