"""Inputs of a case, made from its seed: random, asymmetric, different for every argument."""

from __future__ import annotations

import hashlib
import re
import zlib
from collections.abc import Callable

import numpy as np

from autograder.floats import is_float, rounded
from autograder.records import Case, Tensor


def _left_padded(generator: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Rows in turn: −inf in the first three quarters, −inf everywhere, nowhere; else normal."""
    values = generator.standard_normal(shape)
    values[0::3, : shape[-1] * 3 // 4] = -np.inf
    values[1::3] = -np.inf
    return values


# A distribution takes (generator, shape) and returns float64.
FILLS: dict[str, Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]] = {
    "normal": lambda g, shape: g.standard_normal(shape),
    "uniform": lambda g, shape: g.random(shape),
    "large": lambda g, shape: g.uniform(-1e4, 1e4, shape),
    "positive": lambda g, shape: 1.0 + g.random(shape) * 5,
    "negative": lambda g, shape: -1.0 - g.random(shape) * 5,
    "large_negative": lambda g, shape: g.uniform(-1e4, -5e3, shape),
    "lowest": lambda g, shape: -1e4 + 5 * g.random(shape),
    "very_negative": lambda g, shape: -1e30 * (1.0 + g.random(shape)),
    "far_from_zero": lambda g, shape: 1e4 + g.standard_normal(shape),
    "left_padded": _left_padded,
    "minus_infinity": lambda g, shape: np.full(shape, -np.inf),
    "times_eight": lambda g, shape: 8 * g.standard_normal(shape),
    "near_one": lambda g, shape: 1.0 + g.random(shape) / 8,
    "integers": lambda g, shape: g.integers(-100, 100, shape).astype(np.float64),
    "empty": lambda g, shape: np.full(shape, np.nan),
}


def below(fill: str) -> int:
    """N of the fill ``"below_N"``, integers from 0 to N − 1 for tables and rows; 0 of others."""
    name = re.fullmatch(r"below_([1-9]\d*)", fill)
    return int(name[1]) if name else 0


def make(case: Case, tensor: Tensor, index: int, salt: bytes = b"") -> np.ndarray:
    """Values of argument ``index`` of ``case``: ``tensor.shape``, in the held type of its dtype.

    An integer type takes a hundred times what the fill draws; ``below_N`` draws indices.
    ``salt`` is the grader's secret for hidden cases, so that equal tables give other numbers there.
    """
    label = zlib.crc32(case.label.encode())
    digest = hashlib.sha256(salt + f"{case.seed}/{label}/{index}".encode()).digest()
    generator = np.random.Generator(np.random.PCG64(int.from_bytes(digest[:16], "little")))
    if bound := below(tensor.fill):
        return rounded(generator.integers(0, bound, tensor.shape).astype(float), tensor.dtype)
    values = FILLS[tensor.fill](generator, tensor.shape)
    if tensor.dtype == "bool":
        return values > 0
    return rounded(values if is_float(tensor.dtype) else np.round(values * 100), tensor.dtype)
