# %% [markdown]
r"""
# Lesson 01 · The programming model

How does one program thousands of arithmetic units at once? Triton, a language for graphics cards inside Python, has an
answer that fits on a page of NumPy. This lesson is that page: you write kernels as Python functions, run them, and
see what each of them touches. No card is needed, and no Triton; both come in lesson 02, where the same lines are
compiled for real.

Four questions return in every lesson, and every check answers them with your own kernel:

1. Is it right?
2. Is it in bounds?
3. What did it move?
4. Would it run on the card? (This one begins with lesson 02.)

You should know Python and NumPy. Reading takes 20 to 25 minutes, running all cells less than one. Where it says
**Predict**, take a guess before you run the cell below.
"""

# %%
from inspect import getsource

import numpy as np

from autograder import minitriton
from autograder.minitriton import STATS, arange, cdiv, launch, load, store
from autograder.render.figures import lanes_over_array, roofline
from autograder.render.inspected import show
from autograder.render.lesson01 import blocks, machine, rows, tile_time, tiles
from autograder.render.player import player
from autograder.trace.plain import inspect_launch

# %% [markdown]
r"""
## The machine

A **GPU** (graphics processing unit, "the card") computes in many small processors, called **SMs** (streaming
multiprocessors). Arrays live in the card's **memory**, a set of DRAM chips beside the processor. To be computed with, a
number has to come from there into the **registers** of an SM. On its way it passes the **L2 cache**, which
keeps what was fetched lately. Inside an SM, **shared memory** is a scratchpad for numbers that several parts
of the same work need.
"""

# %%
machine()

# %% [markdown]
r"""
The data sheet of this card gives two rates. Memory delivers 716.8 GB/s: its **bandwidth**. Arithmetic does 48.7 TFLOP/s
in fp32 at best: its **peak**. A **FLOP** is one floating-point operation, such as an addition, and T stands for $10^{12}$; **fp32** is
NumPy's `float32`, four bytes a number.

**Predict:** while one fp32 number arrives from memory, how many operations could the card do?
"""

# %%
seconds_a_number = 4 / 716.8e9
print(f"{48.7e12 * seconds_a_number:.0f} operations")

# %% [markdown]
r"""
Arithmetic is cheap, moving is dear. Adding two vectors does *one* operation for *three* numbers that move, two in
and one out: 1 FLOP for 12 bytes. This ratio, FLOP a byte, is a kernel's **arithmetic intensity**, and it says how fast
the kernel can be at best:

$$\text{FLOP a second} \le \min(\text{peak},\ \text{bandwidth} \times \text{FLOP a byte})$$

Drawn, that is a **roofline**. The points are the three kernels that you will write in this unit:

- **add**, the sum of two vectors;
- **softmax**, which turns every row of a matrix into positive numbers with the sum 1. It moves two numbers an element, one in
  and one out: 8 bytes. Counted as operations: compare (for the maximum), subtract, exponential, add, divide. So 5 FLOP for 8 bytes;
- **matmul**, the product of two matrices, computed square by square, in **tiles** of 16 × 16. The last section derives its 4
  FLOP a byte.

They lie where theory puts them, on the roof; none has been measured.
"""

# %%
roofline(
    {"name": "RTX 4080", "bandwidth": 716.8, "peak": 48.7},
    [
        {"label": "add", "intensity": 1 / 12},
        {"label": "softmax", "intensity": 5 / 8},
        {"label": "matmul by tiles of 16 × 16", "intensity": 4},
    ],
)

# %% [markdown]
r"""
All three are left of the corner: memory sets their pace. So we count the numbers that move, the **traffic**, and want to
fetch a number once and use it often. The rest of this page is about how.

## A program and its block

A **kernel** is a function that does one part of the work. A **launch** runs it many times, once for each part; each of
these runs is a **program**. The programs of a launch differ in one thing only, their number `pid` (program id). Each works on
a **block**, several numbers at once. A place in the block is a **lane**. The **grid** says how many programs there are.
"""

# %%
blocks(n=8, block=4)

# %% [markdown]
r"""
A whole kernel, and its launch with a grid of two programs:
"""

# %%
def double_kernel(pid, x, out, BLOCK):
    """out = 2 * x, for the block of this program."""
    offs = pid[0] * BLOCK + arange(0, BLOCK)
    store(out, offs, 2 * load(x, offs))


x = np.arange(8, dtype=np.float32)
out = np.full(8, np.nan, dtype=np.float32)  # not a number: nobody has written here yet
launch(double_kernel, (2,), x, out, 4)
print(out)

# %% [markdown]
r"""
Line by line:

- `arange(0, BLOCK)` numbers the lanes: 0, 1, 2, 3.
- `offs` are **offsets**: how far from the beginning of the array each lane's number lies. Program 1 gets 4, 5, 6, 7.
- `load` fetches a block: an array with a number a lane. What is done with it, `2 * …`, costs no traffic.
- `store` writes a block back.
- `pid` is a tuple, because a grid may have up to three axes; `pid[0]` is the number along the first.

Step through the launch (without widgets you see all steps at once):
"""

# %%
player(inspect_launch(double_kernel, (2,), x, out, 4))

# %% [markdown]
r"""
### A program is not a thread

In CUDA C++ one writes the code of one *thread*, which has one number. **Predict:** how many lines does this launch
print?
"""

# %%
def talking_kernel(pid, x, out, BLOCK):
    offs = pid[0] * BLOCK + arange(0, BLOCK)
    print("program", pid, "works on offsets", offs)


launch(talking_kernel, (2,), x, out, 4)

# %% [markdown]
r"""
Two, not eight. Whoever takes `pid` for the number of an *element* leaves most of the array untouched:
"""

# %%
def as_if_a_thread_kernel(pid, x, out):
    i = pid[0]
    store(out, i, 2 * load(x, i))


out = np.full(8, np.nan, dtype=np.float32)
launch(as_if_a_thread_kernel, (2,), x, out)
print(out)

# %% [markdown]
r"""
On a card a program is carried out by a group of threads, 128 unless told otherwise. Triton deals the lanes of
every block out to them. You never see it.

## Blocks that do not fit: the mask

Ten numbers, blocks of four. Must the block size divide n? **Predict** what two programs leave:
"""

# %%
n = 10
x = np.arange(n, dtype=np.float32)
out = np.full(n, np.nan, dtype=np.float32)
launch(double_kernel, (n // 4,), x, out, 4)
print(out)

# %% [markdown]
r"""
The *number of programs* has to be rounded up. `cdiv(n, BLOCK)` does that: 10 / 4 = 2.5, so 3 programs. But then the last
block sticks out. Messages call such a length **ragged** (it is no multiple of the block), and the lanes that stick out, with no number
to work on, the **tail**.
"""

# %%
blocks(n=10, block=4, masked=False)

# %% [markdown]
r"""
**Predict:** what happens in program 2? (NumPy's own `x[8:12]` would return two numbers and say nothing.)
"""

# %%
try:
    launch(double_kernel, (cdiv(n, 4),), x, out, 4)
except IndexError as error:
    print(error)

# %% [markdown]
r"""
Here a lane outside stops the launch and names the program. A card is less kind: it does not know where an array ends. It reads and
writes whatever lies there, and only sometimes ends with a memory fault.

A **mask** is a block of booleans that switches lanes off: `offs < n` is true for the lanes that have a number.
"""

# %%
def double_masked_kernel(pid, x, out, n, BLOCK):
    offs = pid[0] * BLOCK + arange(0, BLOCK)
    mask = offs < n
    store(out, offs, 2 * load(x, offs, mask), mask)


launch(double_masked_kernel, (cdiv(n, 4),), x, out, n, 4)
print(out)

# %%
blocks(n=10, block=4)

# %% [markdown]
r"""
So any block size will do. The block size is a matter of speed, the mask a matter of being right.

### A mask on the store is not enough

What is not stored does no harm, one might think, and leave out the mask of the load. **Predict:** is that right?
`inspect_launch` runs a launch and watches every lane. A lane outside does not stop it: the lane reads NaN (no number), writes
nothing, and becomes a **finding**. `show` tells the findings.
"""

# %%
def store_masked_kernel(pid, x, out, n, BLOCK):
    offs = pid[0] * BLOCK + arange(0, BLOCK)
    store(out, offs, 2 * load(x, offs), offs < n)


out = np.full(n, np.nan, dtype=np.float32)
run = inspect_launch(store_masked_kernel, (cdiv(n, 4),), x, out, n, 4)
print(out)
show(run)

# %% [markdown]
r"""
Reading outside is a fault too. The *numbers* come out right, here as on a card that does not stop, so a test of values passes.
The check judges the two apart: this kernel keeps its points for values and loses those for bounds.

## The mini-Triton, its core

What you have used is about forty lines of NumPy. Here are its two main functions, and the part they share:
"""

# %%
print(getsource(load), getsource(store), getsource(minitriton._lanes), sep="\n")

# %% [markdown]
r"""
- `_flat(operation, arr)` is `arr.reshape(-1)`, a view and never a copy: the array as memory has it, one row of numbers. Its shape
  plays no part.
- `_whole(offs)` makes an integer array of the offsets and refuses fractions.
- `OutOfBounds` is the IndexError that you have seen above, with its message.
- `on` are the lanes that the mask leaves on. Only they are checked, read and written. NumPy counts negative indices
  from the end; here, as on a card, anything below 0 is outside.
- Lanes that are off get `other`, which is 0 unless you say otherwise. The next section is about that.
- `WATCHERS` is where checks and pictures listen.

And a launch is a loop over the grid:
"""

# %%
print(getsource(launch))

# %% [markdown]
r"""
`Pid` is a tuple that refuses `pid * BLOCK`: Python would repeat a plain tuple, without a word.

`STATS` counts the numbers that lanes read and write. It runs on until you set it back. **Predict** both counts for ten
numbers in three blocks of four:
"""

# %%
STATS.update(loads=0, stores=0)
launch(double_masked_kernel, (cdiv(n, 4),), x, out, n, 4)
print(STATS)

# %% [markdown]
r"""
Ten each: a lane that is off moves nothing.

## What a masked lane holds: `other`

Three numbers in a block of four. **Predict** the sum and the maximum:
"""

# %%
x = np.array([-5, -3, -4], dtype=np.float32)
lanes = arange(0, 4)
row = load(x, lanes, lanes < 3)
print("block:", row, " sum:", row.sum(), " maximum:", row.max())

# %% [markdown]
r"""
The sum is right and the maximum is wrong: no number of `x` is 0. The lane that is off takes part in everything that
follows, with the value `other`. Choose it so that it changes nothing: 0 for a sum, 1 for a product, $-\infty$ for
a maximum. For $e^x$ as well: $e^{-\infty}$ is 0.
"""

# %%
row = load(x, lanes, lanes < 3, other=-np.inf)
print("block:", row, " maximum:", row.max(), " sum of powers:", np.exp(row).sum(), "=", np.exp(x).sum())

# %% [markdown]
r"""
## Programs have no order

`launch` takes the programs one after the other. A card runs hundreds at the same time and promises nothing. This kernel
sums blocks, and adds the total of the program before:
"""

# %%
def running_total_kernel(pid, x, out, BLOCK):
    mine = load(x, pid[0] * BLOCK + arange(0, BLOCK)).sum()
    before = load(out, pid[0] - 1, pid[0] > 0)
    store(out, pid[0], before + mine)


x = np.ones(8, dtype=np.float32)
out = np.full(4, np.nan, dtype=np.float32)
launch(running_total_kernel, (4,), x, out, 2)
print(out)

# %% [markdown]
r"""
Right. **Predict** what the very same kernel gives when the programs run in the opposite order:
"""

# %%
out = np.full(4, np.nan, dtype=np.float32)
launch(running_total_kernel, (4,), x, out, 2, order=reversed)
print(out)

# %% [markdown]
r"""
Program 3 reads what program 2 has not written yet. Two programs that touch the same number, one of them writing, have a
**race**. The check finds races in any order, also when the numbers happen to be right:
"""

# %%
out = np.full(4, np.nan, dtype=np.float32)
show(inspect_launch(running_total_kernel, (4,), x, out, 2))

# %% [markdown]
r"""
Between two *launches* there is an order: the second begins when the first has finished. So work that has to
wait becomes a launch of its own.

## Rows, columns, strides

Memory has no rows. A matrix is laid down row by row, and the distance from the beginning of one row to that of the
next is its **row stride**. Often that is the width of the matrix, but not always: here each row is padded to 8.
"""

# %%
rows(n_rows=4, n_cols=5, stride=8)

# %% [markdown]
r"""
A kernel gets the width *and* the stride, and needs both: the width for the mask, the stride for the offsets.
"""

# %%
def row_sum_kernel(pid, x, out, n_cols, stride, BLOCK):
    """out[r] = sum of row r; a program a row."""
    cols = arange(0, BLOCK)
    row = load(x, pid[0] * stride + cols, cols < n_cols)
    store(out, pid[0], row.sum())


padded = np.full((4, 8), 1000, dtype=np.float32)  # 1000: nobody should read the padding
padded[:, :5] = np.arange(20).reshape(4, 5)
print(padded)

# %% [markdown]
r"""
**Predict:** who takes the width for the stride, 5 for 8, gets which sums right?
"""

# %%
sums = np.full(4, np.nan, dtype=np.float32)
for stride in (8, 5):
    launch(row_sum_kernel, (4,), padded, sums, 5, stride, 8)
    print(f"stride {stride}:", sums)

# %% [markdown]
r"""
Only row 0. Every lane was in bounds, so nothing complained. The picture shows what program 1 has read, offsets 5 to 9. Cells
0 to 7 of the first line are row 0. Offsets 8 and 9 already belong to row 1; they are drawn at the right, where the block goes on.
"""

# %%
wrong = inspect_launch(row_sum_kernel, (4,), padded, sums, 5, 5, 8)
lanes_over_array(wrong.accesses[0], program=1)

# %% [markdown]
r"""
### A tile: a block with rows and columns

A block may have two axes; then it is called a **tile**. NumPy's broadcasting makes its offsets: a column of row numbers times the stride, plus
a row of column numbers. **Predict** the shape before you run it.
"""

# %%
tile_rows, tile_cols = 2 + arange(0, 2), 4 + arange(0, 3)
print(tile_rows[:, None] * 10 + tile_cols[None, :])

# %% [markdown]
r"""
Your turn. This kernel is meant to *transpose* a matrix: row r of `x` becomes column r of `out`. It has a hole: its
last offsets only copy. Mend that one line; the cell below prints `transposed: True` when you have.

<details>
<summary>A hint</summary>

`x` is M × N, so its rows are N numbers long, and `out` is N × M: how long is a row of `out`? The number at row r, column c of `x` goes
to row c, column r of `out`. Write down that offset for one number first, then put `rows[:, None]` for r and
`cols[None, :]` for c.
</details>
"""

# %% stub="target = rows[:, None] * N + cols[None, :]  # copies: mend it"
def transpose_kernel(pid, x, out, M, N, BM, BN):
    rows = pid[0] * BM + arange(0, BM)
    cols = pid[1] * BN + arange(0, BN)
    mask = (rows[:, None] < M) & (cols[None, :] < N)
    tile = load(x, rows[:, None] * N + cols[None, :], mask)
    ### BEGIN SOLUTION
    target = cols[None, :] * M + rows[:, None]
    ### END SOLUTION
    store(out, target, tile, mask)


# %%
M, N = 5, 7
matrix = np.arange(M * N, dtype=np.float32).reshape(M, N)
out = np.full((N, M), np.nan, dtype=np.float32)
launch(transpose_kernel, (cdiv(M, 4), cdiv(N, 4)), matrix, out, M, N, 4, 4)
print("column 0 of x:", matrix[:, 0], " row 0 of out:", out[0])
print("transposed:", np.array_equal(out, matrix.T))

# %% [markdown]
r"""
The mask has a condition for each axis: a tile at the corner sticks out on two sides. Masks are joined by `&`, each comparison in
its own parentheses. Python's `and` asks for one truth value, and a mask is a block of them.

## What did it move?

Subtract its mean from every row of a matrix. Two ways to write it; **predict** what `STATS` says to each, for 6 rows of
100 numbers.
"""

# %%
def center_twice_kernel(pid, x, out, n_cols, BLOCK):
    cols = arange(0, BLOCK)
    offs, mask = pid[0] * n_cols + cols, cols < n_cols
    mean = load(x, offs, mask).sum() / n_cols
    store(out, offs, load(x, offs, mask) - mean, mask)


def center_once_kernel(pid, x, out, n_cols, BLOCK):
    cols = arange(0, BLOCK)
    offs, mask = pid[0] * n_cols + cols, cols < n_cols
    row = load(x, offs, mask)
    store(out, offs, row - row.sum() / n_cols, mask)


x = np.random.default_rng(1).standard_normal((6, 100), dtype=np.float32)
for kernel in (center_twice_kernel, center_once_kernel):
    out = np.full_like(x, np.nan)
    STATS.update(loads=0, stores=0)
    launch(kernel, (6,), x, out, 100, 128)
    print(kernel.__name__, STATS, "right:", np.allclose(out, x - x.mean(axis=1, keepdims=True)))

# %% [markdown]
r"""
Both are right. For $M$ rows of $N$ numbers the second moves $2MN$ instead of $3MN$, because a block, once loaded, stays in
registers until its program ends. Where memory sets the pace, a third less traffic is a third less time.
The checks of this course count, and one more pass over a row fails.

### Softmax, and why it subtracts the maximum

The second exercise of the assignment is softmax: $e$ is raised to every number of a row, and each of these powers is divided by
their sum.

$$p_i = \frac{e^{x_i}}{\sum_j e^{x_j}} = \frac{e^{x_i - m}}{\sum_j e^{x_j - m}} \quad\text{for any } m$$

**Predict:** what does the first form give for a row of 10 000 and 9999?
"""

# %%
row = np.array([10000, 9999], dtype=np.float32)
with np.errstate(all="ignore"):
    print("as it stands:     ", np.exp(row) / np.exp(row).sum())
shifted = np.exp(row - row.max())
print("less the maximum: ", shifted / shifted.sum())

# %% [markdown]
r"""
fp32 ends at about 3.4e38, and $e^{89}$ lies beyond. With $m$ the maximum of the row, no exponent is above 0.

## Tiles pay: matmul

$C = A B$ with $A$ of $M \times K$ and $B$ of $K \times N$ numbers. The simple way gives each program one element of $C$, for which it reads a
row of $A$ and a column of $B$:
"""

# %%
def element_kernel(pid, A, B, C, N, K):
    ks = arange(0, K)
    a = load(A, pid[0] * K + ks)
    b = load(B, ks * N + pid[1])
    store(C, pid[0] * N + pid[1], (a * b).sum())


M, N, K = 12, 8, 10
A, B = np.ones((M, K), dtype=np.float32), np.ones((K, N), dtype=np.float32)
C = np.full((M, N), np.nan, dtype=np.float32)
STATS.update(loads=0, stores=0)
launch(element_kernel, (M, N), A, B, C, N, K)
print("right:", np.array_equal(C, A @ B), " read:", STATS["loads"], "= 2·M·N·K =", 2 * M * N * K)

# %% [markdown]
r"""
Every number of $A$ is read $N$ times, once for each column of $C$. Neighbouring elements of $C$ need the same row, so let one
program own a whole **tile** of $C$, of $B_M \times B_N$ elements. It walks along $k$ and reads one tile of $A$ and one of $B$ a step.
The sum stays in registers until the end.
"""

# %%
tiles(m=48, n=64, k=40, bm=16, bn=16, bk=8)

# %% [markdown]
r"""
Now the formula. A program reads $B_M K$ numbers of $A$ and $K B_N$ of $B$. There are $\frac{M}{B_M} \cdot \frac{N}{B_N}$ programs. Together:

$$\frac{M N}{B_M B_N} \left(B_M K + K B_N\right) = M N K \left(\frac{1}{B_M} + \frac{1}{B_N}\right)$$

The length of a step, $B_K$, does not occur. **Predict** by what factor tiles of 16 × 16 reduce the traffic, and whether the picture
above agrees.
"""

# %%
def numbers_read(M, N, K, BM, BN):
    return M * N * K * (1 / BM + 1 / BN)


print(numbers_read(48, 64, 40, 1, 1), "→", numbers_read(48, 64, 40, 16, 16))

# %% [markdown]
r"""
By 16. What is that worth at the size of real work? These are predictions from the data sheet, with every number
coming from memory:
"""

# %%
tile_time(1024)

# %% [markdown]
r"""
At 128 × 128 memory still takes twice as long as arithmetic. A square tile of side $T$ does $2T^2$ operations a step of $k$ for $2T$ numbers of
four bytes: $T/4$ FLOP a byte. The corner of the roof is at 68. **Predict:** does the tile that reaches it fit in the 256 KB of
registers of an SM?
"""

# %%
side = 4 * 68
print(f"{side} × {side} sums of 4 bytes: {side * side * 4 / 1024:.0f} KB")

# %% [markdown]
r"""
It does not. The rest is the L2 cache's work, since programs that run at the same time read the same tiles; lesson 05 shows how.

## CUDA C++ and Triton

| | CUDA C++ | Triton |
|---|---|---|
| one writes code for | one thread | one program, carried out by many threads |
| unit of data | one number | a block of numbers |
| shared memory | allocated and synchronised by hand | used by the compiler |
| tensor cores (units that multiply small matrices) | special instructions, or a library | one function: the product of two blocks |
| coalescing (neighbouring threads read neighbouring numbers, so that they travel together) | arranged by the author | arranged by the compiler, for the offsets that the author chose |
| control | everything | blocks, masks, order of work; not the single thread |

## What you can do now

- say what program, block, lane, grid, offset, mask, stride and tile are
- find the offsets of a block in a vector, in a row with padding, in a tile
- choose a mask, and the value that masked lanes get
- tell a race from a program that merely ran in a lucky order
- count what a kernel moves, and say what a card could do with it at best

### Ask yourself (not graded)
"""

# %%
from autograder.render.lesson01_questions import QUESTIONS
from autograder.render.questions import ask

ask(*QUESTIONS)

# %% [markdown]
r"""
### One harder thing

`running_total_kernel` needs its programs in order. Compute the same totals so that any order is right: several launches,
each free of races, of kernels that you write. `show(inspect_launch(…))` tells whether they are. How many numbers
do yours move, compared with one pass?

Then open assignment 01.
"""
