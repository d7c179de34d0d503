"""Unit 03, fused softmax: forward, backward, and rows too long for one block; tables only.

All three work along the rows of x (M rows, N columns) in float32 and round once, when they store.
Tolerances count roundings (``roundings``).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from autograder.exercises.quiz import quiz
from autograder.exercises.roundings import FLUSHED, U, of_sum, softmax_error, stored
from autograder.floats import TINY, UNIT
from autograder.records import Case, Exercise, Tensor


def _matrix(case: Case) -> Tensor:
    """x as a case's sizes say: M, N, dtype and, where given, fill and strides (row, column)."""
    sizes = case.sizes
    strides = sizes.get("strides")
    return Tensor(
        (sizes["M"], sizes["N"]),
        sizes["dtype"],
        tuple(strides) if strides else None,
        sizes.get("fill", "normal"),
    )


def _arguments(case: Case) -> tuple:
    return (_matrix(case),)


def _long_arguments(case: Case) -> tuple:
    return (_matrix(case), case.sizes["BLOCK_SIZE"])


def _outputs(count: int) -> Callable[[Case], tuple[Tensor, ...]]:
    """``count`` contiguous matrices of x's shape and type."""

    def outputs(case: Case) -> tuple[Tensor, ...]:
        sizes = case.sizes
        return (Tensor((sizes["M"], sizes["N"]), sizes["dtype"]),) * count

    return outputs


def _passes(count: int) -> Callable[[Case], int]:
    """At most ``count`` · M · N elements requested, and 5 % more."""

    def limit(case: Case) -> int:
        return count * case.sizes["M"] * case.sizes["N"] * 105 // 100

    return limit


# ---------------------------------------------------------------- reference


def _softmax(x: np.ndarray, block_size: int = 0) -> tuple[np.ndarray]:
    """softmax along the last axis; a row of nothing but −inf gives NaN, as in torch."""
    e = np.exp(x - x.max(axis=-1, keepdims=True, initial=-np.inf))
    return (e / e.sum(axis=-1, keepdims=True),)


def _softmax_backward(x: np.ndarray, dy: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """y = softmax(x) and dx = y (dy − Σ dy y)."""
    (y,) = _softmax(x)
    return y, y * (dy - (dy * y).sum(axis=-1, keepdims=True))


# ---------------------------------------------------------------- tolerance


def _softmax_tolerance(case: Case, arguments: tuple, expected: tuple) -> tuple[np.ndarray, ...]:
    x, y = arguments[0], expected[0]
    block_size = case.sizes.get("BLOCK_SIZE")
    chunks = -(-case.sizes["N"] // block_size) if block_size else 0
    error = y * softmax_error(x, y, chunks) + FLUSHED
    return (stored(error, y, case.sizes["dtype"]),)


def _backward_tolerance(case: Case, arguments: tuple, expected: tuple) -> tuple[np.ndarray, ...]:
    """y's bound, and dx's: backward may work on the y that was stored, rounded to x's type.

    d = Σ dy y inherits y's errors and those of products and sum. Then dx = y (dy − d), or the same
    as y dy − y d, whose two products and difference are rounded before they cancel.
    """
    dtype = case.sizes["dtype"]
    (x, dy), (y, dx) = arguments, expected
    (allowed,) = _softmax_tolerance(case, (x,), (y,))
    narrow = 0.0 if dtype == "float32" else UNIT[dtype]
    y_error = y * (softmax_error(x, y) + narrow) + TINY[dtype] + FLUSHED
    d = (dy * y).sum(axis=-1, keepdims=True)
    d_error = (np.abs(dy) * y_error).sum(axis=-1, keepdims=True)
    d_error = d_error + (of_sum(x.shape[-1]) + U) * np.abs(dy * y).sum(axis=-1, keepdims=True)
    error = y_error * np.abs(dy - d) + y * d_error + 3 * U * y * (np.abs(dy) + np.abs(d))
    return allowed, stored(error, dx, dtype)


# ---------------------------------------------------------------- cases


def _case(label: str, M: int, N: int, dtype: str = "float32", **more) -> Case:
    return Case(label, {"M": M, "N": N, "dtype": dtype, **more})


_FORWARD = (
    _case("the lesson's matrix", 1823, 781),
    _case("one column", 7, 1, fill="left_padded"),
    _case("one row", 1, 1000),
    _case("a power of two", 40, 256),
    _case("padded rows", 37, 100, strides=(128, 1)),
    _case("±10 000", 33, 333, fill="large"),
    _case("far below zero", 19, 77, fill="large_negative"),
    _case("rows that begin with −inf", 24, 300, fill="left_padded"),
    _case("no rows", 0, 64),
    _case("float16", 41, 517, "float16"),
    _case("bfloat16, padded rows", 29, 1000, "bfloat16", strides=(1024, 1)),
    _case("wide rows in bfloat16", 3, 16384, "bfloat16"),
)

_BACKWARD = (
    _case("a ragged matrix", 211, 781),
    _case("one column", 7, 1, fill="left_padded"),
    _case("one row", 1, 1000),
    _case("a power of two", 24, 256),
    _case("padded rows", 37, 100, strides=(128, 1)),
    _case("±10 000", 33, 333, fill="large"),
    _case("rows that begin with −inf", 24, 300, fill="left_padded"),
    _case("no rows", 0, 64),
    _case("float16", 41, 517, "float16"),
    _case("bfloat16, padded rows", 29, 1000, "bfloat16", strides=(1024, 1)),
)

_LONG = (
    _case("three blocks and a bit", 37, 781, BLOCK_SIZE=256),
    _case("whole blocks", 20, 1024, BLOCK_SIZE=128),
    _case("one element in the last block", 33, 257, BLOCK_SIZE=64),
    _case("one row", 1, 5000, BLOCK_SIZE=1024),
    _case("one column", 7, 1, BLOCK_SIZE=16, fill="left_padded"),
    _case("transposed", 60, 200, BLOCK_SIZE=64, strides=(1, 60)),
    _case("every second column", 31, 300, BLOCK_SIZE=128, strides=(640, 2)),
    _case("±10 000", 21, 600, BLOCK_SIZE=128, fill="large"),
    _case("far below zero", 19, 177, BLOCK_SIZE=64, fill="large_negative"),
    _case("rows that begin with −inf", 24, 900, BLOCK_SIZE=128, fill="left_padded"),
    _case("no rows", 0, 500, BLOCK_SIZE=128),
    _case("float16, padded rows", 23, 1500, "float16", BLOCK_SIZE=256, strides=(1536, 1)),
    _case("the lesson's width in bfloat16", 4, 16384, "bfloat16", BLOCK_SIZE=2048),
    _case("longer than any block may be", 1, 1100000, "bfloat16", BLOCK_SIZE=8192),
)

_NOTES = {
    "out_of_bounds": "A row ends after N columns, whatever lies behind it. Which lanes of the "
    "block have a column, and does every load and every store get that mask?",
    "uninitialised": "Which load reads a tensor before anything was stored there?",
    "undefined_lane": "A lane beyond the row takes part in the maximum and in the sum. What must "
    "it read, so that it changes neither?",
    "unwritten": "Is there a program for every row, and does it store every column?",
    "race": "Which rows belong to program pid, and to no other program?",
    "traffic": "How often does each number of a row have to cross the bus? What was loaded stays "
    "with its program.",
    "values": "Take one row of three numbers and a block of four: what do maximum, exponentials "
    "and sum come to, lane by lane?",
    "torch_computed": "Which line computes the result, one in the kernel or one in Python?",
    "compile": "",  # Triton's sentence says what to do
    "interface": "",  # the sentence says what was asked for
}

# ---------------------------------------------------------------- exercises

SOFTMAX = Exercise(
    id="03.softmax",
    title="Fused softmax",
    names=("triton_softmax",),
    cases=_FORWARD,
    points={"values": 3, "kernel": 1, "bounds": 2, "races": 1, "traffic": 2, "compiles": 1},
    arguments=_arguments,
    reference=_softmax,
    tolerance=_softmax_tolerance,
    limit=_passes(2),
    outputs=_outputs(1),
    limit_text="2MN",
    compiled=_case("compiled", 23, 781),
    hints=(
        "One program, one row: where does row number pid begin in x, and where in the output? "
        "The block is a power of two, so it is as long as the row or longer.",
        "A lane beyond the row must change neither the maximum nor the sum. There is one number "
        "to load in its place that does both: the maximum ignores it, and its exponential is 0.",
        "cols = tl.arange(0, BLOCK_SIZE); x = tl.load(x_ptr + row * x_stride + cols, mask=cols < "
        "n_cols, other=-float('inf')).to(tl.float32); e = tl.exp(x - tl.max(x, axis=0)); store "
        "e / tl.sum(e, axis=0) with the same mask. Outside: BLOCK_SIZE = "
        "triton.next_power_of_2(n_cols), one program a row.",
    ),
    notes=_NOTES,
)

SOFTMAX_BACKWARD = Exercise(
    id="03.softmax_backward",
    title="Softmax's gradient, through autograd",
    names=("triton_softmax",),
    cases=_BACKWARD,
    points={"values": 3, "kernel": 1, "bounds": 2, "races": 1, "traffic": 2, "compiles": 1},
    arguments=_arguments,
    reference=_softmax_backward,
    tolerance=_backward_tolerance,
    limit=_passes(5),
    outputs=_outputs(2),
    results=("y", "the gradient dx"),
    limit_text="5MN",
    backward=True,
    compiled=_case("compiled", 23, 781),
    hints=(
        "backward gets dy and must return dx. Which tensor of the forward pass does the formula "
        "need, and how do ctx.save_for_backward and ctx.saved_tensors hand it over?",
        "The kernel is the forward's twin: one program a row, two loads, one sum over the row, one "
        "store. In a sum, a lane beyond the row must add nothing.",
        "y and dy with other=0.0 and .to(tl.float32); dx = y * (dy - tl.sum(dy * y, axis=0)); "
        "store it with the mask. In backward: (y,) = ctx.saved_tensors, dx = torch.empty_like(y), "
        "launch, return dx. And triton_softmax(x) returns TritonSoftmax.apply(x).",
    ),
    notes=_NOTES
    | {
        "traffic": "5MN is 2MN forward and 3MN backward: y and dy in, dx out. Which number is "
        "loaded a second time?",
        "values": "If y is right and dx is not: take one row of three numbers and do "
        "y · (dy − Σ dy·y) by hand. Over which lanes goes the sum?",
        "undefined_lane": "A lane beyond the row takes part in the sum. What must it read, so that "
        "it adds nothing?",
        "interface": "forward gets (ctx, x) and returns y; backward gets (ctx, dy) and returns one "
        "gradient for each input of forward.",
    },
)

SOFTMAX_LONG = Exercise(
    id="03.softmax_long",
    title="Softmax of rows longer than a block",
    names=("softmax_long",),
    cases=_LONG,
    points={"values": 3, "kernel": 1, "bounds": 2, "races": 1, "traffic": 2, "compiles": 1},
    arguments=_long_arguments,
    reference=_softmax,
    tolerance=_softmax_tolerance,
    limit=_passes(3),
    outputs=_outputs(1),
    limit_text="3MN",
    compiled=_case("compiled", 8, 16384, "bfloat16", BLOCK_SIZE=2048),
    hints=(
        "The maximum of the whole row is not known before its end. What do you have to do to the "
        "sum so far when a later block brings a larger maximum? Then one walk gives both.",
        "Keep m and s, two numbers a row. With new_m = max(m, the block's maximum), the sum so far "
        "shrinks by exp(m − new_m), and the block adds Σ exp(x − new_m). As long as new_m is still "
        "−inf, that is exp(−inf + inf): subtract 0 in its place.",
        "for start in range(0, n_cols, BLOCK_SIZE): cols = start + tl.arange(0, BLOCK_SIZE); load "
        "with other=-float('inf'); new_m = tl.maximum(m, tl.max(x, axis=0)); shift = "
        "tl.where(new_m == -float('inf'), 0.0, new_m); s = s * tl.exp(m - shift) + "
        "tl.sum(tl.exp(x - shift), axis=0); m = new_m. Then walk once more, and store "
        "tl.exp(x - m) / s.",
    ),
    notes=_NOTES
    | {
        "traffic": "3MN is two reads and one write. One walk for the maximum, one for the sum and "
        "one for the result read x three times: which two walks can be one?",
        "values": "Walk through a row of six with blocks of four, the largest number last: what do "
        "m and s hold after each block? And if the first block is all −inf?",
        "out_of_bounds": "Column c of row r lies at r · x_row + c · x_col, and a row ends after N "
        "columns. Which of the two does this line get wrong, the place or the mask?",
    },
)

QUIZ = quiz(
    "03.quiz",
    "Quiz of unit 03",
    {
        "q1": "one of a b c d",
        "q2": "number",
        "q3": "some of a b c d e",
        "q4": "number",
        "q5": "number",
    },
)

EXERCISES = (SOFTMAX, SOFTMAX_BACKWARD, SOFTMAX_LONG, QUIZ)
