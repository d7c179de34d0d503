"""What an assertion of Triton's that says nothing asked for, read from where it was raised."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable
from typing import Any

_LONGEST = 60  # characters of a value


def asserted(error: BaseException, said: Callable[[str], str]) -> str:
    """``asks for `acc.type.element_ty == out_dtype`; here acc is …, out_dtype float32``: the
    condition of the ``assert`` that raised, and what its names stood for, each in the words of
    ``said``. "" where nothing can be read: no traceback, no source, or no assertion there."""
    trace = error.__traceback__
    if not isinstance(error, AssertionError) or trace is None:
        return ""
    while trace.tb_next is not None:
        trace = trace.tb_next
    try:
        lines, first = inspect.getsourcelines(trace.tb_frame.f_code)
        tree = ast.parse(textwrap.dedent("".join(lines)))
    except (OSError, TypeError, SyntaxError):
        return ""
    at = trace.tb_lineno - first + 1
    for node in ast.walk(tree):
        if isinstance(node, ast.Assert) and node.lineno <= at <= node.end_lineno:
            return _told(node.test, trace.tb_frame.f_locals, said)
    return ""


def _told(condition: ast.expr, local: dict[str, Any], said: Callable[[str], str]) -> str:
    names = [n for n in ast.walk(condition) if isinstance(n, ast.Name) and n.id in local]
    names = dict.fromkeys(n.id for n in sorted(names, key=lambda n: (n.lineno, n.col_offset)))
    values = ", ".join(f"{name} is {said(_value(local[name]))}" for name in names)
    return f"asks for `{ast.unparse(condition)}`" + f"; here {values}" * bool(values)


def _value(value: Any) -> str:
    """A tensor's type, anything else as it prints."""
    text = str(getattr(value, "type", value))
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
