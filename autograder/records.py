"""The records that every room shares: frozen, few, without behaviour beyond small sums.

Rooms hand these to each other and nothing else. Arrays are NumPy arrays; a dtype is torch's name
as a string (``"float32"``, ``"bfloat16"``, ``"int64"``, ``"bool"``, ``"float8_e4m3fn"`` …).
NumPy has no bfloat16 and no fp8: such values are held in float32 arrays, already rounded.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

# What messages call a copy by torch of one of the call's inputs, in the place of an argument.
COPIED_INPUT = "(torch copy of an input)"

FINDING_KINDS = (
    "out_of_bounds",
    "uninitialised",
    "undefined_lane",
    "unwritten",
    "race",
    "traffic",
    "values",
    "torch_computed",
    "compile",
    "interface",
)

# What the sentence of an "unwritten" finding says where rows of the output are missing as a whole.
WHOLE_ROWS = "every row from"

TORCH_COPY = "(torch copy)"  # the argument of traffic that no kernel caused

ASPECTS = ("values", "kernel", "bounds", "races", "traffic", "compiles")

ASPECT_OF_KIND = {
    "out_of_bounds": "bounds",
    "uninitialised": "bounds",
    "undefined_lane": "bounds",
    "unwritten": "values",
    "race": "races",
    "traffic": "traffic",
    "values": "values",
    "torch_computed": "kernel",
    "compile": "compiles",
    "interface": "values",
}


def aspect_of(kind: str, names: Collection[str]) -> str:
    """The aspect of the grade, out of those that are scored, that a kind of finding belongs to.

    Where an exercise gives no points for whose work it is (unit 01), numbers that no kernel stored
    count as values that are not there.
    """
    aspect = ASPECT_OF_KIND[kind]
    return "values" if aspect == "kernel" and aspect not in names else aspect


class CouldNotCheck(Exception):
    """Our side met something it does not know. Never the student's failure; the message names
    it.
    """


class Rejected(Exception):
    """The student's side broke a rule of the interface. The message is one sentence for the
    student.

    ``kind`` is the finding that it becomes: "interface", or "compile" for a kernel that does not
    lower.
    """

    def __init__(self, message: str, kind: str = "interface", line: int = 0, kernel: str = ""):
        super().__init__(message)
        self.kind, self.line, self.kernel = kind, line, kernel


# ---------------------------------------------------------------- what a solution did (Trace)


@dataclass(frozen=True)
class View:
    """A strided window on a buffer. ``offset`` and ``strides`` count elements of ``dtype``."""

    buffer: int
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: str


@dataclass(frozen=True)
class Descriptor:
    """A host tensor descriptor: a view that a kernel reads and writes in blocks."""

    view: View
    block_shape: tuple[int, ...]
    padding: str = "zero"  # "zero" or "nan": what lanes outside the view read


@dataclass(frozen=True)
class Kernel:
    """One lowered specialisation of a Triton kernel.

    ``ir`` is TTIR text with debug locations; ``parameters`` are the names of the IR function's
    parameters that a launch binds, in order (constexprs are already folded in).
    ``line`` is the line of ``def`` in ``file``; IR locations count in that file.
    """

    name: str
    ir: str
    parameters: tuple[str, ...]
    source: str = ""
    file: str = ""
    line: int = 0
    options: Mapping[str, int] = field(default_factory=dict)  # num_warps, num_stages, num_ctas


@dataclass(frozen=True)
class Allocate:
    """A fresh buffer of ``nbytes``, contents undefined."""

    buffer: int
    nbytes: int


@dataclass(frozen=True)
class Input:
    """A buffer of ``nbytes`` that arrives from outside; ``index`` counts the tensor arguments.

    ``index`` −1 − k names the k-th incoming gradient of a backward pass.
    """

    buffer: int
    nbytes: int
    index: int
    view: View


@dataclass(frozen=True)
class Constant:
    """Bytes that do not depend on the inputs, from the start of ``buffer``."""

    buffer: int
    data: bytes


@dataclass(frozen=True)
class Fill:
    """``view[...] = value``."""

    view: View
    value: float | int | bool


@dataclass(frozen=True)
class Copy:
    """``destination[...] = source`` with a cast; equal shapes (source strides may be 0)."""

    destination: View
    source: View


@dataclass(frozen=True)
class Foreign:
    """Values that torch computed from the inputs; they stand in ``outputs`` and earn nothing."""

    operation: str
    outputs: tuple[View, ...]
    line: int


@dataclass(frozen=True)
class Peek:
    """The host read a value that depends on the inputs (``.item()``, ``bool(tensor)`` …)."""

    operation: str
    line: int


@dataclass(frozen=True)
class Launch:
    """One kernel launch. ``bindings`` follow ``Kernel.parameters``."""

    kernel: int
    grid: tuple[int, int, int]
    bindings: tuple[View | Descriptor | int | float | bool, ...]
    line: int = 0


Event = Allocate | Input | Constant | Fill | Copy | Foreign | Peek | Launch


@dataclass(frozen=True)
class Trace:
    """What one call of a host function did, as data. ``outputs`` holds a View or, for anything
    that is no tensor, a sentence that says what came back instead."""

    kernels: tuple[Kernel, ...]
    events: tuple[Event, ...]
    outputs: tuple[View | str, ...]
    configs: int = 1  # how many autotune configurations there are; this trace took one of them
    warnings: tuple[str, ...] = ()
    triton: str = ""


# ---------------------------------------------------------------- what came of it (Run)


@dataclass(frozen=True)
class Access:
    """What one memory operation of some programs touched, for pictures.

    ``offsets`` are elements from the start of the argument's view, shape (programs, *block);
    ``active`` marks the lanes whose mask let them through; ``inside`` those that hit the view.
    """

    kernel: str
    line: int
    argument: str
    operation: str  # "load", "store" or "atomic"
    programs: np.ndarray  # (P,) linear program ids
    offsets: np.ndarray
    active: np.ndarray
    inside: np.ndarray
    view: View
    step: int = 0  # counts the memory operations of a program, so that a player can order them


@dataclass(frozen=True)
class Touch:
    """The memory sectors that one memory operation of some programs of a launch touched.

    ``programs[i]`` touched ``sectors[ends[i - 1] : ends[i]]``, 32 bytes each, counted from the
    start of ``view``'s buffer; the elements lie between ``first[i]`` and ``last[i]``, offsets from
    the start of ``view`` (first > last: all lanes were off). A program's touches stand in the order
    of its operations. This is what a model of the L2 cache lives on.
    """

    launch: int
    operation: str  # "load", "store" or "atomic"
    view: View
    programs: np.ndarray  # (P,) linear program ids
    sectors: np.ndarray
    ends: np.ndarray  # (P,)
    first: np.ndarray  # (P,)
    last: np.ndarray  # (P,)


@dataclass(frozen=True)
class Finding:
    """One fault: what, where, how many lanes, and a sentence or two for the student."""

    kind: str
    message: str
    kernel: str = ""
    argument: str = ""
    line: int = 0
    program: tuple[int, ...] | None = None
    lanes: int = 0
    access: Access | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class Traffic:
    """What one argument's loads and stores requested, over all launches."""

    argument: str
    itemsize: int
    loaded: int = 0  # elements requested by loads (active lanes)
    stored: int = 0  # elements requested by stores and atomics
    masked: int = 0  # lanes that a mask switched off
    sectors: int = 0  # distinct 32-byte sectors, summed over memory operations and programs


@dataclass(frozen=True)
class Output:
    """One tensor that came back. ``values`` has the tensor's shape; ``written``, where only some
    programs ran, says which elements a kernel wrote."""

    values: np.ndarray
    dtype: str
    written: np.ndarray | None = None


@dataclass(frozen=True)
class Operations:
    """Arithmetic counted in the launched kernels: multiply-adds of ``tl.dot`` count two."""

    dot: int = 0
    elementwise: int = 0


@dataclass(frozen=True)
class Run:
    """One execution of a trace (or of a NumPy kernel) on one case."""

    outputs: tuple[Output, ...]
    findings: tuple[Finding, ...]
    traffic: tuple[Traffic, ...] = ()
    operations: Operations = Operations()
    accesses: tuple[Access, ...] = ()
    warnings: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()  # kernel arguments through which an input was written
    # Loads without `other` that a mask cut: (kernel, grid, argument, line, lanes, program); they
    # are a fault only if `digest` or the outputs differ between two poisons.
    undefined: tuple[tuple, ...] = ()
    digest: int = 0
    touches: tuple[Touch, ...] = ()
    # Inputs that were loaded in part: (kernel argument, mask of the elements that nobody loaded).
    unread: tuple[tuple[str, np.ndarray], ...] = ()

    def __repr__(self) -> str:
        """What a cell shows that ends in a run: the arrays would fill pages."""
        return (
            f"Run: outputs {len(self.outputs)}, findings {len(self.findings)}, numbers moved "
            f"{self.elements}. show(run) tells the findings, run.outputs[0].values are numbers."
        )

    @property
    def elements(self) -> int:
        """Elements requested by loads and stores together."""
        return sum(t.loaded + t.stored for t in self.traffic)

    @property
    def bytes(self) -> int:
        return sum((t.loaded + t.stored) * t.itemsize for t in self.traffic)


# ---------------------------------------------------------------- what is asked (Exercise)


@dataclass(frozen=True)
class Tensor:
    """An argument to be made: geometry and how to fill it.

    ``strides`` in elements (None: contiguous). ``fill`` names a distribution of
    ``exercises.inputs``: ``"normal"``, ``"uniform"``, ``"large"`` (±1e4), ``"empty"``, …
    """

    shape: tuple[int, ...]
    dtype: str = "float32"
    strides: tuple[int, ...] | None = None
    fill: str = "normal"


@dataclass(frozen=True)
class Case:
    """One row of a table: a label that may be shown, and sizes by name."""

    label: str
    sizes: Mapping[str, Any]
    hidden: bool = False
    seed: int = 0


@dataclass(frozen=True)
class ProgramOrder:
    """Asks for an order of programs that spares memory: an L2 cache that holds
    ``bytes_per_element`` times the elements of an output tile fetches at most ``slack`` times what
    it fetches for the same tiles in groups of ``group`` rows, or of as many columns, ``at_once``
    programs at a time.
    """

    group: int
    at_once: int
    bytes_per_element: int
    slack: float = 1.0


@dataclass(frozen=True)
class Clue:
    """A question that fits where one case fails and another passes; both by their labels.

    It stands in for the exercise's note on findings of ``kind``.
    """

    kind: str
    wrong: str
    right: str  # "": whatever the others do
    question: str


@dataclass(frozen=True)
class Exercise:
    """What is asked and how it is judged. Functions get NumPy float64 arrays.

    * ``names``: what a solution defines; the first is called.
    * ``arguments(case)``: the call's arguments, ``Tensor`` or plain scalars.
    * ``reference(*arguments)``: the expected outputs, float64, a tuple.
    * ``tolerance(case, arguments, expected)``: largest allowed |difference| per output,
      arrays that broadcast; derived from roundings, not tuned.
    * ``limit(case)``: most elements loads and stores may request, or None.
    * ``stores(case)``: least elements that stores and atomics write, or None: partial sums that the
      caller asked for are there.
    * ``about(arguments, outputs, expected)``: the sentence on wrong outputs that are no numbers of
      a tensor, in place of the general one.
    * ``order``: judges, where it is given, in which order programs take their tiles. A case whose
      sizes say ``counted`` is there for that: addresses are followed, values are not computed.
    * ``repairs``: where the fault shows that is to be repaired, or what hides it, as aspects, in an
      exercise that hands out a broken kernel: a case that fails one of them earns nothing.
    * ``contiguous``: the result lies in memory without gaps, whatever the inputs do.
    * ``programs(case)``: how many programs of one launch must read from the inputs, at least; or 0.
    * ``level``: the step of an assignment that is climbed in levels, e.g. ``"Boss"``.
    * ``machine``: ``"triton"`` (recorded and interpreted), ``"numpy"`` (plain Python: unit 01 and
      09.prune) or ``"quiz"``.
    * ``drive(solution, arguments)``: how an exercise in plain Python is run.
    """

    id: str
    title: str
    names: tuple[str, ...]
    cases: tuple[Case, ...]
    points: Mapping[str, float]  # by aspect
    arguments: Callable[..., tuple]
    reference: Callable[..., tuple]
    tolerance: Callable[..., tuple]
    limit: Callable[[Case], int | None] = lambda case: None
    stores: Callable[[Case], int | None] = lambda case: None
    about: Callable[..., str] | None = None
    outputs: Callable[[Case], tuple[Tensor, ...]] = lambda case: ()  # shape and dtype asked for
    results: tuple[str, ...] = ()  # what messages call the outputs, where there are several
    hints: tuple[str, ...] = ()
    limit_text: str = ""  # the closed form, e.g. "3n"
    level: str = ""
    machine: str = "triton"
    drive: Callable[..., tuple] | None = None
    backward: bool = False
    order: ProgramOrder | None = None
    repairs: tuple[str, ...] = ()
    contiguous: bool = False
    programs: Callable[[Case], int] = lambda case: 0
    compiled: Case | None = None  # the case whose blocks and dtype the compile proof grades
    notes: Mapping[str, str] = field(default_factory=dict)  # finding kind -> what to look at
    clues: tuple[Clue, ...] = ()  # the first that fits takes a note's place
    in_place: bool = False  # strided inputs are read where they lie: a copy made by torch fails

    @property
    def max_points(self) -> float:
        return float(sum(self.points.values()))

    @property
    def heading(self) -> str:
        """Title and level, as every rendering shows them."""
        return f"{self.title} · level {self.level}" if self.level else self.title


# ---------------------------------------------------------------- the result (Verdict)


@dataclass(frozen=True)
class Aspect:
    """One aspect of the grade. ``status``: pass, fail, could_not_check or not_reached."""

    name: str
    status: str
    points: float
    max_points: float
    note: str = ""


@dataclass(frozen=True)
class CaseResult:
    """How one case went; enough for a table and for figures."""

    case: Case
    status: str  # pass, fail, could_not_check
    findings: tuple[Finding, ...]
    elements: int | None = None
    limit: int | None = None
    bytes: int | None = None
    max_error: float | None = None  # largest |difference| / tolerance
    message: str = ""  # for could_not_check: what is not known
    run: Run | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class CompileFacts:
    """What the compiler said about one kernel for one card."""

    kernel: str
    card: str
    shared: int  # bytes of shared memory a block
    shared_limit: int
    registers: int
    spills: int  # bytes
    instructions: Mapping[str, int] = field(
        default_factory=dict
    )  # mma.sync, ld.global.v4, cp.async
    num_warps: int = 4
    error: str = ""  # a student's sentence when it does not compile


@dataclass(frozen=True)
class Verdict:
    """pass, fail or could_not_check, with points by aspect and the findings that explain them."""

    exercise: str
    verdict: str
    aspects: tuple[Aspect, ...]
    findings: tuple[Finding, ...]
    cases: tuple[CaseResult, ...] = ()
    compiled: tuple[CompileFacts, ...] = ()
    warnings: tuple[str, ...] = ()
    message: str = ""  # for could_not_check and interface faults: the one sentence

    @property
    def points(self) -> float:
        return round(sum(a.points for a in self.aspects), 2)

    @property
    def max_points(self) -> float:
        return float(sum(a.max_points for a in self.aspects))
