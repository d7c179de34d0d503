"""Random numbers for operations, and how far two results lie apart."""

from __future__ import annotations

import numpy as np
import torch

from autograder.floats import decode, encode, is_float, rounded, stored
from tests.kernels.operations import B, Entry

# smallest normal exponent, bits of fraction
_FORMAT = {
    "float64": (-1022, 52),
    "float32": (-126, 23),
    "float16": (-14, 10),
    "bfloat16": (-126, 7),
    "float8_e4m3fn": (-6, 3),
    "float8_e5m2": (-14, 2),
}
SPECIAL = (0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 0.5, 2.5, -2.5, 0.49999997, 1e-40)


def ulp(values: np.ndarray, dtype: str) -> np.ndarray:
    """The spacing of ``dtype`` at finite values (float64 or wider)."""
    smallest, bits = _FORMAT[dtype]
    plain = np.isfinite(values) & (values != 0)
    exponent = np.frexp(np.where(plain, values, 1))[1] - 1
    exponent = np.maximum(np.where(values == 0, smallest, exponent), smallest)
    return np.ldexp(np.ones_like(np.asarray(values)), exponent - bits)


def distance(got: np.ndarray, want: np.ndarray, dtype: str, slack: float = 0.0) -> float:
    """The largest distance in ulp of ``want``; infinite where only one is NaN or ±∞."""
    got, want = np.asarray(got).astype(want.dtype), np.asarray(want)
    if not is_float(dtype):
        return 0.0 if np.array_equal(got, want) else np.inf
    limit = np.asarray(rounded(np.asarray(want, np.float64), dtype))  # what is too large to hold
    same = (got == want) | (np.isnan(got) & np.isnan(want)) | (got == limit)
    ok = np.isfinite(got) & np.isfinite(want)
    if (~same & ~ok).any():
        return np.inf
    with np.errstate(invalid="ignore"):
        off = np.where(same | ~ok, 0, np.abs(got - want))
    off = np.where(off <= slack, 0, off)
    return float((off / ulp(want, dtype)).max(initial=0.0))


def operand(generator, domain, dtype: str) -> np.ndarray:
    """One row of held values: (B,). Floats of "any" include the special ones."""
    if is_float(dtype):
        if domain == "any":
            x = generator.standard_normal(B) * 10.0 ** generator.integers(-3, 3, B)
            x[generator.permutation(B)[: len(SPECIAL)]] = SPECIAL
        else:
            x = generator.uniform(*domain, B)
        return rounded(x, dtype)
    if dtype == "bool":
        return generator.integers(0, 2, B).astype(bool)
    limits = np.iinfo(dtype)
    if domain == "any":
        x = generator.integers(limits.min, limits.max, B, dtype=dtype, endpoint=True)
        x[:4] = (0, limits.min, limits.max, 1)
        return generator.permutation(x)
    return generator.integers(domain[1], domain[2], B, endpoint=True).astype(dtype)


def operands(seed: int, entries: tuple[Entry, ...], dtypes: tuple[str, ...]) -> list[np.ndarray]:
    """Held values, one array (entries, B) an operand."""
    generator = np.random.default_rng(seed)
    rows = [
        [operand(generator, d, t) for d, t in zip(_domains(e, dtypes), dtypes, strict=True)]
        for e in entries
    ]
    return [np.stack(column) for column in zip(*rows, strict=True)]


def _domains(entry: Entry, dtypes):
    return entry.domain if len(entry.domain) == len(dtypes) else entry.domain * len(dtypes)


def tensor(values: np.ndarray, dtype: str) -> torch.Tensor:
    """Held values as a torch tensor of ``dtype`` on the CPU."""
    bits = np.ascontiguousarray(encode(values, dtype))
    return torch.from_numpy(bits.view(stored(dtype))).view(getattr(torch, dtype))


def array(values: torch.Tensor, dtype: str) -> np.ndarray:
    """The held values of a tensor."""
    plain = values.detach().cpu().contiguous()
    size = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[plain.element_size()]
    return decode(plain.view(size).numpy().view(stored(dtype)), dtype).reshape(plain.shape)


def wide(values: np.ndarray, dtype: str) -> np.ndarray:
    """Values of a type that references compute in."""
    if dtype == "float64":
        return values.astype(np.longdouble)
    if is_float(dtype):
        return values.astype(np.float64)
    return values.astype(object)


def wrapped(values, dtype: str) -> np.ndarray:
    """Python's integers, or truth values, as ``dtype`` keeps them."""
    if dtype == "bool":
        return np.asarray(values, bool)
    bits = 8 * np.dtype(dtype).itemsize
    low = np.array([int(v) & ((1 << bits) - 1) for v in np.ravel(values)], f"u{bits // 8}")
    return low.view(dtype).reshape(np.shape(values))
