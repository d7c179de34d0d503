"""A trace crosses the wall between the student's process and the judge's, or is refused."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

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
from autograder.trace import serial
from autograder.trace.serial import from_json, to_json

names = st.text(st.characters(exclude_categories=("Cs",)), max_size=20)
lines = st.integers(0, 5000)
buffers = st.integers(0, 50)
numbers = st.one_of(
    st.booleans(), st.integers(-(2**63), 2**64 - 1), st.floats(width=64, allow_nan=False)
)


@st.composite
def views(draw):
    shape = tuple(draw(st.lists(st.integers(0, 99), max_size=4)))
    strides = tuple(draw(st.integers(-99, 99)) for _ in shape)
    return View(
        draw(buffers),
        draw(st.integers(0, 99)),
        shape,
        strides,
        draw(st.sampled_from(sorted(ITEMSIZE))),
    )


descriptors = st.builds(
    Descriptor,
    views(),
    st.lists(st.integers(1, 64), min_size=1, max_size=3).map(tuple),
    st.sampled_from(("zero", "nan")),
)
kernels = st.builds(
    Kernel,
    name=names,
    ir=names,
    parameters=st.lists(names, max_size=3).map(tuple),
    source=names,
    file=names,
    line=lines,
    options=st.dictionaries(names, st.integers(0, 64), max_size=3),
)
events = st.one_of(
    st.builds(Allocate, buffers, st.integers(0, 999)),
    st.builds(Input, buffers, st.integers(0, 999), st.integers(-3, 3), views()),
    st.builds(Constant, buffers, st.binary(max_size=30)),
    st.builds(Fill, views(), numbers),
    st.builds(Copy, views(), views()),
    st.builds(Foreign, names, st.lists(views(), max_size=2).map(tuple), lines),
    st.builds(Peek, names, lines),
)


@st.composite
def traces(draw):
    held = tuple(draw(st.lists(kernels, max_size=2)))
    happened = draw(st.lists(events, max_size=6))
    for number, kernel in enumerate(held):
        binding = st.one_of(views(), descriptors, numbers)
        bindings = tuple(draw(binding) for _ in kernel.parameters)
        grid = tuple(draw(st.integers(0, 999)) for _ in range(3))
        happened.append(Launch(number, grid, bindings, draw(lines)))
    return Trace(
        held,
        tuple(happened),
        tuple(draw(st.lists(st.one_of(views(), names), max_size=3))),
        draw(st.integers(1, 9)),
        tuple(draw(st.lists(names, max_size=2))),
        draw(names),
    )


EXAMPLE = Trace(
    kernels=(
        Kernel("add", "module {}", ("d", "n", "s"), "def add(): ...", "a.py", 3, {"num_warps": 4}),
    ),
    events=(
        Input(0, 64, 0, View(0, 0, (4, 4), (4, 1), "float32")),
        Allocate(1, 64),
        Constant(2, b"\x00\xff"),
        Fill(View(1, 0, (16,), (1,), "float32"), math.inf),
        Copy(View(1, 0, (4,), (1,), "float32"), View(0, 0, (4,), (4,), "float32")),
        Foreign("torch.exp", (View(1, 0, (16,), (1,), "float32"),), 7),
        Peek(".item()", 8),
        Launch(
            0, (2, 1, 1), (Descriptor(View(0, 0, (4, 4), (4, 1), "float32"), (2, 2)), 3, 0.5), 9
        ),
    ),
    outputs=(View(1, 0, (4, 4), (4, 1), "float32"), "add returned None."),
    triton="3.7.1",
)


@settings(max_examples=150, deadline=None)
@given(traces())
def test_a_trace_comes_back_as_it_was(trace):
    back = from_json(to_json(trace))
    assert back == trace
    # True == 1 == 1.0 in Python: the types must come back as well.
    for before, after in zip(trace.events, back.events, strict=True):
        if isinstance(before, Launch):
            assert [type(b) for b in before.bindings] == [type(b) for b in after.bindings]


def test_one_of_each_comes_back():
    assert from_json(to_json(EXAMPLE)) == EXAMPLE


def test_not_a_number_is_written_by_name():
    trace = Trace((), (Fill(View(0, 0, (1,), (1,), "float32"), math.nan),), ())
    assert math.isnan(from_json(to_json(trace)).events[0].value)


def _paths(value, path=()):
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in items:
        if isinstance(item, (dict, list)):
            yield from _paths(item, (*path, key))
        else:
            yield (*path, key)


def _changed(path, new):
    value = json.loads(to_json(EXAMPLE))
    if not path:
        return new
    holder = value
    for key in path[:-1]:
        holder = holder[key]
    holder[path[-1]] = new
    return value


junk = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(),
        st.text(max_size=5),
        st.sampled_from(["View", "Launch", "nan", -1, 2**70, 1e308, [], {}, {"is": "View"}]),
    ),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=5,
)


@settings(max_examples=400, deadline=None)
@given(st.sampled_from(list(_paths(json.loads(to_json(EXAMPLE))))), junk)
def test_a_changed_trace_is_read_or_refused_in_one_sentence(path, new):
    try:
        trace = from_json(json.dumps(_changed(path, new)))
    except Rejected as error:
        assert str(error).startswith("The recorded trace is not valid")
        assert "\n" not in str(error)
    else:
        assert isinstance(trace, Trace)
        assert to_json(from_json(to_json(trace))) == to_json(trace)


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_damaged_text_never_raises_anything_but_rejected(data):
    text = to_json(EXAMPLE)
    at = data.draw(st.integers(0, len(text)))
    damaged = text[:at] + data.draw(st.text(max_size=3)) + text[at + data.draw(st.integers(0, 5)) :]
    try:
        from_json(damaged)
    except Rejected:
        return


@pytest.mark.parametrize(
    ("path", "new", "told"),
    [
        (("kernels", 0, "extra"), 1, "trace.kernels[0] must be an object with the keys"),
        (("events", 0, "nbytes"), -1, "trace.events[0].nbytes"),
        (("events", 0, "nbytes"), True, "trace.events[0].nbytes"),
        (("events", 0, "nbytes"), 1 << 31, "trace.events[0].nbytes"),
        (("events", 0, "view", "dtype"), "complex64", "name of a dtype"),
        (("events", 0, "view", "shape"), [4], "as many strides as sizes"),
        (("events", 0, "view", "shape"), [1] * 17, "a list of 0 to 16 items"),
        (("events", 0, "view", "offset"), 0.5, "whole number"),
        (("events", 2, "data"), "not base64!", "base64"),
        (("events", 3, "value"), {"float": "infinity"}, "a number"),
        (("events", 3, "value"), 1 << 64, "a number"),
        (("events", 3, "is"), "Trace", "one of Allocate"),
        (("events", 7, "kernel"), 1, "one of the trace's kernels"),
        (("events", 7, "bindings"), [1, 2], "one for each parameter"),
        (("events", 7, "grid"), [1, 1], "a list of 3 to 3 items"),
        (("events", 7, "grid"), [1, -1, 1], "whole number"),
        (("events", 7, "bindings", 0, "padding"), "one", '"zero" or "nan"'),
        (("outputs", 0), None, "a text of at most"),
        (("outputs", 1), "\ud800", "half characters"),
        (("configs",), 0, "whole number"),
    ],
)
def test_what_is_out_of_range_is_named(path, new, told):
    with pytest.raises(Rejected, match="The recorded trace is not valid") as caught:
        from_json(json.dumps(_changed(path, new)))
    assert told in str(caught.value)


@pytest.mark.parametrize(
    "text",
    ["", "null", "[]", "{", "NaN", '{"kernels": NaN}', "[" * 100_000, "9" * 100_000, '"\\ud800"'],
)
def test_text_that_is_no_trace(text):
    with pytest.raises(Rejected):
        from_json(text)


def test_caps(monkeypatch):
    events = tuple(Constant(0, bytes(serial.MAX_CONSTANT // 2 + 1)) for _ in range(2))
    with pytest.raises(Rejected, match="16 MB of constants"):
        from_json(to_json(Trace((), events, ())))
    with pytest.raises(Rejected, match="a list of 0 to 20000 items"):
        from_json(to_json(Trace((), (Peek("x", 1),) * (serial.MAX_EVENTS + 1), ())))
    monkeypatch.setattr(serial, "MAX_TEXT", 100)
    with pytest.raises(Rejected, match="a text of at most"):
        from_json(to_json(EXAMPLE))
