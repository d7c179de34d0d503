"""Unit 09, production: an fp8 matmul with split K, and a prune rule for autotuning; tables only.

``fp8_gemm``: a is M×K, b is K×N, both float8_e4m3fn; one float32 scale for each tensor. Products of
two e4m3 numbers have 8 significant bits, so they are exact in float32. Tolerance, relative to
scale_a scale_b Σ|a||b|: K − 1 sums in any order, however K is split (Higham, Accuracy and Stability
of Numerical Algorithms, 2nd ed., section 4.2), and at most four roundings for the scales, which may
be applied to operands, to partial sums or to the result.

``prune``: what a configuration needs are the compiler's own figures (``shared_memory``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from autograder.exercises.quiz import quiz
from autograder.exercises.roundings import U, of_sum
from autograder.exercises.shared_memory import LIMIT, needed
from autograder.floats import TINY
from autograder.records import Case, Clue, Exercise, Rejected, Tensor

_TILE_M, _TILE_N = 16, 32  # the limit asks for tiles of at least this
_LEAST_N = 64  # what fewer columns count as: one tile, which a kernel may wrap round
_LONGEST_STEP = 512  # a split of fewer numbers along K may have no step of its own


def _operands(case: Case) -> tuple:
    """a, b, two scales, SPLIT_K as a case's sizes say: M, N, K, SPLIT_K, fill and strides."""
    s = case.sizes
    fill = s.get("fill", "normal")
    a, b = (tuple(s[name]) if name in s else None for name in ("a_strides", "b_strides"))
    scale = Tensor((1,), "float32", fill="uniform")
    return (
        Tensor((s["M"], s["K"]), "float8_e4m3fn", a, fill),
        Tensor((s["K"], s["N"]), "float8_e4m3fn", b, fill),
        scale,
        scale,
        s["SPLIT_K"],
    )


def _matrix(case: Case) -> tuple[Tensor, ...]:
    return (Tensor((case.sizes["M"], case.sizes["N"]), "float32"),)


def _fp8_gemm(a, b, scale_a, scale_b, split_k) -> tuple[np.ndarray]:
    return (a @ b * (scale_a * scale_b),)


def _fp8_tolerance(case: Case, arguments: tuple, expected: tuple) -> tuple[np.ndarray]:
    a, b, scale_a, scale_b, _ = arguments
    size = np.abs(a) @ np.abs(b) * (scale_a * scale_b)
    return ((of_sum(a.shape[1]) + 4 * U) * size + TINY["float32"],)


def _fp8_limit(case: Case) -> int:
    """Whole tiles of 16 × 32 along K, partial sums written and read, the result, the scales."""
    s = case.sizes
    tiles = -(-s["M"] // _TILE_M) * -(-max(s["N"], _LEAST_N) // _TILE_N)
    read = tiles * s["K"] * (_TILE_M + _TILE_N)
    sums = (2 * s["SPLIT_K"] + 1) * s["M"] * s["N"]
    return (read + sums + 4 * tiles * s["SPLIT_K"]) * 105 // 100


def _fp8_stores(case: Case) -> int | None:
    """SPLIT_K partial sums for each element, where K is long enough for every split."""
    s = case.sizes
    long = s["K"] >= s["SPLIT_K"] * _LONGEST_STEP
    return s["SPLIT_K"] * s["M"] * s["N"] if long else None


def _fp8_programs(case: Case) -> int:
    """SPLIT_K programs that read a and b, where K is long enough for every split."""
    s = case.sizes
    return s["SPLIT_K"] if s["K"] >= s["SPLIT_K"] * _LONGEST_STEP else 0


def _gemm(label: str, M: int, N: int, K: int, SPLIT_K: int, **more) -> Case:
    return Case(label, {"M": M, "N": N, "K": K, "SPLIT_K": SPLIT_K, **more})


_FP8 = (
    _gemm("whole steps", 16, 128, 2048, 4),
    _gemm("no split", 16, 128, 256, 1),
    _gemm("sizes that divide nothing", 13, 141, 999, 4),
    _gemm("K one more than whole steps", 16, 64, 1025, 2),
    _gemm("K shorter than a step", 16, 70, 21, 4),
    _gemm("one row", 1, 200, 700, 4),
    _gemm("17 rows", 17, 130, 500, 2),
    _gemm("b transposed", 16, 96, 650, 4, b_strides=(1, 650)),
    _gemm("padded rows", 9, 75, 333, 2, a_strides=(400, 1), b_strides=(80, 1)),
    _gemm("positive numbers", 8, 64, 3000, 4, fill="uniform"),
)

_COMPILED = _gemm("compiled", 16, 512, 1024, 4)

# ---------------------------------------------------------------- prune


_SHAPE = (64, 4096, 4096)  # M, N, K of the call that is tuned
_BLOCKS = ("BLOCK_M", "BLOCK_N", "BLOCK_K")


def _space(dtype: str, configs: Sequence[Sequence[int]], **given: int) -> dict:
    return {"dtype": dtype, "configs": [list(row) for row in configs], "given": given}


def _tuning(case: Case) -> tuple[dict]:
    """Plain data that ``trace.tuning`` makes into what Triton hands to a prune rule: configs of
    (BLOCK_M, BLOCK_N, BLOCK_K, num_warps, num_stages), the arguments, keyword arguments."""
    s = case.sizes
    given = dict(s.get("given", {}))
    m, n, k = _SHAPE
    configs = [
        {
            "kwargs": {
                name: value for name, value in zip(_BLOCKS, row, strict=False) if name not in given
            },
            "num_warps": row[3],
            "num_stages": row[4],
        }
        for row in s["configs"]
    ]
    return (
        {
            "configs": configs,
            "tensors": {
                "a_ptr": [s["dtype"], m, k],
                "b_ptr": [s["dtype"], k, n],
                "c_ptr": ["float32", m, n],
            },
            "scalars": {"M": m, "N": n, "K": k},
            "given": given,
        },
    )


def _needs(tuning: Mapping) -> list[int]:
    """Bytes of shared memory that each configuration asks for, by the compiler's figures."""
    bytes_of = []
    for config in tuning["configs"]:
        blocks = {**tuning["given"], **config["kwargs"]}
        row = [blocks[name] for name in _BLOCKS] + [config["num_warps"], config["num_stages"]]
        bytes_of.append(needed(tuning["tensors"]["a_ptr"][0], *row))
    return bytes_of


def _told(config: Mapping[str, Any], needs: int) -> str:
    blocks = ", ".join(f"{name}={value}" for name, value in config["kwargs"].items())
    return f"{blocks}, num_stages={config['num_stages']}, which needs {needs} bytes"


def _drive_prune(solution: dict, arguments: tuple) -> tuple[np.ndarray]:
    """How often the rule keeps each configuration."""
    tuning = arguments[0]
    kept = solution["prune"](list(tuning.configs), dict(tuning.named_args), **tuning.kwargs)
    asked = "it has to return a list of some of the configs that it was given."
    if not isinstance(kept, list | tuple):
        what = "None" if kept is None else f"a {type(kept).__name__}"
        raise Rejected(f"prune returned {what}; {asked}")
    for k in kept:
        if not any(k is c for c in tuning.configs):
            raise Rejected(f"prune returned a list with a {type(k).__name__} of its own; {asked}")
    return (np.array([sum(k is c for k in kept) for c in tuning.configs], np.float64),)


def _prune(tuning: Mapping) -> tuple[np.ndarray]:
    return (np.array([float(needs <= LIMIT) for needs in _needs(tuning)]),)


def _about_prune(arguments: tuple, outputs: tuple, expected: tuple) -> str:
    """The first configuration on which the rule and the compiler disagree."""
    tuning, kept, want = arguments[0], outputs[0], expected[0]
    wrong = np.flatnonzero(kept != want)
    i = int(wrong[0])
    config = _told(tuning["configs"][i], _needs(tuning)[i])
    if not kept.any():
        return f"prune drops every configuration, also {config}: nothing is left to tune."
    did = "drops" if not kept[i] else "keeps" if kept[i] == 1 else "keeps more than once"
    fits = "that fits" if want[i] else "that does not fit"
    return (
        f"prune decides {wrong.size} of {want.size} configurations otherwise than the compiler: it "
        f"{did} {config}, and {fits} into {LIMIT}."
    )


_TILES = (
    (128, 128, 32, 4, 3),
    (128, 128, 64, 4, 3),
    (128, 128, 64, 4, 4),
    (128, 256, 64, 8, 3),
    (128, 256, 64, 8, 4),
    (256, 128, 64, 8, 3),
    (64, 256, 128, 4, 3),
    (64, 64, 64, 4, 4),
    (64, 64, 128, 4, 4),
    (16, 64, 128, 4, 5),
    (16, 64, 128, 4, 6),
    (64, 128, 128, 4, 3),
)
_DEEP = ((128, 128, 128, 4, 4), (128, 128, 128, 4, 5))
_SHORT = ((256, 256, 64, 8, 1), (256, 256, 128, 8, 1), (256, 256, 64, 8, 2), (128, 256, 128, 8, 2))

_PRUNE = (
    Case("float16", _space("float16", _TILES)),
    Case("fp8", _space("float8_e4m3fn", (*_TILES, *_DEEP))),
    Case("one and two stages", _space("float16", _SHORT)),
    Case(
        "BLOCK_K given at the launch",
        _space("float16", [r for r in _TILES if r[2] == 64], BLOCK_K=64),
    ),
)

# ---------------------------------------------------------------- exercises

_STRETCHES = (
    "Write down for K = 10, BLOCK_K = 2 and SPLIT_K = 2 which numbers along K each split reads. Is "
    "one read twice, or by nobody? Then K = 11."
)

FP8_SPLITK = Exercise(
    id="09.fp8_splitk",
    title="An fp8 matmul whose K is split",
    names=("fp8_gemm",),
    cases=_FP8,
    points={"values": 4, "kernel": 1, "bounds": 2, "races": 2, "traffic": 2, "compiles": 1},
    arguments=_operands,
    reference=_fp8_gemm,
    tolerance=_fp8_tolerance,
    limit=_fp8_limit,
    stores=_fp8_stores,
    programs=_fp8_programs,
    outputs=_matrix,
    limit_text="M·N·K·(1/16 + 1/32) + (2·SPLIT_K + 1)·M·N",
    compiled=_COMPILED,
    hints=(
        "Give the grid a third axis of SPLIT_K programs a tile. Which steps along K does program "
        "(i, j, s) take, so that together they take all and none twice? A row of K = 10 on paper "
        "helps.",
        "Two ways: split s takes steps s, s + SPLIT_K, s + 2 SPLIT_K …, so its loop is range(s * "
        "BLOCK_K, K, SPLIT_K * BLOCK_K); or one stretch of whole steps. Masks in K stay as they "
        "are. A split without a step adds zeros.",
        "Behind the loop: acc *= tl.load(scale_a_ptr) * tl.load(scale_b_ptr); then tl.atomic_add("
        "out_ptrs, acc, mask=…) on an output that the host made with torch.zeros; or tl.store into "
        "a plane of its own, and a second kernel that adds SPLIT_K planes.",
    ),
    notes={
        "out_of_bounds": "Which of M, N and K belong in this mask? The last step of the last split "
        "may reach over the end of K.",
        "uninitialised": "An atomic addition adds to what is there. What is there before the first "
        "program comes?",
        "undefined_lane": "A lane beyond K takes part in every sum of its row and column. What "
        "must it read?",
        "unwritten": "Does every tile have a program that stores it, also where a split has "
        "nothing to add?",
        "race": "SPLIT_K programs have a sum for the same element. Who adds them, and can a second "
        "one come in between?",
        "traffic": "A tile of 16 × 32 reads 48 numbers a step of depth 1, whoever takes the step. "
        "Which number is read by two splits, or in tiles that are smaller?",
        "values": "Does it come out right with SPLIT_K = 1? If so, look at which steps each split "
        "takes. If not: strides, scales, masks in K, the type of the sum.",
        "torch_computed": "Sums of partial sums and products with scales are arithmetic too: they "
        "belong in a kernel, the first or a second one.",
        "compile": "",
        "interface": "",
    },
    clues=(
        Clue("values", "sizes that divide nothing", "whole steps", _STRETCHES),
        Clue("values", "K shorter than a step", "whole steps", _STRETCHES),
        Clue(
            "values",
            "no split",
            "",
            "It is wrong with one split too, so the split is not it. Which numbers multiply the "
            "sum, and how often? In which type is it kept?",
        ),
        Clue(
            "values",
            "whole steps",
            "no split",
            "It is right with SPLIT_K = 1 and wrong with 4. Which steps does each split take, do "
            "all their sums arrive in the result, and is each of them scaled, once by each scale?",
        ),
    ),
    in_place=True,
)

PRUNE = Exercise(
    id="09.prune",
    title="A prune rule that keeps what fits",
    names=("prune",),
    machine="numpy",
    cases=_PRUNE,
    points={"values": 4},
    arguments=_tuning,
    reference=_prune,
    tolerance=lambda case, arguments, expected: (0.5,),
    drive=_drive_prune,
    about=_about_prune,
    hints=(
        "What does the loop of the matmul keep in shared memory, and what in registers? How many "
        "numbers are that for one step along K, and how many bytes has one of them?",
        "Lesson 09 prints the compiler's figures for one tile and 1 to 5 stages. How many copies "
        "of a step's two tiles does it keep for 3 stages? For 1? Not as many as stages.",
        "step = (BLOCK_M + BLOCK_N) * BLOCK_K * bytes of one number, from "
        "named_args['a_ptr'].element_size(); kept are max(num_stages - 1, 1) of them; what needs "
        "exactly 101 376 bytes fits.",
    ),
    notes={
        "out_of_bounds": "",
        "uninitialised": "",
        "undefined_lane": "",
        "unwritten": "",
        "race": "",
        "traffic": "",
        "values": "Compute the bytes of this one by hand: two tiles of a step, the bytes of a "
        "number, the copies. At which of the three do you and the rule part?",
        "torch_computed": "",
        "compile": "",
        "interface": "Triton calls prune(configs, named_args, **kwargs) and tunes what comes back: "
        "a list of some of these configs. What a config lacks the launch gives: look in kwargs.",
    },
)

QUIZ = quiz(
    "09.quiz",
    "Quiz of unit 09",
    {
        "q1": "number",
        "q2": "one of a b c d",
        "q3": "some of a b c d e",
        "q4": "number",
        "q5": "one of a b c d",
    },
)

EXERCISES = (FP8_SPLITK, PRUNE, QUIZ)
