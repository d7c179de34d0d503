"""Unit 08, debugging: six broken kernels and two broken templates to repair; tables only.

Arguments, references, tolerances, limits and cases stand in ``faults``.
"""

from __future__ import annotations

from autograder.exercises import faults
from autograder.exercises.quiz import quiz
from autograder.records import Clue, Exercise


def _points(fault: str) -> dict[str, float]:
    """One point an aspect, three for the aspect of the fault."""
    names = ("values", "kernel", "bounds", "races", "traffic", "compiles")
    return {name: 3.0 if name == fault else 1.0 for name in names}


_NOTES = {
    "out_of_bounds": "Write down the addresses of the last program or the last row. Which of them "
    "belong to the tensor?",
    "uninitialised": "Which load or atomic reads a tensor before anything was stored there?",
    "undefined_lane": "A lane that is masked off takes part in what follows. What must it read, so "
    "that it changes nothing?",
    "unwritten": "Is there a program for every element of the result, and does its mask let every "
    "one through?",
    "race": "Which cells does one program write, and which other program writes or reads them?",
    "traffic": "Which numbers are read or copied that the result does not need?",
    "values": "Take the smallest input that goes wrong and one program, and do it by hand.",
    "torch_computed": "Which line computes the result, one in the kernel or one in Python?",
    "compile": "",  # Triton's sentence says what to do
    "interface": "",  # the sentence says what was asked for
}

# ---------------------------------------------------------------- exercises

A = Exercise(
    id="08.a",
    title="Scaled copy",
    names=("scaled_copy",),
    cases=faults.LOAD_MASK,
    points=_points("bounds"),
    repairs=("bounds", "traffic"),
    arguments=faults.scaled_arguments,
    reference=faults.scaled,
    tolerance=faults.scaled_tolerance,
    limit=faults.passes(2),
    outputs=faults.of_length("n"),
    limit_text="2n",
    compiled=faults.LOAD_MASK[3],
    hints=(
        "x has five numbers and the block has eight lanes. What does each of the eight lanes do in "
        "this load, and what in this store?",
        "All results are right, so a comparison of values will never find it. The finding names a "
        "line, and lanes that are past the end of x: what could keep them from reading?",
        "A mask belongs on the load as well: tl.load(x_ptr + offs, mask=mask). tl.where behind the "
        "load comes too late, since the load has read by then.",
    ),
    notes=_NOTES
    | {
        "out_of_bounds": "Some lanes of the last block have no number to work on. Which condition "
        "tells such a lane, and does every load and every store get it?",
        "traffic": "x is read once and the result is written once. Lanes without a number should "
        "read nothing, neither another lane's number nor a copy of x with room behind it.",
    },
)

B = Exercise(
    id="08.b",
    title="Row maximum",
    names=("row_max",),
    cases=faults.MAXIMUM,
    points=_points("values"),
    repairs=("values", "bounds", "traffic"),
    arguments=faults.matrix,
    reference=faults.row_maxima,
    tolerance=faults.exact,
    limit=faults.passes(1, "M"),
    outputs=faults.of_length("M"),
    limit_text="MN + M",
    compiled=faults.MAXIMUM[0],
    hints=(
        "Take a row of −3, −1, −2 in a block of four. What do the four lanes hold before tl.max?",
        "A lane beyond the row must change nothing. In a sum that is 0; which number changes no "
        "maximum, whatever the row holds, −∞ included?",
        'other=-float("inf"). No finite number will do: a row may lie below it.',
    ),
    notes=_NOTES
    | {
        "values": "Where does the wrong number come from, if the row does not hold it? Write down "
        "what every lane of the block holds before tl.max, those beyond the row included.",
        "traffic": "Each number of x is read once. A lane beyond the row should read nothing, "
        "rather than a number of the row once more.",
    },
)

C = Exercise(
    id="08.c",
    title="Bias added to padded rows",
    names=("add_bias",),
    cases=faults.STRIDE,
    points=_points("bounds"),
    repairs=("bounds", "traffic"),
    arguments=faults.bias_arguments,
    reference=faults.biased,
    tolerance=faults.bias_tolerance,
    limit=faults.bias_limit,
    outputs=faults.of_length("M", "N"),
    limit_text="3MN",
    contiguous=True,
    compiled=faults.STRIDE[0],
    hints=(
        "Take a matrix of width 5 whose rows begin 8 elements apart. At which offset does row 1 "
        "begin in memory, and at which one in the kernel?",
        "x and out are different tensors: x's rows may be padded, out is contiguous. One number "
        "for both is one too few.",
        "Hand the kernel x.stride(0) as well and use it for x alone: x_ptr + row * x_stride + "
        "cols. .contiguous() would move the whole matrix once more.",
    ),
    notes=_NOTES
    | {
        "out_of_bounds": "Where a row ends is for the mask to say. How far it is in memory from "
        "the beginning of one row to the beginning of the next, the shape does not say: what of a "
        "tensor does?",
        "values": "If row 0 is right and later ones are not: at which offset does row 1 of x "
        "begin, and at which one row 1 of the result?",
        "traffic": "x, the result, and the bias once for each row. Who makes a copy of x? A kernel "
        "can read rows where they lie.",
        "unwritten": "The result is contiguous, whatever x is. At which offset does its row 1 "
        "begin?",
    },
)

D = Exercise(
    id="08.d",
    title="Sum of a vector",
    names=("total",),
    cases=faults.RACE,
    points=_points("races"),
    repairs=("races",),
    programs=faults.readers,
    arguments=faults.vector,
    reference=faults.total,
    tolerance=faults.total_tolerance,
    limit=faults.total_limit,
    outputs=faults.of_length(dtype="float32"),
    limit_text="n + n/64 + 16",
    compiled=faults.RACE[0],
    hints=(
        "Two programs want to add 3 and 4 to a cell that holds 0. Both load, both add, both "
        "store. Which numbers can the cell hold at the end?",
        "Between the load and the store of one program, another one may store. Either the three "
        "steps are one, or no two programs use the same cell.",
        "tl.atomic_add(out_ptr, tl.sum(x, axis=0)) into a cell of zeros; or every program stores "
        "its sum in a cell of its own, and a second kernel adds these up.",
    ),
    notes=_NOTES
    | {
        "race": "Load, add, store are three steps: what becomes of a sum that another program "
        "stores in between? Can it be one step, or a cell for each program?",
        "values": "Which numbers enter the sum, how often, and in which type? If there is a race, "
        "mend that first.",
        "traffic": "Each number is read once, and a program adds its own sum once.",
        "uninitialised": "An atomic add reads the cell too. What does it hold at first?",
    },
)

E = Exercise(
    id="08.e",
    title="Column sums",
    names=("column_sums",),
    cases=faults.ACCUMULATOR,
    points=_points("values"),
    repairs=("values", "traffic"),
    arguments=faults.matrix,
    reference=faults.column_sums,
    tolerance=faults.column_tolerance,
    limit=faults.passes(1, "N"),
    outputs=faults.of_length("N", dtype="float32"),
    limit_text="MN + N",
    compiled=faults.ACCUMULATOR[0],
    hints=(
        "Which type has the running sum, and how many digits does that type have left for the next "
        "number once the sum is a thousand times larger?",
        "float16 has 11 significant bits: above 2048 it knows even numbers only, above 65 504 "
        "nothing. Casting at the end brings nothing back. Where must float32 begin?",
        "acc = tl.zeros((BLOCK_SIZE,), dtype=tl.float32); x is widened when it is added. Casting "
        "on the host copies the whole matrix.",
    ),
    notes=_NOTES
    | {
        "values": "Every addition is rounded to the type of the accumulator. Which type is that, "
        "in each round of the loop, and what is the largest number that it knows?",
        "traffic": "Each number of x is read once, and the sums are written once. x.float() on the "
        "host copies x.",
        "interface": "The sums are float32, whatever the type of x.",
    },
)

F = Exercise(
    id="08.f",
    title="Causal softmax",
    names=("causal_softmax",),
    cases=faults.CAUSAL,
    points=_points("values"),
    arguments=faults.square,
    reference=faults.causal_softmax,
    tolerance=faults.causal_tolerance,
    limit=faults.square_limit,
    outputs=faults.of_length("T", "T"),
    limit_text="2T²",
    compiled=faults.CAUSAL[2],
    hints=(
        "Row 0 is the one to look at: which keys does token 0 see, and what is the softmax of a "
        "row in which everything is hidden?",
        "NaN in row 0 is only what one notices first; every other row lacks one weight too. Token "
        "i sees the keys 0 … i. Is i itself among them?",
        "seen = cols <= row. Mending row 0 alone leaves all other rows wrong.",
    ),
    notes=_NOTES
    | {
        "values": "Which keys does row 0 see, which row 1? Print the mask of both. Token i sees "
        "0 … i, itself included; the sum of each row of the result is 1.",
        "unwritten": "The result is 0 right of the diagonal, and a kernel has to write that too.",
        "traffic": "Each score is read once at most, each weight is written once.",
    },
)

G = Exercise(
    id="08.g",
    title="A template: attention",
    names=("attention",),
    cases=faults.ATTENTION,
    points=_points("values"),
    arguments=faults.attention_arguments,
    reference=faults.full_attention,
    tolerance=faults.full_attention_tolerance,
    limit=faults.attention_limit,
    outputs=faults.attention_output,
    limit_text="B·H·(2TD + T + 2D·keys)",
    compiled=faults.compiled_attention,
    hints=(
        "The first finding is a name that nobody defined. What length does the loop walk along, "
        "and which argument of the kernel has it?",
        "Once it compiles, ask which tensors it reads at all: inspect_call(attention, q, k, v)"
        ".traffic has a row for each. One is missing.",
        "for start in range(0, T, BLOCK_N); v = tl.load(v_ptr + …) with the addresses and the mask "
        "of a block of keys, inside the loop; acc = tl.dot(p.to(v.dtype), v, acc).",
    ),
    notes=_NOTES
    | {
        "values": "attention is softmax(q kᵀ/√D) v. Which of q, k and v does the kernel load at "
        "all? inspect_call(attention, q, k, v).traffic has a row for each that is read.",
        "out_of_bounds": "Keys end at T, and the last block of them does not. Which load has no "
        "mask for that?",
        "compile": "Triton compiles what stands in the kernel: names that nobody passes to it do "
        "not exist there. Which of its arguments already says what this name should?",
    },
    clues=(
        Clue(
            "values",
            "a ragged length",
            "one block",
            "One block of tokens comes out right, several do not. Along which keys does the loop "
            "walk, and has v the addresses and the mask of the same keys as k in each step?",
        ),
    ),
)

H = Exercise(
    id="08.h",
    title="A template: split-K",
    names=("splitk_matmul",),
    cases=faults.SPLIT_K,
    points=_points("values"),
    repairs=("values", "races"),
    programs=faults.splits,
    arguments=faults.matrices,
    reference=faults.product,
    tolerance=faults.product_tolerance,
    limit=faults.splitk_limit,
    outputs=faults.of_length("M", "N", dtype="float32"),
    limit_text="2·32·tiles·K + (2·SPLIT_K + 1)·MN",
    compiled=faults.SPLIT_K[1],
    hints=(
        "What does acc hold when the loop ends, of which shape, and what of it reaches memory? And "
        "how many programs hold a part of the same tile?",
        "SPLIT_K programs have a summand of every element. They can add theirs atomically, which "
        "needs zeros to begin with; or store it in a matrix of their own, to be added up by a "
        "second kernel.",
        "c = torch.zeros(…), and at the end of the kernel tl.atomic_add(c_ptr + rows[:, None] * N "
        "+ cols[None, :], acc, mask=(rows[:, None] < M) & (cols[None, :] < N)).",
    ),
    notes=_NOTES
    | {
        "race": "SPLIT_K programs hold a summand of the same tile. What reaches memory when each "
        "of them stores, and which cells does each store at all?",
        "unwritten": "acc is a tile of BLOCK_M × BLOCK_N. What shape is stored, and which cells of "
        "the result does it cover?",
        "values": "Does each element of the tile acc reach a cell of its own? If so, take K = 3 "
        "and SPLIT_K = 2: which k belong to split 0, which to split 1, and each to one only?",
        "uninitialised": "An atomic add reads the cell too. What does it hold at first?",
        "torch_computed": "The partial results have to be added by a kernel.",
        "traffic": "Tiles of 32 × 32 or more; every split reads its own part of K only.",
    },
)

QUIZ = quiz(
    "08.quiz",
    "Quiz of unit 08",
    {
        "q1": "number",
        "q2": "some of a b c d e",
        "q3": "number",
        "q4": "one of a b c d",
    },
)

EXERCISES = (A, B, C, D, E, F, G, H, QUIZ)
