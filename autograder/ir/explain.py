"""Triton's compile errors as one sentence for a student: which line, what it says, what to do.

Works on the exceptions of Triton 3.6 to 3.9; a message that the table does not know is passed on
in Triton's words. Knows no Triton: it reads ``node``, ``src`` and ``error_message`` by name.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from autograder.ir.asserted import asserted
from autograder.ir.habits import call, shape, subscript
from autograder.records import Rejected

# (pattern in Triton's message, what to say). ``\1`` inserts a group; first match wins.
_REASONS: tuple[tuple[str, str], ...] = (
    (
        r"arange's range must be a power of 2",
        "tl.arange needs a length that is a power of two. Take the next power of two as block size "
        "and mask the lanes past the end.",
    ),
    (r"arange's end argument must be greater", "tl.arange(start, end) needs start < end."),
    (
        r"Shape element \d+ must be a power of 2",
        "every side of a block must be a power of two. Round up and mask the lanes past the end.",
    ),
    (
        r"numel \((\d+)\) exceeds triton maximum tensor numel \((\d+)\)",
        r"this block has \1 elements; Triton allows \2. Use smaller blocks and more programs, "
        "or a loop.",
    ),
    (
        r"Cannot access global variable (\w+) from within",
        r"a kernel cannot see the Python variable `\1`. Pass it as an argument, or define it as "
        r"`\1 = tl.constexpr(...)`.",
    ),
    (
        r"Loop-carried variable (\w+) has initial type (.+) but is re-assigned to (.+) in loop",
        r"`\1` is {\2} before the loop and {\3} after one turn. A variable must keep its type and "
        r"shape through a loop: start `\1` with the type and shape that it has inside.",
    ),
    (
        r"Mismatched type for (\w+) between then block \((.+)\) and else block \((.+)\)",
        r"`\1` is {\2} if the condition holds and {\3} if not. Give it one type and shape in both "
        "branches.",
    ),
    (
        r"incompatible dimensions at index (\d+): (\d+) and (\d+)",
        r"the shapes do not fit: side \1 has \2 elements in one operand and \3 in the other. "
        "Only a side of 1 is stretched; look at where you wrote [:, None] and [None, :].",
    ),
    (
        r"(Value|Mask|Other) argument cannot be block type if pointer",
        r"the pointer is a single address, but what goes with it is a block. Add offsets such as "
        "tl.arange(0, BLOCK) to the pointer.",
    ),
    (
        r"Input shapes should have M >= (\d+), N >= (\d+) and K >= (\d+)",
        r"tl.dot needs blocks of at least M \1, N \2, K \3 here; 16 in M and N, and 16 in K (32 in "
        "eight bits), work anywhere. Use larger tiles and masks.",
    ),
    (
        r"must have equal reduction dimensions|First input shape .* second input shape",
        "tl.dot(a, b) needs as many columns in `a` as rows in `b`. Look at where [:, None] "
        "and [None, :] stand in their loads, or transpose one (tl.trans).",
    ),
    (
        r"Both operands must be same dtype. Got (\w+) and (\w+)",
        r"tl.dot needs both operands in one type, here {\1} and {\2}. Convert one with `.to(...)`.",
    ),
    (r"must have equal ranks >= 2", "tl.dot multiplies two-dimensional blocks; these are not."),
    (
        r"Boolean value of Tensor with more than one value",
        "`if` and `while` decide once for the whole program, but this condition is a block. Use "
        "tl.where, or a mask on the store.",
    ),
    (
        r"simultaneous multiple comparison",
        "a comparison in a chain (a < b < c) is unknown here. Write (a < b) & (b < c).",
    ),
    (
        r"`return` statements inside",
        "`return` cannot stand inside a loop of a kernel. Use a mask, or a condition around the "
        "body of the loop.",
    ),
    (
        r"unsupported AST node type: (Break|Continue)",
        r"a kernel's loops know no `{lower:\1}`. Use a `while` condition, or a mask.",
    ),
    (
        r"unsupported AST node type: (\w+)",
        r"Triton has no `{lower:\1}` in kernels.",
    ),
    (
        r"nested function definitions|^StopIteration$",
        "a function cannot be defined inside a kernel. Move it out and put @triton.jit above it.",
    ),
    (
        r"(?:\w+\(\): argument '\w+' \(position \d+\) must be Tensor|torch\.Tensor)",
        "torch cannot be used inside a kernel: its functions know nothing of blocks. Use the "
        "function of the same name in triton.language (tl.exp, tl.sum, tl.zeros …).",
    ),
    (
        r"'torch\.dtype' object",
        "a kernel needs Triton's own types: tl.float32 in place of torch.float32.",
    ),
    (
        r"must be real number, not tensor|has no attribute 'to_tensor'|_semantic` argument",
        "a Python function cannot work on a block. Use the function of the same name in "
        "triton.language (tl.exp, tl.sqrt …), or put @triton.jit above your own.",
    ),
    (
        r"used as tl\.static_range \w+ value is not a constexpr",
        "tl.static_range unrolls its loop, so its bounds must be tl.constexpr. Use range for "
        "bounds that are known at run time only.",
    ),
    (
        r"For loop bounds and step must all be ints, are \((.+)\)",
        r"the bounds of range must be integers, here ({\1}). Use // or tl.cdiv in place of /.",
    ),
    (
        r"For (?:lower bound|upper bound|step) must be a scalar",
        "the bounds of range must be single numbers, not blocks.",
    ),
    (
        r"Unsupported ptr type (.+) in `tl\.(\w+)`",
        r"tl.\2 needs a pointer, and this is {\1}. Was a number passed in place of a tensor, or "
        "was the base pointer forgotten?",
    ),
    (
        r"invalid operands of type pointer<\w+> and triton\.language\.(?:float\d+|fp\d+)",
        "an offset on a pointer must be an integer. Use // in place of /.",
    ),
    (
        r"invalid operands of type (pointer<\w+>) and (.+)|invalid operands of type (.+) and "
        r"(pointer<\w+>)",
        "a pointer is an address: an integer offset may be added to it, and nothing else. A mask "
        "compares the offsets, as in cols < n_cols.",
    ),
    (
        r"invalid operands of type (.+) and (.+)",
        r"these two cannot be combined: {\1} and {\2}.",
    ),
    (
        r"`other` cannot be provided without `mask`",
        "`other` says what masked lanes read, so it needs a `mask`.",
    ),
    (
        r"program_id axis must be 0, 1, or 2",
        "a grid has the axes 0, 1 and 2.",
    ),
    (
        r"invalid axis -?\d+\. Expected -?\d+ <= axis < 0\b",
        "this reduces a block, and got a single number. Of two numbers, tl.minimum(x, y) is the "
        "smaller and tl.maximum(x, y) the larger.",
    ),
    (
        r"invalid axis (-?\d+)\. Expected (-?\d+) <= axis < (\d+)",
        r"there is no axis \1: the block has \3 of them, counted from 0.",
    ),
    (
        r"[Bb]lock pointers have been removed",
        "this version of Triton has no block pointers. Use pointers with tl.arange, or "
        "tl.make_tensor_descriptor.",
    ),
    (
        r"Tensor descriptor strides must be 16-byte aligned, but got .*= (\d+) bytes",
        r"a descriptor's rows begin at multiples of 16 bytes, and here one begins every \1 bytes. "
        "Use pointers with tl.arange for rows that lie so close.",
    ),
    (
        r"module 'triton\.language[\w.]*' has no attribute '(inf|nan)'",
        r"triton.language has no `\1`. Write float('\1').",
    ),
    (
        r"module 'triton\.language[\w.]*' has no attribute '(mean|average)'",
        r"triton.language has no `\1`. Divide tl.sum(x, axis=0) by the number of elements, which "
        "may be less than that of the lanes.",
    ),
    (
        r"module 'triton\.language[\w.]*' has no attribute '(\w+)'",
        r"triton.language has no `\1`. Look up its name, or build it from tl.where, tl.maximum, "
        "tl.exp …",
    ),
    (
        r"'tensor' object has no attribute '__r?pow__'"
        r"|unsupported operand type\(s\) for \*\*: .*'tensor'",
        "blocks have no `**`. A square is x * x, a root tl.sqrt(x), and any other power "
        "tl.exp2(y * tl.log2(x)).",
    ),
    (
        r"'tensor' object has no attribute '(\w+)'",
        r"a block has no `.\1`. Write it with functions of triton.language, such as tl.sum(x, 0).",
    ),
    (
        r"cannot convert Ellipsis|of type <class 'ellipsis'>",
        "`...` still stands where your code should be.",
    ),
    (
        r"cannot convert .+ of type <class '([\w.]+)'> to tensor",
        r"a {word:\1} cannot be used as a number in a kernel.",
    ),
    (r"(\w+)\(\) missing .*argument.*: (.+)", r"\1 is called without {\2}."),
    (r"missing a required argument: (.+)", r"the function is called without {\1}."),
    (r"(\w+)\(\) got an unexpected keyword argument '(\w+)'", r"\1 has no argument `\2`."),
    (r"(\w+)\(\) takes .* positional", r"\1 is called with too many arguments."),
    (
        r"\] is not string$",
        'print needs a text before the numbers, print("offs", offs), and prints on a card only. '
        "interpret, from lesson 02, runs the kernel here and prints.",
    ),
    (r"f-string containing non-constexpr", "an f-string can hold tl.constexpr values only."),
    (r"(?:int|float)\(\) argument must be", "convert with `x.to(tl.int32)` in place of int(x)."),
)

_PYTHON_WORDS = {
    **{name: "tl.sum(block, axis=0) and its relatives reduce a block" for name in ("sum", "all")},
    "abs": "Use tl.abs",
    "pow": "Use multiplication or tl.exp2 and tl.log2",
    "round": "Use tl.floor(x + 0.5)",
    "enumerate": "Loop with range(...)",
    "zip": "Loop with range(...)",
    "open": "A kernel reads tensors only",
}
_NEEDS_CONSTEXPR = re.compile(
    r"(must be of type tl\.constexpr|must have type `?constexpr)|'tensor' object cannot be "
    r"interpreted as an integer"
)
_OF_A_SUBSCRIPT = re.compile(
    r"unsupported tensor index|__setitem__ is not supported|_semantic` argument|not subscriptable"
)
_OF_A_SHAPE = re.compile(
    r"index out of range|values to unpack|no attribute '(stride|numel|size)'|not callable"
)
_CODE = 72  # characters of the student's line that a sentence quotes
_TYPES = {"fp": "float", "bf": "bfloat"}


def explain(
    error: BaseException,
    name: str,
    locate: Callable[[str], tuple[str, int] | None],
    runtime: Mapping[str, str] = MappingProxyType({}),
) -> Rejected:
    """The error that lowering kernel ``name`` raised, as a sentence with kernel and line.

    ``locate(src)`` gives (function name, line of its ``def``) for the text of a student's kernel
    or helper, None for Triton's own library: the sentence names the innermost line of the
    student. ``runtime`` are the kernel's parameters that are not ``tl.constexpr``, with their types
    as Triton writes them (``"*fp32"``, ``"i32"``).
    """
    where, node, message, demand = None, None, "", ""
    while error is not None:
        if hasattr(error, "error_message"):
            place = locate(error.src or "")
            line = getattr(error.node, "lineno", None)
            if place and line:
                where, node = (place[0], place[1] + line - 1, error.src), error.node
        message = plain(error) or message
        demand = asserted(error, _type) or demand
        error = error.__cause__
    if where is None:
        sentence = f"{name} does not compile: {_reason(message, None, '', runtime)}"
        return Rejected(sentence, "compile", kernel=name)
    function, line, source = where
    lines = source.splitlines()  # Triton may name a line beyond the end of a called function
    text = lines[node.lineno - 1].strip() if node.lineno <= len(lines) else lines[-1].strip()
    text = text if len(text) <= _CODE else f"{text[: _CODE - 1].rstrip()}…"
    said = _reason(message, node, source, runtime)
    if not message and demand:
        said = f"Triton {demand}."
    sentence = f"{function}, line {line} `{text}`: {said}"
    return Rejected(sentence, "compile", line, function)


def plain(error: BaseException) -> str:
    """The bare message: Triton often wraps it as ``"ValueError('…')"``."""
    message = str(getattr(error, "error_message", error) or "")
    wrapped = re.fullmatch(r"(\w+)\((.*)\)", message, re.S)
    if wrapped:
        try:
            inner = ast.literal_eval(wrapped[2]) if wrapped[2] else wrapped[1]
        except (SyntaxError, ValueError):
            return message
        return str(inner)
    return message


def _reason(message: str, node: Any, source: str, runtime: Mapping[str, str]) -> str:
    if _OF_A_SUBSCRIPT.search(message) and (instead := subscript(node, source, runtime)):
        return instead
    if instead := call(node, message):
        return instead
    if _OF_A_SHAPE.search(message) and (instead := shape(node, runtime)):
        return instead
    constexpr = _NEEDS_CONSTEXPR.search(message)
    if constexpr:
        subject = "the size of a block" if constexpr[1] else "this number"
        return _not_constexpr(subject, node, runtime)
    undefined = re.fullmatch(r"(\w+) is not defined", message)
    if undefined:
        return _undefined(undefined[1])
    for pattern, text in _REASONS:
        match = re.search(pattern, message)
        if match:
            return _fill(match, text)
    if message in ("error encountered during parsing", "AssertionError"):
        return (
            "Triton's own check of the code fails. Often a block stands where one number is "
            "asked for (`a if block else b`, `while block`), or a loop returns: use tl.where."
        )
    return f"{message or 'Triton gives no reason'}.".replace("..", ".")


def _fill(match: re.Match, text: str) -> str:
    words: Mapping[str, Callable[[str], str]] = {"lower": str.lower, "word": _word}
    text = re.sub(r"\\(\d)", lambda m: match[int(m[1])], text)
    text = re.sub(r"\{(lower|word):([^}]*)\}", lambda m: words[m[1]](m[2]), text)
    return re.sub(r"\{([^}]*)\}", lambda m: _type(m[1]), text)


def _word(name: str) -> str:
    return {"str": "string", "NoneType": "None"}.get(name, name)


def _type(text: str) -> str:
    """``<['16'], fp32>`` → ``a block (16) of float32``; ``pointer<fp32>`` → ``a pointer …``."""
    text = re.sub(r"triton\.language\.", "", text)
    text = re.sub(r"\b(fp|bf)(\d+)\b", lambda m: _TYPES[m[1]] + m[2], text)
    text = re.sub(r"<\[(.*?)\], (.*)>", lambda m: f"a block ({m[1]}) of {m[2]}", text)
    text = re.sub(r"pointer<(.*)>", r"a pointer to \1", text)
    return text.replace("'", "")


def _not_constexpr(subject: str, node: Any, runtime: Mapping[str, str]) -> str:
    """Name the run-time parameter that stands where the compiler must know a number."""
    names = [n.id for n in ast.walk(node) if isinstance(n, ast.Name)] if node is not None else []
    for found in names:
        if found in runtime:
            return (
                f"{subject} must be known when the kernel is compiled, and `{found}` is "
                f"a number that arrives at run time. Annotate the parameter, "
                f"`{found}: tl.constexpr`, if it is a block size; if it is the number of elements, "
                "use a block size and mask the rest."
            )
    return (
        f"{subject} must be an integer that is known when the kernel is compiled: a parameter "
        "annotated with tl.constexpr."
    )


def _undefined(name: str) -> str:
    if name in _PYTHON_WORDS:
        return f"Python's `{name}` does not exist in a kernel. {_PYTHON_WORDS[name]}."
    return (
        f"`{name}` is not defined here. Make it a parameter of the kernel, or spell it as where "
        "it is assigned; assigned under an `if`, it needs a value on the other path too."
    )
