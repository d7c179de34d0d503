# %% [markdown]
r"""
# Lesson 11 · From right to fast

Your kernels are right, in bounds, and move what theory says. How fast are they, and what would make them faster? This lesson
climbs **ladders**: from the matmul of unit 05 to one that keeps up with cuBLAS, from the softmax of unit 03 to one that keeps up
with a copy, and from the attention of unit 06 to one beside cuDNN. Each step changes one thing. You predict what it is worth,
then you see what was measured.

You bring lessons 03, 05, 06 and 07, and your own solution of the boss.

Reading takes 25 minutes, running all cells less than one.
"""

# %%
from lab_setup.roofline.measure import versions

print(versions())

# %%
import heapq

import numpy as np

from autograder.ir.cards import card
from autograder.ir.l2 import EFFECTIVE, fetched, grouped, matmul_programs
from autograder.render.lesson11 import Climb, by_card
from lab_setup.roofline.ladders import beside, here, stored

# %% [markdown]
r"""
## The rules of the climb

A **gain** of a step is the time before over the time after: 1.20 is a fifth faster, 1.00 is nothing. Whoever knows which share
of the time goes away knows the gain. **Predict:** a step removes half of what a kernel does for a quarter of its time. What is
it worth?
"""

# %%
for share in (0.02, 0.05, 0.125, 0.25, 0.5):
    print(f"{share:6.1%} of the time goes away: {1 / (1 - share):.2f} times as fast")

# %% [markdown]
r"""
1.14: half of a quarter is an eighth. So a prediction needs two numbers: what the step saves, and which share of the time that
is. On a card several things happen at once: memory delivers, tensor cores multiply, other units compute exponentials. A
resource that waits for another one has no share at all, and sparing it gains nothing.

All figures here are **stored**: they were measured on one card, and every cell says on which and when. All kernels of a ladder
and the vendor's took turns, with an empty L2 cache before each run, so gains are good to about 1.5 %. Your card has other
figures; the last section says how to get them.

## Matmul, n = 4096
"""

# %%
matmul = Climb(**stored("matmul", 4096))
matmul.start()

# %% [markdown]
r"""
### A larger tile

A tile of BM × BN loads BM + BN numbers for each step of K and does BM · BN multiply-adds with them. All tiles together ask L2
for $n^3 (1/\mathrm{BM} + 1/\mathrm{BN})$ numbers. If the tensor cores never had to wait, L2 would have to deliver them in the
time that the multiplications take:
"""

# %%
h200, n = card("H200 SXM"), 4096
least = 2 * n**3 / (h200.bf16_tflops * 1e12)  # seconds, tensor cores at their peak
print(f"the multiplications take {1e6 * least:.0f} µs at least")
for bm, bn in ((64, 64), (128, 128), (128, 256)):
    asked = 2 * n**3 * (1 / bm + 1 / bn)  # bytes
    print(f"{bm:3} × {bn:3}: {bm * bn / (bm + bn):3.0f} FLOP a byte, {asked / least / 1e12:4.1f} TB/s from L2, acc takes {bm * bn * 4 // 1024:3} KB of registers")

# %% [markdown]
r"""
No L2 cache delivers 31 TB/s; this card's memory does 4.8. So the plain kernel waits for its loads, and a tile with sides twice
as long needs half of them. Your guess goes where `None` stands: 1.0 is nothing, 2.0 is all that could be hoped for.
"""

# %%
matmul.step("128×128×32", guess=None)

# %% [markdown]
r"""
### No masks

When 128 divides nothing, rows hang over. Instead of a mask, let them **wrap around**: row M becomes row 0, row M + 1 row 1. The
tile multiplies rows that nobody asked for, and the store leaves them out. **Predict:** does a wrapped row spoil the others?
"""

# %%
a, b = np.random.default_rng(0).standard_normal((2, 10, 10))
rows = np.arange(8, 16)  # the second tile of 8 rows: six of them hang over
tile = a[rows % 10] @ b
print("rows 8 and 9 are right:", np.allclose(tile[rows < 10], (a @ b)[8:10]), " others:", rows[rows >= 10] % 10, "again")

# %% [markdown]
r"""
No: a row of the result depends on one row of `a`. K is another matter, since lanes beyond K enter every sum; but 32 divides
4096, and the kernel has a version for that case. What goes away: for each number loaded two comparisons, and a choice. The
tensor cores do not do those.
"""

# %%
matmul.step("no masks", guess=None)

# %% [markdown]
r"""
### Programs in groups

Lesson 05: programs that run at the same time should share rows and columns. The model of the L2 cache says what memory has to
deliver, with one program on each multiprocessor:
"""

# %%
def memory(n, group):
    """Seconds that memory takes for what the model's L2 cache fetches, in tiles of 128 × 128."""
    order = grouped(n // 128, n // 128, group)
    programs = matmul_programs(n, n, n, order, (128, 128, 1024))
    return fetched(programs, h200.sms, EFFECTIVE * h200.l2_mb * 2**20) / h200.bandwidth / 1e9


for group in (1, 8):
    print(f"GROUP_M {group}: memory {1e6 * memory(n, group):3.0f} µs, the multiplications {1e6 * least:.0f} µs")

# %% [markdown]
r"""
Which of the two decides? **Predict** with the rule above: a resource that waits has no share.
"""

# %%
matmul.step("GROUP_M 1 → 8", guess=None)

# %% [markdown]
r"""
### Longer steps along K

A step of the loop waits until its tiles are there, starts the tensor cores, and moves the pointers. That costs some cycles,
however long the step is. A tensor core of this card does 4096 FLOP a cycle (one multiprocessor, bfloat16; NVIDIA's programming
guide). If a step costs so many cycles besides:
"""

# %%
def cycles(bk, extra):
    """Cycles for 64 numbers along K of a tile of 128 × 128, in steps of bk."""
    return 64 // bk * (2 * 128 * 128 * bk / 4096 + extra)


for extra in (0, 32, 64, 128):
    print(f"{extra:3} cycles a step besides: gain {cycles(32, extra) / cycles(64, extra):.2f}")

# %% [markdown]
r"""
A barrier and a few dozen instructions are some 32 to 128 cycles. Shared memory is the price: the tiles of a step take twice as
much.
"""

# %%
matmul.step("BLOCK_K 32 → 64", guess=None)

# %% [markdown]
r"""
### 128 × 256

The table above had the numbers: from 64 to 85 FLOP a byte. `acc` alone takes 128 KB, half of the registers of a multiprocessor,
so eight warps share it: four would have no room. It fits once, and no second program hides the first one's waiting.
"""

# %%
matmul.step("128×256, 8 warps", guess=None)

# %% [markdown]
r"""
### Descriptors

From compute capability 9.0 on there is a **copy engine** (TMA, tensor memory accelerator). A **tensor descriptor** tells it
base, shape and strides once; then one thread says "the tile at row 128, column 64", and the engine computes addresses, checks
bounds and writes into shared memory. No other thread computes an address. **Predict:** how much of the time did addresses take,
if the loads ran while the tensor cores multiplied?
"""

# %%
matmul.step("descriptors", guess=None)

# %% [markdown]
r"""
### Persistent

A tile begins with loads that nothing hides, and ends with a store during which the tensor cores rest. A **persistent** kernel
starts one program on each multiprocessor, which computes one tile after the other; the loads for the next tile are under way
while this one is stored. How long are the ends, against the middle?
"""

# %%
middle = 4096 // 64 * (2 * 128 * 256 * 64 / 4096)
print(f"a tile keeps the tensor cores busy for {middle:,.0f} cycles")
for ends in (1000, 2000, 4000):
    print(f"{ends:,} cycles at both ends together: gain {1 + ends / middle:.2f} if all of them are hidden")

# %%
matmul.step("persistent", guess=None)

# %% [markdown]
r"""
### The whole ladder

Filled: measured. Hollow: what the reasons promised, and your guesses.
"""

# %%
matmul.figure()

# %% [markdown]
r"""
Not every reason held. Longer steps and the wider tile gave less than they promised: part of what they spare was hidden behind
the tensor cores already. And descriptors gave nothing: addresses were computed by threads that had to wait anyway.

Does a step that gained nothing belong in the ladder? Persistent programs build on descriptors. And there is another matmul:
when `b` is **transposed**, as the weights of a linear layer are, its tiles lie in memory the other way round. **Predict:** how do
pointers and descriptors compare there?
"""

# %%
for name in ("matmul", "matmul_nt"):
    speeds = beside(name, 4096)
    print(f"{name:10} cuBLAS = 1: pointers {speeds['pointers']:.2f}, descriptors {speeds['descriptors']:.2f}")
print(matmul.facts)

# %% [markdown]
r"""
The copy engine takes a tile either way; for pointers the same program became a fifth slower.

### The same steps at other sizes

**Predict:** for which size is grouping worth most?
"""

# %%
print(f"{'gain':18}" + "".join(f"{'n = ' + str(size):>10}" for size in (2048, 4096, 8192)))
for i, label in enumerate(matmul.steps):
    gains = [stored("matmul", size)["steps"][i]["gain"] for size in (2048, 4096, 8192)]
    if all(gains):
        print(f"{label:18}" + "".join(f"{gain:10.2f}" for gain in gains))
print(matmul.facts)
print("\nof the time of the multiplications, memory takes, by the model:")
for group in (1, 8):
    shares = [memory(size, group) / (2 * size**3 / h200.bf16_tflops / 1e12) for size in (2048, 4096, 8192)]
    print(f"GROUP_M {group:<9}" + "".join(f"{share:10.0%}" for share in shares))

# %% [markdown]
r"""
At 8192 memory comes near to what the multiplications take, so both the larger tile and the groups are worth most. At 2048 the
model sees nothing to gain, and a little was gained all the same: some reason is missing from it. A ladder belongs to one size, one
card and one version of the compiler. Climb it again where yours differ.

## Softmax, rows of 256: where memory decides

The softmax of unit 03, a row a program, for 262 144 rows in bfloat16. torch is the vendor here; the copy moves as many bytes and
computes nothing.
"""

# %%
softmax = Climb(**stored("softmax", 256))
softmax.start()

# %% [markdown]
r"""
It reaches less than half of the copy's speed, and moves the same bytes. Is it the arithmetic? The first two steps spare some:
powers of two in place of `exp`, one division a row in place of one a number, no masks. **Predict** both.
"""

# %%
softmax.step("exp2, one division", guess=None)

# %%
softmax.step("no masks", guess=None)

# %% [markdown]
r"""
Arithmetic waits for memory. But memory waits too, or the copy would not be faster. For what? Every row is a program of its own, and
a program has to be **started**: it gets registers and a place on an SM, and goes when it is done. **Predict:** how many programs
start in one cycle of the card's clock (1.98 GHz at most)?
"""

# %%
for columns in (256, 4096, 16384):
    ms = stored("softmax", columns)["steps"][0]["ms"]
    programs = 2**26 // columns
    print(f"rows of {columns:6}: {programs:7,} programs in {1e3 * ms:3.0f} µs: {programs / (1e-3 * ms * 1.98e9):.2f} a cycle")
print(softmax.facts)

# %% [markdown]
r"""
Nearly one in every cycle for short rows, on the whole card. If that is the limit, a change inside the program gains nothing, and
half as many programs take half the time. The next step changes the warps of a program, the last one gives several rows to each.
**Predict** both.
"""

# %%
softmax.step("more warps", guess=None)

# %%
softmax.step("tuned", guess=None)

# %%
softmax.figure()

# %% [markdown]
r"""
Only the step with fewer programs counts, and it counts for more than its reason promised. With rows of 4096 numbers programs are
few from the beginning: there the plain solution stands beside the copy, and the same steps gain next to nothing.

## FlashAttention, T = 8192, D = 64, causal

The plain solution of unit 06, in blocks of 64 × 64, against cuDNN and FlashAttention-2 (both CUDA C++).
"""

# %%
flash = Climb(**stored("flash", 8192))
flash.start()

# %% [markdown]
r"""
### What one score costs

Every score $S_{ij}$ takes 4 D operations on tensor cores, two products. It also takes an exponential and a handful of plain
instructions. Each has units of its own. In one cycle one multiprocessor does, by NVIDIA's programming guide:

| | tensor cores, bf16 | plain instructions | exponentials |
|---|---|---|---|
| H200 (9.0) | 4096 FLOP | 128 | 16 |
| RTX 4080 (8.9) | 512 FLOP | 128 | 16 |

**Predict:** what takes longest for one score on an H200?
"""

# %%
RATES = {"H200": (4096, 128, 16), "RTX 4080": (512, 128, 16)}


def per_score(card, instructions, D=64):
    """Cycles of tensor cores, exponentials and plain instructions for 1000 scores."""
    dot, plain, special = RATES[card]
    return 1000 * 4 * D / dot, 1000 / special, 1000 * instructions / plain


for name in RATES:
    print(f"{name:9}" + "{:5.0f} cycles in tensor cores, {:3.0f} in exponentials, {:3.0f} in ten plain instructions".format(*per_score(name, 10)))

# %% [markdown]
r"""
The ten plain instructions! On an H200 the products are so fast that the softmax between them is the larger part; on an RTX 4080
the products rule. So the same step is worth more on one card than on the other. Here is what a score goes through in the plain
kernel, counted by hand, and which step drops what:
"""

# %%
INSTRUCTIONS = {
    "plain": ["· scale", "col < T?", "col ≤ row?", "both?", "score or −∞", "maximum", "− maximum", "· log₂e", "sum", "to bfloat16"],
    "exp2": ["col < T?", "col ≤ row?", "both?", "score or −∞", "maximum", "· factor − maximum", "sum", "to bfloat16"],
    "no bounds masks": ["col ≤ row?", "score or −∞", "maximum", "· factor − maximum", "sum", "to bfloat16"],
    "split loop": ["maximum", "· factor − maximum", "sum", "to bfloat16"],
}
before = dict.fromkeys(RATES, None)
for step, instructions in INSTRUCTIONS.items():
    words = []
    for name in RATES:
        now = sum(per_score(name, len(instructions)))  # as if nothing ran at the same time
        words.append(f"{name} {before[name] / now:.2f}" if before[name] else name)
        before[name] = now
    print(f"{step:16} {len(instructions):2} plain instructions a score; gain: {', '.join(words)}")

# %% [markdown]
r"""
This counts as if one thing happened after the other. Is that too much or too little? If exponentials ran while the tensor cores
multiply, the sum would be shorter and a saved instruction a larger share of it; or none, if it was hidden.

### Powers of two

The card computes $2^x$; `tl.exp(x)` is `tl.exp2(x * 1.4427)`. With $\log_2 e$ put into the scale, one multiply-add prepares the
exponent. **Predict:** is the result the same, bit by bit?
"""

# %%
x = np.linspace(-20, 0, 5, dtype=np.float32)
log2e = np.float32(1 / np.log(2))
print("exp(x) / 2^(x log₂e) − 1:", np.exp(x) / np.exp2(x * log2e) - 1)

# %%
flash.step("exp2", guess=None)

# %% [markdown]
r"""
The last digits differ, as they do between any two orders of rounding; a tolerance derived from the type forgives that.

### No bounds masks

T = 8192 is a multiple of 64, so `cols < T` always holds. The host knows that before it launches, and may choose a version of
the kernel without. A ragged T gets the other version.
"""

# %%
flash.step("no bounds masks", guess=None)

# %% [markdown]
r"""
### Split the loop

This was the harder thing of lesson 06. Blocks left of the diagonal are seen whole. **Predict:** how many of the blocks that are
computed need the causal mask at all?
"""

# %%
blocks = 8192 // 64
computed = blocks * (blocks + 1) // 2
print(f"{blocks} of {computed:,} blocks lie on the diagonal: {blocks / computed:.1%}")

# %%
flash.step("split loop", guess=None)

# %% [markdown]
r"""
### Longest rows first

The last block of queries has 128 times the work of the first, and programs start in the order of their ids. If the long ones
start last, multiprocessors stand idle at the end. How long? Here is the schedule: whoever is free takes the next program.
"""

# %%
def finish(lengths, places):
    """When the last of these programs ends, if each starts as soon as one of the places is free."""
    free = [0] * places
    for length in lengths:
        heapq.heapreplace(free, free[0] + length)
    return max(free)


heads, places = 4 * 16, 2 * 132  # two programs on each multiprocessor
shortest = list(range(1, blocks + 1))
ideal = heads * sum(shortest) / places
for name, lengths in {
    "shortest first, head by head": shortest * heads,
    "longest first, head by head": shortest[::-1] * heads,
    "longest first, of all heads": [length for length in shortest[::-1] for _ in range(heads)],
}.items():
    print(f"{name:29} {finish(lengths, places) / ideal:.3f} of the time that no schedule can beat")

# %%
flash.step("longest rows first", guess=None)

# %% [markdown]
r"""
The third line of the schedule is better still. But all heads at once means that all their `k` and `v` are wanted at once: 2 MB
a head, 134 MB for 64 heads, and L2 has 50. So as many heads go together as fit:
"""

# %%
flash.step("heads side by side", guess=None)

# %% [markdown]
r"""
### Tuned

Until here all steps had blocks of 64 × 64. Now tiles, warps and stages are chosen by the clock, as in lesson 05. Then, where
the card has descriptors and can **specialise warps** (some load, others multiply), the kernel that was fastest in trials.
"""

# %%
flash.step("tuned", guess=None)

# %%
flash.step("for this card", guess=None)

# %%
flash.figure()

# %% [markdown]
r"""
The count of instructions promised a tenth for each of its three steps, and each gave more: what a step removes had stood in the
way of the tensor cores too. Longest rows first gave nothing, as the schedule said: a hundredth. The last two steps gave nothing at
this length either. They have a history: when the tuned kernel was first measured, it was 7 % **slower** than the step before it
(H200, the same day). It moved whole blocks of pointers along its loop, and these take registers; with addresses computed anew in
each step the 7 % were back. Nobody had asked that line to be measured: it stood in a kernel that was right and looked the same.
A step that loses stays out of your kernel, however good its reason, and only a measurement in turn tells.

## Which steps exist on your card
"""

# %%
print(by_card(matmul, softmax, flash))

# %% [markdown]
r"""
A program on compute capability 8.9 may have 99 KB of shared memory, on 9.0 it has 227: fewer stages, smaller tiles. There is no
copy engine, so descriptors are ordinary loads with addresses computed by all threads, and no warps to specialise. What is left
is most of the ladder.

## Measure it yourself

On a machine with a card and with the kernels of `lab_setup/kernels` (your instructor's copy has them; they answer exercises, so
yours does not), the next cell climbs the ladder on that card. It takes about a minute.
"""

# %%
own = here("matmul", 4096)
if own is None:
    print("Nothing was measured here: that needs a card and lab_setup/kernels. The figures above:")
    print(matmul.facts)
own and Climb(**own).figure()

# %% [markdown]
r"""
Your own kernel needs neither: take the `rivals` cell of lesson 05 or 06, put your version and the changed one side by side, and
let them take turns.

## What you can do now

- predict a gain from what a step saves and which share of the time that is
- tell the resource that decides from those that wait
- climb a ladder one change at a time, and keep a step only if it pays
- say which steps your card has

### Ask yourself (not graded)
"""

# %%
from autograder.render.lesson11_questions import QUESTIONS
from autograder.render.questions import ask

ask(*QUESTIONS)

# %% [markdown]
r"""
### One harder thing

Two more ladders are stored: `stored("rmsnorm_backward", 4096)` begins with a sum by atomics, as unit 04 has it, and
`stored("fp8", 16)` with the fp8 product of unit 09. Make a `Climb` of each, read a reason with `guess=None`, write down what you
expect *and why*, and only then look. Which reason was wrong?
"""
