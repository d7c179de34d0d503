"""Runs a trace on inputs: NumPy and the IR interpreter, no line of the student's Python.

Nothing that a trace claims is believed: geometry is checked against buffers, totals are capped, and
what counts is what comes out. Buffers arrive poisoned; every cell remembers who wrote it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from autograder.floats import ITEMSIZE, is_float, rounded
from autograder.ir import memory as mem
from autograder.ir.memory import Buffer
from autograder.records import (
    COPIED_INPUT,
    TORCH_COPY,
    WHOLE_ROWS,
    Allocate,
    Constant,
    Copy,
    CouldNotCheck,
    Fill,
    Finding,
    Foreign,
    Input,
    Launch,
    Output,
    Peek,
    Rejected,
    Run,
    Trace,
    Traffic,
    View,
)
from autograder.trace.launches import MAX_LANES, Launches, bound_views, parsed

MAX_BYTES = 1 << 30  # of all buffers together
LEAST = 1 << 14  # lanes that one step of the host costs, which is about its time
MAX_COUNTED = 1 << 34  # where they are only counted, and so never touched


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
    tf32: bool = False,
    budget: int = MAX_LANES,
    only: np.ndarray | None = None,
    watch: bool = False,
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
    ``only``: linear ids of the programs that run, of every launch (None: all); outputs then say
    which of their elements a kernel wrote, and nothing is said of the others.
    ``watch``: remember which elements of inputs are loaded, for ``Run.unread``; it takes a tenth
    longer. ``budget``: lanes that may touch memory; more raise Rejected, kind "traffic".
    ``tf32``: round the inputs of fp32 dots as a card does where their `input_precision` asks for
    it; without, they are multiplied exactly.
    Raises CouldNotCheck for what the interpreter does not know.
    """
    return _Replay(
        trace,
        inputs,
        gradients,
        order=order,
        poison=poison,
        poisoned=poisoned,
        keep_accesses=keep_accesses,
        count_only=count_only,
        budget=budget,
        keep_touches=keep_touches,
        tf32=tf32,
        only=only,
        watch=watch,
    ).run()


class _Replay(Launches):
    def __init__(self, trace: Trace, inputs: Sequence, gradients: Sequence, **options):
        super().__init__(**options)
        self.trace = trace
        self.given = {i: a for i, a in enumerate(inputs)} | {
            -1 - i: a for i, a in enumerate(gradients)
        }
        self.before: dict[int, np.ndarray] = {}  # the bytes of inputs when they arrived
        self.homes = {o.buffer: ITEMSIZE[o.dtype] for o in trace.outputs if isinstance(o, View)}
        self.warnings = dict.fromkeys(trace.warnings)

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
        return self.result(tuple(o for o in outputs if o is not None))

    def _units(self) -> dict[int, int]:
        """The cell size of every buffer: its smallest element, or smaller where a kernel casts."""
        units: dict[int, int] = {}

        def see(view: View, limit: int = 8) -> None:
            size = min(ITEMSIZE[view.dtype], limit)
            units[view.buffer] = min(units.get(view.buffer, 8), size)

        for event in self.trace.events:
            if isinstance(event, Launch):
                kernel = self._kernel(event)
                for _, view in bound_views(kernel, event):
                    see(view, parsed(kernel.ir)[2])
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
        buffer = self.buffer(event.view)
        self.inputs[event.buffer] = event
        self.homes[event.buffer] = ITEMSIZE[event.view.dtype]
        buffer.write(event.view, values)
        self.before[event.buffer] = buffer.data.copy()
        buffer.mark(event.view, mem.INPUT)
        if self.watch:
            buffer.watch()

    def constant(self, event: Constant) -> None:
        if event.buffer not in self.buffers:
            raise CouldNotCheck("The trace fills a buffer that it never made.")
        buffer = self.buffers[event.buffer]
        raw = np.frombuffer(event.data, np.uint8)[: buffer.nbytes]
        buffer.data[: len(raw)] = raw
        buffer.state[: -(-len(raw) // buffer.unit)] = mem.CONSTANT

    def _charge(self, *views: View) -> None:
        """What the host moves comes out of the same budget as the lanes of kernels."""
        self.budget -= max(LEAST, sum(math.prod(view.shape) for view in views))
        if self.budget < 0:
            said = "The host function fills and copies so much that the check stopped counting."
            raise Rejected(said, "traffic")

    def fill(self, event: Fill) -> None:
        self._charge(event.view)
        buffer = self.buffer(event.view)
        value = np.asarray(event.value)
        if is_float(event.view.dtype):
            value = rounded(value.astype(np.float64), event.view.dtype)
        buffer.write(event.view, value)
        buffer.mark(event.view, mem.CONSTANT)

    def copy(self, event: Copy) -> None:
        source, destination = event.source, event.destination
        if source.shape != destination.shape:
            raise CouldNotCheck("The trace copies between different shapes.")
        self._charge(source, destination)
        old, new = self.buffer(source), self.buffer(destination)
        values, states = old.read(source), old.states(source)
        if old.seen is not None:
            old.seen[:] = True  # whoever loads the copy has it from there
        with np.errstate(all="ignore"):
            values = rounded(values, destination.dtype)
        new.write(destination, values)
        new.mark(destination, states)
        if old.foreign:
            new.foreign += [f for f in old.foreign if f not in new.foreign]
        n = math.prod(source.shape)
        name = COPIED_INPUT if source.buffer in self.inputs else TORCH_COPY
        self.count(Traffic(name, ITEMSIZE[source.dtype], n, n))

    def foreign(self, event: Foreign) -> None:
        self._charge(*event.outputs)
        for view in event.outputs:
            buffer = self.buffer(view)
            buffer.write(view, np.asarray(np.nan if is_float(view.dtype) else 1))
            buffer.mark(view, mem.FOREIGN)
            buffer.foreign.append(f"{event.operation} at line {event.line}")

    def peek(self, event: Peek) -> None:
        pass  # reading a dummy's value gains nothing

    def launched(self, event: Launch) -> None:
        self.launch(self._kernel(event), event)

    # ------------------------------------------------------------ what comes back

    def _compare_inputs(self) -> None:
        """Inputs belong to the caller: neither a kernel nor torch may leave other numbers there."""
        for number, data in self.before.items():
            buffer, view = self.buffers[number], self.inputs[number].view
            if np.array_equal(buffer.data, data):
                continue
            now = buffer.read(view)
            before = Buffer(number, buffer.nbytes, buffer.unit, data=data).read(view)
            if not np.array_equal(now, before, equal_nan=before.dtype.kind == "f"):
                name = f"argument {self.inputs[number].index}"
                if not self.changed:
                    self.changed[name] = None

    def _output(self, number: int, output: View | str) -> Output | None:
        if isinstance(output, str):
            self.findings.append(Finding("interface", output))
            return None
        buffer = self.buffer(output)
        states = buffer.states(output)
        written = states == mem.KERNEL
        if self.only is not None:
            return Output(buffer.read(output), output.dtype, written)
        if written.all():
            return Output(buffer.read(output), output.dtype)
        which = "The output" if len(self.trace.outputs) == 1 else f"Output {number}"
        count = states.size
        unwritten = int((states == mem.UNINITIALISED).sum())
        foreign = int((states == mem.FOREIGN).sum())
        untouched = int((states == mem.INPUT).sum())
        if unwritten:
            missing = _missing(states == mem.UNINITIALISED)
            self._say(
                "unwritten",
                f"{which}: no program wrote {unwritten} of its {count} elements, {missing}.",
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
            self._untouched(which, output, count)
        return Output(buffer.read(output), output.dtype)

    def _untouched(self, which: str, output: View, count: int) -> None:
        """What torch filled is torch's work, unless a kernel got it and then wrote nothing."""
        given = [
            event
            for event in self.trace.events
            if isinstance(event, Launch)
            and any(v.buffer == output.buffer for _, v in bound_views(self._kernel(event), event))
        ]
        if not given:
            said = f"{which} was filled by torch and written by no kernel."
            self._say("torch_computed", said, count)
            return
        empty = [event for event in given if not math.prod(event.grid)]
        said = f"{which}: no program wrote any of its {count} elements"
        if len(empty) == len(given):
            name, grid = self._kernel(empty[0]).name, empty[0].grid
            said += f"; {name} was launched on a grid of {' × '.join(map(str, grid))} programs"
        self._say("unwritten", f"{said}. They are as torch filled them.", count)

    def _say(self, kind: str, message: str, lanes: int) -> None:
        self.findings.append(Finding(kind, message, lanes=lanes))


def _missing(unwritten: np.ndarray) -> str:
    """``the first at [0, 1024]``, or ``every row from 1391 on``, where some come before."""
    first = np.argwhere(unwritten)[0]
    row = int(first[0]) if len(first) > 1 else 0
    if row and not first[1:].any() and unwritten[row:].all():
        return f"{WHOLE_ROWS} {row} on"
    return f"the first at [{', '.join(map(str, first))}]"


_EVENTS: Mapping[type, object] = {
    Allocate: _Replay.allocate,
    Input: _Replay.input,
    Constant: _Replay.constant,
    Fill: _Replay.fill,
    Copy: _Replay.copy,
    Foreign: _Replay.foreign,
    Peek: _Replay.peek,
    Launch: _Replay.launched,
}
