"""Unit 01, the programming model, on the mini-Triton: ``01.add``, ``01.softmax``, ``01.matmul``.

Inputs are float32, contiguous. Tolerances follow from counting roundings; u = 2^-24 is float32's
unit roundoff: one operation with the exact result e returns a number within u |e| of it. A kernel
that computes wider than float32 rounds once, when it stores, so it stays within the same bounds;
for the same reason a C of float64 is accepted, as the text says.

Traffic limits are the lesson's closed forms and 5 % more, in numbers read and written.
"""

from __future__ import annotations

import numpy as np

from autograder.exercises.quiz import quiz
from autograder.floats import TINY, UNIT
from autograder.minitriton import cdiv, launch
from autograder.records import Case, Exercise, Tensor

_U = UNIT["float32"]
_SMALLEST_NORMAL = 2.0**-126


def _with_slack(numbers: int) -> int:
    return numbers * 105 // 100


# ---------------------------------------------------------------- 01.add


def _add_arguments(case: Case) -> tuple:
    n, fill = case.sizes["n"], case.sizes.get("fill", "normal")
    vector = Tensor((n,), fill=fill)
    return vector, vector, Tensor((n,), fill="empty"), n, case.sizes["BLOCK"]


def _drive_add(solution: dict, arguments: tuple) -> tuple:
    x, y, out, n, block = arguments
    launch(solution["add_kernel"], (cdiv(n, block),), x, y, out, n, block)
    return (out,)


def _add_tolerance(case: Case, arguments: tuple, expected: tuple) -> tuple:
    """One rounding, of the sum: u |x + y|; u² more for a sum that float64 has rounded before."""
    return (_U * (1 + _U) * np.abs(expected[0]) + TINY["float32"],)


# ---------------------------------------------------------------- 01.softmax


def _softmax_arguments(case: Case) -> tuple:
    sizes = case.sizes
    shape = (sizes["M"], sizes["N"])
    matrix = Tensor(shape, fill=sizes.get("fill", "normal"))
    return matrix, Tensor(shape, fill="empty"), sizes["N"], sizes["BLOCK"]


def _drive_softmax(solution: dict, arguments: tuple) -> tuple:
    x, out, columns, block = arguments
    launch(solution["softmax_kernel"], (len(x),), x, out, columns, block)
    return (out,)


def _softmax(x: np.ndarray, *_) -> tuple:
    powers = np.exp(x - x.max(axis=1, keepdims=True))
    return (powers / powers.sum(axis=1, keepdims=True),)


def _softmax_tolerance(case: Case, arguments: tuple, expected: tuple) -> tuple:
    """With z = x − max and p = softmax, to first order in u, relative to p_i:

    * z is rounded once, and once more where log Σ is subtracted instead of dividing by Σ. An
      error e in an exponent is a relative error e in its power: 2u |z_i| for the numerator, and
      for the sum the average of the same, Σ_j p_j 2u |z_j|. log Σ itself is at most log n and is
      rounded once: u log n.
    * exp in float32 is off by at most 2.52 units in the last place (NumPy's stated worst case),
      and such a unit is at most 2u: 6u above, 6u below.
    * a sum of n positive numbers in any order: (n − 1) u. The division: u.

    g / (1 − g) covers what is not of first order. Results below the smallest normal number may be
    flushed to zero.
    """
    x, p = arguments[0], expected[0]
    n = x.shape[1]
    z = np.abs(x - x.max(axis=1, keepdims=True))
    g = _U * (2 * z + 2 * (p * z).sum(axis=1, keepdims=True) + np.log(n) + n + 12)
    return (g / (1 - g) * p + _SMALLEST_NORMAL,)


# ---------------------------------------------------------------- 01.matmul


def _matmul_arguments(case: Case) -> tuple:
    sizes = case.sizes
    a, b = Tensor((sizes["M"], sizes["K"])), Tensor((sizes["K"], sizes["N"]))
    return a, b, sizes["BM"], sizes["BN"], sizes["BK"]


def _drive_matmul(solution: dict, arguments: tuple) -> tuple:
    a, b, bm, bn, bk = arguments
    return (solution["triton_matmul"](a, b, BM=bm, BN=bn, BK=bk),)


def _matmul_tolerance(case: Case, arguments: tuple, expected: tuple) -> tuple:
    """The bound of an inner product of length K, in any order of its sums:
    γ_K Σ_k |a_ik| |b_kj| with γ_K = K u / (1 − K u) (Higham, Accuracy and Stability of Numerical
    Algorithms, section 3.1).
    """
    a, b = arguments[:2]
    k = a.shape[1] * _U
    return (k / (1 - k) * (np.abs(a) @ np.abs(b)) + TINY["float32"],)


def _matmul_limit(case: Case) -> int:
    """M·N·K·(1/BM + 1/BN) numbers read, M·N written; a ragged edge counts as a whole tile, because
    a kernel may wrap its offsets round where another masks them."""
    s = case.sizes
    tiles = cdiv(s["M"], s["BM"]) * cdiv(s["N"], s["BN"])
    read = tiles * cdiv(s["K"], s["BK"]) * s["BK"] * (s["BM"] + s["BN"])
    return _with_slack(read + s["M"] * s["N"])


def _mnk(label: str, m: int, n: int, k: int, bm: int = 16, bn: int = 16, bk: int = 16) -> Case:
    return Case(label, {"M": m, "N": n, "K": k, "BM": bm, "BN": bn, "BK": bk})


# ---------------------------------------------------------------- the tables

_NOTES = {
    "out_of_bounds": "Which condition tells a lane that it has a number to work on, and does this "
    "line get it as its mask?",
    "uninitialised": "np.empty leaves what was in memory before. Which line reads the result "
    "before anybody has written it, and does the sum have to begin there?",
    "race": "Which numbers of the result belong to this program and to no other?",
    "torch_computed": "Do all numbers come from load and go back by store, both from "
    "autograder.minitriton?",
}

ADD = Exercise(
    id="01.add",
    title="Add two vectors, block by block",
    names=("add_kernel",),
    machine="numpy",
    cases=(
        Case("ten blocks, the last one ragged", {"n": 600, "BLOCK": 64}),
        Case("a round 1000", {"n": 1000, "BLOCK": 256}),
        Case("whole blocks", {"n": 512, "BLOCK": 128}),
        Case("less than a block", {"n": 5, "BLOCK": 8}),
        Case("one number", {"n": 1, "BLOCK": 16}),
        Case("large numbers", {"n": 333, "BLOCK": 32, "fill": "large"}),
    ),
    points={"values": 2, "bounds": 1, "races": 1, "traffic": 1},
    arguments=_add_arguments,
    reference=lambda x, y, *_: (x + y,),
    tolerance=_add_tolerance,
    limit=lambda case: _with_slack(3 * case.sizes["n"]),
    limit_text="3n",
    drive=_drive_add,
    hints=(
        "Take n = 10 and BLOCK = 4 and write down, for pid (0,), (1,) and (2,), which offsets are "
        "the program's own. Which of them do not exist, and in which program?",
        "pid[0] * BLOCK + arange(0, BLOCK) are the offsets of a block; compared with n they give a "
        "block of True and False, the mask. Both loads and the store need it.",
        "offs = pid[0] * BLOCK + arange(0, BLOCK), then mask = offs < n, then "
        "store(out, offs, load(x, offs, mask) + …, mask).",
    ),
    notes=_NOTES
    | {
        "unwritten": "Which numbers does program 0 own, which program 1, and does the store reach "
        "all of them?",
        "traffic": "3n is one load of x, one of y and one store. Which number is read or written "
        "twice?",
        "values": "Take the first number that is wrong. Which two numbers belong there, from which "
        "offsets did they come, and what did the kernel do with them?",
        "interface": "The check calls add_kernel(pid, x, y, out, n, BLOCK); pid is a tuple, and "
        "the result goes into out.",
    },
)

SOFTMAX = Exercise(
    id="01.softmax",
    title="Softmax, a row a program",
    names=("softmax_kernel",),
    machine="numpy",
    cases=(
        Case("781 columns", {"M": 9, "N": 781, "BLOCK": 1024}),
        Case("whole blocks", {"M": 8, "N": 64, "BLOCK": 64}),
        Case("rows of five", {"M": 7, "N": 5, "BLOCK": 8}),
        Case("rows of negatives", {"M": 6, "N": 100, "BLOCK": 128, "fill": "negative"}),
        Case("inputs up to ±1e4", {"M": 5, "N": 200, "BLOCK": 256, "fill": "large"}),
        Case("large negatives", {"M": 4, "N": 90, "BLOCK": 128, "fill": "large_negative"}),
        Case("every score near −1e4", {"M": 3, "N": 19, "BLOCK": 32, "fill": "lowest"}),
        Case("one row", {"M": 1, "N": 33, "BLOCK": 64}),
    ),
    points={"values": 3, "bounds": 1, "races": 1, "traffic": 2},
    arguments=_softmax_arguments,
    reference=_softmax,
    tolerance=_softmax_tolerance,
    limit=lambda case: _with_slack(2 * case.sizes["M"] * case.sizes["N"]),
    limit_text="2MN",
    drive=_drive_softmax,
    hints=(
        "A lane of the tail has no number, yet it takes part in the maximum and in the sum. Which "
        "number changes neither a maximum nor, once it is an exponent, a sum?",
        "Row pid[0] begins at offset pid[0] * n_cols. Load it once, with other=-np.inf for the "
        "tail: exp(−∞) is 0. Subtract the maximum before exp, so that no power overflows. All "
        "that follows works on the block that you already have.",
        "row = load(x, offs, mask, other=-np.inf), then powers = np.exp(row - row.max()), then one "
        "store of powers divided by …, under the same mask.",
    ),
    notes=_NOTES
    | {
        "out_of_bounds": "Row pid[0] has n_cols numbers. At which offset does it begin, behind "
        "which does it end, and do the offsets and the mask of this line say the same?",
        "unwritten": "Where does row pid[0] begin, where does it end, and does the store reach "
        "all of it?",
        "traffic": "2MN is one load and one store of every number. Does a step after the load read "
        "the row again?",
        "values": "Do rows whose length is BLOCK come out right? If so, what do the lanes of the "
        "tail hold, and what does that do to the maximum and the sum? If not: where does row "
        "pid[0] begin, and is the formula the one of the text?",
        "interface": "The check calls softmax_kernel(pid, x, out, n_cols, BLOCK), a program a row; "
        "BLOCK is at least n_cols.",
        "race": "Where does the next row begin, and does a lane of the tail store there?",
    },
)

MATMUL = Exercise(
    id="01.matmul",
    title="Matmul, a tile a program",
    names=("matmul_kernel", "triton_matmul"),
    machine="numpy",
    cases=(
        _mnk("whole tiles", 32, 48, 64),
        _mnk("sizes that divide nothing", 45, 29, 53),
        _mnk("flat tiles", 40, 60, 50, bm=8, bn=32, bk=4),
        _mnk("smaller than a tile", 5, 7, 3),
        _mnk("K ends within a tile", 32, 32, 17, bk=8),
        _mnk("one row", 1, 62, 30, bm=2),
    ),
    points={"values": 4, "bounds": 2, "races": 1, "traffic": 3},
    arguments=_matmul_arguments,
    reference=lambda a, b, *_: (a @ b,),
    tolerance=_matmul_tolerance,
    limit=_matmul_limit,
    limit_text="M·N·K·(1/BM + 1/BN) + M·N",
    drive=_drive_matmul,
    hints=(
        "Program (i, j) owns one tile of C. Which rows of A and which columns of B does it need, "
        "and how many tiles of A and of B does it read on its way along K?",
        "A column of row numbers, rows[:, None], and a row of column numbers, ks[None, :], give by "
        "broadcasting the offsets of a tile: rows[:, None] * K + ks[None, :] for A. Each tile has "
        "its own mask, in both directions. The sum stays in one block of BM × BN until the loop "
        "along K has ended.",
        "for k in range(0, K, BK): ks = k + arange(0, BK), then a = load(A, rows[:, None] * K + "
        "ks[None, :], (rows[:, None] < M) & (ks[None, :] < K)), the same for b with row length N, "
        "then acc += a @ b; behind the loop one store. The grid is (cdiv(M, BM), cdiv(N, BN)).",
    ),
    notes=_NOTES
    | {
        "out_of_bounds": "A tile has two edges. Which of M, N and K belong in this line's mask?",
        "unwritten": "How many tiles cover M rows, and how many N columns? Does every program "
        "(i, j) of the grid store its own?",
        "traffic": "Each program reads a strip of A once and a strip of B once. Which tile is "
        "loaded again, or larger than it has to be?",
        "values": "Does the loop along k reach K, also where BK does not divide it? Which lanes of "
        "a tile lie beyond K, and what do they add to the sum? Are rows as long as K in A, and as "
        "long as N in B and C?",
        "interface": "The check calls triton_matmul(A, B, BM=…, BN=…, BK=…), which launches "
        "matmul_kernel(pid, A, B, C, M, N, K, BM, BN, BK) and returns C.",
        "race": "Which tile belongs to program (i, j), and how often is it stored?",
    },
)

QUIZ = quiz(
    "01.quiz",
    "Quiz: the programming model",
    {
        "q1": "number",
        "q2": "one of a b c d",
        "q3": "one of a b c d",
        "q4": "number",
        "q5": "some of a b c d e",
        "q6": "number",
    },
)

EXERCISES = (ADD, SOFTMAX, MATMUL, QUIZ)
