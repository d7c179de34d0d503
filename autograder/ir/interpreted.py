"""Kernels that were made while TRITON_INTERPRET=1: still lowered, from the function inside.

In that mode ``@triton.jit`` makes objects for Triton's own interpreter, and so are the functions of
``triton.language`` that are written in Triton (``tl.sum``, ``tl.cdiv`` …). ``as_jit`` makes the
ordinary object of such a kernel, ``compiling`` lets Triton's code generator accept the others.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from triton import knobs, language
from triton.compiler import code_generator
from triton.runtime.interpreter import InterpretedFunction
from triton.runtime.jit import JITFunction

_MADE: dict[int, tuple[InterpretedFunction, JITFunction]] = {}


class _FromInterpreted(JITFunction):
    @property
    def cache_key(self) -> str:
        """Triton's own would look through the function for kernels, which it does not find here."""
        return f"{id(self)} {self.src}"

    def get_capture_scope(self) -> dict[str, Any]:
        scope = super().get_capture_scope()
        return {name: as_jit(value) for name, value in scope.items()}


def as_jit(value: Any) -> Any:
    """The ordinary kernel object of an interpreted one; anything else as it is."""
    if not isinstance(value, InterpretedFunction):
        return value
    if id(value) not in _MADE:
        _MADE[id(value)] = value, _FromInterpreted(value.fn, **value.kwargs)
    return _MADE[id(value)][1]


@contextmanager
def compiling() -> Iterator[None]:
    """Inside, the code generator treats interpreted functions as ordinary ones."""
    if not knobs.runtime.interpret and not _MADE:
        yield
        return
    generator = code_generator.CodeGenerator
    call, attribute = generator.call_Function, generator.get_Attribute

    def call_function(self, node, fn, args, kws):
        return call(self, node, as_jit(fn), args, kws)

    def get_attribute(self, lhs, attr):
        # tl.tensor carries x.sum(...) and the like as plain wrappers in interpreter mode.
        free = getattr(language.standard, attr, None)
        if isinstance(free, InterpretedFunction) and isinstance(lhs, language.tensor):
            return code_generator.BoundJITMethod(lhs, as_jit(free))
        return as_jit(attribute(self, lhs, attr))

    generator.call_Function, generator.get_Attribute = call_function, get_attribute
    try:
        with knobs.runtime.scope():
            knobs.runtime.interpret = False
            yield
    finally:
        generator.call_Function, generator.get_Attribute = call, attribute
