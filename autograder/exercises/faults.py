"""What the kernels of unit 08 are asked for: arguments, references, tolerances, limits, cases.

Each fault shows in every case, so that a kernel as it was handed out earns nothing anywhere: no
vector is a whole number of blocks, no rows lie gapless in memory, some row is negative throughout,
no sum is added up by one program alone. Tolerances count roundings (``roundings``).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from autograder.exercises import attention_cases
from autograder.exercises.attention import attention, forward_tolerance
from autograder.exercises.roundings import FLUSHED, U, of_sum, softmax_error, stored
from autograder.floats import TINY
from autograder.records import Case, Tensor

READ_BY_ONE = 2048  # numbers that one program of an addition may read, at most
_TILE = 32

# ---------------------------------------------------------------- arguments and outputs


def vector(case: Case) -> tuple[Tensor]:
    s = case.sizes
    return (Tensor((s["n"],), s["dtype"], fill=s.get("fill", "normal")),)


def scaled_arguments(case: Case) -> tuple[Tensor, float]:
    return (*vector(case), case.sizes["alpha"])


def matrix(case: Case) -> tuple[Tensor]:
    """x, whose rows may be padded."""
    s = case.sizes
    strides = tuple(s["strides"]) if "strides" in s else None
    return (Tensor((s["M"], s["N"]), s["dtype"], strides, s.get("fill", "normal")),)


def square(case: Case) -> tuple[Tensor]:
    """Scores of T tokens with T keys."""
    s = case.sizes
    return (Tensor((s["T"], s["T"]), s["dtype"], fill=s.get("fill", "normal")),)


def bias_arguments(case: Case) -> tuple[Tensor, Tensor]:
    return (*matrix(case), Tensor((case.sizes["N"],), case.sizes["dtype"]))


def matrices(case: Case) -> tuple[Tensor, Tensor, int]:
    s = case.sizes
    fill = s.get("fill", "normal")
    a, b = Tensor((s["M"], s["K"]), s["dtype"], fill=fill), Tensor((s["K"], s["N"]), s["dtype"])
    return a, b, s["SPLIT_K"]


def attention_arguments(case: Case) -> tuple[Tensor, Tensor, Tensor]:
    return attention_cases.arguments(case)[:3]


def attention_output(case: Case) -> tuple[Tensor]:
    return attention_cases.outputs(case)[:1]


def of_length(*names: str, dtype: str = "") -> Callable[[Case], tuple[Tensor]]:
    """One output whose shape the sizes of these names give (none: one number), contiguous."""

    def outputs(case: Case) -> tuple[Tensor]:
        shape = tuple(case.sizes[name] for name in names) or (1,)
        return (Tensor(shape, dtype or case.sizes["dtype"]),)

    return outputs


# ---------------------------------------------------------------- references


def scaled(x: np.ndarray, alpha: float) -> tuple[np.ndarray]:
    return (alpha * x,)


def row_maxima(x: np.ndarray) -> tuple[np.ndarray]:
    return (x.max(axis=1),)


def biased(x: np.ndarray, bias: np.ndarray) -> tuple[np.ndarray]:
    return (x + bias,)


def total(x: np.ndarray) -> tuple[np.ndarray]:
    return (x.sum(keepdims=True),)


def column_sums(x: np.ndarray) -> tuple[np.ndarray]:
    return (x.sum(axis=0),)


def _future_hidden(s: np.ndarray) -> np.ndarray:
    return np.where(np.tril(np.ones(s.shape, bool)), s, -np.inf)


def causal_softmax(s: np.ndarray) -> tuple[np.ndarray]:
    """softmax of the first i + 1 numbers of row i, and 0 behind them."""
    s = _future_hidden(s)
    e = np.exp(s - s.max(axis=1, keepdims=True))
    return (e / e.sum(axis=1, keepdims=True),)


def full_attention(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> tuple[np.ndarray]:
    return attention(q, k, v, False)[:1]


def product(a: np.ndarray, b: np.ndarray, split_k: int) -> tuple[np.ndarray]:
    return (a @ b,)


# ---------------------------------------------------------------- tolerances


def exact(case: Case, arguments: tuple, expected: tuple) -> tuple[float]:
    """A maximum is one of its numbers: nothing is rounded."""
    return (0.0,)


def scaled_tolerance(case: Case, arguments: tuple, expected: tuple) -> tuple[np.ndarray]:
    """alpha arrives in float32, then one product."""
    return (stored(2 * U * np.abs(expected[0]), expected[0], case.sizes["dtype"]),)


def bias_tolerance(case: Case, arguments: tuple, expected: tuple) -> tuple[np.ndarray]:
    return (stored(U * np.abs(expected[0]), expected[0], case.sizes["dtype"]),)


def total_tolerance(case: Case, arguments: tuple, expected: tuple) -> tuple[np.ndarray]:
    return (of_sum(case.sizes["n"]) * np.abs(arguments[0]).sum() + TINY["float32"],)


def column_tolerance(case: Case, arguments: tuple, expected: tuple) -> tuple[np.ndarray]:
    return (of_sum(case.sizes["M"]) * np.abs(arguments[0]).sum(axis=0) + TINY["float32"],)


def causal_tolerance(case: Case, arguments: tuple, expected: tuple) -> tuple[np.ndarray]:
    s, y = _future_hidden(arguments[0]), expected[0]
    return (stored(y * softmax_error(s, y) + FLUSHED, y, case.sizes["dtype"]),)


def full_attention_tolerance(case: Case, arguments: tuple, expected: tuple) -> tuple[np.ndarray]:
    """For blocks of 16 keys, the smallest that a tensor core takes."""
    both = attention(*arguments, False)
    return forward_tolerance((*arguments, False), both, case.sizes["dtype"], 16)[:1]


def product_tolerance(case: Case, arguments: tuple, expected: tuple) -> tuple[np.ndarray]:
    a, b, split_k = arguments
    return ((of_sum(case.sizes["K"]) + U) * (np.abs(a) @ np.abs(b)) + TINY["float32"],)


# ---------------------------------------------------------------- limits


def passes(count: int, *more: str) -> Callable[[Case], int]:
    """``count`` times the elements of n or M × N, and the sizes of these names, and 5 %."""

    def limit(case: Case) -> int:
        s = case.sizes
        whole = s["n"] if "n" in s else s["M"] * s["N"]
        return (count * whole + sum(s[name] for name in more)) * 105 // 100

    return limit


def bias_limit(case: Case) -> int:
    """x in, the bias once for each row, the result out."""
    return 3 * case.sizes["M"] * case.sizes["N"] * 105 // 100


def total_limit(case: Case) -> int:
    """Room for partial sums: two accesses for each 128 numbers."""
    return (case.sizes["n"] + case.sizes["n"] // 64 + 16) * 105 // 100


def square_limit(case: Case) -> int:
    return 2 * case.sizes["T"] ** 2 * 105 // 100


attention_limit = attention_cases.limit


def splitk_limit(case: Case) -> int:
    """Tiles of 32 × 32 (ragged ones whole), and the partial results out, in, and added up."""
    s = case.sizes
    rows, columns = -(-s["M"] // _TILE), -(-s["N"] // _TILE)
    whole = 2 * _TILE * rows * columns * s["K"] + (2 * s["SPLIT_K"] + 1) * s["M"] * s["N"]
    return whole * 105 // 100


def readers(case: Case) -> int:
    """A program reads at most ``READ_BY_ONE`` numbers."""
    return -(-case.sizes["n"] // READ_BY_ONE)


def splits(case: Case) -> int:
    """SPLIT_K programs; fewer where K has fewer steps of 128."""
    return min(case.sizes["SPLIT_K"], -(-case.sizes["K"] // 128))


# ---------------------------------------------------------------- cases


def _vector(label: str, n: int, dtype: str = "float32", **more) -> Case:
    return Case(label, {"n": n, "dtype": dtype, **more})


def _matrix(label: str, M: int, N: int, dtype: str = "float32", **more) -> Case:
    return Case(label, {"M": M, "N": N, "dtype": dtype, **more})


def _square(label: str, T: int, dtype: str = "float32", **more) -> Case:
    return Case(label, {"T": T, "dtype": dtype, **more})


def _attention(label: str, *sizes, **more) -> Case:
    return attention_cases.full(label, *sizes, BLOCK_M=32, BLOCK_N=32, **more)


def _split(label: str, M: int, N: int, K: int, parts: int, dtype: str = "float16", **more) -> Case:
    return Case(label, {"M": M, "N": N, "K": K, "SPLIT_K": parts, "dtype": dtype, **more})


LOAD_MASK = (
    _vector("a row of five", 5, alpha=3.0),
    _vector("one element", 1, alpha=-2.0),
    _vector("one more than a block", 1025, alpha=0.5),
    _vector("some blocks and a rest", 3000, alpha=0.1),
    _vector("float16", 300, "float16", alpha=7.0),
)

MAXIMUM = (
    _matrix("a ragged width", 33, 100, fill="negative"),
    _matrix("three columns", 9, 3, fill="negative"),
    _matrix("near −10 000", 20, 333, fill="large_negative"),
    _matrix("very far below zero", 12, 77, fill="very_negative"),
    _matrix("rows of −inf, and others", 24, 300, fill="left_padded"),
    _matrix("float16, padded rows", 17, 200, "float16", strides=(256, 1), fill="lowest"),
    _matrix("bfloat16", 11, 700, "bfloat16", fill="negative"),
)

STRIDE = (
    _matrix("padded to a power of two", 37, 100, strides=(128, 1)),
    _matrix("padded by one", 20, 77, strides=(78, 1)),
    _matrix("two rows far apart", 2, 50, strides=(1000, 1)),
    _matrix("a column of a matrix", 60, 1, strides=(7, 1)),
    _matrix("float16", 25, 300, "float16", strides=(320, 1)),
    _matrix("bfloat16", 18, 130, "bfloat16", strides=(131, 1)),
)

RACE = (
    _vector("some blocks and a rest", 5000),
    _vector("whole blocks", 8192, fill="uniform"),
    _vector("a rest of one", 20481),
    _vector("±10 000", 3001, fill="large"),
    _vector("float16", 10_000, "float16", fill="uniform"),
    _vector("sums beyond 65 504", 3000, "float16", fill="far_from_zero"),
)

ACCUMULATOR = (
    _matrix("many rows", 500, 100, "float16", fill="uniform"),
    _matrix("numbers near one", 300, 70, "float16", fill="near_one"),
    _matrix("sums beyond 65 504", 40, 130, "float16", fill="far_from_zero"),
    _matrix("both signs", 400, 65, "float16"),
    _matrix("one column", 300, 1, "float16", fill="uniform"),
    _matrix("bfloat16", 200, 150, "bfloat16", fill="uniform"),
)

CAUSAL = (
    _square("five tokens", 5),
    _square("one token", 1),
    _square("a power of two", 64),
    _square("a ragged length", 77),
    _square("±10 000", 33, fill="large"),
    _square("float16", 50, "float16"),
    _square("bfloat16", 40, "bfloat16"),
)

ATTENTION = (
    _attention("a ragged length", 1, 2, 77, 32),
    _attention("one block", 2, 1, 32, 16),
    _attention("one more than two blocks", 1, 2, 65, 32),
    _attention("one token", 1, 2, 1, 32),
    _attention("large scores", 1, 1, 70, 32, fill="times_eight"),
    _attention("float16", 1, 2, 50, 64, "float16"),
    _attention("bfloat16", 1, 1, 100, 32, "bfloat16"),
    _attention("a long text", 1, 1, 1100, 16),
)

SPLIT_K = (
    _split("few rows, a long K", 16, 50, 1000, 4),
    _split("K divides evenly", 32, 32, 512, 4),
    _split("several tiles", 40, 70, 300, 2),
    _split("a K shorter than the splits", 20, 33, 40, 8),
    _split("positive numbers", 5, 64, 700, 3, fill="uniform"),
    _split("bfloat16", 17, 40, 333, 5, "bfloat16"),
)

compiled_attention = _attention("compiled", 1, 2, 128, 64, "float16")
