"""Unit NN: ``EXERCISE(x, factor)``; tables only.

FILL IN what the unit asks for, and from which roundings its tolerances follow. The example: one
product, exact result ``e``, computed in the storage type or in float32 and rounded once more when
it is stored, comes back within ``(u(dtype) + u(float32)) |e|`` and half a subnormal step.
"""

from __future__ import annotations

import numpy as np

from autograder.exercises.roundings import U, stored
from autograder.records import Case, Exercise, Tensor


def _arguments(case: Case) -> tuple:
    """FILL IN the arguments of a call: tensors to be made, and plain numbers."""
    sizes = case.sizes
    vector = Tensor((sizes["n"],), sizes["dtype"], fill=sizes.get("fill", "normal"))
    return vector, sizes["factor"]


def _outputs(case: Case) -> tuple[Tensor, ...]:
    """FILL IN shape and type of every result."""
    return (Tensor((case.sizes["n"],), case.sizes["dtype"]),)


def _reference(x: np.ndarray, factor: float) -> tuple[np.ndarray]:
    """FILL IN the right results, computed in float64 from the inputs as they were stored."""
    return (factor * x,)


def _tolerance(case: Case, arguments: tuple, expected: tuple) -> tuple[np.ndarray]:
    """FILL IN the largest difference from the reference that roundings can explain."""
    product = np.abs(expected[0])
    return (stored(U * product, product, case.sizes["dtype"]),)


def _limit(case: Case) -> int:
    """FILL IN how many elements loads and stores may request; 5 % are allowed on top."""
    return 2 * case.sizes["n"] * 105 // 100


EXERCISES = (
    Exercise(
        id="NN.EXERCISE",
        title="factor · x",  # FILL IN
        names=("EXERCISE",),
        cases=(  # FILL IN: what a student sees when it fails; further ones in course/hidden/
            Case("a ragged length", {"n": 5003, "dtype": "float32", "factor": 2.5}),
            Case("one element", {"n": 1, "dtype": "float32", "factor": -3.0}),
            Case("a power of two", {"n": 2048, "dtype": "float32", "factor": 0.25}),
            Case("float16", {"n": 777, "dtype": "float16", "factor": 1.5}),
            Case("bfloat16", {"n": 777, "dtype": "bfloat16", "factor": 1.5}),
        ),
        points={"values": 2, "kernel": 1, "bounds": 2, "races": 1, "traffic": 1, "compiles": 1},
        arguments=_arguments,
        outputs=_outputs,
        reference=_reference,
        tolerance=_tolerance,
        limit=_limit,
        limit_text="2n",  # FILL IN: the closed form of the limit, without the 5 %
        compiled=Case("compiled", {"n": 5003, "dtype": "float32", "factor": 2.5}),
        hints=(  # FILL IN: a question, the idea, the lines
            "Which elements belong to program number pid, and how many programs do n elements "
            "need?",
            "offsets = pid * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE), and offsets < n is the mask of "
            "the load and of the store.",
            "tl.store(out_ptr + offsets, factor * tl.load(x_ptr + offsets, mask=mask), mask=mask)",
        ),
        notes={  # FILL IN: by kind of finding, what to look at; kinds without a note have none
            "out_of_bounds": "Which condition tells a lane that it has a number to work on, "
            "and does every load and every store get it as mask=?",
            "values": "Take the first element that is wrong. Which number was loaded for it, and "
            "what was done with it?",
            "traffic": "2n is one load and one store. Which number travels twice?",
        },
    ),
)
