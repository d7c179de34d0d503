"""The mistakes of the audit: rules that look at one node and say what stands there instead.

A rule names the aspects of the grade that may rightly be named first for its mistake, the likeliest
in front: a missing mask is a matter of bounds, and where rows touch, of races.
"""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

Change = tuple[ast.AST, str]  # a node, and the text in its place


@dataclass(frozen=True)
class Spot:
    """Where a node stands: its function, whether that is a kernel, its statement. ``kernel`` is
    None in a solution without any. ``carried``: the names that the loop around it sets and that
    were set before the loop."""

    function: ast.FunctionDef
    kernel: bool | None
    statement: ast.stmt
    carried: frozenset[str] = frozenset()


RULES: list[tuple] = []  # (name, aspects, kernel, needs, function)


def rule(name: str, *aspects: str, kernel: bool | None = True, needs: str = ""):
    """Registers ``function(node, spot) → changes`` for kernels, for hosts, or for solutions without
    a kernel (None), in sources that hold ``needs``."""

    def register(function: Callable[[ast.AST, Spot], Iterator[Change]]):
        RULES.append((name, aspects, kernel, needs, function))
        return function

    return register


def _is(node: ast.AST, *names: str) -> bool:
    """Whether it calls one of these: ``load`` stands for ``tl.load`` and for ``load``."""
    if not isinstance(node, ast.Call):
        return False
    called = node.func
    name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
    return name in names


def _named(call: ast.Call, name: str) -> ast.expr | None:
    return next((k.value for k in call.keywords if k.arg == name), None)


def _without(call: ast.Call, *names: str) -> str:
    less = copy.copy(call)
    less.keywords = [k for k in call.keywords if k.arg not in names]
    return ast.unparse(less)


def _text(node: ast.AST) -> str:
    return ast.unparse(node)


def _in_triton(call: ast.Call) -> bool:
    return _text(call.func).startswith("tl.")


# ---------------------------------------------------------------- masks


def _unmasked(call: ast.Call) -> str:
    """The call without its mask, "" if it has none."""
    if _named(call, "mask") or _named(call, "boundary_check"):
        return _without(call, "mask", "other", "boundary_check", "padding_option")
    place = 2 if _is(call, "load") else 3  # minitriton: load(x, at, mask), store(x, at, what, mask)
    if not _in_triton(call) and len(call.args) > place:
        less = copy.copy(call)
        less.args, less.keywords = call.args[:place], []
        return _text(less)
    return ""


@rule("load mask dropped", "bounds")
def _(node, spot):
    if _is(node, "load") and (text := _unmasked(node)):
        yield node, text


@rule("store mask dropped", "bounds", "races")
def _(node, spot):
    if _is(node, "store", "atomic_add") and (text := _unmasked(node)):
        yield node, text


@rule("half a mask dropped", "bounds", "races", "values")
def _(node, spot):
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitAnd):
        yield node, f"({_text(node.left)})"
        yield node, f"({_text(node.right)})"


@rule("comparison one wider", "bounds", "races", "values")
def _(node, spot):
    if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Lt):
        yield node, f"({_text(node.left)} <= {_text(node.comparators[0])})"


@rule("comparison one narrower", "values", "bounds")
def _(node, spot):
    if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Lt | ast.LtE):
        sign = "<" if isinstance(node.ops[0], ast.Lt) else "<="
        yield node, f"({_text(node.left)} {sign} {_text(node.comparators[0])} - 1)"


@rule("other dropped", "bounds")
def _(node, spot):
    if _is(node, "load") and _named(node, "other") and _in_triton(node):
        yield node, _without(node, "other")


@rule("other altered", "values")
def _(node, spot):
    if _is(node, "load") and (other := _named(node, "other")):
        yield other, "0.0" if "inf" in _text(other) else "1.0"


# ---------------------------------------------------------------- addresses, loops, programs


@rule("offsets one on", "values", "bounds")
def _(node, spot):
    if _is(node, "arange"):
        yield node, f"({_text(node)} + 1)"


@rule("loop begins late", "values", "bounds")
def _(node, spot):
    if isinstance(node, ast.For) and _is(node.iter, "range", "static_range"):
        start, end, step = (_text(a) for a in _range(node.iter))
        yield node.iter, f"{_text(node.iter.func)}({start} + {step}, {end}, {step})"


@rule("loop ends early", "values", "bounds")
def _(node, spot):
    if isinstance(node, ast.For) and _is(node.iter, "range", "static_range"):
        start, end, step = (_text(a) for a in _range(node.iter))
        yield node.iter, f"{_text(node.iter.func)}({start}, {end} - {step}, {step})"


def _range(call: ast.Call) -> list[ast.expr]:
    one, zero = ast.Constant(1), ast.Constant(0)
    return {1: [zero, *call.args, one], 2: [*call.args, one], 3: call.args}[len(call.args)]


def _factors(node: ast.AST) -> list[ast.BinOp]:
    """The products ``index * stride`` of a pointer expression, all under one chain of sums."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _factors(node.left) + _factors(node.right)
    product = isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult)
    return [node] if product and isinstance(node.right, ast.Name) else []


@rule("strides swapped", "values", "bounds", "races")
def _(node, spot):
    if isinstance(node, ast.BinOp) and "ptr" in _text(node) and len(_factors(node)) == 2:
        swapped = copy.deepcopy(node)
        one, two = _factors(swapped)
        one.right, two.right = two.right, one.right
        yield node, _text(swapped)


@rule("strides swapped", "values", "bounds", "races", kernel=False)
def _(node, spot):
    if isinstance(node, ast.Starred) and _is(node.value, "stride"):
        yield node, f"{_text(node)}[::-1]"


@rule("stride forgotten", "values", "bounds", "races")
def _(node, spot):
    product = isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult)
    if product and isinstance(node.right, ast.Name) and _STRIDE.search(node.right.id):
        yield node, f"({_text(node.left)})"


_STRIDE = re.compile(r"stride|_row$|_col$|^s[qkvo][bhtd]$")


@rule("every program is the first", "races", "values")
def _(node, spot):
    pid = isinstance(node, ast.Subscript) and _text(node.value) == "pid"
    if pid or _is(node, "program_id"):
        yield node, "(0)"


@rule("axes of the grid mixed up", "races", "values", "bounds")
def _(node, spot):
    axis = node.slice if isinstance(node, ast.Subscript) and _text(node.value) == "pid" else None
    if _is(node, "program_id"):
        axis = node.args[0] if node.args else _named(node, "axis")
    if isinstance(axis, ast.Constant):
        yield axis, str(0 if axis.value else 1)


@rule("a program too few", "values", kernel=False)
def _(node, spot):
    for tuple_ in _grids(node):
        for element in tuple_.elts:
            yield element, f"{_text(element)} - 1"


@rule("a program too many", "bounds", "values", kernel=False)  # values: where programs add up
def _(node, spot):
    for tuple_ in _grids(node):
        for element in tuple_.elts:
            if "cdiv" not in _text(element):  # the mask keeps a further block from harm
                yield element, f"{_text(element)} + 1"


def _grids(node: ast.AST) -> list[ast.Tuple]:
    if isinstance(node, ast.Assign) and _text(node.targets[0]) == "grid":
        value = node.value.body if isinstance(node.value, ast.Lambda) else node.value
        return [value] if isinstance(value, ast.Tuple) else []
    launch = isinstance(node, ast.Call) and isinstance(node.func, ast.Subscript)
    return [node.func.slice] if launch and isinstance(node.func.slice, ast.Tuple) else []


@rule("divided downwards", "values", kernel=False)
def _(node, spot):
    if _is(node, "cdiv"):
        yield node, f"({_text(node.args[0])} // {_text(node.args[1])})"


@rule("block half as long", "values", "compiles", kernel=False)
def _(node, spot):
    if _is(node, "next_power_of_2"):
        yield node, f"({_text(node)} // 2)"


@rule("divided downwards", "values")
def _(node, spot):
    if _is(node, "cdiv"):
        yield node, f"({_text(node.args[0])} // {_text(node.args[1])})"


# ---------------------------------------------------------------- arithmetic


@rule("float32 forgotten", "values", "compiles")
def _(node, spot):
    if _is(node, "to") and node.args and _text(node.args[0]) == "tl.float32":
        yield node, f"({_text(node.func.value)})"


@rule("sum in float16", "values", "compiles")
def _(node, spot):
    if _is(node, "zeros", "full") and "tl.float32" in _text(node):
        yield node, _text(node).replace("tl.float32", "tl.float16")


@rule("maximum not subtracted", "values")
def _(node, spot):
    if _is(node, "exp", "exp2") and isinstance(node.args[0], ast.BinOp):
        argument = node.args[0]
        if isinstance(argument.op, ast.Sub):
            yield argument, f"({_text(argument.left)})"


@rule("sign turned", "values", "bounds")
def _(node, spot):
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub):
        yield node, f"({_text(node.left)} + ({_text(node.right)}))"


@rule("rescaling forgotten", "values")
def _(node, spot):
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        carried = isinstance(node.left, ast.Name) and node.left.id in spot.carried
        if carried and any(isinstance(n, ast.Name) for n in ast.walk(node.right)):
            yield node, node.left.id


@rule("wrong axis", "values", "compiles")
def _(node, spot):
    axis = _named(node, "axis") if _is(node, "sum", "max", "min") else None
    if isinstance(axis, ast.Constant) and axis.value in (0, 1):
        yield axis, str(1 - axis.value)


@rule("constant doubled", "values")
def _(node, spot):
    if isinstance(node, ast.Constant) and type(node.value) is float and node.value:
        yield node, f"{2 * node.value!r}"


@rule("constant scale", "values", kernel=False)
def _(node, spot):
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
        yield node, "0.125"


# ---------------------------------------------------------------- memory and whose work it is


@rule("store for atomic", "races")
def _(node, spot):
    if _is(node, "atomic_add"):
        mask = _named(node, "mask")
        rest = f", mask={_text(mask)}" if mask else ""
        yield node, f"tl.store({_text(node.args[0])}, {_text(node.args[1])}{rest})"


@rule("loaded twice", "traffic")
def _(node, spot):
    if _is(node, "load") and _unmasked(node):
        text = _text(node)  # a choice that keeps the type, and that is made when the kernel runs
        twice = f"tl.where(tl.program_id(0) >= 0, {text}, {text})"
        yield node, twice if _in_triton(node) else f"(({text} + {text}) / 2)"


@rule("input overwritten", "values", "races")
def _(node, spot):
    if isinstance(node, ast.Assign) and _is(node.value, "load") and _named(node.value, "mask"):
        pointer, mask = _text(node.value.args[0]), _text(_named(node.value, "mask"))
        indent = " " * node.col_offset
        yield node, f"{_text(node)}\n{indent}tl.store({pointer}, 0.0, mask={mask})"


@rule("result in another type", "values", kernel=False)
def _(node, spot):
    if not _is(node, "empty", "zeros", "empty_like", "zeros_like"):
        return
    dtype = _named(node, "dtype")
    if dtype:
        yield dtype, "torch.float16"
    elif _is(node, "empty_like", "zeros_like"):
        yield node, f"{_text(node)[:-1]}, dtype=torch.float16)"


@rule("result in an input", "values", "races", kernel=False)
def _(node, spot):
    if _is(node, "empty_like", "zeros_like"):
        yield node, _text(node.args[0])
    elif _is(node, "empty") and _text(node.args[0]).endswith(".shape"):
        yield node, _text(node.args[0].value)


@rule("finished by torch", "kernel", kernel=False, needs="import torch")
def _(node, spot):
    if isinstance(node, ast.Return):
        first = node.value.elts[0] if isinstance(node.value, ast.Tuple) else node.value
        if isinstance(first, ast.Name):
            yield first, f"({first.id} * 1)"


@rule("input copied", "traffic", kernel=False, needs="import torch")
def _(node, spot):
    first = spot.function.args.args[0].arg
    if node is spot.function.body[0] and first != "ctx" and not isinstance(node, ast.FunctionDef):
        yield node, f"{first} = {first}.clone()\n{' ' * node.col_offset}{_text(node)}"


# ---------------------------------------------------------------- solutions without a kernel


@rule("one side only", "values", kernel=None)
def _(node, spot):
    if isinstance(node, ast.BinOp):
        yield node, f"({_text(node.left)})"
        yield node, f"({_text(node.right)})"


@rule("a step left out", "values", kernel=None)
def _(node, spot):
    if isinstance(node, ast.AugAssign):
        yield node, "pass"


@rule("compared otherwise", "values", kernel=None)
def _(node, spot):
    if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Lt | ast.LtE):
        other = "<=" if isinstance(node.ops[0], ast.Lt) else "<"
        for sign in (other, ">"):
            yield node, f"({_text(node.left)} {sign} {_text(node.comparators[0])})"


@rule("largest for smallest", "values", kernel=None)
def _(node, spot):
    if _is(node, "max", "min"):
        name = "min" if _is(node, "max") else "max"
        yield node, f"{name}({', '.join(map(_text, node.args))})"


@rule("a number one off", "values", kernel=None)
def _(node, spot):
    if isinstance(node, ast.Constant) and type(node.value) is int:
        yield node, str(node.value + 1)
        yield node, str(node.value - 1)
