# %% [markdown]
r"""
# Lesson 05 · Tiled matmul

Matrix multiplication is what graphics cards are built for, and most of the time of a neural network goes into it.
A kernel for it needs three new things: blocks with two dimensions, `tl.dot`, and an order of programs that lets
them share what the cache holds. The kernel has twenty lines; on the way you meet the tensor cores, their rounding,
and autotuning.

You bring from lessons 01 to 04: one program computes one tile of the result (lesson 01 did it in NumPy), masks and
neutral elements, strides, findings, traffic.

Reading takes 20 to 25 minutes, running all cells less than one.
"""

# %%
from lab_setup.roofline.measure import gpu, measure, versions

print(versions())

# %%
import numpy as np
import torch
import triton
import triton.language as tl

from autograder import check, hint
from autograder.checking import inspect_call
from autograder.compiled import facts_of
from autograder.ir.cards import card
from autograder.ir.l2 import EFFECTIVE, fetched, grouped, matmul_programs
from autograder.render.figures import program_map
from autograder.render.inspected import show
from autograder.render.lesson05 import addresses, epilogue, fetches, formats, orders, tile_roof
from autograder.render.player import player

# %% [markdown]
r"""
## A block of addresses

A tile has rows and columns, so a block of addresses needs two sets of numbers. `rows[:, None]` stands them in a
column, `cols[None, :]` in a row; their sum, by broadcasting as in NumPy, is a block. Each number is first
multiplied by its **stride**, the distance in memory from one row, or one column, to the next.
"""

# %%
addresses(rows=range(2, 6), cols=range(5, 9), shape=(5, 7), strides=(7, 1))

# %% [markdown]
r"""
A transposed matrix is the same memory with the strides exchanged. Nothing is copied; the kernel gets two other
numbers. Here is a whole kernel with two-dimensional blocks: every program copies one tile.
"""

# %%
@triton.jit
def copy_kernel(
    x_ptr, out_ptr, M, N, x_row, x_col, out_row, out_col, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr
):
    """out = x, tile by tile."""
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = (rows[:, None] < M) & (cols[None, :] < N)
    tile = tl.load(x_ptr + rows[:, None] * x_row + cols[None, :] * x_col, mask=mask)
    tl.store(out_ptr + rows[:, None] * out_row + cols[None, :] * out_col, tile, mask=mask)


def copy(x):
    m, n = x.shape
    out = torch.empty(m, n)
    grid = (triton.cdiv(m, 4), triton.cdiv(n, 4))
    copy_kernel[grid](x, out, m, n, *x.stride(), *out.stride(), BLOCK_M=4, BLOCK_N=4)
    return out


x = torch.arange(35.0).reshape(5, 7)
print("strides of x", x.stride(), " of x.t()", x.t().stride())
run = inspect_call(copy, x.t())
print(run.outputs[0].values)

# %%
player(run)

# %% [markdown]
r"""
A tile has two edges, so the mask has two conditions, joined by `&`. **Predict:** without the condition on the
columns, does every program that hangs over the right edge read outside the tensor?
"""

# %%
@triton.jit
def copy_masked_by_rows_kernel(
    x_ptr, out_ptr, M, N, x_row, x_col, out_row, out_col, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr
):
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    inside = rows[:, None] < M  # the columns are missing
    tile = tl.load(x_ptr + rows[:, None] * x_row + cols[None, :] * x_col, mask=inside)
    mask = inside & (cols[None, :] < N)
    tl.store(out_ptr + rows[:, None] * out_row + cols[None, :] * out_col, tile, mask=mask)


def copy_masked_by_rows(x):
    m, n = x.shape
    out = torch.empty(m, n)
    grid = (triton.cdiv(m, 4), triton.cdiv(n, 4))
    copy_masked_by_rows_kernel[grid](x, out, m, n, *x.stride(), *out.stride(), BLOCK_M=4, BLOCK_N=4)
    return out


run = inspect_call(copy_masked_by_rows, x)
print("the numbers are right:", bool((run.outputs[0].values == x.numpy()).all()))
show(run)

# %% [markdown]
r"""
Only the last row does: what lies behind the other rows is the beginning of the next one. Most lanes that are
missing a mask hurt nobody, and that is how such a kernel survives its tests.

## `tl.dot`, step by step along K

A tile of $C = A \cdot B$ is $\sum_k A_{\text{rows},k} B_{k,\text{cols}}$. `tl.dot(a, b)` multiplies two tiles on the
tensor cores; `tl.dot(a, b, acc)` adds the product to `acc`. The tiles move along K, `acc` stays in registers. For
now one program computes everything, so that nothing but the loop is new:
"""

# %%
@triton.jit
def one_tile_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr
):
    """c = a b for contiguous a (M × K) and b (K × N) that fit one tile in M and N."""
    rows = tl.arange(0, BLOCK_M)
    cols = tl.arange(0, BLOCK_N)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, K, BLOCK_K):
        ks = start + tl.arange(0, BLOCK_K)
        a_mask = (rows[:, None] < M) & (ks[None, :] < K)
        b_mask = (ks[:, None] < K) & (cols[None, :] < N)
        a = tl.load(a_ptr + rows[:, None] * K + ks[None, :], mask=a_mask, other=0.0)
        b = tl.load(b_ptr + ks[:, None] * N + cols[None, :], mask=b_mask, other=0.0)
        acc = tl.dot(a, b, acc)
    c_mask = (rows[:, None] < M) & (cols[None, :] < N)
    tl.store(c_ptr + rows[:, None] * N + cols[None, :], acc.to(c_ptr.dtype.element_ty), mask=c_mask)


def one_tile(a, b, kernel=one_tile_kernel):
    (m, k), n = a.shape, b.shape[1]
    c = torch.empty(m, n, dtype=a.dtype)
    kernel[(1,)](a, b, c, m, n, k, BLOCK_M=16, BLOCK_N=16, BLOCK_K=16)
    return c


torch.manual_seed(0)
a, b = torch.randn(10, 40), torch.randn(40, 12)
run = inspect_call(one_tile, a, b)
print("largest difference:", np.abs(run.outputs[0].values - (a @ b).numpy()).max())
print(f"{run.operations.dot:,} operations in tl.dot, {2 * 10 * 12 * 40:,} are asked for")

# %% [markdown]
r"""
Tiles are whole, also where the matrix has ended: `tl.dot` multiplied the zeros of masked lanes as well. Its sides
are powers of two, and at least 16.

Lanes beyond K enter every sum, so they must read 0. **Predict:** if the tile of `b` holds zeros there, does `a` need
its mask in K?
"""

# %%
@triton.jit
def no_k_mask_of_a_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr
):
    rows = tl.arange(0, BLOCK_M)
    cols = tl.arange(0, BLOCK_N)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, K, BLOCK_K):
        ks = start + tl.arange(0, BLOCK_K)
        b_mask = (ks[:, None] < K) & (cols[None, :] < N)
        a = tl.load(a_ptr + rows[:, None] * K + ks[None, :], mask=rows[:, None] < M, other=0.0)
        b = tl.load(b_ptr + ks[:, None] * N + cols[None, :], mask=b_mask, other=0.0)
        acc = tl.dot(a, b, acc)
    c_mask = (rows[:, None] < M) & (cols[None, :] < N)
    tl.store(c_ptr + rows[:, None] * N + cols[None, :], acc, mask=c_mask)


run = inspect_call(one_tile, a, b, no_k_mask_of_a_kernel)
print("rows that come out right:", int(np.isclose(run.outputs[0].values, a @ b, atol=1e-4).all(axis=1).sum()))
show(run)

# %% [markdown]
r"""
Nine rows met the numbers of the next row and multiplied them by 0. The last row read past the end, where the check
puts NaN, and 0 · NaN is NaN. On a card it is whatever stands there.

### A sum in float16 is fine?

The result may be float16; the sum must not be. **Predict:** how large is the error of a sum of 4096 positive
numbers that is kept in float16?
"""

# %%
def summed(products, step, dtype):
    """The products' sum, kept in `dtype` after every `step` of them."""
    total = torch.zeros((), dtype=dtype)
    for part in products.split(step):
        total = (total + part.sum()).to(dtype)
    return total.item()


products = torch.rand(4096).half().float() * torch.rand(4096).half().float()
exact = products.double().sum().item()
for dtype in (torch.float32, torch.float16, torch.bfloat16):
    print(f"{str(dtype):15} {summed(products, 32, dtype):10.4f}  relative error {summed(products, 32, dtype) / exact - 1:.1e}")

# %% [markdown]
r"""
A float16 near 1000 has steps of 0.5, a bfloat16 steps of 4: each addition loses what is smaller. So `acc` is
float32, and `.to(...)` stands behind the loop.

### float32 in the tensor cores is TF32

Tensor cores multiply float16 and bfloat16. For float32 operands they have **TF32**, whose fraction has 10 bits in
place of 23. On cards since Ampere `tl.dot` uses it for float32 unless you say `input_precision="ieee"`: then the
product leaves the tensor cores for the plain float32 units. (IEEE 754 is the standard that says how float32 rounds.)
"""

# %%
formats()

# %% [markdown]
r"""
The check computes float32 in full. What TF32 would do can be *simulated* here: round the fraction of both operands to
10 bits, then multiply. **Predict:** is the error larger by the factor between the steps, $2^{23-10} = 8192$?
"""

# %%
def to_tf32(x):
    """float32 → the nearest number with 10 fraction bits. A simulation of what a tensor core gets."""
    bits = x.contiguous().view(torch.int32)
    return ((bits + 0x1000) & ~0x1FFF).view(torch.float32)


a, b = torch.randn(128, 512), torch.randn(512, 128)
exact = a.double() @ b.double()
for name, product in {"IEEE float32": a @ b, "TF32, simulated": to_tf32(a) @ to_tf32(b)}.items():
    print(f"{name:16} largest error {(product.double() - exact).abs().max():.1e}, the products are about {exact.std():.0f}")

# %% [markdown]
r"""
By about 900: in float32 the 512 additions round too, and that weighs as much as the operands. Three digits are right
in place of six. On a card:
"""

# %%
@triton.jit
def precision_kernel(a_ptr, b_ptr, c_ptr, PRECISION: tl.constexpr):
    at = tl.arange(0, 64)
    a = tl.load(a_ptr + at[:, None] * 64 + at[None, :])
    b = tl.load(b_ptr + at[:, None] * 64 + at[None, :])
    c = tl.dot(a, b, input_precision=PRECISION)
    tl.store(c_ptr + at[:, None] * 64 + at[None, :], c)


if gpu("about 1e-2 for tf32 and 1e-5 for ieee, as in the simulation."):
    p, q = torch.randn(2, 64, 64, device="cuda")
    for precision in ("tf32", "ieee"):
        c = torch.empty_like(p)
        precision_kernel[(1,)](p, q, c, PRECISION=precision)
        print(precision, "largest error", (c.double() - p.double() @ q.double()).abs().max().item())

# %% [markdown]
r"""
For training in bfloat16 this is no concern, and the check accepts either. Where a float32 result is right on the CPU and off in the fourth digit on
the card, it is the first thing to look at.

## Your turn: matmul

Now many programs. Each computes one tile: program `(i, j)` owns the rows from $i \cdot$ BLOCK_M on and the columns from
$j \cdot$ BLOCK_N on, and the strides come with the tensors. Two holes; `hint("05.matmul")` helps.
"""

# %% stub=["a_mask = rows[:, None] < M  # one edge is missing: mend it\nb_mask = cols[None, :] < N  # here too", "acc = acc + 0.0  # something is missing here"]
@triton.jit
def matmul_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K,
    stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, K, BLOCK_K):
        ks = start + tl.arange(0, BLOCK_K)
        ### BEGIN SOLUTION
        a_mask = (rows[:, None] < M) & (ks[None, :] < K)
        b_mask = (ks[:, None] < K) & (cols[None, :] < N)
        ### END SOLUTION
        a = tl.load(a_ptr + rows[:, None] * stride_am + ks[None, :] * stride_ak, mask=a_mask, other=0.0)
        b = tl.load(b_ptr + ks[:, None] * stride_bk + cols[None, :] * stride_bn, mask=b_mask, other=0.0)
        ### BEGIN SOLUTION
        acc = tl.dot(a, b, acc)
        ### END SOLUTION
    c_ptrs = c_ptr + rows[:, None] * stride_cm + cols[None, :] * stride_cn
    tl.store(c_ptrs, acc.to(c_ptr.dtype.element_ty), mask=(rows[:, None] < M) & (cols[None, :] < N))


def matmul(a, b):
    (m, k), n = a.shape, b.shape[1]
    c = torch.empty((m, n), dtype=a.dtype, device=a.device)
    grid = (triton.cdiv(m, 64), triton.cdiv(n, 64))
    strides = (*a.stride(), *b.stride(), *c.stride())
    matmul_kernel[grid](a, b, c, m, n, k, *strides, BLOCK_M=64, BLOCK_N=64, BLOCK_K=32)
    return c


# %%
check("05.matmul", matmul)

# %% [markdown]
r"""
## How large a tile?

For each step of depth 1 along K a tile of $s \times s$ loads $2s$ numbers and does $2s^2$ operations. In bfloat16 that
is $2s^2 / 4s = s/2$ FLOP a byte: 64 for a tile of 128². **Predict:** under the roof of an RTX 4080, which tile
keeps the tensor cores busy?
"""

# %%
tile_roof((32, 64, 128, 256))

# %% [markdown]
r"""
Even 128² would stand still half of the time. Why not 256²? `acc` has one float32 for each element of the tile, and
all of it stays in registers: 65 536 × 4 bytes is all that one SM has. And the two tiles of a step wait in shared
memory, in several **stages**, so that the loads of later steps are under way while the tensor cores work on this
one. In bfloat16 a tile of 128 × 32 has 8 KB, so has one of 32 × 128; three stages of both have 48 KB, and the
program's threads on an RTX 4080 may use 99 KB (101 376 bytes). **Predict:** what does the compiler take for
`num_stages=3`? (It compiles *your* kernel from above: fill its holes first.)
"""

# %%
n = 1024
wide = torch.empty(n, n, dtype=torch.bfloat16)
strides = (n, 1) * 3


def call(bm, bn, bk, **options):
    return (wide, wide, wide, n, n, n, *strides), dict(BLOCK_M=bm, BLOCK_N=bn, BLOCK_K=bk, **options)


shapes = [(128, 128, 32, 3, 4), (128, 128, 32, 4, 4), (128, 128, 64, 5, 8), (256, 128, 32, 3, 4)]
facts = facts_of(matmul_kernel, [call(bm, bn, bk, num_stages=s, num_warps=w) for bm, bn, bk, s, w in shapes])
print("tile and step   stages warps   shared memory   registers   spilled")
for (bm, bn, bk, s, w), f in zip(shapes, facts, strict=True):
    fits = "" if f.shared <= f.shared_limit else f"  more than {f.shared_limit:,}!"
    print(f"{bm} × {bn} × {bk}  {s:5} {w:5} {f.shared:11,} bytes {f.registers:9} {f.spills:8,} bytes{fits}")
if not facts[0].shared:
    print("No shared memory: matmul_kernel has no tl.dot yet. Fill its holes, then run this cell again.")

# %% [markdown]
r"""
Once the holes are filled: 32 KB, not 48: on this card Triton keeps two copies for three stages, since one more is on its way through the
registers. (For an H200 the same compiler keeps all three: 48 KB.) Five stages of depth 64 are more than the card has: the compiler does not refuse, the launch would fail. The check says it
before. A tile of 256 × 128 on four warps does not fit the registers and is spilled.

A tile can also be too large for the matrix: 1024² has 64 tiles of 128², and the card has 76 SMs. Twelve have nothing
to do.

## What L2 makes of it

So a program's loads must not all go to memory. They do not: all tiles in one row of tiles read the same rows of
`a`, a **strip** of it, all tiles in one column the same strip of `b`, and what one program has fetched lies in the L2 cache, where its neighbours find it.
But only programs that run *at the same time* are sure to find it. Programs start in the order of their ids, 76 at a
time on an RTX 4080, one on each SM. Which tile a program takes is up to the kernel: it may read its id as row after
row of tiles, or go down a **group** of a few rows first and then one column to the right. `grouped(5, 6, 2)` lists the
tiles of the programs 0, 1, 2, … for 5 × 6 tiles and groups of two rows. **Predict:** where is program 24?
"""

# %%
numbers = np.empty((5, 6), dtype=int)
for program, (row, column) in enumerate(grouped(5, 6, 2)):
    numbers[row, column] = program
program_map(numbers)

# %% [markdown]
r"""
A group of two rows has 12 programs; rows 0 and 1 have the first 12, rows 2 and 3 the next, and row 4 is left: the last
group is only one row high, and its programs stand side by side.

**Predict:** 32 × 32 tiles, numbered row after row. How many strips do the first 76 programs need?
"""

# %%
orders({"row by row": list(grouped(32, 32, 1)), "in groups of 8 rows": list(grouped(32, 32, 8))}, at_once=76)

# %% [markdown]
r"""
35 against 18, with nothing changed but the numbering. The order of programs does matter, not for the result, but for
the memory.

How much? A model of the L2 cache gives an answer: programs in the order of their ids, as many at a time as the card has
SMs, all at the same step along K; the cache drops what was not touched for longest. On an H200 its prediction lay
within 10 % of the bytes counted by the hardware in thirty cases, if the cache was taken for 60 % of its size. For the
RTX 4080 both lines below are predictions. **Predict** the factor between row order and groups of 8.
"""

# %%
groups = (1, 2, 4, 8, 16, 32)


def gigabytes(name, share, n=8192, tile=128):
    """What a bf16 matmul of n³ fetches from memory, by the model, for each of `groups`."""
    row, side = card(name), n // tile
    size = share * row.l2_mb * 2**20
    return [
        fetched(matmul_programs(n, n, n, grouped(side, side, g), (tile, tile, 1024)), row.sms, size) / 1e9
        for g in groups
    ]


predicted = {
    "H200, 60 % of its L2": gigabytes("H200 SXM", EFFECTIVE),
    "RTX 4080, 60 % of its L2": gigabytes("RTX 4080", EFFECTIVE),
    "RTX 4080, all of its L2": gigabytes("RTX 4080", 1.0),
}
measured = {"H200": [4.365, 4.527, 2.528, 1.738, 1.732, 2.480]}
for name, numbers in predicted.items():
    print(f"{name:26}", "  ".join(f"{gb:.2f}" for gb in numbers), "GB")
at_4096 = gigabytes("RTX 4080", EFFECTIVE, n=4096)
print(f"{'RTX 4080, 60 %, 4096³':26}", "  ".join(f"{gb:.2f}" for gb in at_4096), "GB")
fetches(groups, predicted, measured, "8192³ in bf16: the order of programs decides what memory has to deliver")

# %% [markdown]
r"""
Five to six times less on an RTX 4080, says the model. What is it worth? The product takes
$2 \cdot 8192^3 / 97.5\cdot 10^{12}$ s = 11.3 ms of tensor cores. 7.5 GB at 716.8 GB/s take 10.4 ms, nearly as long; 1.4
GB take 2 ms. On the H200, with nearly seven times the bandwidth, reads fell by 2.5 times and the time by 0.8 %. At
4096³ the 4080's cache holds nearly all of `a` and `b`: 0.22 GB at worst, 0.3 ms beside 1.4 ms of arithmetic. There no
order is worth much.

## Autotuning

Tile, step, stages, warps, group: nobody can tell in advance which choice is best on which card and size. `triton.autotune`
tries a list of configurations once for each value of `key` and keeps the fastest.

Are more warps always faster? **Predict** what 4, 8 and 16 warps have to do with registers, for a tile of 128². (Your
kernel once more.)
"""

# %%
counts = (2, 4, 8, 16)
facts = facts_of(matmul_kernel, [call(128, 128, 32, num_warps=w) for w in counts])
for warps, f in zip(counts, facts, strict=True):
    held = f"{f.registers:3} registers a thread, {warps * 32 * f.registers:,} a block"
    print(f"{warps:2} warps: {held}, {f.spills:5,} bytes spilled")

# %% [markdown]
r"""
Two warps are too few: a thread would have to hold 256 sums, and has 255 registers. Sixteen have room to spare, but each
warp computes a smaller part of the tile and reads more from shared memory for it. More is not faster; only the clock
tells.

Autotuning has side effects. To time a configuration it *runs the kernel*, many times, on your tensors. **Predict**
what the first call of this function leaves in `total`:
"""

# %%
@triton.autotune(configs=[triton.Config({"BLOCK": 64}), triton.Config({"BLOCK": 128})], key=["n"])
@triton.jit
def add_into_kernel(x_ptr, total_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    total = tl.load(total_ptr + at, mask=mask) + tl.load(x_ptr + at, mask=mask)
    tl.store(total_ptr + at, total, mask=mask)


def add_into(x, total):
    n = x.numel()
    add_into_kernel[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](x, total, n)
    return total


ones = torch.ones(200)
for warning in inspect_call(add_into, ones, torch.zeros(200)).warnings:
    print(warning)

if gpu("a number in the hundreds or thousands, where 1 is right."):
    print(add_into(ones.cuda(), torch.zeros(200, device="cuda"))[0].item())

# %% [markdown]
r"""
`triton.autotune(..., restore_value=["total_ptr"])` puts the tensor back before each run. A kernel that writes a fresh
output does not need it. The check has no clock: it takes every configuration as it comes and runs the check on each.

## The epilogue

In a network a bias and an activation follow the product. As kernels of their own they send the result to memory and
back, twice. But when the loop along K has ended, the tile lies in registers, in float32:
"""

# %%
epilogue()

# %% [markdown]
r"""
What is put between the loop and the store is called the **epilogue**, and costs no traffic. That is the second half of
the assignment.

## Measured, if there is a card

On a GPU this compares the kernel above, with its tiles of 64², with **cuBLAS**, NVIDIA's library that torch calls for
`a @ b`. The assignment's kernel, tuned, does better.
"""

# %%
def rivals(n):
    a, b = torch.randn(2, n, n, device="cuda").bfloat16()
    return {"matmul": lambda: matmul(a, b), "cuBLAS": lambda: a @ b}


measure(
    rivals,
    sizes=(1024, 2048, 4096),
    bytes_of=lambda n: 3 * 2 * n * n,
    flop_of=lambda n: 2 * n**3,
    atol_of=lambda n: n**0.5 / 128,
    expect="on an RTX 4080, cuBLAS at 70–85 % of 97.5 TFLOP/s from 2048 on, this kernel well below.",
)

# %% [markdown]
r"""
| measured on one H200, bf16, n = 4096 | of cuBLAS |
|---|---|
| tiles of 128 × 128, steps of 32 | 0.78 |
| steps of 64 | 0.91 |
| tiles of 128 × 256 | 0.97 |

The kernel is the same in all three lines: what changed are three numbers.

## What you can do now

- build blocks of addresses with two dimensions, masked at both edges, for any strides
- sum along K in float32, and say what lanes beyond K must read
- tell IEEE from TF32, and say where each of them comes from
- compute FLOP a byte, shared memory and registers of a tile
- number programs so that neighbours share strips, and predict what memory has to deliver
- autotune, and say when it spoils a tensor

### Ask yourself (not graded)
"""

# %%
from autograder.render.lesson05_questions import QUESTIONS
from autograder.render.questions import ask

ask(*QUESTIONS)

# %% [markdown]
r"""
### One harder thing

Launch 76 programs, whatever the size, and let each take tile after tile: number $p$, $p + 76$, $p + 152$ … The
same `check("05.matmul", matmul)` judges it. Then open assignment 05.
"""
