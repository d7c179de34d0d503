"""Unit 06, FlashAttention in levels: forward, causal, backward, grouped-query heads; tables only.

Formulas and tolerances stand in ``attention``.
"""

from __future__ import annotations

import numpy as np

from autograder.exercises.attention import (
    attention,
    attention_backward,
    backward_tolerance,
    forward_tolerance,
)
from autograder.exercises.quiz import quiz
from autograder.records import Case, Exercise, Tensor

# ---------------------------------------------------------------- arguments


def _strides(layout: str, shape: tuple[int, int, int, int]) -> tuple[int, ...] | None:
    """Strides of a (B, H, T, D) view of memory in another order; None where it is contiguous."""
    _, h, t, d = shape
    return {
        "": None,
        "heads inside": (t * h * d, d, h * d, 1),  # memory is (B, T, H, D)
        "packed": (3 * t * h * d, d, 3 * h * d, 1),  # a third of (B, T, 3, H, D)
        "transposed": (h * d * t, d * t, 1, t),  # memory is (B, H, D, T)
        "every second": (2 * h * t * d, 2 * t * d, 2 * d, 2),
    }[layout]


def _tensors(case: Case) -> tuple[Tensor, Tensor, Tensor]:
    s = case.sizes
    queries = (s["B"], s["H"], s["T"], s["D"])
    keys = (s["B"], s.get("KV", s["H"]), s["T"], s["D"])
    fill, layout = s.get("fill", "normal"), s.get("layout", "")
    return (
        Tensor(queries, s["dtype"], _strides(layout, queries), fill),
        Tensor(keys, s["dtype"], _strides(layout, keys), fill),
        Tensor(keys, s["dtype"], _strides(layout, keys), s.get("v_fill", "normal")),
    )


def _arguments(case: Case) -> tuple:
    """q, k, v, causal, and where the case has them BLOCK_M and BLOCK_N."""
    s = case.sizes
    blocks = (s["BLOCK_M"], s["BLOCK_N"]) if "BLOCK_M" in s else ()
    return (*_tensors(case), s["causal"], *blocks)


def _outputs(case: Case) -> tuple[Tensor, ...]:
    q, _, _ = _tensors(case)
    return Tensor(q.shape, q.dtype), Tensor(q.shape[:3], "float32")


def _gradients(case: Case) -> tuple[Tensor, ...]:
    """o, dq, dk and dv."""
    q, k, _ = _tensors(case)
    output, gradient = Tensor(q.shape, q.dtype), Tensor(k.shape, k.dtype)
    return output, output, gradient, gradient


# ---------------------------------------------------------------- limits


def _blocks(case: Case) -> tuple[int, int]:
    return case.sizes.get("BLOCK_M", 64), case.sizes.get("BLOCK_N", 64)


def _pairs(t: int, rows: int, columns: int, causal: bool) -> int:
    """Keys that the blocks of queries load, all together, if blocks beyond the diagonal are left
    out."""
    keys = 0
    for start in range(0, t, rows):
        end = min(start + rows, t) if causal else t
        keys += min(-(-end // columns) * columns, t)
    return keys


def _forward(case: Case, block_m: int, block_n: int) -> int:
    """q and o once, lse once, k and v once for every block of queries that needs them."""
    s = case.sizes
    keys = _pairs(s["T"], block_m, block_n, s["causal"])
    return s["B"] * s["H"] * (2 * s["T"] * s["D"] + s["T"] + 2 * s["D"] * keys)


def _limit(case: Case) -> int:
    return _forward(case, *_blocks(case)) * 105 // 100


def _backward_limit(case: Case) -> int:
    """Forward, and backward in three kernels, all in blocks of 64 × 64.

    delta: o and do in, one number a query out. dq: q, do in and dq out, lse and delta, k and v for
    every block of queries. dk and dv: k, v in and dk, dv out; q, do, lse and delta for every block
    of keys. As many queries meet a block of keys as keys a block of queries.
    """
    s = case.sizes
    t, d = s["T"], s["D"]
    pairs = _pairs(t, 64, 64, s["causal"])
    delta = 2 * t * d + t
    dq = 3 * t * d + 2 * t + 2 * d * pairs
    dkv = 4 * t * d + (2 * d + 2) * pairs
    whole = _forward(case, 64, 64) + s["B"] * s["H"] * (delta + dq + dkv)
    return whole * 105 // 100


# ---------------------------------------------------------------- tolerance


def _tolerance(case: Case, arguments: tuple, expected: tuple) -> tuple[np.ndarray, np.ndarray]:
    return forward_tolerance(arguments, expected, case.sizes["dtype"], _blocks(case)[1])


def _tolerance_of_o(case: Case, arguments: tuple, expected: tuple) -> tuple[np.ndarray, float]:
    """On the first level lse may be any number; the next one asks for it."""
    return _tolerance(case, arguments, expected)[0], np.inf


def _backward_tolerance(case: Case, arguments: tuple, expected: tuple) -> tuple[np.ndarray, ...]:
    return backward_tolerance(arguments, expected, case.sizes["dtype"])


# ---------------------------------------------------------------- cases


def _case(label: str, B: int, H: int, T: int, D: int, dtype: str = "float32", **more) -> Case:
    return Case(label, {"B": B, "H": H, "T": T, "D": D, "dtype": dtype, "causal": True, **more})


def _full(*sizes, **more) -> Case:
    return _case(*sizes, **more, causal=False)


_STRONG = (
    _full("queries that fill no block", 1, 2, 100, 64, BLOCK_M=64, BLOCK_N=32),
    _full("one block", 2, 1, 64, 32, BLOCK_M=64, BLOCK_N=64),
    _full("one query beyond a block", 1, 2, 257, 32, BLOCK_M=64, BLOCK_N=64),
    _full("small blocks", 1, 1, 100, 32, BLOCK_M=16, BLOCK_N=16),
    _full("heads inside", 2, 3, 70, 32, BLOCK_M=32, BLOCK_N=64, layout="heads inside"),
    _full("large scores", 1, 2, 100, 64, fill="times_eight"),
    _full("one query, one key", 1, 2, 1, 32),
    _full("float16", 1, 2, 100, 64, "float16", BLOCK_M=32, BLOCK_N=32),
    _full("values near one in float16", 1, 1, 257, 32, "float16", BLOCK_M=64, BLOCK_N=16,
          fill="uniform", v_fill="near_one"),
    _full("bfloat16", 1, 2, 257, 64, "bfloat16"),
)  # fmt: skip

_BOSS = (
    _case("queries that fill no block", 1, 2, 100, 64, BLOCK_M=64, BLOCK_N=32),
    _case("one query beyond a block", 1, 2, 257, 32),
    _case("blocks of queries longer than of keys", 1, 1, 257, 16, BLOCK_M=128, BLOCK_N=16),
    _case("blocks of keys longer than of queries", 1, 2, 200, 32, BLOCK_M=16, BLOCK_N=128),
    _case("one query", 2, 2, 1, 64),
    _case("one less than a block", 1, 2, 63, 64),
    _case("one more than a block", 1, 2, 65, 128, BLOCK_M=32, BLOCK_N=64),
    _full("not causal", 2, 1, 100, 32, BLOCK_M=32, BLOCK_N=64),
    _case("heads inside", 2, 3, 70, 32, BLOCK_M=32, BLOCK_N=32, layout="heads inside"),
    _case("transposed", 1, 2, 90, 32, layout="transposed"),
    _case("large scores", 1, 2, 130, 64, fill="times_eight"),
    _case("values near one in float16", 1, 1, 257, 32, "float16", BLOCK_M=64, BLOCK_N=16,
          fill="uniform", v_fill="near_one"),
    _case("bfloat16", 1, 2, 130, 64, "bfloat16"),
)  # fmt: skip

_BACKWARD = (
    _case("queries that fill no block", 1, 1, 100, 64),
    _full("not causal", 1, 2, 100, 32),
    _case("one query beyond two blocks", 1, 1, 129, 32),
    _case("one query", 1, 2, 1, 32),
    _case("heads inside", 2, 3, 70, 32, layout="heads inside"),
    _case("large scores", 1, 1, 70, 32, fill="times_eight"),
    _case("float16", 1, 1, 100, 64, "float16"),
    _full("bfloat16", 1, 1, 130, 64, "bfloat16"),
)

_GQA = (
    _case("four query heads a key head", 1, 8, 100, 32, KV=2),
    _case("one key head for all", 2, 3, 65, 64, KV=1, BLOCK_M=32, BLOCK_N=32),
    _full("not causal", 1, 4, 130, 32, KV=2, BLOCK_M=64, BLOCK_N=32),
    _case("as many key heads as query heads", 2, 2, 63, 32, KV=2),
    _case("heads inside", 2, 6, 70, 32, KV=3, layout="heads inside"),
    _case("float16", 1, 4, 100, 64, "float16", KV=2),
    _case("bfloat16", 1, 6, 130, 64, "bfloat16", KV=2),
)

_NOTES = {
    "out_of_bounds": "Blocks of queries and blocks of keys both end beyond T. Which of the two "
    "does this load or store walk along, and where is its mask?",
    "uninitialised": "Which load reads a tensor before anything was stored there?",
    "undefined_lane": "A key beyond T still enters the row's maximum and its sum. What must its "
    "score be, and what must its lanes of k and v hold?",
    "unwritten": "Does every query of every head have a program that stores its row of o and its "
    "number of lse?",
    "race": "Which queries of which head belong to this program, and to no other?",
    "traffic": "Which blocks of keys can the queries of this block see at all? The loop may end "
    "there.",
    "values": "Take T = 3 and a block of two keys: what are m, l and acc after the first block, "
    "and by what are l and acc multiplied when the second brings a larger maximum?",
    "torch_computed": "Which line computes the result, one in the kernel or one in Python? A view "
    "is free; .contiguous(), reshape of a strided tensor and repeat_interleave copy.",
    "compile": "What does the message name: a shape, a type, or the bytes that the blocks of all "
    "stages take in shared memory?",
    "interface": "Compare the function's signature and what it returns with the exercise's text: "
    "o in q's type, lse in float32.",
}

_COMPILED = _case("compiled", 1, 2, 128, 64, "float16", BLOCK_M=64, BLOCK_N=64)
_LIMIT_TEXT = "B·H·(2TD + T + 2D·keys)"

# ---------------------------------------------------------------- exercises

STRONG = Exercise(
    id="06.flash_strong",
    title="FlashAttention · level Strong",
    names=("flash_attention",),
    cases=_STRONG,
    points={"values": 4, "kernel": 1, "bounds": 2, "races": 1, "traffic": 2, "compiles": 2},
    arguments=_arguments,
    reference=attention,
    tolerance=_tolerance_of_o,
    limit=_limit,
    outputs=_outputs,
    results=("o", "lse"),
    limit_text=_LIMIT_TEXT,
    compiled=_full("compiled", 1, 2, 128, 64, "float16", BLOCK_M=64, BLOCK_N=64),
    hints=(
        "One program has BLOCK_M queries of one head and keeps three things for them: the largest "
        "score m, the sum l, the weighted values acc. What happens to l and acc when a block of "
        "keys brings a larger m? It is softmax_long of unit 03, with a row of values beside it.",
        "s = tl.dot(q, k) * scale with k loaded as D × BLOCK_N; keys beyond T get −inf by "
        "tl.where. Then new_m, p = exp(s − new_m[:, None]), shrink = exp(m − new_m); l and acc are "
        "multiplied by shrink before the block's part is added. Behind the loop: o = acc / l.",
        "l = l * shrink + tl.sum(p, axis=1); acc = tl.dot(p.to(v.dtype), v, acc * shrink[:, "
        "None]); m = new_m. Start with m = −inf, l = 0, acc = 0, all float32. The grid is "
        "(cdiv(T, BLOCK_M), B · H); batch = pid // H, head = pid % H, each with its own stride.",
    ),
    notes=_NOTES
    | {
        "traffic": "q is read once, o and lse are written once, k and v are read once for each "
        "block of queries. Which of them is loaded again?",
    },
)

BOSS = Exercise(
    id="06.flash_boss",
    title="FlashAttention · level Boss",
    names=("flash_attention",),
    cases=_BOSS,
    points={"values": 4, "kernel": 1, "bounds": 2, "races": 1, "traffic": 4, "compiles": 2},
    arguments=_arguments,
    reference=attention,
    tolerance=_tolerance,
    limit=_limit,
    outputs=_outputs,
    results=("o", "lse"),
    limit_text=_LIMIT_TEXT,
    compiled=_COMPILED,
    hints=(
        "Query number i sees keys 0 … i. Which blocks of keys does a block of queries that ends "
        "at row e need, which of them need a mask within the block, and how far does the loop go?",
        "The mask belongs on the scores, before the maximum: s = tl.where(cols[None, :] <= "
        "rows[:, None], s, −inf). Key 0 is seen by every query and comes in the first block, so "
        "no row's maximum stays at −inf.",
        "end = min((tl.program_id(0) + 1) * BLOCK_M, T) if CAUSAL else T, with CAUSAL a "
        "tl.constexpr; for start in range(0, end, BLOCK_N). And lse = m + tl.log(l), which is "
        "m · ln 2 + tl.log(l) if your m is in units of log₂.",
    ),
    notes=_NOTES
    | {
        "values": "If only lse is wrong: it is the logarithm of Σ exp(s), with the natural "
        "logarithm and the maximum added again. If only o is: does the mask come before the "
        "maximum, and does query i see key i?",
    },
)

BACKWARD = Exercise(
    id="06.flash_backward",
    title="FlashAttention · level Legend, backward",
    names=("FlashAttention",),
    cases=_BACKWARD,
    points={"values": 5, "kernel": 1, "bounds": 2, "races": 2, "traffic": 3, "compiles": 1},
    arguments=_arguments,
    reference=attention_backward,
    tolerance=_backward_tolerance,
    limit=_backward_limit,
    outputs=_gradients,
    results=("o", "the gradient dq", "the gradient dk", "the gradient dv"),
    limit_text="forward and backward in blocks of 64 × 64",
    backward=True,
    compiled=_case("compiled", 1, 2, 128, 64, "float16"),
    hints=(
        "P needs no second online softmax: with lse at hand it is exp(s − lse), block by block. "
        "Which sums of the formulas go over keys, which over queries, and so which program can "
        "keep which gradient in its registers?",
        "Three kernels: δ = Σ do · o a query; one program a block of keys walks over the queries "
        "that see it and keeps dk and dv; one program a block of queries walks over its keys and "
        "keeps dq. Or dq by tl.atomic_add into a float32 tensor of zeros.",
        "s = tl.dot(q, k) * scale; p = exp(s − lse[:, None]), 0 where masked; dv += dot(pᵀ, do); "
        "dp = dot(do, vᵀ); ds = p * (dp − delta[:, None]); dk += dot(dsᵀ, q); dq += dot(ds, k); "
        "dk and dq times scale at the end. backward returns dq, dk, dv and None for causal.",
    ),
    notes=_NOTES
    | {
        "values": "If o is right: dv needs only P and do; dq and dk need dS = P · (dP − δ). Which "
        "is the first of the three that differs, and is 1/√D in dq and dk exactly once?",
        "race": "Every block of keys adds to dq, every block of queries to dk and dv. Either a "
        "program owns the sum, or each add is atomic.",
        "traffic": "Which blocks of queries see this block of keys? In the causal case the walk "
        "begins at the diagonal. With blocks of 64 or more nothing is loaded more than it must.",
        "interface": "forward gets (ctx, q, k, v, causal) and returns o; backward gets (ctx, do) "
        "and returns dq, dk, dv, and None for causal.",
        "unwritten": "Does every query have a program that stores its dq, and every key one that "
        "stores its dk and dv?",
    },
)

GQA = Exercise(
    id="06.flash_gqa",
    title="FlashAttention · level Legend, grouped-query heads",
    names=("flash_attention",),
    cases=_GQA,
    points={"values": 3, "kernel": 1, "bounds": 1, "races": 1, "traffic": 2, "compiles": 1},
    arguments=_arguments,
    reference=attention,
    tolerance=_tolerance,
    limit=_limit,
    outputs=_outputs,
    results=("o", "lse"),
    limit_text=_LIMIT_TEXT,
    compiled=_case("compiled", 1, 4, 128, 64, "float16", KV=2, BLOCK_M=64, BLOCK_N=64),
    hints=(
        "Eight query heads and two key heads: which query heads read key head 0? Only one number "
        "of the kernel changes.",
        "Query head h reads key and value head h // (H // KV), with H = q.shape[1] and KV = "
        "k.shape[1]. Hand the kernel H // KV; k and v keep their own strides.",
        "kv_head = head // GROUP, then k_ptr + batch * stride_kb + kv_head * stride_kh, and the "
        "same for v. Nothing is repeated in memory.",
    ),
    notes=_NOTES
    | {
        "traffic": "repeat_interleave and expand().reshape() copy k and v. The kernel can read the "
        "head that it needs where it lies.",
        "values": "If the first heads are right and later ones are not: which key head belongs to "
        "query head h? h // (H // KV), not h % KV.",
    },
)

QUIZ = quiz(
    "06.quiz",
    "Quiz of unit 06",
    {
        "q1": "number",
        "q2": "one of a b c d",
        "q3": "number",
        "q4": "some of a b c d e",
        "q5": "number",
    },
)

EXERCISES = (STRONG, BOSS, BACKWARD, GQA, QUIZ)
