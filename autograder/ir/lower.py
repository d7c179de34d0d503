"""Triton kernels to Triton IR, with no GPU.

``lower`` takes the student's kernel object as it is and stops after the inliner: dead loads and
repeated loads are still there to be counted. (A dead load through a descriptor is not: it cannot
leave its tensor.)

What the IR function's parameters are (tried on Triton 3.6.0, 3.7.1, 3.8.0 and 3.9.0): the leaves
of the Python parameters in order, depth first through tuples and named tuples, without those that
became constants. Constants are ``tl.constexpr`` parameters, ``None``, kernels passed as arguments,
and integers equal to 1 unless the kernel says ``do_not_specialize``. A host ``TensorDescriptor``
of rank r is 1 + 2r parameters: the descriptor, its r sizes (i32), its r strides (i64). We call
them ``t.0``, ``point.x``, ``d.shape.0``, ``d.stride.0``, as Triton 3.8 does.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import cache
from typing import Any

from triton._C.libtriton import ir, passes
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource, make_backend
from triton.language.semantic import TritonSemantic
from triton.runtime.interpreter import InterpretedFunction
from triton.runtime.jit import JITFunction, create_function_from_signature

from autograder.ir import explain, interpreted
from autograder.ir.habits import returned
from autograder.ir.misfit import misfit
from autograder.ir.surroundings import Surroundings, stamp
from autograder.records import CouldNotCheck, Kernel, Rejected

__all__ = ["bind", "lower"]

TARGET = GPUTarget("cuda", 89, 32)  # cc 8.9; up to here the IR is the same for any NVIDIA card
# Lowered kernels by (kernel object, specialisation, constants, options, globals in use). Entries
# keep what the key names by identity alive, so an identity cannot come to mean something else.
_CACHE: OrderedDict[tuple, tuple[Kernel, Any]] = OrderedDict()
_CACHE_SIZE = 256
_TOLD: dict[int, tuple] = {}  # kernel's identity → (kernel, warnings given of it)


def lower(kernel: Any, args: tuple, kwargs: dict) -> tuple[Kernel, tuple]:
    """One specialisation of ``kernel`` as IR, and the run-time value of every IR parameter.

    ``kernel`` is what ``@triton.jit`` made. ``args`` and ``kwargs`` are what a launch would be
    given, options such as ``num_warps`` included. Values come back as they are: tensors (anything
    with ``data_ptr`` and ``dtype``), int, float, bool, ``TensorDescriptor``.
    Raises Rejected, one sentence, if the call does not fit the kernel or the kernel does not
    compile; CouldNotCheck for kernels that are not Triton's (Gluon).
    """
    record, values, _ = bind(kernel, args, kwargs)
    return record, values


def bind(
    kernel: Any, args: tuple, kwargs: dict, looking: Callable = nullcontext
) -> tuple[Kernel, tuple, dict]:
    """``lower`` and the Python parameters by name, constants included.

    ``looking()`` is a context in which Triton asks the arguments for dtypes and addresses.
    """
    if isinstance(kernel, InterpretedFunction):
        kernel = interpreted.as_jit(kernel)
    if not isinstance(kernel, JITFunction):
        raise Rejected(f"A kernel is a function under @triton.jit, not a {type(kernel).__name__}.")
    if kernel.is_gluon():
        raise CouldNotCheck(
            f"{kernel.fn.__name__} is a Gluon kernel; only Triton kernels are read."
        )
    backend = _backend()
    # debug=False keeps the overflow checks of debug mode out of the IR.
    kwargs = {**kwargs, "debug": False}
    try:
        with looking():
            bound, specialization, options = _binder(kernel)(*args, **kwargs)
        options, signature, constants, attributes = kernel._pack_args(
            backend, kwargs, bound, specialization, options
        )
    except Exception as error:
        raise _misfit(kernel, error, args, kwargs) from None
    leaves = [
        leaf for name, type_ in signature.items() for leaf in _leaves(name, type_, bound[name])
    ]
    surroundings = Surroundings(kernel)
    key = (id(kernel), kernel.src, repr(signature), repr(options))
    key += (stamp(constants), surroundings.stamp)

    def lowered(attributes: dict) -> Kernel:
        source = ASTSource(kernel, signature, constants, attributes)
        with surroundings.untouched():
            text = _ttir(kernel, source, options, backend, surroundings)
        return Kernel(
            name=kernel.fn.__name__,
            ir=text,
            parameters=tuple(name for name, _ in leaves),
            source=kernel.src,
            file=kernel.fn.__code__.co_filename,
            line=surroundings.def_line(kernel),
            options={name: getattr(options, name) for name in _OPTIONS},
        )

    def kept(key: tuple, make: Callable[[], Kernel]) -> Kernel:
        if key not in _CACHE:
            _CACHE[key] = make(), (kernel, constants, surroundings)
            if len(_CACHE) > _CACHE_SIZE:
                _CACHE.popitem(last=False)
        _CACHE.move_to_end(key)
        return _CACHE[key][0]

    def attributed() -> Kernel:
        plain = kept(key, lambda: lowered({}))
        return _divisible(plain, attributes, kernel.arg_names) or lowered(attributes)

    record = kept((*key, repr(attributes)), attributed)
    return record, tuple(value for _, value in leaves), bound


def _divisible(plain: Kernel, attributes: dict, names: list[str]) -> Kernel | None:
    """``plain``, lowered without attributes, with those that Triton would have given the function's
    parameters. They stand in its head and change nothing else. None if they are not just the one
    that says of a number or an address that 16 divides it.
    """
    head = _HEAD.search(plain.ir)
    parameters = head[0].split(" loc(") if head else ()
    if len(parameters) != len(plain.parameters) + 1:
        return None
    for path, words in attributes.items():
        if words and (len(path) > 1 or words != [["tt.divisibility", 16]]):
            return None
        if words:
            place = plain.parameters.index(names[path[0]])
            parameters[place] += " {tt.divisibility = 16 : i32}"
    text = plain.ir[: head.start()] + " loc(".join(parameters) + plain.ir[head.end() :]
    return replace(plain, ir=text)


_HEAD = re.compile(r"^  tt\.func public @.*$", re.MULTILINE)
_OPTIONS = ("num_warps", "num_stages", "num_ctas")
_backend = cache(lambda: make_backend(TARGET))
_BINDERS: dict[int, tuple] = {}  # by identity, as in Triton: (kernel, its binder)


def _binder(kernel: JITFunction) -> Callable:
    if id(kernel) not in _BINDERS:
        if len(_BINDERS) >= _CACHE_SIZE:
            _BINDERS.clear()
        made = create_function_from_signature(kernel.signature, kernel.params, _backend())
        _BINDERS[id(kernel)] = kernel, made
    return _BINDERS[id(kernel)][1]


_contexts: dict[int, list] = {}  # process → the uses that are left of its MLIR context
_unused: list = []  # a context that nothing was lowered in: it has no threads yet


def _context():
    """An MLIR context that knows Triton's dialects: loading them takes a quarter of a lowering.
    Never one that a parent lowered in, whose threads a fork does not have, and a new one now and
    then, because types and locations pile up in it."""
    uses = _contexts.setdefault(os.getpid(), [])
    if not uses:
        uses.extend([_unused.pop() if _unused else _loaded()] * 64)
    return uses.pop()


def _loaded():
    context = ir.context()
    ir.load_dialects(context)
    _backend().load_dialects(context)
    return context


def ready_to_fork() -> None:
    """For a process that is going to fork: ends the threads that lowering began, and makes the
    context that every fork begins with."""
    _contexts.clear()
    _unused[:] = [_loaded()]


def _ttir(kernel: Any, source: ASTSource, options, backend, surroundings: Surroundings) -> str:
    """TTIR text after inlining, with debug locations."""
    context = _context()
    # Triton prints the whole module when its verifier refuses; tl.static_print prints here too.
    printed = io.StringIO()
    quiet = contextlib.redirect_stdout(printed)
    with quiet, interpreted.compiling(), _keeping_loads(), _warning_once(kernel):
        try:
            module = source.make_ir(
                TARGET,
                options,
                backend.get_codegen_implementation(options),
                backend.get_module_map(),
                context,
            )
        except Exception as error:
            runtime = {n: str(t) for n, t in source.signature.items() if t != "constexpr"}
            name = kernel.fn.__name__
            raise explain.explain(error, name, surroundings.locate, runtime) from None
    print(printed.getvalue(), end="")
    manager = ir.pass_manager(context)
    passes.common.add_inliner(manager)
    manager.run(module, "inline")
    text = str(module)
    refused = returned(kernel.fn.__name__, kernel.src, surroundings.def_line(kernel), text)
    if refused is not None:
        raise refused
    return _VOLATILE.sub("", text)


# The inliner also simplifies, and would drop a load whose value nobody uses: an out-of-bounds read
# that is there in the source. A volatile load stays.
_VOLATILE = re.compile(r" \{isVolatile = true\}|, isVolatile = true|isVolatile = true, ")


@contextmanager
def _keeping_loads() -> Iterator[None]:
    """Inside, every tl.load is lowered as volatile."""
    load = TritonSemantic.load

    def volatile(self, *args):  # the flag is the last argument in every version
        return load(self, *args[:-1], True)

    TritonSemantic.load = volatile
    try:
        yield
    finally:
        TritonSemantic.load = load


@contextmanager
def _warning_once(kernel: Any) -> Iterator[None]:
    """Triton warns whenever it compiles, so with every case of a check: once a kernel will do."""
    # By identity: a kernel's hash is that of its text and of all that it names, which may fail.
    _, told = _TOLD.setdefault(id(kernel), (kernel, set()))
    with warnings.catch_warnings(record=True) as said:
        yield
    for warning in said:
        key = (str(warning.message), warning.filename, warning.lineno)
        if key not in told:
            told.add(key)
            warnings.warn_explicit(warning.message, warning.category, *key[1:])


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


def _misfit(kernel: JITFunction, error: Exception, args: tuple, kwargs: dict) -> Rejected:
    """A call that does not fit the kernel's parameters, as one sentence."""
    given = dict(zip(kernel.arg_names, args, strict=False))
    given |= {name: value for name, value in kwargs.items() if name in kernel.arg_names}
    name = kernel.fn.__name__
    return Rejected(misfit(error, name, tuple(kernel.arg_names), given), kernel=name)
