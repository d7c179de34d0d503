"""Triton kernels to Triton IR, with no GPU, and the one place that patches Triton.

``lower`` takes the student's kernel object as it is and stops after the inliner: no other pass has
run, so dead loads and repeated loads are still there to be counted.

What the IR function's parameters are (tried on Triton 3.6.0, 3.7.1, 3.8.0 and 3.9.0): the leaves
of the Python parameters in order, depth first through tuples and named tuples, without those that
became constants. Constants are ``tl.constexpr`` parameters, ``None``, strings, functions, dtypes,
and integers equal to 1 unless the kernel says ``do_not_specialize``. A host ``TensorDescriptor``
of rank r is 1 + 2r parameters: the descriptor, its r sizes (i32), its r strides (i64). Parameters
get the names ``t.0``, ``point.x``, ``d.shape.0``, ``d.stride.0``.
"""

from __future__ import annotations

import inspect
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from triton._C.libtriton import ir, passes
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource, make_backend
from triton.runtime.jit import JITFunction, create_function_from_signature

from autograder.records import Kernel

TARGET = GPUTarget("cuda", 89, 32)  # the class's cards; the IR is the same for any NVIDIA card
_CACHE: OrderedDict[tuple, tuple[Any, Kernel]] = OrderedDict()
_CACHE_SIZE = 512


def lower(kernel: Any, args: tuple, kwargs: dict) -> tuple[Kernel, tuple]:
    """One specialisation of ``kernel`` as IR, and the run-time value of every IR parameter.

    ``args`` and ``kwargs`` are what a launch would be given, options such as ``num_warps``
    included. Values are passed through as they are: tensors, numbers, ``TensorDescriptor``.
    Raises Rejected, one sentence, if the call does not fit the kernel or does not lower.
    """
    backend = make_backend(TARGET)
    kwargs = {**kwargs, "debug": False}
    binder = create_function_from_signature(kernel.signature, kernel.params, backend)
    bound, specialization, options = binder(*args, **kwargs)
    options, signature, constexprs, attrs = kernel._pack_args(
        backend, kwargs, bound, specialization, options
    )
    leaves = [
        leaf for name, type_ in signature.items() for leaf in _leaves(name, type_, bound[name])
    ]
    context = ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    module = ASTSource(kernel, signature, constexprs, attrs).make_ir(
        TARGET,
        options,
        backend.get_codegen_implementation(options),
        backend.get_module_map(),
        context,
    )
    manager = ir.pass_manager(context)
    passes.common.add_inliner(manager)
    manager.run(module, "inline")
    record = Kernel(
        name=kernel.fn.__name__,
        ir=str(module),
        parameters=tuple(name for name, _ in leaves),
        source=kernel.src,
        file=kernel.fn.__code__.co_filename,
        line=_def_line(kernel),
        options={
            "num_warps": options.num_warps,
            "num_stages": options.num_stages,
            "num_ctas": options.num_ctas,
        },
    )
    return record, tuple(value for _, value in leaves)


def _leaves(name: str, type_: Any, value: Any) -> Iterator[tuple[str, Any]]:
    """The IR parameters of one Python parameter: (name, value)."""
    if isinstance(type_, tuple):
        fields = getattr(type_, "_fields", range(len(type_)))
        for field, inner, part in zip(fields, type_, value, strict=True):
            yield from _leaves(f"{name}.{field}", inner, part)
    elif type_.startswith("tensordesc"):
        yield name, value
        for word, numbers in (("shape", value.shape), ("stride", value.strides)):
            for axis, number in enumerate(numbers):
                yield f"{name}.{word}.{axis}", int(number)
    elif type_ != "constexpr":
        yield name, value


def _def_line(kernel: Any) -> int:
    """The line of ``def`` in the kernel's file (decorators stand above it)."""
    for offset, line in enumerate(kernel.raw_src):
        if line.lstrip().startswith("def "):
            return kernel.starting_line_number + offset
    return kernel.starting_line_number


@contextmanager
def hooked(on_launch: Callable[[Kernel, tuple[int, int, int], tuple], None], config: int = 0):
    """While it lasts, launches call ``on_launch(kernel, grid, values)`` instead of a GPU."""
    original = JITFunction.run

    def run(self, *args, grid, warmup=False, **kwargs):
        kernel, values = lower(self, args, kwargs)
        if callable(grid):
            names = dict(inspect.signature(self.fn).bind_partial(*args).arguments)
            grid = grid({**names, **kwargs})
        grid = tuple(grid)
        on_launch(kernel, (grid + (1, 1, 1))[:3], values)

    JITFunction.run = run
    try:
        yield
    finally:
        JITFunction.run = original
