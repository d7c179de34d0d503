"""Unit 04, norms: RMSNorm, a LayerNorm with a bug to find, and RMSNorm's gradients; tables only.

x has M rows of N columns, weights are shared by all rows, everything is computed in float32 and
rounded once, when it is stored. Tolerances count roundings (``roundings``):

* r = 1/√(Σx²/N + eps): the squares, their sum, the division and the sum with eps give the root's
  argument a relative error of ``of_sum(N)`` + 6u (no sign cancels); the root halves it;
* LayerNorm's mean errs by E = (``of_sum(N)`` + 4u) mean|x|. The same E is taken from every x of the
  row, so Σ(x − mean)² errs by N E² and by roundings, not by E: the other terms cancel.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from autograder.exercises.quiz import quiz
from autograder.exercises.roundings import DIVIDE, RSQRT, U, of_sum, stored
from autograder.records import Case, Exercise, Tensor


def _arguments(parameters: int) -> Callable[[Case], tuple]:
    """x, ``parameters`` vectors of N, and eps where the case has one (else the default counts)."""

    def arguments(case: Case) -> tuple:
        sizes = case.sizes
        strides = sizes.get("strides")
        x = Tensor(
            (sizes["M"], sizes["N"]),
            sizes["dtype"],
            tuple(strides) if strides else None,
            sizes.get("fill", "normal"),
        )
        vector = Tensor((sizes["N"],), sizes["dtype"])
        eps = (sizes["eps"],) if "eps" in sizes else ()
        return (x, *(vector,) * parameters, *eps)

    return arguments


def _matrix(case: Case) -> tuple[Tensor, ...]:
    return (Tensor((case.sizes["M"], case.sizes["N"]), case.sizes["dtype"]),)


def _matrix_and_gradients(case: Case) -> tuple[Tensor, ...]:
    """y, dx and dw."""
    (matrix,) = _matrix(case)
    return matrix, matrix, Tensor((case.sizes["N"],), case.sizes["dtype"])


def _reads_and_writes(passes: int, more: Callable[[int, int], int] = lambda m, n: 0):
    """At most ``passes`` · M · N elements requested and ``more(M, N)``, and 5 % more."""

    def limit(case: Case) -> int:
        m, n = case.sizes["M"], case.sizes["N"]
        return (passes * m * n + more(m, n)) * 105 // 100

    return limit


# ---------------------------------------------------------------- reference


def _rms(x: np.ndarray, eps: float) -> np.ndarray:
    """r, one number a row: 1/√(mean of x² + eps)."""
    return 1 / np.sqrt((x * x).mean(axis=-1, keepdims=True) + eps)


def _rmsnorm(x: np.ndarray, w: np.ndarray, eps: float = 1e-6) -> tuple[np.ndarray]:
    return (x * _rms(x, eps) * w,)


def _layernorm(x: np.ndarray, w: np.ndarray, b: np.ndarray, eps: float = 1e-5):
    """(x − mean) / √(variance + eps) · w + b, with the variance over N, as in torch."""
    centered = x - x.mean(axis=-1, keepdims=True)
    return (centered * _rms(centered, eps) * w + b,)


def _rmsnorm_backward(x: np.ndarray, w: np.ndarray, eps: float, dy: np.ndarray):
    """y, and for c = mean of (w dy x̂) over the row, x̂ = x r: dx = r (w dy − x̂ c), dw = Σ dy x̂.

    dr/dx_j = −r³ x_j / N, from which dx follows; Zhang and Sennrich, Root Mean Square Layer
    Normalization, 2019, section 4.1.
    """
    r = _rms(x, eps)
    normed = x * r
    c = (w * dy * normed).mean(axis=-1, keepdims=True)
    return normed * w, r * (w * dy - normed * c), (dy * normed).sum(axis=0)


# ---------------------------------------------------------------- tolerance


def _eps(case: Case, default: float) -> float:
    return case.sizes.get("eps", default)


def _rms_error(n: int) -> float:
    """Bound on the relative error of r."""
    return (of_sum(n) + U + DIVIDE + U) / 2 + RSQRT


def _rmsnorm_tolerance(case: Case, arguments: tuple, expected: tuple) -> tuple[np.ndarray]:
    """r's error and two products."""
    error = np.abs(expected[0]) * (_rms_error(case.sizes["N"]) + 2 * U)
    return (stored(error, expected[0], case.sizes["dtype"]),)


def _layernorm_tolerance(case: Case, arguments: tuple, expected: tuple) -> tuple[np.ndarray]:
    x, w, b = arguments[:3]
    n = case.sizes["N"]
    mean_error = (of_sum(n) + DIVIDE) * np.abs(x).mean(axis=-1, keepdims=True)
    centered = x - x.mean(axis=-1, keepdims=True)
    variance = (centered * centered).mean(axis=-1, keepdims=True)
    # Each x − mean is rounded, then squared: 3u; sum, division, and the sum with eps.
    root = variance + _eps(case, 1e-5)
    relative = ((of_sum(n) + 3 * U + DIVIDE) * variance + mean_error**2) / root + U
    r = 1 / np.sqrt(root)
    # 1/√(1 − relative) − 1 is the exact bound; half of it, the first order, fails near 1.
    r_error = 1 / np.sqrt(np.maximum(1 - relative, 2.0**-10)) - 1 + RSQRT
    scaled = np.abs(centered * r * w)
    error = np.abs(r * w) * (mean_error + U * np.abs(centered)) * (1 + r_error)
    error = error + scaled * (r_error + 2 * U) + U * (scaled + np.abs(b))
    return (stored(error, expected[0], case.sizes["dtype"]),)


def _backward_tolerance(case: Case, arguments: tuple, expected: tuple) -> tuple[np.ndarray, ...]:
    """y as in the forward exercise; dx from the two terms before they cancel; dw as a sum over M.

    Counted in the longest form, dx = r w dy − x r³ Σ(w dy x) / N: three roundings and r's error in
    the first term; in the second eight, three times r's error, and the sum's.
    """
    x, w, eps, dy = arguments
    m, n, dtype = case.sizes["M"], case.sizes["N"], case.sizes["dtype"]
    (y,) = _rmsnorm_tolerance(case, (x, w, eps), expected[:1])
    r, r_error = _rms(x, eps), _rms_error(n)
    normed = x * r
    terms = w * dy * normed
    c = np.abs(terms.mean(axis=-1, keepdims=True))
    c_error = (of_sum(n) + 2 * U) * np.abs(terms).mean(axis=-1, keepdims=True) + DIVIDE * c
    dx = np.abs(r * w * dy) * (r_error + 3 * U)
    dx = dx + np.abs(r * normed) * (c * (3 * r_error + 8 * U) + c_error)
    dw = (of_sum(m) + r_error + 2 * U) * np.abs(dy * normed).sum(axis=0)
    return y, stored(dx, expected[1], dtype), stored(dw, expected[2], dtype)


# ---------------------------------------------------------------- cases


def _case(label: str, M: int, N: int, dtype: str = "float32", **more) -> Case:
    return Case(label, {"M": M, "N": N, "dtype": dtype, **more})


_RMSNORM = (
    _case("Qwen's width", 512, 896),
    _case("one column", 9, 1),
    _case("one row", 1, 777),
    _case("a power of two", 40, 256),
    _case("a short row", 20, 5),
    _case("padded rows", 37, 100, strides=(128, 1)),
    _case("±10 000", 33, 333, fill="large"),
    _case("a large eps", 25, 200, eps=0.5),
    _case("no rows", 0, 64),
    _case("float16, ±10 000", 41, 517, "float16", fill="large"),
    _case("bfloat16, padded rows", 29, 896, "bfloat16", strides=(1024, 1)),
)

# Every row is shorter than its block, and its mean is not 0, so that the bug shows in each case.
_LAYERNORM = (
    _case("Qwen's width", 64, 896, fill="uniform"),
    _case("two columns", 9, 2, fill="uniform"),
    _case("one row", 1, 777, fill="negative"),
    _case("padded rows", 37, 100, strides=(128, 1), fill="uniform"),
    _case("one element more than a block", 20, 257, fill="negative"),
    _case("far from zero", 25, 90, fill="far_from_zero"),
    _case("a large eps", 25, 200, eps=0.5, fill="negative"),
    _case("no rows", 0, 60),
    _case("float16", 41, 517, "float16", fill="negative"),
    _case("bfloat16, padded rows", 29, 896, "bfloat16", strides=(1024, 1), fill="uniform"),
)

_RMSNORM_BACKWARD = (
    _case("Qwen's width", 200, 896, eps=1e-6),
    _case("one column", 9, 1, eps=0.5),
    _case("one row", 1, 777, eps=1e-6),
    _case("a power of two", 64, 256, eps=1e-6),
    _case("fewer rows than anything", 3, 40, eps=1e-5),
    _case("padded rows", 37, 100, strides=(128, 1), eps=1e-6),
    _case("±10 000", 33, 333, fill="large", eps=1e-6),
    _case("a large eps", 25, 200, eps=0.5),
    _case("float16", 41, 517, "float16", eps=1e-6),
    _case("bfloat16, many rows", 300, 100, "bfloat16", eps=1e-6),
)

_NOTES = {
    "out_of_bounds": "A row ends after N columns, whatever lies behind it. Which lanes of the "
    "block have a column, and does every load and every store get that mask?",
    "uninitialised": "Which load reads a tensor before anything was stored there?",
    "undefined_lane": "A lane beyond the row takes part in the sum. What must it read, so that it "
    "adds nothing?",
    "unwritten": "Is there a program for every row, and does it store every column?",
    "race": "Which rows belong to program pid, and to no other program?",
    "traffic": "How often does each number of a row have to cross the bus? What was loaded stays "
    "with its program.",
    "values": "Take one row of three numbers and a block of four: what does each sum come to, lane "
    "by lane, and by what is it divided?",
    "torch_computed": "Which line computes the result, one in the kernel or one in Python?",
    "compile": "",  # Triton's sentence says what to do
    "interface": "",  # the sentence says what was asked for
}

# ---------------------------------------------------------------- exercises

RMSNORM = Exercise(
    id="04.rmsnorm",
    title="RMSNorm",
    names=("rmsnorm",),
    cases=_RMSNORM,
    points={"values": 3, "kernel": 1, "bounds": 2, "races": 1, "traffic": 2, "compiles": 1},
    arguments=_arguments(1),
    reference=_rmsnorm,
    tolerance=_rmsnorm_tolerance,
    limit=_reads_and_writes(3),
    outputs=_matrix,
    limit_text="3MN",
    contiguous=True,
    compiled=_case("compiled", 16, 896, "bfloat16"),
    hints=(
        "One program, one row, as in softmax. Which single number does a row need before its "
        "elements can be scaled, and what must a lane beyond the row read so as not to change it?",
        "x and the weights with other=0.0 and .to(tl.float32): squares of 0 add nothing. Divide "
        "by the number of columns, not by the length of the block.",
        "r = tl.rsqrt(tl.sum(x * x, axis=0) / n_cols + eps); store x * r * w at out_ptr + row * "
        "n_cols + cols. Outside: out = torch.empty(x.shape, dtype=x.dtype, device=x.device), and "
        "x.stride(0) for x's rows.",
    ),
    notes=_NOTES
    | {
        "traffic": "3MN is x once, the weights once for each row, and the output once. Which of "
        "them is loaded a second time, or by programs that have no row?",
    },
)

LAYERNORM = Exercise(
    id="04.layernorm",
    title="LayerNorm, a bug hunt",
    names=("layernorm",),
    cases=_LAYERNORM,
    points={"values": 3, "kernel": 1, "bounds": 1, "races": 1, "traffic": 1, "compiles": 1},
    arguments=_arguments(2),
    reference=_layernorm,
    tolerance=_layernorm_tolerance,
    limit=_reads_and_writes(4),
    outputs=_matrix,
    limit_text="4MN",
    contiguous=True,
    compiled=_case("compiled", 16, 896, "bfloat16"),
    hints=(
        "Blocks have 128 lanes or more. Try it on a row of 128 ones and twos, then on one of 127. "
        "One of the two is right. What is different about their blocks?",
        "The lane beyond the row reads 0, and the mean is right: a 0 changes no sum. But what has "
        "become of that 0 when it enters the next sum?",
        "In a lane beyond the row x - mean is -mean, and its square is no 0. Make it 0 again "
        "before squaring: centered = tl.where(mask, x - mean, 0.0).",
    ),
    notes=_NOTES
    | {
        "values": "For which widths is it right? Take the smallest row that fails, and do each sum "
        "by hand, lane by lane.",
        "traffic": "4MN is x once, two vectors of parameters once for each row, and the output "
        "once. Which of them is loaded a second time?",
    },
)

RMSNORM_BACKWARD = Exercise(
    id="04.rmsnorm_backward",
    title="RMSNorm's gradients",
    names=("TritonRMSNorm",),
    cases=_RMSNORM_BACKWARD,
    points={"values": 3, "kernel": 1, "bounds": 2, "races": 2, "traffic": 1, "compiles": 1},
    arguments=_arguments(1),
    reference=_rmsnorm_backward,
    tolerance=_backward_tolerance,
    limit=_reads_and_writes(8, lambda m, n: 2 * m + 80 * n),
    outputs=_matrix_and_gradients,
    results=("y", "the gradient dx", "the gradient dw"),
    limit_text="8MN + 2M + 80N",
    backward=True,
    compiled=_case("compiled", 16, 896, "bfloat16", eps=1e-6),
    hints=(
        "dx belongs to one row, so one program can do it as before. But every row adds to dw: "
        "which two ways are there to let many programs add up one vector without a race?",
        "Either tl.atomic_add into a float32 tensor of zeros; or a few programs, each with several "
        "rows, keep a partial dw in registers, store it as a row of a float32 matrix, and a second "
        "kernel adds up the columns of that matrix.",
        "forward stores r, float32, a number a row, and saves x, w and r. A row: xhat = x * r; c = "
        "tl.sum(w * dy * xhat, axis=0) / n_cols; dx = r * (w * dy - xhat * c); dw gets dy * xhat. "
        "backward returns three things: dx, dw in w's type, and None for eps.",
    ),
    notes=_NOTES
    | {
        "race": "Every row adds to dw, and programs run at the same time. Either each add is "
        "atomic, or each program has a partial sum of its own.",
        "traffic": "Forward takes 3MN. Backward reads x, dy and w, writes dx, and adds to dw once "
        "a row: 5MN. A partial sum for each row would be written and read again: let a program "
        "have many rows.",
        "values": "If y is right: is it dx or dw that differs? dx without its second term is "
        "r·w·dy; dw is summed over rows, and in float32.",
        "torch_computed": "dw.sum(0) in Python is torch's work: let a kernel add up the rows.",
        "interface": "forward gets (ctx, x, w, eps); backward gets (ctx, dy) and returns one "
        "thing for each input of forward: dx, dw and None for eps.",
        "unwritten": "Is there a program for every row of dx and for every column of dw?",
    },
)

QUIZ = quiz(
    "04.quiz",
    "Quiz of unit 04",
    {
        "q1": "one of a b c d",
        "q2": "number",
        "q3": "some of a b c d",
        "q4": "number",
        "q5": "number",
    },
)

EXERCISES = (RMSNORM, LAYERNORM, RMSNORM_BACKWARD, QUIZ)
