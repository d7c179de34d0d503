"""The interpreter outside the course: any Triton kernel, any host function, on CPU tensors.

``interpret(kernel)[grid](x, out, n, BLOCK=128)`` is a launch without a card, and
``with interpret() as record:`` makes one of every launch inside. Docs: docs/INTERPRETER.md.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from autograder.ir.run import ORDERS
from autograder.records import (
    Access,
    Finding,
    Kernel,
    Launch,
    Operations,
    Rejected,
    Run,
    Traffic,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Record", "interpret"]


@dataclass(repr=False)
class Record:
    """What the launches inside ``interpret`` did. It grows while they happen.

    ``launches``: (kernel, launch, run) of each, in order; the properties sum over all of them.
    Jupyter shows it as a page with a picture, everything else as text.
    """

    launches: list[tuple[Kernel, Launch, Run]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)  # of the host side: autotuning, devices

    @property
    def findings(self) -> tuple[Finding, ...]:
        """One a (kind, kernel, argument, line): what is wrong, where, in which program, how many
        lanes. Empty: nothing was found on these inputs."""
        found: dict[tuple, Finding] = {}
        for _, _, run in self.launches:
            for new in run.findings:
                key = (new.kind, new.kernel, new.argument, new.line)
                old = found.get(key)
                found[key] = new if old is None else replace(old, lanes=old.lanes + new.lanes)
        return tuple(found.values())

    @property
    def traffic(self) -> tuple[Traffic, ...]:
        """By kernel and argument, named ``kernel.argument`` where there are several kernels:
        elements loaded and stored, lanes masked off, 32-byte sectors."""
        several = len({kernel.name for kernel, _, _ in self.launches}) > 1
        found: dict[str, Traffic] = {}
        for kernel, _, run in self.launches:
            for new in run.traffic:
                name = f"{kernel.name}.{new.argument}" if several else new.argument
                old = found.get(name, Traffic(name, new.itemsize))
                found[name] = replace(
                    old,
                    loaded=old.loaded + new.loaded,
                    stored=old.stored + new.stored,
                    masked=old.masked + new.masked,
                    sectors=old.sectors + new.sectors,
                )
        return tuple(found.values())

    @property
    def operations(self) -> Operations:
        """Arithmetic: multiply-adds of ``tl.dot`` count two."""
        runs = [run for _, _, run in self.launches]
        return Operations(
            sum(r.operations.dot for r in runs), sum(r.operations.elementwise for r in runs)
        )

    @property
    def bytes(self) -> int:
        """Bytes that loads and stores asked for."""
        return sum(run.bytes for _, _, run in self.launches)

    @property
    def accesses(self) -> tuple[Access, ...]:
        """Lanes of some programs of each kernel's first launch, an operation each."""
        return tuple(a for _, _, run in self.launches for a in run.accesses)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Where a card does otherwise, or may."""
        said = [w for _, _, run in self.launches for w in run.warnings]
        return tuple(dict.fromkeys([*self.notes, *said]))

    def draw(self, argument: str | None = None, program: int | None = None) -> Figure:
        """Lanes over the cells of a tensor: of the first fault that they show, or else of the
        first access; of ``argument`` and linear ``program`` id where they are given.

        Raises Rejected where nothing was accessed.
        """
        from autograder.render.interpreted import draw

        return draw(self.findings, self.accesses, argument, program)

    def __repr__(self) -> str:
        from autograder.render.interpreted import record_text

        return record_text(self)

    def _repr_html_(self) -> str:
        from autograder.render.interpreted import record_html

        return record_html(self)


class Interpreter:
    """What ``interpret`` returns: launch it with a grid, or enter it."""

    def __init__(self, kernel: Any, order: str, config: int):
        self._kernel, self._order, self._config = kernel, order, config
        self._live: Any = None

    def __getitem__(self, grid: Any) -> Callable[..., Record]:
        if self._kernel is None:
            raise Rejected("Which kernel? A launch is interpret(kernel)[grid](...).")

        def launch(*args: Any, **kwargs: Any) -> Record:
            with self as record:
                self._kernel[grid](*args, **kwargs)
            return record

        return launch

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        raise Rejected("A launch needs a grid: interpret(kernel)[(programs,)](...).")

    def __enter__(self) -> Record:
        from autograder.trace.live import live

        if self._live is not None:
            raise Rejected("This interpreter is entered already; make another: interpret().")
        record = Record()
        self._live = live(record.launches, record.notes, self._order, self._config)
        self._live.__enter__()
        return record

    def __exit__(self, *error: Any) -> None:
        entered, self._live = self._live, None
        entered.__exit__(*error)


def interpret(kernel: Any = None, *, order: str = "forward", config: int = 0) -> Interpreter:
    """Run Triton kernels on CPU tensors, watched: bounds, races, traffic, values.

    ``record = interpret(kernel)[grid](*args, **kwargs)`` launches one kernel: ``@triton.jit``,
    autotuned or with heuristics, arguments and grid as on a card. ``with interpret() as record:``
    runs every launch inside, whatever host code makes it, and answers ``device="cuda"`` and the
    like as a card would. Results are written into the tensors; nothing touches a GPU.

    * ``order``: of programs, "forward", "reversed" or "shuffled". Results that differ show a race.
    * ``config``: which autotune configuration runs, by index.

    Raises Rejected, one sentence, for a call that no card would take or a kernel that does not
    compile, and CouldNotCheck for what the interpreter does not know (``autograder.records``).
    """
    if order not in ORDERS:
        raise Rejected(f"The order of programs is one of {_listed(ORDERS)}, not {order!r}.")
    if kernel is not None and not hasattr(kernel, "__getitem__"):
        name = getattr(kernel, "__name__", type(kernel).__name__)
        raise Rejected(
            f"interpret takes a kernel, under @triton.jit, and {name} is none. For a host "
            f"function: with interpret() as record: {name}(...)."
        )
    return Interpreter(kernel, order, config)


def _listed(words: Sequence[str]) -> str:
    return ", ".join(map(repr, words[:-1])) + f" or {words[-1]!r}"
