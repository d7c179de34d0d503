"""A launch whose arguments do not fit the kernel, as one sentence for a student."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from autograder.ir.explain import plain


def misfit(
    error: Exception, name: str, parameters: tuple[str, ...], given: Mapping[str, Any]
) -> str:
    """One sentence for a launch of kernel ``name`` whose arguments do not fit its parameters.

    ``given`` maps the parameters that the call did name or place to their values.
    """
    message = str(error.args[0]) if isinstance(error, KeyError) else plain(error)
    takes = f"{name} takes ({', '.join(parameters)})"
    missing = re.search(r"missing \d+ required .*?argument", message)
    if missing:
        absent = [p for p in re.findall(r"'(\w+)'", message)]
        return f"{name} is launched without {_list(absent)}: {takes}."
    if re.search(r"takes .*positional argument", message):
        return f"{name} is launched with too many arguments: {takes}."
    twice = re.search(r"multiple values for argument '(\w+)'", message)
    if twice:
        return f"{name} gets `{twice[1]}` twice, by its place and by its name: {takes}."
    unknown = re.search(r"Keyword argument (\w+) was specified but unrecognised", message)
    if unknown:
        return f"{name} has no parameter `{unknown[1]}`: {takes}."
    for parameter, value in given.items():
        reason = _unfit(value, message)
        if reason:
            return f"{name} cannot take {reason} for `{parameter}`."
    return f"{name} cannot be launched like this: {message}."


def _unfit(value: Any, message: str) -> str:
    kind = type(value).__name__
    if "too large to represent" in message:
        return "an integer over 64 bits" if isinstance(value, int) and abs(value) >> 63 else ""
    if message and message in str(getattr(value, "dtype", "")):
        return f"a tensor of {message}"
    if message.startswith("failed to specialize") and message.endswith(kind):
        if kind == "list":
            return "a list (a tuple would do)"
        if hasattr(value, "item"):
            return f"a NumPy {kind} (int(...) or float(...) makes it a number)"
        return f"a {kind} (tensors, numbers and tuples of them are fine; a tl.constexpr may be any)"
    return ""


def _list(names: list[str]) -> str:
    return " and ".join(f"`{name}`" for name in names)
