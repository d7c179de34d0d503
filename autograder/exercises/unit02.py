"""Unit 02, vector add: ``add(x, y)`` and, in one pass, ``fma_relu(x, y, z)``; tables only.

Tolerances follow from counting roundings. One operation whose exact result is ``e`` comes back
within ``u |e|`` (``u`` the unit roundoff of the type that computes it) and, near zero, within half
a subnormal step. A kernel may compute in the storage type or in float32 and round once more when
it stores, so an operation costs at most ``u(dtype) + u(float32)`` for the narrow types.
"""

from __future__ import annotations

import numpy as np

from autograder.exercises.quiz import quiz
from autograder.floats import TINY, UNIT
from autograder.records import Case, Exercise, Tensor


def _unit(dtype: str) -> float:
    """Relative error of one operation computed in ``dtype``, or in float32 and then stored."""
    return UNIT[dtype] + (UNIT["float32"] if dtype != "float32" else 0.0)


def _vectors(count: int):
    """Arguments of a case: ``count`` contiguous vectors of its length, type and fill."""

    def arguments(case: Case) -> tuple[Tensor, ...]:
        sizes = case.sizes
        vector = Tensor((sizes["n"],), sizes["dtype"], fill=sizes.get("fill", "normal"))
        return (vector,) * count

    return arguments


def _one_vector(case: Case) -> tuple[Tensor, ...]:
    return (Tensor((case.sizes["n"],), case.sizes["dtype"]),)


def _elements(passes: int):
    """At most ``passes`` · n elements requested, and 5 % more."""

    def limit(case: Case) -> int:
        return passes * case.sizes["n"] * 105 // 100

    return limit


def _add(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray]:
    return (x + y,)


def _add_tolerance(case: Case, arguments: tuple, expected: tuple) -> tuple[np.ndarray]:
    dtype = case.sizes["dtype"]
    return (_unit(dtype) * np.abs(expected[0]) + TINY[dtype],)


def _fma_relu(x: np.ndarray, y: np.ndarray, z: np.ndarray) -> tuple[np.ndarray]:
    return (np.maximum(x * y + z, 0.0),)


def _fma_relu_tolerance(case: Case, arguments: tuple, expected: tuple) -> tuple[np.ndarray]:
    """Two roundings: of x·y, then of the sum (a contracted fma has only the second).

    relu moves no two numbers further apart, so the bound of the sum holds behind it. It is also
    needed where the result is 0: a sum just below zero may round to just above.
    """
    dtype = case.sizes["dtype"]
    x, y, z = arguments
    product, total = np.abs(x * y), np.abs(x * y + z)
    unit = _unit(dtype)
    # The second rounding sees the product's error too, hence the factor (1 + unit).
    return (unit * (total + product * (1 + unit)) + 2 * TINY[dtype],)


_ADD_CASES = (
    Case("the lesson's length", {"n": 98432, "dtype": "float32"}),
    Case("one element", {"n": 1, "dtype": "float32"}),
    Case("five elements", {"n": 5, "dtype": "float32"}),
    Case("a round 1000", {"n": 1000, "dtype": "float32"}),
    Case("a power of two", {"n": 1024, "dtype": "float32"}),
    Case("large numbers", {"n": 2049, "dtype": "float32", "fill": "large"}),
    Case("float16", {"n": 5003, "dtype": "float16"}),
    Case("bfloat16", {"n": 5003, "dtype": "bfloat16"}),
)

_COMPILED = Case("compiled", {"n": 98432, "dtype": "float32"})

_NOTES = {
    "out_of_bounds": "Which condition tells a lane that it has a number to work on, and does every "
    "load and every store get it as mask=?",
    "uninitialised": "Which load reads the output before anything was stored there?",
    "undefined_lane": "A lane that its mask switches off reads nothing. Where does such a lane "
    "still decide what is stored?",
    "unwritten": "Program pid owns the elements from pid · BLOCK_SIZE on. Does its mask leave on "
    "all lanes that have one, and are there enough programs to reach the last element?",
    "race": "Which elements belong to program pid, and to no other program?",
    "traffic": "How often does each number have to travel between memory and a program? Look for "
    "one that travels twice.",
    "values": "Take the first element that is wrong. Which elements belong there, which ones did "
    "the program load, and what did it do with them?",
    "torch_computed": "Which line computes the result, one in the kernel or one in Python?",
    "compile": "",  # Triton's sentence says what to do
    "interface": "",  # the sentence says what was asked for
}

ADD = Exercise(
    id="02.add",
    title="Vector add",
    names=("add",),
    cases=_ADD_CASES,
    points={"values": 2, "kernel": 1, "bounds": 2, "races": 1, "traffic": 1, "compiles": 1},
    arguments=_vectors(2),
    reference=_add,
    tolerance=_add_tolerance,
    limit=_elements(3),
    outputs=_one_vector,
    limit_text="3n",
    compiled=_COMPILED,
    hints=(
        "Say it for one program first: if it is number pid and a block has BLOCK_SIZE elements, "
        "which elements are its own? And how many programs until all n elements have an owner?",
        "offsets = pid · BLOCK_SIZE + (0 … BLOCK_SIZE − 1) is a block of numbers, and "
        "offsets < n is a block of booleans: the mask. Both loads and the store need it. "
        "cdiv rounds the number of programs up.",
        "x = tl.load(x_ptr + offsets, mask=mask), the same for y, then "
        "tl.store(out_ptr + offsets, x + y, mask=mask); outside, "
        "add_kernel[(triton.cdiv(n, 1024),)](x, y, out, n, BLOCK_SIZE=1024).",
    ),
    notes=_NOTES,
)

FMA_RELU = Exercise(
    id="02.fma_relu",
    title="relu(x·y + z) in one pass",
    names=("fma_relu",),
    cases=(
        Case("the lesson's length", {"n": 98432, "dtype": "float32"}),
        Case("one element", {"n": 1, "dtype": "float32", "fill": "uniform"}),
        Case("a prime length", {"n": 1009, "dtype": "float32"}),
        Case("a power of two", {"n": 4096, "dtype": "float32"}),
        Case("negative numbers", {"n": 777, "dtype": "float32", "fill": "negative"}),
        Case("large numbers", {"n": 2049, "dtype": "float32", "fill": "large"}),
        Case("float16", {"n": 5003, "dtype": "float16"}),
        Case("bfloat16", {"n": 5003, "dtype": "bfloat16"}),
    ),
    points={"values": 2, "kernel": 1, "bounds": 2, "races": 1, "traffic": 3, "compiles": 1},
    arguments=_vectors(3),
    reference=_fma_relu,
    tolerance=_fma_relu_tolerance,
    limit=_elements(4),
    outputs=_one_vector,
    limit_text="4n",
    compiled=_COMPILED,
    hints=(
        "x·y, then + z, then relu, each by a kernel of its own, request 8n numbers. Which of "
        "those 8n are only passed from one kernel to the next?",
        "A block that is loaded stays with its program until the program ends. So everything "
        "between the loads and the store costs no traffic: do all three steps there.",
        "After the three masked loads: tl.store(out_ptr + offsets, "
        "tl.maximum(x * y + z, 0.0), mask=mask).",
    ),
    notes=_NOTES
    | {
        "traffic": "4n is three loads and one store. Which numbers travel to memory and back "
        "between two steps of the formula?",
    },
)

QUIZ = quiz(
    "02.quiz",
    "Quiz of unit 02",
    {"q1": "one of a b c d", "q2": "number", "q3": "number", "q4": "some of a b c d e"},
)

EXERCISES = (ADD, FMA_RELU, QUIZ)
