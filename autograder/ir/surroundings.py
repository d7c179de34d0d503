"""What a kernel sees beside its arguments: globals, closures, helper kernels.

Used to know when a lowered kernel may be used again, to find a helper by its text, and to leave
Triton's bookkeeping on kernel objects as it was.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import CodeType, FunctionType, ModuleType
from typing import Any

from triton.language import constexpr
from triton.runtime.interpreter import InterpretedFunction
from triton.runtime.jit import JITCallable

_PLAIN = (bool, int, float, complex, str, bytes, type(None))


def stamp(value: Any) -> tuple:
    """A hashable word for a constant: equal words mean equal constants while ``value`` lives."""
    if isinstance(value, constexpr):
        return ("constexpr", *stamp(value.value))
    if isinstance(value, _PLAIN):
        return type(value).__name__, repr(value)
    if isinstance(value, (tuple, list)):
        return type(value).__name__, *(stamp(item) for item in value)
    if isinstance(value, dict):
        return "dict", *((repr(name), stamp(item)) for name, item in value.items())
    return "object", id(value)


class Surroundings:
    """The globals and closure cells that a kernel and its helpers name, at this moment.

    ``stamp`` is hashable and changes when one of them does; ``kept`` holds them so that the
    identities in the stamp stay theirs.
    """

    def __init__(self, kernel: Any):
        self._jits: dict[int, Any] = {}
        self._modules: set[int] = set()
        self.kept: list[Any] = []
        words: list[tuple] = []
        self._visit(kernel, words)
        self.stamp = tuple(words)

    def _visit(self, kernel: Any, words: list[tuple]) -> None:
        if id(kernel) in self._jits:
            return
        self._jits[id(kernel)] = kernel
        words.append(("kernel", id(kernel), getattr(kernel, "src", "")))
        function = getattr(kernel, "fn", None)
        if not isinstance(function, FunctionType):
            return
        names = _names(function.__code__)
        for name in sorted(names):
            found, value = _look_up(function, name)
            if found:
                self._note(name, value, names, words)

    def _note(self, name: str, value: Any, names: set[str], words: list[tuple]) -> None:
        self.kept.append(value)
        if isinstance(value, (JITCallable, InterpretedFunction)):
            words.append((name, "kernel", id(value)))
            if not getattr(value, "__module__", "").startswith("triton."):
                self._visit(value, words)
        elif isinstance(value, ModuleType):
            words.append((name, "module", id(value)))
            if id(value) not in self._modules and not value.__name__.startswith("triton"):
                self._modules.add(id(value))
                for attribute in sorted(names & set(vars(value))):
                    self._note(f"{name}.{attribute}", vars(value)[attribute], names, words)
        else:
            words.append((name, *stamp(value)))

    def locate(self, source: str) -> tuple[str, int] | None:
        """(name, line of ``def``) of the kernel or helper with this text, None if unknown."""
        for kernel in self._jits.values():
            if getattr(kernel, "src", None) == source:
                return kernel.fn.__name__, self.def_line(kernel)
        return None

    @staticmethod
    def def_line(kernel: Any) -> int:
        """The line of ``def`` in the kernel's file (decorators stand above it)."""
        for offset, line in enumerate(kernel.raw_src):
            if line.lstrip().startswith("def "):
                return kernel.starting_line_number + offset
        return kernel.starting_line_number

    @contextmanager
    def untouched(self) -> Iterator[None]:
        """Undo what Triton writes on kernel objects while it lowers.

        A remembered hash or global would make a later launch on a GPU refuse a changed global.
        """
        before = [(kernel, dict(vars(kernel))) for kernel in self._jits.values()]
        try:
            yield
        finally:
            for kernel, attributes in before:
                for name in ("hash", "used_global_vals"):
                    if name in attributes:
                        setattr(kernel, name, attributes[name])


def _names(code: CodeType) -> set[str]:
    """Every name that the code looks up outside its locals, attributes included."""
    names = {*code.co_names, *code.co_freevars}
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            names |= _names(constant)
    return names


def _look_up(function: FunctionType, name: str) -> tuple[bool, Any]:
    if name in function.__code__.co_freevars:
        cell = function.__closure__[function.__code__.co_freevars.index(name)]
        try:
            return True, cell.cell_contents
        except ValueError:  # not assigned yet
            return False, None
    if name in function.__globals__:
        return True, function.__globals__[name]
    return False, None
