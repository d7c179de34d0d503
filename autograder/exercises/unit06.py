"""Unit 06, FlashAttention in levels: forward, causal, backward, grouped-query heads; tables only.

Formulas and tolerances stand in ``attention``, cases and limits in ``attention_cases``.
"""

from __future__ import annotations

import numpy as np

from autograder.exercises import attention_cases as cases
from autograder.exercises.attention import (
    attention,
    attention_backward,
    backward_tolerance,
    forward_tolerance,
)
from autograder.exercises.quiz import quiz
from autograder.records import Case, Clue, Exercise

# ---------------------------------------------------------------- tolerance


def _tolerance(case: Case, arguments: tuple, expected: tuple) -> tuple[np.ndarray, np.ndarray]:
    return forward_tolerance(arguments, expected, case.sizes["dtype"], cases.blocks(case)[1])


def _tolerance_of_o(case: Case, arguments: tuple, expected: tuple) -> tuple[np.ndarray, float]:
    """On the first level lse may be any number; the next one asks for it."""
    return _tolerance(case, arguments, expected)[0], np.inf


def _backward_tolerance(case: Case, arguments: tuple, expected: tuple) -> tuple[np.ndarray, ...]:
    return backward_tolerance(arguments, expected, case.sizes["dtype"])


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
    "there. Lanes that are read beyond T count as well.",
    "values": "Take T = 3 and a block of two keys: what are m, l and acc after the first block? By "
    "what are l and acc multiplied when the second brings a larger maximum, and what does its lane "
    "beyond T add?",
    "torch_computed": "Which line computes the result, one in the kernel or one in Python? A view "
    "is free; .contiguous(), reshape of a strided tensor and repeat_interleave copy.",
    "compile": "What does the message name: a shape, a type, or the bytes that the blocks of all "
    "stages take in shared memory?",
    "interface": "Compare the function's signature and what it returns with the exercise's text: "
    "o in q's type, lse in float32.",
}

# What the cases that pass say of the fault. The first that fits is asked.
_RAGGED = "queries that fill no block"
_LARGE_SCORES = Clue(
    "values",
    "large scores",
    _RAGGED,
    "It is right until scores are large, and float32 ends at exp(88.7). Which number is "
    "subtracted from a query's scores before exp? Is it the largest of those that it sees?",
)
_LAYOUT = Clue(
    "values",
    "heads inside",
    _RAGGED,
    "It is right where heads lie one behind the other. Which strides belong to q, k and v here, "
    "and which to o, which is new? Which batch and which head has a program of axis 1?",
)
_STRONG_CLUES = (
    Clue(
        "values",
        "one query, one key",
        "one block",
        "It is right where keys fill their block and wrong where they end within it. What is the "
        "score of a lane beyond T, what does exp make of it, and what does that add to l?",
    ),
    Clue(
        "values",
        "one block",
        "one query, one key",
        "With one key it is right, whose weight is 1 in any case; with 64 keys in one block it is "
        "not, and nothing is rescaled there. Is a score q·k / √D? Which axis do the maximum and "
        "the sum go along?",
    ),
    Clue(
        "values",
        _RAGGED,
        "one block",
        "It is right with one block of keys and wrong with several. Take two blocks of one key, "
        "the second with the larger score: what are m, l and acc after each? What multiplies l, "
        "what acc, and when does m become new_m?",
    ),
    _LARGE_SCORES,
    _LAYOUT,
)
_BOSS_CLUES = (
    Clue(
        "values",
        "not causal",
        _RAGGED,
        "Causal it is right, otherwise not. What does CAUSAL decide: the mask, and where the loop "
        "ends? Without it, what hides the keys beyond T?",
    ),
    Clue(
        "values",
        _RAGGED,
        "one less than a block",
        "One block holding all is right, several are not. Where does the loop of the last block "
        "of queries end? Are rows and cols tokens' numbers, counted from 0, and are l and acc "
        "rescaled?",
    ),
    Clue(
        "values",
        _RAGGED,
        "not causal",
        "Not causal it is right: what is wrong is the mask, or where the loop ends. Which keys "
        "does query 0 see, which query 1? Are hidden scores −∞ before the maximum is taken?",
    ),
    _LARGE_SCORES,
    _LAYOUT,
)
_BACKWARD_CLUES = (
    Clue(
        "values",
        _RAGGED,
        "not causal",
        "Not causal it is right: what is wrong is the mask, or where a walk begins or ends. Query "
        "i sees keys 0 … i. Which is the first block of queries that sees the first key of this "
        "block of keys?",
    ),
    Clue(
        "values",
        "not causal",
        _RAGGED,
        "Causal it is right, otherwise not. Does causal reach all kernels, by ctx, and what does "
        "it decide: the mask, and where the walks begin and end? Without it, what hides the keys "
        "beyond T?",
    ),
    _LAYOUT,
)

_COMPILED = cases.causal("compiled", 1, 2, 128, 64, "float16", BLOCK_M=64, BLOCK_N=64)
_LIMIT_TEXT = "B·H·(2TD + T + 2D·keys)"

# ---------------------------------------------------------------- exercises

STRONG = Exercise(
    id="06.flash_strong",
    title="FlashAttention",
    level="Strong",
    names=("flash_attention",),
    cases=cases.STRONG,
    points={"values": 4, "kernel": 1, "bounds": 2, "races": 1, "traffic": 2, "compiles": 2},
    arguments=cases.arguments,
    reference=attention,
    tolerance=_tolerance_of_o,
    limit=cases.limit,
    outputs=cases.outputs,
    results=("o", "lse"),
    limit_text="B·H·(2TD + T + 2TD·⌈T / BLOCK_M⌉)",
    compiled=cases.full("compiled", 1, 2, 128, 64, "float16", BLOCK_M=64, BLOCK_N=64),
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
    clues=_STRONG_CLUES,
    notes=_NOTES
    | {
        "traffic": "q is read once, o and lse are written once, k and v are read once for each "
        "block of queries. Which of them is loaded again?",
    },
)

BOSS = Exercise(
    id="06.flash_boss",
    title="FlashAttention, causal",
    level="Boss",
    names=("flash_attention",),
    cases=cases.BOSS,
    points={"values": 4, "kernel": 1, "bounds": 2, "races": 1, "traffic": 4, "compiles": 2},
    arguments=cases.arguments,
    reference=attention,
    tolerance=_tolerance,
    limit=cases.limit,
    outputs=cases.outputs,
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
    clues=_BOSS_CLUES,
    notes=_NOTES
    | {
        "values": "If it is o: does the mask come before the maximum, and does query i see key i? "
        "If o is right and it is lse: that is ln Σ exp(s), the natural logarithm, with the maximum "
        "added again.",
    },
)

BACKWARD = Exercise(
    id="06.flash_backward",
    title="FlashAttention, backward",
    level="Legend",
    names=("FlashAttention",),
    cases=cases.BACKWARD,
    points={"values": 5, "kernel": 1, "bounds": 2, "races": 2, "traffic": 3, "compiles": 1},
    arguments=cases.arguments,
    reference=attention_backward,
    tolerance=_backward_tolerance,
    limit=cases.backward_limit,
    outputs=cases.gradients,
    results=("o", "the gradient dq", "the gradient dk", "the gradient dv"),
    limit_text="forward and backward in blocks of 64 × 64",
    backward=True,
    compiled=cases.causal("compiled", 1, 2, 128, 64, "float16"),
    hints=(
        "P needs no second online softmax: with lse at hand it is exp(s − lse), block by block. "
        "Which sums of the formulas go over keys, which over queries, and so which program can "
        "keep which gradient in its registers?",
        "Three kernels: δ = Σ do · o a query; one program a block of keys walks over the queries "
        "that see it and keeps dk and dv; one program a block of queries walks over its keys and "
        "keeps dq. Or dq by tl.atomic_add into a float32 tensor of zeros.",
        "s = tl.dot(q, k) * scale; p = exp(s − lse[:, None]), 0 where masked; dv += dot(pᵀ, do); "
        "dp = dot(do, vᵀ); ds = p * (dp − delta[:, None]); dk += dot(dsᵀ, q); dq += dot(ds, k); "
        "dk and dq times scale at the end. tl.trans turns a block. backward returns dq, dk, dv and "
        "None for causal.",
    ),
    clues=_BACKWARD_CLUES,
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
    title="FlashAttention, grouped-query heads",
    level="Legend",
    names=("flash_attention",),
    cases=cases.GQA,
    points={"values": 3, "kernel": 1, "bounds": 1, "races": 1, "traffic": 2, "compiles": 1},
    arguments=cases.arguments,
    reference=attention,
    tolerance=_tolerance,
    limit=cases.limit,
    outputs=cases.outputs,
    results=("o", "lse"),
    limit_text=_LIMIT_TEXT,
    compiled=cases.causal("compiled", 1, 4, 128, 64, "float16", KV=2, BLOCK_M=64, BLOCK_N=64),
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
