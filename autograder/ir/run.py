"""Runs a parsed kernel: all programs of a launch, in batches, each operation once a batch.

Programs that go different ways (a branch, a loop with its own trip count, an early return) are not
masked but separated: the values that a region needs are gathered for the programs that enter it,
and what comes out is put back. So an operation never sees a program that is not there.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from autograder.floats import held
from autograder.ir import blocks
from autograder.ir.access import Memory
from autograder.ir.memory import Batch, Pointer
from autograder.ir.ops import COUNTED, NO_EFFECT, TABLE, unknown, whole
from autograder.ir.ops_dot import dot
from autograder.ir.parse import Function, Op, Region
from autograder.records import CouldNotCheck, Operations, Rejected

BATCH_ELEMENTS = 1 << 19  # of the largest tensor a batch holds: bounds memory, and fits caches
MAX_PROGRAMS = 1 << 22
MAX_ITERATIONS = 1 << 17  # of one counted loop
MAX_ROUNDS = 1 << 13  # of a while loop: one that never ends is told so within seconds

ORDERS = ("forward", "reversed", "shuffled")


@dataclass
class Execution:
    """One launch: runs `function` over `grid` against `memory`. ``counts`` sums arithmetic."""

    function: Function
    grid: tuple[int, int, int]
    arguments: Sequence  # Pointer, blocks.Tile or number, one an IR parameter
    memory: Memory
    order: str = "forward"
    only: np.ndarray | None = None  # linear ids of the programs that run; None: all
    dot: int = 0
    elementwise: int = 0
    needed: frozenset[str] | None = None  # count only: the values that decide addresses
    warnings: dict[str, None] = field(default_factory=dict)  # where a card does otherwise
    depth: int = 0
    tf32: bool = False  # round the inputs of fp32 dots as `input_precision` says
    # What was added last to the start of an argument, and as int64: most arguments get the same.
    added: tuple[np.ndarray | None, np.ndarray | None] = (None, None)

    def __post_init__(self):
        self.table = {**TABLE, "tt.dot": partial(dot, tf32=True)} if self.tf32 else TABLE

    def run(self) -> Operations:
        programs = math.prod(self.grid)
        if programs > MAX_PROGRAMS:
            raise CouldNotCheck(
                f"The grid has {programs} programs; at most {MAX_PROGRAMS} are run."
            )
        order = np.arange(programs, dtype=np.int32)
        if self.only is not None:
            order = self.only.astype(np.int32)
        elif self.order == "reversed":
            order = order[::-1].copy()
        elif self.order == "shuffled":
            order = np.random.default_rng(programs).permutation(order)
        values = {}
        for (name, type_), argument in zip(self.function.parameters, self.arguments, strict=True):
            if isinstance(argument, (Pointer, blocks.Tile)):
                values[name] = argument
            else:
                values[name] = _scalar(argument, type_.dtype)
        self.memory.needed = self.needed
        self.memory.begin()
        step = 1
        if self.memory.races.locksets is None:
            if self.function.largest is None:
                self.function.largest = _largest(self.function)
            step = max(1, BATCH_ELEMENTS // self.function.largest)
        with np.errstate(all="ignore"):
            for start in range(0, len(order), step):
                batch = Batch(order[start : start + step], self.grid)
                self.region(self.function.body, dict(values), batch)
        return Operations(self.dot, self.elementwise)

    # ------------------------------------------------------------ control flow

    def region(self, region: Region, values: dict, batch: Batch) -> list | None:
        """Run a region for all programs of a batch. Returns what its terminator passes on."""
        if len(region.blocks) == 1:
            return self.straight(region.ops, values, batch)
        return self.graph(region, values, batch)

    def straight(self, ops: list[Op], values: dict, batch: Batch) -> list | None:
        for op in ops:
            name = op.name
            self._count(op, len(batch))
            if self.needed is not None and self._spare(op):
                values.update(dict.fromkeys(op.results))
                continue
            function = self.table.get(name)
            if function is not None:
                result = function(op, [values[o] for o in op.operands])
            elif name in _RETURNS:
                return [values[o] for o in op.operands]
            elif name in _SPECIAL:
                result = _SPECIAL[name](self, op, values, batch)
            elif name in NO_EFFECT:
                continue
            else:
                raise CouldNotCheck(unknown(op))
            if len(op.results) == 1:
                values[op.results[0]] = result[0] if isinstance(result, list) else result
            elif op.results:
                values.update(zip(op.results, result, strict=True))
        return None

    def _count(self, op: Op, programs: int) -> None:
        if op.name in COUNTED:
            self.elementwise += programs * math.prod(op.result_types[-1].shape)
        elif op.name == "tt.reduce":
            self.elementwise += programs * math.prod(op.types[0].shape)
        elif op.name == "tt.dot":
            (*outer, m, k), n = op.types[0].shape, op.types[1].shape[-1]
            self.dot += 2 * programs * math.prod(outer) * m * k * n
            plain = op.attribute("inputPrecision") == "tf32" and not self.tf32
            if plain and op.types[0].dtype == "float32":
                self.warnings[
                    f"tl.dot of fp32 (line {op.line}) is exact here; a card rounds its inputs to "
                    f'TF32, 10 bits of mantissa, unless it says input_precision="ieee".'
                ] = None

    def _spare(self, op: Op) -> bool:
        """Whether counting can do without this operation: no address depends on it."""
        if op.name in _RETURNS or op.name in _DECIDING:
            return False
        return not any(r in self.needed for r in op.results)

    def graph(self, region: Region, values: dict, batch: Batch) -> list | None:
        """Blocks that branch forward (an early return). Each runs once, for those that reach it.

        Triton prints blocks in topological order: structured loops are scf operations.
        """
        position = {block.label: i for i, block in enumerate(region.blocks)}
        waiting: list[list] = [[] for _ in region.blocks]
        waiting[0].append((np.arange(len(batch)), values, []))
        results: list = []
        for number, block in enumerate(region.blocks):
            for rows, known, passed in waiting[number]:  # apart: what they know may differ
                here = known if number == 0 else dict(known)
                here.update(zip(block.arguments, passed, strict=True) if number else ())
                sub = _sub_batch(batch, rows)
                last = block.ops[-1]
                out = self.straight(
                    block.ops[:-1] if last.name.startswith("cf.") else block.ops, here, sub
                )
                if last.name == "cf.br":
                    targets = [(last.successors[0], np.ones(len(sub), bool))]
                elif last.name == "cf.cond_br":
                    condition = _each(here[last.operands[0]], len(sub))
                    targets = [(last.successors[0], condition), (last.successors[1], ~condition)]
                else:
                    results.append((rows, out or []))
                    continue
                for (label, names), chosen in targets:
                    if position[label] <= number:
                        raise CouldNotCheck("The kernel's control flow jumps backwards.")
                    if chosen.any():
                        some = None if chosen.all() else np.flatnonzero(chosen)
                        kept = {k: _take(v, some) for k, v in here.items()}
                        arguments = [kept[n] for n in names]
                        waiting[position[label]].append((rows[chosen], kept, arguments))
        return _merged(results, len(batch))

    def branch(self, op: Op, values: dict, batch: Batch):
        condition = _each(values[op.operands[0]], len(batch), uniform=True)
        results = []
        for region, chosen in zip(op.regions, (condition, ~condition), strict=False):
            if chosen.all():
                return self.region(region, dict(values), batch)
            if chosen.any():
                rows = np.flatnonzero(chosen)
                known = {n: _take(values[n], rows) for n in region.free}
                results.append((rows, self.region(region, known, _sub_batch(batch, rows))))
        return _merged(results, len(batch)) if op.results else []

    def count_loop(self, op: Op, values: dict, batch: Batch):
        region = op.regions[0]
        induction, *names = region.arguments
        low, high, step = (values[o] for o in op.operands[:3])
        carried = [values[o] for o in op.operands[3:]]
        if (step <= 0).any():
            raise CouldNotCheck("A loop's step is zero or negative.")
        trips = np.maximum(-((low.astype(np.int64) - high) // step), 0)

        def enter(iteration, rows, known, carried):
            at = _take(low, rows) + _take(step, rows) * low.dtype.type(iteration)
            return {**known, induction: at, **dict(zip(names, carried, strict=True))}

        return self._loop(region, values, batch, carried, trips, enter)

    def _loop(self, region, values, batch, carried, trips, enter):
        """Iterate while programs remain; those whose trips are over leave with what they carry."""
        rows: np.ndarray | None = None  # None: all of them
        left: list = []
        known = values
        sub = batch
        iteration = 0
        while True:
            going = _take(trips, rows) > iteration
            if not going.all():
                here = np.arange(len(batch)) if rows is None else rows
                going = _each(going, len(here))
                done = np.flatnonzero(~going)
                left.append((here[done], [_take(c, done) for c in carried]))
                if not going.any():
                    return _merged(left, len(batch))
                keep = np.flatnonzero(going)
                rows = here[keep]
                carried = [_take(c, keep) for c in carried]
                known = {n: _take(values[n], rows) for n in region.free}
                sub = _sub_batch(batch, rows)
            if iteration > MAX_ITERATIONS:
                raise CouldNotCheck(f"A loop runs more than {MAX_ITERATIONS} times.")
            carried = self.region(region, enter(iteration, rows, known, carried), sub) or []
            iteration += 1

    def while_loop(self, op: Op, values: dict, batch: Batch):
        before, after = op.regions
        carried = [values[o] for o in op.operands]
        rows, sub = np.arange(len(batch)), batch
        left: list = []
        free = {n: values[n] for n in before.free | after.free}  # of the programs that go on
        for _ in range(MAX_ROUNDS):
            known = {**free, **dict(zip(before.arguments, carried, strict=True))}
            condition, *passed = self.region(before, known, sub)
            going = _each(condition, len(rows))
            if not going.all():
                done = np.flatnonzero(~going)
                left.append((rows[done], [_take(p, done) for p in passed]))
                if not going.any():
                    return _merged(left, len(batch))
                keep = np.flatnonzero(going)
                rows = rows[keep]
                passed = [_take(p, keep) for p in passed]
                free = {n: _take(value, keep) for n, value in free.items()}
                sub = _sub_batch(batch, rows)
            known = {**free, **dict(zip(after.arguments, passed, strict=True))}
            carried = self.region(after, known, sub) or []
        raise Rejected(
            f"A `while` loop (line {op.line}) did not end within {MAX_ROUNDS} rounds. "
            f"What makes its condition false?"
        )

    def call(self, op: Op, values: dict, batch: Batch):
        name = op.callee
        callee = self.function.callees.get(name)
        if callee is None:
            raise CouldNotCheck(f"The kernel calls {name}, which its IR does not hold.")
        if self.depth > 50:
            raise Rejected("The kernel's functions call each other without end.")
        self.depth += 1
        arguments = [values[o] for o in op.operands]
        names = [n for n, _ in callee.parameters]
        out = self.region(callee.body, dict(zip(names, arguments, strict=True)), batch)
        self.depth -= 1
        return out

    # ------------------------------------------------------------ reductions and scans

    def reduce(self, op: Op, values: dict, batch: Batch):
        axis = int(op.attribute("axis")) + 1
        arrays = _alike(
            [whole(values[o], t.shape) for o, t in zip(op.operands, op.types, strict=False)]
        )
        region = op.regions[0]
        body = region.ops
        fast = _FAST_REDUCTIONS.get(body[0].name) if len(body) == 2 else None
        if fast and len(arrays) == 1 and op.types[0].dtype not in _STEPWISE:
            return [fast.reduce(arrays[0], axis=axis, dtype=arrays[0].dtype)]
        # Neighbours are combined pairwise, so that order stays and every step rounds to the type.
        while (n := arrays[0].shape[axis]) > 1:
            even = [a[_along(axis, slice(0, n - n % 2, 2))] for a in arrays]
            odd = [a[_along(axis, slice(1, n, 2))] for a in arrays]
            out = self.combine(region, even, odd, values, batch)
            if n % 2:
                rest = [a[_along(axis, slice(n - 1, n))] for a in arrays]
                out = [np.concatenate([o, r], axis) for o, r in zip(out, rest, strict=True)]
            arrays = out
        return [np.take(a, 0, axis) for a in arrays]

    def scan(self, op: Op, values: dict, batch: Batch):
        axis = int(op.attribute("axis")) + 1
        backwards = op.attribute("reverse") == "true"
        arrays = _alike(
            [whole(values[o], t.shape) for o, t in zip(op.operands, op.types, strict=False)]
        )
        if backwards:
            arrays = [np.flip(a, axis) for a in arrays]
        n, shift = arrays[0].shape[axis], 1
        while shift < n:  # Hillis and Steele: log2(n) rounds, each over the whole axis
            early = [a[_along(axis, slice(0, n - shift))] for a in arrays]
            late = [a[_along(axis, slice(shift, n))] for a in arrays]
            out = self.combine(op.regions[0], early, late, values, batch)
            head = [a[_along(axis, slice(0, shift))] for a in arrays]
            arrays = [np.concatenate([h, o], axis) for h, o in zip(head, out, strict=True)]
            shift *= 2
        return [np.flip(a, axis) for a in arrays] if backwards else arrays

    def combine(self, region: Region, left, right, values: dict, batch: Batch) -> list:
        known = {n: values[n] for n in region.free}
        known.update(zip(region.arguments, [*left, *right], strict=True))
        return self.straight(region.ops, known, batch)

    def map_elementwise(self, op: Op, values: dict, batch: Batch):
        """Every element is a program of its own: the region may branch and loop."""
        region, shape = op.regions[0], op.types[0].shape
        pack = len(region.arguments) // len(op.operands)
        # With ``pack`` the region gets so many elements of each operand, neighbours in memory.
        rows = (len(batch), math.prod(shape) // pack, pack)
        columns = [
            np.broadcast_to(values[o], (len(batch), *shape)).reshape(rows) for o in op.operands
        ]
        elements = [c[..., i].reshape(-1) for c in columns for i in range(pack)]
        source = np.repeat(np.arange(len(batch)), rows[1])
        known = {n: _take(values[n], source) for n in region.free}
        known.update(zip(region.arguments, elements, strict=True))
        each = Batch(batch.programs[source], batch.grid)
        out = self.region(region, known, each)
        out = [np.broadcast_to(o, (len(each),)).reshape(rows[:2]) for o in out]
        return [
            np.stack(out[i : i + pack], axis=-1).reshape(len(batch), *shape)
            for i in range(0, len(out), pack)
        ]

    # ------------------------------------------------------------ memory

    def load(self, op: Op, values: dict, batch: Batch):
        pointer, *rest = (values[o] for o in op.operands)
        if isinstance(pointer, blocks.Tile):
            return pointer.load(self.memory, op, batch, self._checked(op), _padding(op))
        mask = rest[0] if rest else None
        other = rest[1] if len(rest) > 1 else None
        return self.memory.load(op, pointer, mask, other, op.types[0].shape, batch)

    def store(self, op: Op, values: dict, batch: Batch):
        pointer, value, *rest = (values[o] for o in op.operands)
        if isinstance(pointer, blocks.Tile):
            pointer.store(self.memory, op, batch, value, self._checked(op))
            return
        self.memory.store(op, pointer, value, rest[0] if rest else None, op.types[0].shape, batch)

    @staticmethod
    def _checked(op: Op) -> tuple[int, ...]:
        return op.integers("boundaryCheck")

    def atomic(self, op: Op, values: dict, batch: Batch):
        pointer, value, *rest = (values[o] for o in op.operands)
        kind = op.text.split(",")[0].strip()
        mask = rest[0] if rest else None
        return self.memory.atomic(op, kind, pointer, value, mask, op.result_types[-1].shape, batch)

    def atomic_load(self, op: Op, values: dict, batch: Batch):
        pointer, *rest = (values[o] for o in op.operands)
        none = np.zeros(1, held(pointer.dtype))
        mask, shape = rest[0] if rest else None, op.types[0].shape
        return self.memory.atomic(op, "load", pointer, none, mask, shape, batch)

    def atomic_store(self, op: Op, values: dict, batch: Batch):
        pointer, value, *rest = (values[o] for o in op.operands)
        mask, shape = rest[0] if rest else None, op.types[0].shape
        self.memory.atomic(op, "exch", pointer, value, mask, shape, batch)

    def atomic_poll(self, op: Op, values: dict, batch: Batch):
        """Programs do not run side by side here: what is not there already never comes."""
        pointer, expected, *timeout = (values[o] for o in op.operands)
        none, shape = np.zeros(1, held(pointer.dtype)), op.types[0].shape
        found = self.memory.atomic(op, "load", pointer, none, None, shape, batch) == expected
        if not timeout and not found.all():
            raise CouldNotCheck(
                f"tl.atomic_poll (line {op.line}) waits for what another program is still to write."
            )
        return found

    def compare_and_swap(self, op: Op, values: dict, batch: Batch):
        pointer, expected, desired = (values[o] for o in op.operands)
        return self.memory.compare_and_swap(
            op, pointer, expected, desired, op.result_types[-1].shape, batch
        )

    def make_tile(self, op: Op, values: dict, batch: Batch):
        tile = blocks.make(op, values)
        if op.name == "tt.make_tensor_descriptor" and not tile.aligned:
            self.warnings[
                f"The tensor descriptor (line {op.line}) has a row stride that is no multiple of "
                f"16 bytes: cards of compute capability 9.0 and up need that, an RTX 4080 does not."
            ] = None
        return tile

    def advance(self, op: Op, values: dict, batch: Batch):
        return values[op.operands[0]].advanced([values[o] for o in op.operands[1:]])

    def descriptor_load(self, op: Op, values: dict, batch: Batch):
        tile = values[op.operands[0]].at([values[o] for o in op.operands[1:]])
        shape = op.result_types[-1].shape
        every = tuple(range(len(tile.block)))
        value = tile.load(self.memory, op, batch, every, tile.padding)
        return whole(value, tile.block).reshape(value.shape[0], *shape)

    def descriptor_store(self, op: Op, values: dict, batch: Batch):
        tile, value = values[op.operands[0]], values[op.operands[-1]]
        if not op.text.lstrip().startswith(op.operands[0]) or "[" not in op.text:
            raise CouldNotCheck(f"The IR interpreter cannot read {op.name}.")
        tile = tile.at([values[o] for o in op.operands[1:-1]])
        shape = op.types[-1].shape
        value = whole(value, shape).reshape(value.shape[0], *tile.block)
        tile.store(self.memory, op, batch, value, tuple(range(len(tile.block))))

    def descriptor_gather(self, op: Op, values: dict, batch: Batch):
        tile, rows, column = (values[o] for o in op.operands)
        shape = op.result_types[-1].shape
        pointer, mask = tile.rows(rows, column, shape)
        return self.memory.load(op, pointer, mask, 0, shape, batch)

    def descriptor_scatter(self, op: Op, values: dict, batch: Batch):
        tile, rows, column, value = (values[o] for o in op.operands)
        shape = op.types[-1].shape
        pointer, mask = tile.rows(rows, column, shape)
        self.memory.store(op, pointer, value, mask, shape, batch)

    def descriptor_reduce(self, op: Op, values: dict, batch: Batch):
        kind = op.text.split(",")[0].strip()
        tile = values[op.operands[0]].at([values[o] for o in op.operands[1:-1]])
        pointer, mask = tile.lanes(tuple(range(len(tile.block))))
        value = whole(values[op.operands[-1]], op.types[-1].shape)
        value = value.reshape(value.shape[0], *tile.block)
        kind = {"add": "fadd"}.get(kind, kind)
        self.memory.atomic(op, kind, pointer, value, mask, tile.block, batch)

    # ------------------------------------------------------------ the rest

    def program_id(self, op: Op, values: dict, batch: Batch):
        x, y, _ = self.grid
        axis = "xyz".index(op.text.strip()[0])
        below = (1, x, x * y)[axis]
        return (batch.programs // below % self.grid[axis]).astype(np.int32)

    def program_count(self, op: Op, values: dict, batch: Batch):
        return np.array([self.grid["xyz".index(op.text.strip()[0])]], np.int32)

    def add_pointer(self, op: Op, values: dict, batch: Batch):
        pointer, elements = (values[o] for o in op.operands)
        start = pointer.offset.size == 1 and not pointer.offset.any()
        if not start or pointer.offset.ndim != elements.ndim:
            return pointer.moved(elements)
        if self.added[0] is not elements:
            self.added = elements, elements.astype(np.int64)
        return Pointer(pointer.window, self.added[1], pointer.dtype)

    def pointer_to_integer(self, op: Op, values: dict, batch: Batch):
        return values[op.operands[0]].address()

    def integer_to_pointer(self, op: Op, values: dict, batch: Batch):
        return self.memory.found(
            Pointer.from_address(values[op.operands[0]], op.result_types[-1].dtype)
        )


_RETURNS = frozenset(
    {
        "scf.yield",
        "scf.condition",
        "tt.return",
        "tt.reduce.return",
        "tt.scan.return",
        "tt.map_elementwise.return",
    }
)
# Control flow and memory: they happen whether or not their results are needed.
_DECIDING = frozenset(
    {
        "scf.for",
        "scf.while",
        "scf.if",
        "tt.call",
        "tt.load",
        "tt.store",
        "tt.atomic_rmw",
        "tt.atomic_cas",
        "tt.atomic_load",
        "tt.atomic_store",
        "tt.atomic_poll",
        "tt.descriptor_load",
        "tt.descriptor_store",
        "tt.descriptor_reduce",
        "tt.descriptor_gather",
        "tt.descriptor_scatter",
    }
)
_SPECIAL = {
    "scf.for": Execution.count_loop,
    "scf.while": Execution.while_loop,
    "scf.if": Execution.branch,
    "tt.call": Execution.call,
    "tt.reduce": Execution.reduce,
    "tt.scan": Execution.scan,
    "tt.map_elementwise": Execution.map_elementwise,
    "tt.load": Execution.load,
    "tt.store": Execution.store,
    "tt.atomic_rmw": Execution.atomic,
    "tt.atomic_cas": Execution.compare_and_swap,
    "tt.atomic_load": Execution.atomic_load,
    "tt.atomic_store": Execution.atomic_store,
    "tt.atomic_poll": Execution.atomic_poll,
    "tt.make_tensor_ptr": Execution.make_tile,
    "tt.make_tensor_descriptor": Execution.make_tile,
    "tt.advance": Execution.advance,
    "tt.descriptor_load": Execution.descriptor_load,
    "tt.descriptor_store": Execution.descriptor_store,
    "tt.descriptor_reduce": Execution.descriptor_reduce,
    "tt.descriptor_gather": Execution.descriptor_gather,
    "tt.descriptor_scatter": Execution.descriptor_scatter,
    "tt.get_program_id": Execution.program_id,
    "tt.get_num_programs": Execution.program_count,
    "tt.addptr": Execution.add_pointer,
    "tt.ptr_to_int": Execution.pointer_to_integer,
    "tt.int_to_ptr": Execution.integer_to_pointer,
}
# Types whose every step rounds, or whose sums are no NumPy sums (truth values).
_STEPWISE = frozenset({"float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "bool"})
_FAST_REDUCTIONS = {
    "arith.addf": np.add,
    "arith.addi": np.add,
    "arith.mulf": np.multiply,
    "arith.maxnumf": np.fmax,
    "arith.minnumf": np.fmin,
    "arith.maximumf": np.maximum,
    "arith.minimumf": np.minimum,
    "arith.maxsi": np.maximum,
    "arith.minsi": np.minimum,
    "arith.xori": np.bitwise_xor,
    "arith.ori": np.bitwise_or,
    "arith.andi": np.bitwise_and,
}


# ---------------------------------------------------------------- values of some programs


def _scalar(value, dtype: str) -> np.ndarray:
    kind = held(dtype)
    if kind.kind == "i":  # the card keeps the low bits
        value = int(value) & ((1 << 8 * kind.itemsize) - 1)
        return np.array([value], np.dtype(f"u{kind.itemsize}")).view(kind)
    return np.array([value], kind)


def _take(value, rows):
    """A value for some programs of a batch; uniform ones stay as they are, as do those that
    counting leaves out (None)."""
    if rows is None or value is None:
        return value
    if isinstance(value, np.ndarray):
        return value if value.shape[0] == 1 else value[rows]
    return value.reshaped(lambda a: a if a.shape[0] == 1 else a[rows])


def _each(condition: np.ndarray, count: int, uniform: bool = False) -> np.ndarray:
    """A scalar condition for every program (or, ``uniform``, once where all agree)."""
    if uniform and condition.shape[0] == 1:
        return condition
    return np.broadcast_to(condition, (count,))


def _sub_batch(batch: Batch, rows: np.ndarray) -> Batch:
    return batch if len(rows) == len(batch) else Batch(batch.programs[rows], batch.grid)


def _merged(parts: list, count: int) -> list:
    """Put the results of disjoint groups of programs together again."""
    if not parts:
        return []
    if len(parts) == 1:
        return parts[0][1]
    return [
        _put_together([rows for rows, _ in parts], list(column), count)
        for column in zip(*(values for _, values in parts), strict=True)
    ]


def _put_together(rows: list, values: list, count: int):
    first = values[0]
    if first is None:
        return None
    if isinstance(first, np.ndarray):
        shape = np.broadcast_shapes(*(v.shape[1:] for v in values))
        out = np.empty((count, *shape), first.dtype)
        for where, value in zip(rows, values, strict=True):
            out[where] = value
        return out
    return first.merged(rows, values, lambda arrays: _put_together(rows, arrays, count))


def _alike(arrays: list) -> list:
    count = max(len(a) for a in arrays)
    return [np.broadcast_to(a, (count, *a.shape[1:])) for a in arrays]


def _along(axis: int, part: slice) -> tuple:
    return (slice(None),) * axis + (part,)


def _padding(op: Op) -> str | None:
    return {"1": "zero", "2": "nan"}.get(op.attribute("padding", "0"))


def _largest(function: Function) -> int:
    """Elements of the largest tensor that a program holds."""

    def sizes(region: Region):
        for block in region.blocks:
            for op in block.ops:
                yield from (math.prod(t.shape) for t in (*op.types, *op.result_types))
                for inner in op.regions:
                    yield from sizes(inner)

    return max(
        [1, *sizes(function.body), *(s for f in function.callees.values() for s in sizes(f.body))]
    )
