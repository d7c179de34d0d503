"""Unit 05, tiled matmul: the product, the order of its programs, an epilogue; tables only.

a is M×K, b is K×N, of one type; products are summed in float32 and rounded once, when stored.
An inner product of length K in float32, in any order of its sums, errs by at most K u Σ|a||b| to
first order: one rounding of the product and K − 1 of sums (Higham, Accuracy and Stability of
Numerical Algorithms, 2nd ed., section 3.1). Products of two narrow numbers are exact in float32, so
there the bound is a little wide.
"""

from __future__ import annotations

import numpy as np

from autograder.exercises.quiz import quiz
from autograder.exercises.roundings import DIVIDE, EXP, FLUSHED, U, of_sum, stored
from autograder.ir.cards import card
from autograder.records import Case, Clue, Exercise, ProgramOrder, Tensor

_TILE = 32  # the limit asks for tiles of at least this
_LEAST = 64  # what a side counts as that is shorter: one tile, which a kernel may wrap round


def _operands(case: Case) -> tuple[Tensor, Tensor]:
    """a and b as a case's sizes say: M, N, K, dtype, and where given fill and strides."""
    s = case.sizes
    fill = s.get("fill", "normal")
    a, b = (tuple(s[name]) if name in s else None for name in ("a_strides", "b_strides"))
    return (
        Tensor((s["M"], s["K"]), s["dtype"], a, fill),
        Tensor((s["K"], s["N"]), s["dtype"], b, fill),
    )


def _with_bias(case: Case) -> tuple[Tensor, Tensor, Tensor]:
    s = case.sizes
    return (*_operands(case), Tensor((s["N"],), s["dtype"], fill=s.get("fill", "normal")))


def _matrix(case: Case) -> tuple[Tensor, ...]:
    return (Tensor((case.sizes["M"], case.sizes["N"]), case.sizes["dtype"]),)


def _tiles(case: Case) -> tuple[int, int]:
    """Rows and columns of tiles of ``_TILE``; a ragged edge counts as a whole tile."""
    m, n = (max(case.sizes[side], _LEAST) for side in ("M", "N"))
    return -(-m // _TILE), -(-n // _TILE)


def _read_and_written(case: Case) -> int:
    """M·N·K·(1/32 + 1/32) + M·N with whole tiles: what masks switch off, another kernel reads."""
    rows, columns = _tiles(case)
    read = 2 * _TILE * rows * columns * case.sizes["K"]
    return read + case.sizes["M"] * case.sizes["N"]


def _limit(case: Case) -> int:
    return _read_and_written(case) * 105 // 100


def _limit_with_bias(case: Case) -> int:
    """The bias is read once by every row of tiles."""
    rows, columns = _tiles(case)
    return (_read_and_written(case) + rows * columns * _TILE) * 105 // 100


# ---------------------------------------------------------------- reference and tolerance

_ROOT = np.sqrt(2 / np.pi)
_CUBE = 0.044715
_STEEPEST = 1.13  # of gelu's slope, 1.1290 near z = 1.41


def _matmul(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray]:
    return (a @ b,)


def _bias_gelu(a: np.ndarray, b: np.ndarray, bias: np.ndarray) -> tuple[np.ndarray]:
    """gelu(a b + bias) in the tanh form: 0.5 z (1 + tanh(√(2/π) (z + 0.044715 z³)))."""
    z = a @ b + bias
    return (0.5 * z * (1 + np.tanh(_ROOT * (z + _CUBE * z**3))),)


def _dot_error(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Bound on the absolute error of a b before it is stored."""
    return (of_sum(a.shape[1]) + U) * (np.abs(a) @ np.abs(b))


def _matmul_tolerance(case: Case, arguments: tuple, expected: tuple) -> tuple[np.ndarray]:
    return (stored(_dot_error(*arguments), expected[0], case.sizes["dtype"]),)


def _bias_gelu_tolerance(case: Case, arguments: tuple, expected: tuple) -> tuple[np.ndarray]:
    """The dot's error and the bias's rounding, times the slope; then gelu's own operations.

    With w the argument of tanh, 1 + tanh w = 2 s, s = 1/(1 + exp(−2w)). w takes seven roundings
    (its two constants among them) and the exponent two more, so the exponential errs, relative to
    itself, by 9u |2w| and by exp's own error. 1 + tanh is rounded up to three times at numbers of
    the size of 1, which weighs where tanh is near −1.
    """
    a, b, bias = arguments
    z = a @ b + bias
    z_error = _dot_error(a, b) + U * np.abs(z)
    w = _ROOT * (z + _CUBE * z**3)
    s = 0.5 * (1 + np.tanh(w))
    exponential = EXP + 9 * U * np.abs(2 * w)
    s_error = s * (1 - s) * exponential + s * (U + DIVIDE)
    error = _STEEPEST * z_error + np.abs(z) * (s_error + 1.5 * U + FLUSHED)
    return (stored(error + 2 * U * np.abs(expected[0]), expected[0], case.sizes["dtype"]),)


# ---------------------------------------------------------------- cases


def _case(label: str, M: int, N: int, K: int, dtype: str = "float32", **more) -> Case:
    return Case(label, {"M": M, "N": N, "K": K, "dtype": dtype, **more})


_MATMUL = (
    _case("sizes that divide nothing", 97, 131, 75),
    _case("whole tiles", 128, 128, 64),
    _case("K smaller than a tile", 70, 50, 5),
    _case("one row", 1, 200, 100),
    _case("one column", 150, 1, 90),
    _case("an empty K", 40, 70, 0),
    _case("a transposed", 90, 110, 66, a_strides=(1, 90)),
    _case("b transposed", 110, 90, 67, b_strides=(1, 67)),
    _case("every second column", 75, 85, 95, a_strides=(192, 2), b_strides=(200, 2)),
    _case("±10 000", 65, 66, 67, fill="large"),
    _case("float16", 129, 100, 200, "float16"),
    _case("float16, positive numbers", 70, 80, 200, "float16", fill="uniform"),
    _case("bfloat16, b transposed", 100, 129, 130, "bfloat16", b_strides=(1, 130)),
)

# The first two are there for their addresses. At 1024² tiles of 128 × 128 leave no order to choose
# (64 programs run at once), at 2048² they do; all configurations are judged on the first case.
_GROUPING = (
    _case("the model's 2048²", 2048, 2048, 64, "float16", counted=True),
    _case("the model's 1024²", 1024, 1024, 64, "float16", counted=True),
    _case("sizes that divide nothing", 97, 131, 75),
    _case("rows that are no whole group", 1100, 90, 30, "float16"),
)

_BIAS_GELU = (
    _case("sizes that divide nothing", 97, 131, 75),
    _case("whole tiles", 128, 128, 64),
    _case("K smaller than a tile", 70, 50, 5),
    _case("one row", 1, 200, 100),
    _case("an empty K", 40, 70, 0),
    _case("a transposed", 90, 110, 66, a_strides=(1, 90)),
    _case("b transposed", 110, 90, 67, b_strides=(1, 67)),
    _case("numbers between 0 and 1", 60, 70, 3, fill="uniform"),
    _case("±10 000", 65, 66, 67, fill="large"),
    _case("float16", 129, 100, 200, "float16"),
    _case("bfloat16", 100, 129, 30, "bfloat16"),
)

_NOTES = {
    "out_of_bounds": "A tile has two edges. Which of M, N and K belong in the mask of this load or "
    "store?",
    "uninitialised": "Which load reads a tensor before anything was stored there?",
    "undefined_lane": "A lane beyond K takes part in every sum of its row and column. What must it "
    "read, so that it adds nothing?",
    "unwritten": "How many tiles cover M rows, how many cover N columns, and along which axis of "
    "the grid do your programs count which? Is the mask of the store true for every element?",
    "race": "Which tile belongs to program pid, and to no other program?",
    "traffic": "A tile of BLOCK_M × BLOCK_N reads BLOCK_M + BLOCK_N numbers for each step along K. "
    "What does twice the side do to the number of tiles?",
    "values": "Take M = N = 2, K = 3 and a tile of 4: what does each lane of a and b hold, lane by "
    "lane, and what do those beyond K add to the sum?",
    "torch_computed": "Which line computes the result, one in the kernel or one in Python? .t() "
    "makes a view and is free; .contiguous() copies.",
    "compile": "",  # Triton's sentence says what to do
    "interface": "",  # the sentence says what was asked for
}

_BY_STRIDES = (
    "It is right where rows lie one behind the other. How far apart are two neighbours along each "
    "axis here, and does the kernel get that number, from .stride(), in the right place?"
)
_EMPTY_K = (
    "K = 0 asks for zeros. Does a program run when the loop has no step to take, and does it store "
    "its tile?"
)
_WHOLE_TILES = (
    "Whole tiles come out wrong too, where no mask is needed. Take M = N = K = 2: which number "
    "does each lane of a and b read? Rows, columns and ks each go with a stride of their own."
)
# What the cases that pass say of the fault.
_CLUES = (
    Clue("out_of_bounds", "every second column", "sizes that divide nothing", _BY_STRIDES),
    Clue(
        "out_of_bounds",
        "whole tiles",
        "",
        "Which of M, N and K belong in this mask? Whole tiles, which need none, are wrong as well: "
        "which stride belongs to the rows of this tile, which to its columns?",
    ),
    Clue("unwritten", "an empty K", "sizes that divide nothing", _EMPTY_K),
    Clue(
        "values",
        "whole tiles",
        "K smaller than a tile",
        "It is right where the loop has one step and wrong where it has several. What does a "
        "second step read, and what does it do with the sum of the first?",
    ),
    Clue("values", "whole tiles", "", _WHOLE_TILES),
    Clue(
        "values",
        "sizes that divide nothing",
        "whole tiles",
        "It is right where tiles fit and wrong at ragged edges. Take K = 3 and BLOCK_K = 4: how "
        "many steps does the loop take, what do lanes beyond K hold, and which lanes are stored?",
    ),
    Clue("values", "a transposed", "sizes that divide nothing", _BY_STRIDES),
    Clue("values", "b transposed", "sizes that divide nothing", _BY_STRIDES),
    Clue("values", "every second column", "sizes that divide nothing", _BY_STRIDES),
    Clue("values", "an empty K", "sizes that divide nothing", _EMPTY_K),
    Clue(
        "values",
        "float16",
        "sizes that divide nothing",
        "It is right in float32 and wrong in a narrower type. Where is a number rounded to that "
        "type before the last line stores it?",
    ),
)
# With an epilogue, K = 0 leaves gelu of the bias: it tells the two halves apart.
_BIAS_CLUES = (
    Clue(
        "values",
        "an empty K",
        "",
        "It is wrong for K = 0 too, where z is the bias alone. Which number of the bias belongs to "
        "column j of the result, and what is gelu of it, step by step, by hand?",
    ),
    *(clue for clue in _CLUES if clue.wrong != "every second column"),  # no such case here
)

_COMPILED = _case("compiled", 512, 512, 512, "bfloat16")

# ---------------------------------------------------------------- exercises

MATMUL = Exercise(
    id="05.matmul",
    title="Tiled matmul",
    names=("matmul",),
    cases=_MATMUL,
    points={"values": 3, "kernel": 1, "bounds": 3, "races": 1, "traffic": 2, "compiles": 2},
    arguments=_operands,
    reference=_matmul,
    tolerance=_matmul_tolerance,
    limit=_limit,
    outputs=_matrix,
    limit_text="M·N·K·(1/32 + 1/32) + M·N",
    compiled=_COMPILED,
    hints=(
        "Program (i, j) owns one tile of the result. Which rows of a and which columns of b does "
        "it need, and how does it get there step by step along K? Two blocks of numbers, rows and "
        "columns, become a block of addresses by rows[:, None] and cols[None, :].",
        "Three masks: a's tile has edges in M and K, b's in K and N, the store's in M and N. "
        "Beyond K both tiles must read 0, so other=0.0. The sum stays in a block of float32 until "
        "the loop ends. Steps between neighbours are the tensor's strides, in both directions.",
        "a = tl.load(a_ptr + rows[:, None] * stride_am + ks[None, :] * stride_ak, mask=(rows[:, "
        "None] < M) & (ks[None, :] < K), other=0.0), b likewise, acc = tl.dot(a, b, acc); behind "
        "the loop tl.store(…, acc.to(c_ptr.dtype.element_ty), mask=…). On a card float32 tiles are "
        'rounded to TF32 unless tl.dot gets input_precision="ieee".',
    ),
    notes=_NOTES,
    clues=_CLUES,
    in_place=True,
)

_ONE_EACH = (
    "How many programs, how many tiles? Write down the tile of each program for 3 × 2 tiles in "
    "groups of 2 rows (the last has one): is any tile missing, taken twice, or off every mask?"
)

GROUPING = Exercise(
    id="05.grouping",
    title="An order that spares memory",
    names=("matmul",),
    cases=_GROUPING,
    points={"values": 1, "kernel": 1, "bounds": 1, "races": 1, "traffic": 4},
    arguments=_operands,
    reference=_matmul,
    tolerance=_matmul_tolerance,
    limit=_limit,
    outputs=_matrix,
    limit_text="M·N·K·(1/32 + 1/32) + M·N",
    # 128 KB for 32 × 32 tiles; slack as for every other traffic limit.
    order=ProgramOrder(group=8, at_once=card().sms, bytes_per_element=128, slack=1.05),
    hints=(
        "76 programs run at the same time. Draw their tiles for row after row of 32 tiles: how "
        "many rows of a, how many columns of b do they read together? What would they read if they "
        "stood in a square?",
        "Take GROUP_M = 8 rows of tiles and go through them column by column: the first eight "
        "programs lie below one another, the next eight to their right. A group has GROUP_M times "
        "as many programs as there are columns of tiles; the last group may have fewer rows.",
        "in_group = GROUP_M * tiles_n; first_m = pid // in_group * GROUP_M; size = min(tiles_m − "
        "first_m, GROUP_M); then pid_m = first_m + (pid % in_group) % size and pid_n = (pid % "
        "in_group) // size.",
    ),
    notes=_NOTES
    | {
        "traffic": "Which tiles do 76 neighbouring programs own? Count the rows of a and the "
        "columns of b that they read together, and look for a shape with fewer.",
        "unwritten": _ONE_EACH,
        "race": _ONE_EACH,
    },
    clues=(
        Clue(
            "out_of_bounds",
            "the model's 2048²",
            "",
            "2048 is a multiple of every tile, so the mask in M or N is not it. Are there as many "
            "programs as tiles, in each configuration? Which tile does the named program take?",
        ),
    ),
    in_place=True,
)

MATMUL_BIAS_GELU = Exercise(
    id="05.matmul_bias_gelu",
    title="Matmul with bias and GELU",
    names=("matmul_bias_gelu",),
    cases=_BIAS_GELU,
    points={"values": 3, "kernel": 1, "bounds": 2, "races": 1, "traffic": 2, "compiles": 1},
    arguments=_with_bias,
    reference=_bias_gelu,
    tolerance=_bias_gelu_tolerance,
    limit=_limit_with_bias,
    outputs=_matrix,
    limit_text="M·N·K·(1/32 + 1/32) + M·N + M·N/32",
    compiled=_COMPILED,
    hints=(
        "A matmul, then + bias, then gelu, each by a kernel of its own, sends M·N numbers to "
        "memory and back twice. Where are these numbers when the loop along K has just ended?",
        "Behind the loop acc is a block of float32. Load the part of the bias that belongs to the "
        "tile's columns, one row of BLOCK_N numbers, and add it as bias[None, :]. Then compute "
        "gelu on the block, and only then cast and store.",
        "1 + tanh(w) is 2 · sigmoid(2w), so gelu(z) = z * tl.sigmoid(2 * 0.7978845608 * (z + "
        "0.044715 * z * z * z)). (exp(2w) − 1) / (exp(2w) + 1) is infinity over infinity as soon "
        "as w is 45.",
    ),
    notes=_NOTES
    | {
        "traffic": "Which numbers travel more than once, through the argument that is named? The "
        "sum lies in registers when the loop along K ends; of the bias a tile needs BLOCK_N.",
        "values": "Does the product come out right without bias and gelu? Does gelu work on the "
        "float32 sum or on a rounded one, and does its exponential overflow for z = 1000?",
    },
    clues=_BIAS_CLUES,
    in_place=True,
)

QUIZ = quiz(
    "05.quiz",
    "Quiz of unit 05",
    {
        "q1": "number",
        "q2": "one of a b c d",
        "q3": "number",
        "q4": "some of a b c d e",
        "q5": "number",
    },
)

EXERCISES = (MATMUL, GROUPING, MATMUL_BIAS_GELU, QUIZ)
