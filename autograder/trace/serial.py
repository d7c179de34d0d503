"""A trace as JSON and back. What is read comes from a student's process: nothing in it is trusted.

``from_json`` checks every type and range and refuses keys it does not know, so that what comes out
is a ``Trace`` of bounded size, with a binding for every parameter. Whether it is *true* (views
inside buffers, IR that parses) is the replay's business. Numbers that JSON lacks are written by
name ("inf", "-inf", "nan"), bytes as base64.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import cache
from typing import Any

from autograder.floats import ITEMSIZE
from autograder.records import (
    Allocate,
    Constant,
    Copy,
    Descriptor,
    Fill,
    Foreign,
    Input,
    Kernel,
    Launch,
    Peek,
    Rejected,
    Trace,
    View,
)

__all__ = ["MAX_TEXT", "from_json", "to_json"]

MAX_TEXT = 32 << 20  # characters of JSON
MAX_EVENTS = 20_000
MAX_KERNELS = 128
MAX_BYTES = 1 << 30  # of one buffer
MAX_CONSTANT = 16 << 20  # bytes of constants together
MAX_IR = 4 << 20  # characters of one kernel's IR or source
MAX_NAME = 500  # characters of a name, a path, a sentence
MAX_RANK = 16
MAX_ITEMS = 512  # parameters of a kernel, outputs, warnings, views of one operation

_NAMED = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}


# ---------------------------------------------------------------- writing


def to_json(trace: Trace) -> str:
    """A trace as one JSON object. ``from_json`` of it is an equal trace."""
    return _encode(trace)


def _plain(value: Any) -> Any:
    """What JSON has no word for."""
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, Mapping):
        return {name: _named(item) for name, item in value.items()}
    record = {name: _named(getattr(value, name)) for name in _names(type(value))}
    return record if isinstance(value, Trace) else {"is": type(value).__name__, **record}


def _named(value: Any) -> Any:
    """``value`` with a name for every number that is not finite."""
    if isinstance(value, tuple):
        return [_named(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": str(value)}
    return value


@cache
def _names(kind: type) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind))


_encode = json.JSONEncoder(separators=(",", ":"), allow_nan=False, default=_plain).encode


# ---------------------------------------------------------------- reading

Reader = Callable[[Any, str], Any]  # (value, where it stands) -> what it means, or Rejected


def from_json(text: str) -> Trace:
    """The trace that a text describes. Raises Rejected, one sentence, for anything else."""
    if not isinstance(text, str) or len(text) > MAX_TEXT:
        raise _refuse("it", f"a text of at most {MAX_TEXT >> 20} MB")
    try:
        value = json.loads(text, parse_constant=_no_constant, parse_int=_whole)
    except (ValueError, RecursionError):
        raise Rejected("The recorded trace is not valid JSON.") from None
    trace = _TRACE(value, "trace")
    constants = sum(len(e.data) for e in trace.events if isinstance(e, Constant))
    if constants > MAX_CONSTANT:
        raise _refuse("trace.events", f"at most {MAX_CONSTANT >> 20} MB of constants")
    for i, event in enumerate(trace.events):
        if isinstance(event, Launch):
            if event.kernel >= len(trace.kernels):
                raise _refuse(f"trace.events[{i}].kernel", "one of the trace's kernels")
            if len(event.bindings) != len(trace.kernels[event.kernel].parameters):
                raise _refuse(f"trace.events[{i}].bindings", "one for each parameter")
    return trace


def _refuse(where: str, expected: str) -> Rejected:
    return Rejected(f"The recorded trace is not valid: {where} must be {expected}.")


def _no_constant(name: str) -> Any:
    raise ValueError(name)


def _whole(digits: str) -> int:
    if len(digits) > 20:  # no 64-bit integer is longer; long ones take quadratic time to read
        raise ValueError("integer too long")
    return int(digits)


def _integer(low: int, high: int) -> Reader:
    def read(value: Any, where: str) -> int:
        if type(value) is not int or not low <= value <= high:
            raise _refuse(where, f"a whole number from {low} to {high}")
        return value

    return read


def _number(value: Any, where: str) -> float | int | bool:
    if type(value) is dict and value.keys() == {"float"} and value["float"] in list(_NAMED):
        return _NAMED[value["float"]]
    if type(value) is bool or (type(value) is float and math.isfinite(value)):
        return value
    if type(value) is int and -(2**63) <= value < 2**64:
        return value
    raise _refuse(where, "a number of at most 64 bits")


def _string(longest: int) -> Reader:
    def read(value: Any, where: str) -> str:
        if type(value) is not str or len(value) > longest:
            raise _refuse(where, f"a text of at most {longest} characters")
        try:
            value.encode()
        except UnicodeEncodeError:
            raise _refuse(where, "a text without half characters") from None
        return value

    return read


def _dtype(value: Any, where: str) -> str:
    if type(value) is not str or value not in ITEMSIZE:
        raise _refuse(where, "the name of a dtype")
    return value


def _data(value: Any, where: str) -> bytes:
    if type(value) is not str or len(value) > MAX_CONSTANT * 4 // 3 + 4:
        raise _refuse(where, f"base64 of at most {MAX_CONSTANT >> 20} MB")
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        raise _refuse(where, "base64") from None


def _tuple(item: Reader, most: int, least: int = 0) -> Reader:
    def read(value: Any, where: str) -> tuple:
        if type(value) is not list or not least <= len(value) <= most:
            raise _refuse(where, f"a list of {least} to {most} items")
        return tuple(item(v, f"{where}[{i}]") for i, v in enumerate(value))

    return read


def _object(kind: type, readers: Mapping[str, Reader], tagged: bool = True) -> Reader:
    """An object with exactly these keys (and its own name under "is")."""
    keys = {*readers, "is"} if tagged else {*readers}

    def read(value: Any, where: str) -> Any:
        if type(value) is not dict or value.keys() != keys:
            raise _refuse(where, f"an object with the keys {', '.join(sorted(keys))}")
        if tagged and value["is"] != kind.__name__:
            raise _refuse(where, f"a {kind.__name__}")
        return kind(
            **{key: reader(value[key], f"{where}.{key}") for key, reader in readers.items()}
        )

    return read


def _either(choices: Mapping[type, Reader], other: Reader | None = None) -> Reader:
    """One of several objects, by the name under "is"; anything else goes to ``other``."""
    named = {kind.__name__: reader for kind, reader in choices.items()}

    def read(value: Any, where: str) -> Any:
        tag = value.get("is") if type(value) is dict else None
        if type(tag) is str and tag in named:
            return named[tag](value, where)
        if other is None:
            raise _refuse(where, f"one of {', '.join(named)}")
        return other(value, where)

    return read


def _options(value: Any, where: str) -> dict[str, int]:
    if type(value) is not dict or len(value) > MAX_RANK:
        raise _refuse(where, "an object of launch options")
    name, number = _string(MAX_NAME), _integer(0, 1 << 20)
    return {name(k, where): number(v, where) for k, v in value.items()}


_NUMBER_OF_BUFFER = _integer(0, MAX_EVENTS)
_BYTES = _integer(0, MAX_BYTES)
_LINE = _integer(0, 1 << 31)
_SIZES = _tuple(_integer(0, 1 << 40), MAX_RANK)
_STRIDES = _tuple(_integer(-(1 << 40), 1 << 40), MAX_RANK)


def _view(value: Any, where: str) -> View:
    view = _VIEW(value, where)
    if len(view.shape) != len(view.strides):
        raise _refuse(where, "a view with as many strides as sizes")
    return view


_VIEW = _object(
    View,
    {
        "buffer": _NUMBER_OF_BUFFER,
        "offset": _integer(0, 1 << 40),
        "shape": _SIZES,
        "strides": _STRIDES,
        "dtype": _dtype,
    },
)


def _padding(value: Any, where: str) -> str:
    if value not in ("zero", "nan"):
        raise _refuse(where, '"zero" or "nan"')
    return value


_DESCRIPTOR = _object(
    Descriptor,
    {
        "view": _view,
        "block_shape": _tuple(_integer(1, 1 << 20), MAX_RANK, 1),
        "padding": _padding,
    },
)
_KERNEL = _object(
    Kernel,
    {
        "name": _string(MAX_NAME),
        "ir": _string(MAX_IR),
        "parameters": _tuple(_string(MAX_NAME), MAX_ITEMS),
        "source": _string(MAX_IR),
        "file": _string(4096),
        "line": _LINE,
        "options": _options,
    },
)
_EVENT = _either(
    {
        Allocate: _object(Allocate, {"buffer": _NUMBER_OF_BUFFER, "nbytes": _BYTES}),
        Input: _object(
            Input,
            {
                "buffer": _NUMBER_OF_BUFFER,
                "nbytes": _BYTES,
                "index": _integer(-MAX_ITEMS, MAX_ITEMS),
                "view": _view,
            },
        ),
        Constant: _object(Constant, {"buffer": _NUMBER_OF_BUFFER, "data": _data}),
        Fill: _object(Fill, {"view": _view, "value": _number}),
        Copy: _object(Copy, {"destination": _view, "source": _view}),
        Foreign: _object(
            Foreign,
            {
                "operation": _string(MAX_NAME),
                "outputs": _tuple(_view, MAX_ITEMS),
                "line": _LINE,
            },
        ),
        Peek: _object(Peek, {"operation": _string(MAX_NAME), "line": _LINE}),
        Launch: _object(
            Launch,
            {
                "kernel": _integer(0, MAX_KERNELS),
                "grid": _tuple(_integer(0, (1 << 31) - 1), 3, 3),
                "bindings": _tuple(
                    _either({View: _view, Descriptor: _DESCRIPTOR}, _number), MAX_ITEMS
                ),
                "line": _LINE,
            },
        ),
    }
)
_TRACE = _object(
    Trace,
    {
        "kernels": _tuple(_KERNEL, MAX_KERNELS),
        "events": _tuple(_EVENT, MAX_EVENTS),
        "outputs": _tuple(_either({View: _view}, _string(MAX_NAME)), MAX_ITEMS),
        "configs": _integer(1, 10_000),
        "warnings": _tuple(_string(MAX_NAME), MAX_ITEMS),
        "triton": _string(MAX_NAME),
    },
    tagged=False,
)
