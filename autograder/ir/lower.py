"""Triton kernels to Triton IR, with no GPU, and the one place that patches Triton.

``lower`` takes the student's kernel object as it is and stops after the inliner: no other pass has
run, so dead loads and repeated loads are still there to be counted.

What the IR function's parameters are (tried on Triton 3.6.0, 3.7.1, 3.8.0 and 3.9.0): the leaves
of the Python parameters in order, depth first through tuples and named tuples, without those that
became constants. Constants are ``tl.constexpr`` parameters, ``None``, kernels passed as arguments,
and integers equal to 1 unless the kernel says ``do_not_specialize``. A host ``TensorDescriptor``
of rank r is 1 + 2r parameters: the descriptor, its r sizes (i32), its r strides (i64). We call
them ``t.0``, ``point.x``, ``d.shape.0``, ``d.stride.0``, as Triton 3.8 does.

``hooked`` is where launches go while a host function is recorded. It sees the kernel after
autotuning, heuristics and default arguments have had their say, leaves no mark on the kernel
object (no compiled kernels, no tuning results, no remembered globals), and restores what it found.
"""

from __future__ import annotations

import contextlib
import io
import operator
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from triton._C.libtriton import ir, passes
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource, CompiledKernel, make_backend
from triton.runtime.autotuner import Autotuner
from triton.runtime.interpreter import InterpretedFunction
from triton.runtime.jit import JITFunction, create_function_from_signature

from autograder.ir import explain, interpreted
from autograder.ir.surroundings import Surroundings, stamp
from autograder.records import CouldNotCheck, Kernel, Rejected

__all__ = ["Hook", "hooked", "lower"]

TARGET = GPUTarget("cuda", 89, 32)  # cc 8.9; up to here the IR is the same for any NVIDIA card
_GRID_LIMITS = (2**31 - 1, 65535, 65535)  # CUDA C++ Programming Guide, technical specifications

# Lowered kernels by (kernel object, specialisation, constants, options, globals in use). Entries
# keep what the key names by identity alive, so an identity cannot come to mean something else.
_CACHE: OrderedDict[tuple, tuple[Kernel, Any]] = OrderedDict()
_CACHE_SIZE = 256


# ---------------------------------------------------------------- lowering


def lower(kernel: Any, args: tuple, kwargs: dict) -> tuple[Kernel, tuple]:
    """One specialisation of ``kernel`` as IR, and the run-time value of every IR parameter.

    ``kernel`` is what ``@triton.jit`` made. ``args`` and ``kwargs`` are what a launch would be
    given, options such as ``num_warps`` included. Values come back as they are: tensors (anything
    with ``data_ptr`` and ``dtype``), int, float, bool, ``TensorDescriptor``.
    Raises Rejected, one sentence, if the call does not fit the kernel or the kernel does not
    compile; CouldNotCheck for kernels that are not Triton's (Gluon).
    """
    record, values, _ = _lower(kernel, args, kwargs)
    return record, values


def _lower(kernel: Any, args: tuple, kwargs: dict) -> tuple[Kernel, tuple, dict]:
    """``lower`` and the Python parameters by name, constants included."""
    if isinstance(kernel, InterpretedFunction):
        kernel = interpreted.as_jit(kernel)
    if not isinstance(kernel, JITFunction):
        raise Rejected(f"A kernel is a function under @triton.jit, not a {type(kernel).__name__}.")
    if kernel.is_gluon():
        raise CouldNotCheck(
            f"{kernel.fn.__name__} is a Gluon kernel; only Triton kernels are read."
        )
    backend = make_backend(TARGET)
    # debug=False keeps the overflow checks of debug mode out of the IR.
    kwargs = {**kwargs, "debug": False}
    try:
        binder = create_function_from_signature(kernel.signature, kernel.params, backend)
        bound, specialization, options = binder(*args, **kwargs)
        options, signature, constants, attributes = kernel._pack_args(
            backend, kwargs, bound, specialization, options
        )
    except Exception as error:
        raise Rejected(_misfit(kernel, error, args, kwargs)) from None
    leaves = [
        leaf for name, type_ in signature.items() for leaf in _leaves(name, type_, bound[name])
    ]
    surroundings = Surroundings(kernel)
    held = (kernel, constants, surroundings)
    key = (id(kernel), kernel.src, repr(signature), repr(attributes), repr(options))
    key += (stamp(constants), surroundings.stamp)
    if key not in _CACHE:
        source = ASTSource(kernel, signature, constants, attributes)
        with surroundings.untouched():
            text = _ttir(kernel, source, options, backend, surroundings)
        record = Kernel(
            name=kernel.fn.__name__,
            ir=text,
            parameters=tuple(name for name, _ in leaves),
            source=kernel.src,
            file=kernel.fn.__code__.co_filename,
            line=surroundings.def_line(kernel),
            options={name: getattr(options, name) for name in _OPTIONS},
        )
        _CACHE[key] = record, held
        if len(_CACHE) > _CACHE_SIZE:
            _CACHE.popitem(last=False)
    _CACHE.move_to_end(key)
    return _CACHE[key][0], tuple(value for _, value in leaves), bound


_OPTIONS = ("num_warps", "num_stages", "num_ctas")


def _ttir(kernel: Any, source: ASTSource, options, backend, surroundings: Surroundings) -> str:
    """TTIR text after inlining, with debug locations."""
    context = ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    # Triton prints the whole module when its verifier refuses; tl.static_print prints here too.
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), interpreted.compiling():
        try:
            module = source.make_ir(
                TARGET,
                options,
                backend.get_codegen_implementation(options),
                backend.get_module_map(),
                context,
            )
        except Exception as error:
            runtime = frozenset(n for n, type_ in source.signature.items() if type_ != "constexpr")
            name = kernel.fn.__name__
            raise Rejected(explain.explain(error, name, surroundings.locate, runtime)) from None
    print(printed.getvalue(), end="")
    manager = ir.pass_manager(context)
    passes.common.add_inliner(manager)
    manager.run(module, "inline")
    return str(module)


def _leaves(name: str, type_: Any, value: Any) -> Iterator[tuple[str, Any]]:
    """The IR parameters of one Python parameter: (name, value)."""
    if isinstance(type_, tuple):
        fields = getattr(type_, "_fields", range(len(type_)))
        for part, inner, item in zip(fields, type_, value, strict=True):
            yield from _leaves(f"{name}.{part}", inner, item)
    elif type_.startswith("tensordesc"):
        yield name, value
        for word, numbers in (("shape", value.shape), ("stride", value.strides)):
            for axis, number in enumerate(numbers):
                yield f"{name}.{word}.{axis}", int(number)
    elif type_ != "constexpr":
        yield name, value


def _misfit(kernel: JITFunction, error: Exception, args: tuple, kwargs: dict) -> str:
    """One sentence for a call that does not fit the kernel's parameters."""
    given = dict(zip(kernel.arg_names, args, strict=False))
    given |= {name: value for name, value in kwargs.items() if name in kernel.arg_names}
    return explain.misfit(error, kernel.fn.__name__, tuple(kernel.arg_names), given)


# ---------------------------------------------------------------- hooks


@dataclass
class Hook:
    """What ``hooked`` learns beyond the launches themselves."""

    configs: int = 1  # the most autotune configurations that one kernel had, after pruning
    warnings: list[str] = field(default_factory=list)


@contextmanager
def hooked(
    on_launch: Callable[[Kernel, tuple[int, int, int], tuple], None], config: int = 0
) -> Iterator[Hook]:
    """While it lasts, launches call ``on_launch(kernel, grid, values)`` and reach no GPU.

    ``config`` picks one autotune configuration by its index among those that pruning leaves
    (modulo their number); results of earlier tuning are neither read nor written. ``warmup`` and
    launches give back a stand-in for the compiled kernel whose ``n_regs`` and the like are nominal.
    Scopes nest; the innermost one gets the launches.
    """
    hook = Hook()

    def launch(kernel: Any, grid: Any, args: tuple, kwargs: dict) -> Any:
        record, values, bound = _lower(kernel, args, kwargs)
        on_launch(record, _grid(record.name, grid, bound), values)
        return _stand_in(kernel, record, kwargs)

    def run(self, *args, grid, warmup, **kwargs):
        for before in self.pre_run_hooks:
            before(*args, **kwargs)
        if warmup:
            return _stand_in(self, _lower(self, args, kwargs)[0], kwargs)
        return launch(self, grid, args, kwargs)

    def _stand_in(kernel: Any, record: Kernel, options: dict) -> Any:
        return _Compiled(record, lambda grid, args: launch(kernel, grid, args, options))

    def tuned(self, *args, **kwargs):
        return _tuned(self, args, kwargs, config, hook, stack)

    def compiled(self, grid):
        """Launches of kernels that ``triton.compile`` made."""
        fn, constants = self.src.fn, {path[0]: v for path, v in self.src.constants.items()}

        def launcher(*args, stream=None):
            if len(args) < len(fn.arg_names):  # constants may be left out
                rest = iter(args)
                args = tuple(
                    constants[i] if i in constants else next(rest) for i in range(len(fn.arg_names))
                )
            return launch(fn, grid, args, {})

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
        return tuner.fn.run(*args, **kwargs, **chosen.all_kwargs())
    finally:
        _put_back(tuner, "nargs", before)


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
