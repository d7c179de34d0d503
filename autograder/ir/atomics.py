"""Atomic read-modify-write on typed data: every lane happens, in lane order."""

from __future__ import annotations

import numpy as np

from autograder.floats import decode, encode
from autograder.records import CouldNotCheck


def modify(kind: str, data, index, operand, dtype):
    """Apply an atomic to every lane in lane order; returns the old values."""
    old = np.empty(len(index), decode(data[:1], dtype).dtype)
    for lanes in _turns(index):
        at = index[lanes]
        old[lanes] = decode(data[at], dtype)
        data[at] = encode(_combine(kind, old[lanes], operand[lanes], dtype), dtype)
    return old


def _turns(index: np.ndarray) -> list[np.ndarray]:
    """The lanes in turns, every address once a turn: only lanes of one address build on one
    another, so a turn is done at once."""
    order = np.argsort(index, kind="stable")
    place = np.arange(len(index))
    begins = np.ones(len(index), bool)
    begins[1:] = index[order][1:] != index[order][:-1]
    turn = place - np.maximum.accumulate(np.where(begins, place, 0))
    ends = np.cumsum(np.bincount(turn))
    return np.split(order[np.argsort(turn, kind="stable")], ends[:-1])


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
