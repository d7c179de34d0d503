"""Atomic read-modify-write on typed data: every lane happens, in lane order."""

from __future__ import annotations

import numpy as np

from autograder.floats import decode, encode
from autograder.records import CouldNotCheck


def modify(kind: str, data, index, operand, dtype):
    """Apply an atomic to every lane in lane order; returns the old values."""
    order = np.argsort(index, kind="stable")
    unique = np.ones(len(index), bool)
    unique[1:] = index[order][1:] != index[order][:-1]
    if unique.all():
        old = decode(data[index], dtype)
        data[index] = encode(_combine(kind, old, operand, dtype), dtype)
        return old
    old = np.empty(len(index), decode(data[:1], dtype).dtype)
    for lane, i in enumerate(index.tolist()):
        old[lane : lane + 1] = decode(data[i : i + 1], dtype)
        new = _combine(kind, old[lane : lane + 1], operand[lane : lane + 1], dtype)
        data[i : i + 1] = encode(new, dtype)
    return old


def _combine(kind: str, old, operand, dtype):
    operand = operand.astype(old.dtype, copy=False)
    if kind in ("umax", "umin"):
        unsigned = old.view("u" + old.dtype.name), operand.view("u" + old.dtype.name)
        return (np.maximum if kind == "umax" else np.minimum)(*unsigned).view(old.dtype)
    functions = {
        "fadd": np.add,
        "add": np.add,
        "max": np.maximum,
        "min": np.minimum,
        "and": np.bitwise_and,
        "or": np.bitwise_or,
        "xor": np.bitwise_xor,
        "exch": lambda a, b: b,
        "load": lambda a, b: a,
    }
    if kind not in functions:
        raise CouldNotCheck(f"The IR interpreter does not know the atomic operation {kind!r}.")
    return functions[kind](old, operand)
