# %% [markdown]
r"""
# Assignment 01 · Add, softmax and matmul in NumPy

Three kernels on the mini-Triton of lesson 01, and a short quiz. No card and no Triton are needed.

`check` runs your kernel on several sizes, friendly and unfriendly ones, and answers: is it right, does every lane
stay inside its array, do programs leave each other's numbers alone, does it move no more than theory says? Check as
often as you like: your grade comes from the same check, on other sizes and other numbers. (Jupyter shows what stands in the last line
of a cell, so let `check(…)` be the last line.) `hint("01.add")` opens a
hint; call it again for the next one.

Numbers reach a kernel through `load` and leave it through `store`. What happens between, on the block that you
have, is NumPy as you know it. The check judges results, bounds, races and traffic, and not how you got there. (A Python loop over the
numbers of a block would pass; on a card there is no such loop, so get used to whole blocks.)
"""

# %%
import numpy as np

from autograder import check, hint
from autograder.minitriton import STATS, arange, cdiv, launch, load, store

# %% [markdown]
r"""
## 01.add · x + y

A shop adds up yesterday's and today's sales, article by article. The list grows every day and never has a
convenient length.

- `x`, `y` and `out` are float32 vectors of `n` numbers. The sum goes into `out`; `x` and `y` stay as they are.
- `pid` is a tuple: `pid[0]` is the program's number. The launch has `cdiv(n, BLOCK)` programs.
- `n` need not be a multiple of `BLOCK`.
- At most $3n$ numbers are read and written (the check allows 5 % more).

About three lines.
"""

# %% solution="01.add"
def add_kernel(pid, x, y, out, n, BLOCK):
    """out[i] = x[i] + y[i] for the block of this program."""
    ### BEGIN SOLUTION
    offs = pid[0] * BLOCK + arange(0, BLOCK)
    mask = offs < n
    store(out, offs, load(x, offs, mask) + load(y, offs, mask), mask)
    ### END SOLUTION


# %% [markdown]
r"""
Try it by hand first. Ten numbers, blocks of four:
"""

# %%
x, y = np.arange(10, dtype=np.float32), np.ones(10, dtype=np.float32)
out = np.full(10, np.nan, dtype=np.float32)
launch(add_kernel, (cdiv(10, 4),), x, y, out, 10, 4)
print(out)

# %% check="01.add"

# %% [markdown]
r"""
## 01.softmax · a row a program

A language model has a score for every word that may come next. Softmax turns the scores of a row into
probabilities, $p_i = e^{x_i} / \sum_j e^{x_j}$. A score is any number from $-10^4$ to $10^4$, and all scores of a row may be close
to either end.

- `x` and `out` are float32 matrices of rows of `n_cols` numbers, contiguous: row r begins at offset `r * n_cols`.
- The launch has one program a row; `BLOCK` is at least `n_cols`, so a row fits in one block.
- At most $2MN$ numbers are read and written for $M$ rows of $N$ columns (5 % more allowed): every number is
  read once and written once.
- For what lanes without a number have to hold, and for large scores, lesson 01 has a section each.

About six lines.
"""

# %% solution="01.softmax"
def softmax_kernel(pid, x, out, n_cols, BLOCK):
    """Row pid[0] of out = softmax of row pid[0] of x."""
    ### BEGIN SOLUTION
    cols = arange(0, BLOCK)
    offs, mask = pid[0] * n_cols + cols, cols < n_cols
    row = load(x, offs, mask, other=-np.inf)
    powers = np.exp(row - row.max())
    store(out, offs, powers / powers.sum(), mask)
    ### END SOLUTION


# %% check="01.softmax"

# %% [markdown]
r"""
## 01.matmul · a tile a program

Nearly all the time of a neural network goes into products of matrices. Write one by tiles: program $(i, j)$ owns the tile
of `C` whose rows begin at `i * BM` and whose columns begin at `j * BN`, and walks along `K` in steps of `BK`, summing as it goes.

- `A` is M × K, `B` is K × N, both float32 and contiguous, so their row strides are K and N. `C` is M × N, float32 or float64.
- M, N and K need not be multiples of anything, so a tile may stick out in two directions.
- The product of two blocks is `a @ b`.
- The loads request $M N K \left(\frac{1}{B_M} + \frac{1}{B_N}\right)$ numbers, the store $M N$. An edge tile may count as a whole one,
  and 5 % more are allowed; a tile that is read twice is too much.
- `triton_matmul` makes `C`, launches the kernel and returns `C`. It leaves `A` and `B` as they were. (`np.empty` makes an array without
  filling it; the check puts NaN there, so that nobody relies on what it holds.)
- A card has no room for a strip of any length, hence the steps; but `BK` does not occur in the traffic, and a kernel that takes all of
  K in one step passes.

About ten lines in the kernel and five in the function.
"""

# %% solution="01.matmul"
def matmul_kernel(pid, A, B, C, M, N, K, BM, BN, BK):
    """The BM × BN tile (pid[0], pid[1]) of C = A B."""
    ### BEGIN SOLUTION
    rows = pid[0] * BM + arange(0, BM)
    cols = pid[1] * BN + arange(0, BN)
    total = np.zeros((BM, BN), dtype=np.float32)
    for k in range(0, K, BK):
        ks = k + arange(0, BK)
        a = load(A, rows[:, None] * K + ks[None, :], (rows[:, None] < M) & (ks[None, :] < K))
        b = load(B, ks[:, None] * N + cols[None, :], (ks[:, None] < K) & (cols[None, :] < N))
        total += a @ b
    store(C, rows[:, None] * N + cols[None, :], total, (rows[:, None] < M) & (cols[None, :] < N))
    ### END SOLUTION


def triton_matmul(A, B, BM=16, BN=16, BK=16):
    """A: M × K, B: K × N, float32, contiguous. Returns A B as a new float32 array, M × N."""
    ### BEGIN SOLUTION
    (M, K), N = A.shape, B.shape[1]
    C = np.empty((M, N), dtype=np.float32)
    launch(matmul_kernel, (cdiv(M, BM), cdiv(N, BN)), A, B, C, M, N, K, BM, BN, BK)
    return C
    ### END SOLUTION
    raise NotImplementedError("triton_matmul is not written yet")


# %% check="01.matmul"

# %% [markdown]
r"""
### What the tiles are worth (not graded)

How many numbers your matmul reads, by the side of its tiles:
"""

# %%
A, B = np.ones((64, 64), dtype=np.float32), np.ones((64, 64), dtype=np.float32)
for side in (4, 8, 16, 32):
    STATS.update(loads=0, stores=0)
    try:
        triton_matmul(A, B, BM=side, BN=side)
    except NotImplementedError as error:
        print(error)
        break
    print(f"tiles of {side:2} × {side:2}: {STATS['loads']:7} read,", 64**3 * 2 // side, "by the formula")

# %% [markdown]
r"""
## Quiz

Graded with the assignment, a point each; the check below looks at the form of your answers only. Put them into the
next cell: a number, a letter such as `"a"`, or a list of letters such as `["a", "b"]`.

**q1.** An array of 10 000 numbers, BLOCK_SIZE 1024: how many programs?

**q2.** On a card, a kernel for these 10 000 numbers has no mask anywhere. What happens?

- a) The lanes past the end wait until the launch is over.
- b) The card rounds the array up to a whole block.
- c) The last program reads and writes past the end: garbage, other data overwritten, or a memory fault.
- d) The kernel does not compile.

**q3.** Why do masked lanes hold −∞ in softmax?

- a) So that they overflow and are noticed.
- b) They change neither the maximum nor, after exp, the sum.
- c) Because a masked lane must not hold 0 in any kernel.
- d) So that less is read from memory.

**q4.** M = N = K = 1024, tiles of C of 64 × 64. How many numbers do the loads of a tiled matmul request?

**q5.** Which statements about the programs of one launch hold? Name all of them.

- a) A program is one thread of the card.
- b) They may run in any order, and several at the same time.
- c) Program 1 can count on what program 0 stores.
- d) They run the same kernel and differ in their pid.
- e) There are exactly as many as the card has SMs.

**q6.** A matrix has 20 columns and a row stride of 32. At which offset lies the number in row 3, column 11? (The first row and
the first column are number 0.)
"""

# %% quiz="01.quiz"

# %% check="01.quiz"
