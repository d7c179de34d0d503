"""Where launches go while a host function is recorded: the one place that patches Triton.

``hooked`` sees a kernel after autotuning, heuristics and default arguments have had their say. It
leaves no mark on the kernel object (no compiled kernels, no tuning results, no remembered globals),
restores what it found, also after an error, and nests.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import lru_cache
from types import SimpleNamespace
from typing import Any

from triton.compiler import CompiledKernel
from triton.runtime.autotuner import Autotuner
from triton.runtime.interpreter import InterpretedFunction
from triton.runtime.jit import JITFunction

from autograder.ir.lower import bind
from autograder.ir.parse import parse
from autograder.ir.reach import may_read, may_write
from autograder.records import CouldNotCheck, Kernel, Rejected

__all__ = ["Hook", "hooked"]

_GRID_LIMITS = (2**31 - 1, 65535, 65535)  # CUDA C++ Programming Guide, technical specifications

_INTERPRETER = (
    "TRITON_INTERPRET=1 was set when this kernel was made: the check reads it all the same, but in "
    "this process Triton runs it in its own interpreter, which is slow and sees no faults."
)


@dataclass
class Hook:
    """What ``hooked`` learns beyond the launches themselves.

    The methods are its own. They are no closures in ``hooked``, which would hold each other, and
    with each other all tensors of a recording until the garbage collector comes.
    """

    on_launch: Callable[[Kernel, tuple[int, int, int], tuple], None]
    looking: Callable
    configs: int = 1  # the most autotune configurations that one kernel had, after pruning
    warnings: list[str] = field(default_factory=list)
    launched: Kernel | None = None  # the last one

    def launch(self, kernel: Any, grid: Any, args: tuple, kwargs: dict) -> Any:
        if isinstance(kernel, InterpretedFunction) and _INTERPRETER not in self.warnings:
            self.warnings.append(_INTERPRETER)
        record, values, bound = bind(kernel, args, kwargs, self.looking)
        self.launched = record
        self.on_launch(record, _grid(record.name, grid, bound), values)
        return self.compiled_as(kernel, record, bound, kwargs)

    def warmup(self, kernel: Any, args: tuple, kwargs: dict) -> Any:
        record, _, bound = bind(kernel, args, kwargs, self.looking)
        return self.compiled_as(kernel, record, bound, kwargs)

    def compiled_as(self, kernel: Any, record: Kernel, bound: dict, kwargs: dict) -> Any:
        options = {name: value for name, value in kwargs.items() if name not in bound}
        constants = {i: v for i, (n, v) in enumerate(bound.items()) if n not in record.parameters}

        def again(grid: Any, args: tuple) -> Any:
            return self.launch(kernel, grid, _filled(args, constants, len(bound)), options)

        return _Compiled(record, again)


@contextmanager
def hooked(
    on_launch: Callable[[Kernel, tuple[int, int, int], tuple], None],
    config: int = 0,
    looking: Callable = nullcontext,
) -> Iterator[Hook]:
    """While it lasts, launches call ``on_launch(kernel, grid, values)`` and reach no GPU.

    ``config`` picks one autotune configuration by its index among those that pruning leaves
    (modulo their number); results of earlier tuning are neither read nor written. ``warmup`` and
    launches give back a stand-in for the compiled kernel whose ``n_regs`` and the like are nominal.
    ``looking`` as for ``bind``. Scopes nest; the innermost one gets the launches.
    """
    hook = Hook(on_launch, looking)

    def run(self, *args, grid, warmup=False, **kwargs):
        for before in self.pre_run_hooks:
            before(*args, **kwargs)
        if warmup:
            return hook.warmup(self, args, kwargs)
        return hook.launch(self, grid, args, kwargs)

    def tuned(self, *args, **kwargs):
        return _tuned(self, args, kwargs, config, hook, stack)

    def compiled(self, grid):
        """A launch of a kernel that the host code made with ``triton.compile``."""
        kernel, constants = self.src.fn, {path[0]: v for path, v in self.src.constants.items()}

        def launcher(*args, stream=None):
            return hook.launch(kernel, grid, _filled(args, constants, len(kernel.arg_names)), {})

        return launcher

    with ExitStack() as stack:
        for owner, name, replacement in (
            (JITFunction, "run", run),
            (InterpretedFunction, "run", run),
            (Autotuner, "run", tuned),
            (CompiledKernel, "__getitem__", compiled),
        ):
            stack.callback(setattr, owner, name, owner.__dict__[name])
            setattr(owner, name, replacement)
        yield hook


def _filled(args: tuple, constants: dict[int, Any], count: int) -> tuple:
    """Arguments by place, with the constants that a launch of a compiled kernel may leave out."""
    if len(args) >= count:
        return args
    rest = iter(args)
    return tuple(constants[i] if i in constants else next(rest, None) for i in range(count))


def _tuned(tuner: Autotuner, args: tuple, kwargs: dict, index: int, hook: Hook, stack: ExitStack):
    """``Autotuner.run`` with the choice made by ``index`` instead of by a clock."""
    before = {name: vars(tuner)[name] for name in ("nargs", "best_config") if name in vars(tuner)}
    tuner.nargs = dict(zip(tuner.arg_names, args, strict=False))
    try:
        configs = tuner.configs
        if len(configs) > 1:
            configs = tuner.prune_configs(kwargs)
        hook.configs = max(hook.configs, len(configs))
        chosen = configs[index % len(configs)]
        twice = kwargs.keys() & chosen.kwargs.keys()
        if twice:
            raise Rejected(
                f"{tuner.base_fn.__name__} is launched with {' and '.join(sorted(twice))}, which "
                "autotuning chooses: leave them out of the launch."
            )
        every = {**tuner.nargs, **kwargs, **chosen.all_kwargs()}
        if len(tuner.configs) > 1:
            # What Triton does between tuning and the launch that counts: zero reset_to_zero.
            tuner.pre_hook(every, reset_only=True)
            if tuner.reset_to_zero:
                names = ", ".join(tuner.reset_to_zero)
                hook.warnings.append(
                    f"reset_to_zero of {tuner.base_fn.__name__} zeroes {names} while Triton tunes, "
                    "and not in later launches: a kernel that needs zeros must be given zeros."
                )
        if chosen.pre_hook is not None:
            chosen.pre_hook(every)
        # Readable in the host function after the launch, gone when the recording ends.
        stack.callback(_put_back, tuner, "best_config", before)
        tuner.best_config = chosen
        result = tuner.fn.run(*args, **kwargs, **chosen.all_kwargs())
        if len(configs) > 1 and hook.launched is not None:
            safe = {*tuner.restore_value, *tuner.reset_to_zero}
            hook.warnings += [
                f"{hook.launched.name} changes `{name}` in place, and autotuning runs it many "
                "times on the same tensor: name it in restore_value (or reset_to_zero)."
                for name in _in_place(hook.launched.ir, hook.launched.parameters)
                if name.split(".")[0] not in safe
            ]
        return result
    finally:
        _put_back(tuner, "nargs", before)


@lru_cache(maxsize=64)
def _in_place(ir: str, parameters: tuple[str, ...]) -> tuple[str, ...]:
    """The parameters that a kernel both reads and writes, as far as its IR tells."""
    try:
        function = parse(ir)
    except CouldNotCheck:  # the judge meets the same IR and says so
        return ()
    both = (may_read(function) or frozenset()) & (may_write(function) or frozenset())
    return tuple(parameters[i] for i in sorted(both))


def _put_back(owner: Any, name: str, before: dict) -> None:
    if name in before:
        setattr(owner, name, before[name])
    else:
        vars(owner).pop(name, None)


def _grid(name: str, grid: Any, bound: dict) -> tuple[int, int, int]:
    """The grid as Triton's launcher would read it. Raises Rejected where a card would refuse."""
    if callable(grid):
        grid = grid(dict(bound))
    if not isinstance(grid, (tuple, list)):
        raise Rejected(
            f"The grid of {name} must be a tuple, such as (97,), not {_short(grid)}: "
            f"write {name}[(programs,)](...)."
        )
    if not 1 <= len(grid) <= 3:
        raise Rejected(f"The grid of {name} has {len(grid)} axes; there can be one, two or three.")
    sizes = []
    for axis, size in enumerate(grid):
        try:
            sizes.append(operator.index(size))
        except TypeError:
            raise Rejected(
                f"The grid of {name} holds {_short(size)} on axis {axis}; it needs whole numbers: "
                "triton.cdiv(n, BLOCK_SIZE) rounds up."
            ) from None
    for axis, (size, limit) in enumerate(zip(sizes, _GRID_LIMITS, strict=False)):
        if not 0 <= size <= limit:
            raise Rejected(
                f"The grid of {name} has {size} programs on axis {axis}; "
                f"a card takes 0 to {limit} there."
            )
    return tuple(sizes + [1] * (3 - len(sizes)))


def _short(value: Any) -> str:
    text = repr(value)
    return f"{text if len(text) <= 40 else '…'} ({type(value).__name__})"


class _Compiled:
    """Stands in for a compiled kernel: nominal figures, and launches that are recorded.

    Host code sizes persistent grids by ``n_regs`` and ``metadata.shared``; the true figures need
    the compiler, so they are those of a small kernel (32 registers, 1 KB of shared memory).
    """

    n_regs = 32
    n_spills = 0
    n_max_threads = 1024

    def __init__(self, record: Kernel, launch: Callable[[Any, tuple], Any]):
        self.name = record.name
        self.asm = {"ttir": record.ir}
        self.metadata = SimpleNamespace(shared=1024, name=record.name, **record.options)
        self._launch = launch

    def _init_handles(self) -> None:
        """Nothing to load."""

    def __getitem__(self, grid: Any) -> Callable:
        return lambda *args, stream=None: self._launch(grid, args)
