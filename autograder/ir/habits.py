"""Habits from Python and NumPy that a Triton kernel does not share, told by what to write instead.

Subscripts on pointers and numbers, a kernel that returns its result, ``tl.max`` where the larger of
two was meant. Reads Python's syntax tree and our own records of the IR; knows no Triton.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping

from autograder.ir.parse import Op, Region, parse
from autograder.records import CouldNotCheck, Kernel, Rejected

__all__ = ["call", "reduced_stores", "returned", "shape", "subscript"]

_MATH = ("ceil", "cos", "erf", "exp", "exp2", "fabs", "floor", "log", "log2", "sin", "sqrt")
_OF_PYTHON = re.compile(
    r"must be real number, not tensor|has no attribute 'to_tensor'|_semantic` argument"
)


def call(node: ast.AST | None, message: str) -> str:
    """What to call in place of a function in the failing ``node``; empty where no call is at fault.

    ``tl.max`` of two blocks, ``tl.maximum`` along an axis, ``math.sqrt`` and ``triton.cdiv``.
    """
    for part in ast.walk(node) if node is not None else ():
        if not isinstance(part, ast.Call):
            continue
        name = ast.unparse(part.func)
        axes = [k.arg for k in part.keywords if k.arg == "axis"]
        if name in ("tl.max", "tl.min") and len(part.args) > 1 and not _is_axis(part.args[1]):
            return (
                f"{name}(block, axis) reduces one block, and its second argument is an axis. The "
                f"{_WHICH[name]} of two, lane by lane, is {name}imum(a, b)."
            )
        if name in ("tl.maximum", "tl.minimum") and (axes or len(part.args) == 1):
            return (
                f"{name}(a, b) compares two blocks, lane by lane. {name[:6]}(block, axis=0) "
                "reduces one."
            )
        if _OF_PYTHON.search(message):
            module, _, function = name.rpartition(".")
            if name == "triton.cdiv" or module in ("math", "np", "numpy") and function in _MATH:
                instead = {"fabs": "abs"}.get(function, function)
                return (
                    f"`{name}` is a function for Python's numbers. In a kernel it is tl.{instead}."
                )
    return ""


_WHICH = {"tl.max": "larger", "tl.min": "smaller"}


def _is_axis(argument: ast.expr) -> bool:
    """Whether this may stand for an axis: a whole number, a name, or None."""
    if isinstance(argument, ast.Constant):
        return not isinstance(argument.value, float)
    return isinstance(argument, (ast.Name, ast.UnaryOp))


def shape(node: ast.AST | None, types: Mapping[str, str]) -> str:
    """What to say of ``x_ptr.shape[1]`` and ``x_ptr.stride(0)`` in the failing ``node``."""
    for part in ast.walk(node) if node is not None else ():
        if (
            isinstance(part, ast.Attribute)
            and part.attr in ("shape", "stride", "numel", "size")
            and types.get(name := ast.unparse(part.value), "").startswith("*")
        ):
            return (
                f"`{name}` is a pointer, the address of an element: it knows no shape and no "
                "strides. The host function has to hand them over as numbers, as parameters."
            )
    return ""


def subscript(node: ast.AST | None, source: str, types: Mapping[str, str]) -> str:
    """What to write in place of ``base[index]`` in the failing ``node`` of a kernel's ``source``.

    ``types`` are the kernel's run-time parameters, ``{"x_ptr": "*fp32", "n": "i32"}``. Empty where
    no subscript in there is at fault: ``x[:, None]`` may stay.
    """
    found = ast.walk(node) if node is not None else ()
    for part in found:
        if isinstance(part, ast.Subscript) and not _is_expansion(part.slice):
            return _in_place_of(part, source, types)
    return ""


def _is_expansion(index: ast.expr) -> bool:
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    return all(
        isinstance(part, ast.Constant)
        and part.value is None
        or isinstance(part, ast.Slice)
        and not (part.lower or part.upper or part.step)
        for part in parts
    )


def _in_place_of(part: ast.Subscript, source: str, types: Mapping[str, str]) -> str:
    base, index = ast.unparse(part.value), ast.unparse(part.slice)
    index = index if len(index) <= 30 else "offsets"
    stores = isinstance(part.ctx, ast.Store)
    if types.get(base, "").startswith("*"):
        if isinstance(part.slice, ast.Tuple):
            index = "row * stride + column"
        call = f"tl.store({base} + {index}, value" if stores else f"tl.load({base} + {index}"
        return f"`{base}` is a pointer, and has no [...]. Write {call}, mask=mask)."
    call = r"tl\.(program_id|num_programs)\("
    if re.match(call, base) or re.search(
        rf"\b{re.escape(base)}\s*=\s*{call}[^()]*\)\s*$", source, re.M
    ):
        return (
            f"`{base}` is one number: tl.program_id(axis) gives the number of the program along "
            f"one axis. Write it without [{index}]."
        )
    if base in types:
        return f"`{base}` is one number, and has no [{index}]."
    if stores:
        return (
            f"elements of a block cannot be assigned. Use tl.where(lanes == i, value, {base}); "
            "into memory goes tl.store(pointer + offsets, value, mask=mask)."
        )
    return (
        f"a block cannot be indexed or cut into pieces: a line of the kernel works on all lanes of "
        f"`{base}` at once. Use the block itself, load what you need through pointers and a mask, "
        "or reduce with tl.sum and tl.where. [:, None] is allowed."
    )


def returned(kernel: str, source: str, line: int, ir: str) -> Rejected | None:
    """A kernel whose IR returns a value: no card could give it to anybody.

    ``line``: of the kernel's ``def``, with which ``source`` begins.
    """
    head = _RETURNING.search(ir)
    if not head or head[1] != kernel:
        return None
    said, at = "", line
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Return) and node.value is not None:
            at = line + node.lineno - 1
            said = f", line {at} `{ast.unparse(node)[:60]}`"
    return Rejected(
        f"{kernel}{said}: a kernel cannot return values. What it computed goes to memory, with "
        "tl.store(out_ptr + offsets, value, mask=mask); the host function returns the tensor.",
        "compile",
        at,
        kernel,
    )


_RETURNING = re.compile(r'tt\.func public @"?([^"(]*)"?\(.*\) -> .*attributes')


def reduced_stores(kernel: Kernel) -> list[str]:
    """Notes on stores that put one number, a whole block's maximum or minimum, into every lane.

    That is what ``tl.max(x, 0)`` gives where ``tl.maximum(x, 0)`` was meant.
    """
    if "tt.reduce" not in kernel.ir:
        return []
    try:
        body = parse(kernel.ir).body
    except CouldNotCheck:  # the judge meets the same IR and says so
        return []
    made: dict[str, Op] = {}
    notes = []
    for op in _every(body):
        made |= dict.fromkeys(op.results, op)
        if op.name != "tt.store":
            continue
        value, splat = made.get(op.operands[1]), False
        while value is not None and (value.name == "tt.splat" or value.name.startswith("arith.ext")
                                     or value.name.startswith("arith.trunc")):  # fmt: skip
            splat |= value.name == "tt.splat"
            value = made.get(value.operands[0])
        if value is None or not splat or value.name != "tt.reduce":
            continue
        name = next((w for i in _inner(value) for w in ("max", "min") if w in i.name), "")
        if name:
            which = "larger" if name == "max" else "smaller"
            notes.append(
                f"Line {op.line} of {kernel.name} stores one number in all lanes: tl.{name} "
                f"reduces a block to its {name}imum. The {which} of two, lane by lane, is "
                f"tl.{name}imum(a, b)."
            )
    return notes


def _every(region: Region) -> Iterator[Op]:
    for block in region.blocks:
        for op in block.ops:
            yield op
            for inner in op.regions:
                yield from _every(inner)


def _inner(op: Op) -> Iterator[Op]:
    for region in op.regions:
        yield from _every(region)
