# %% [markdown]
r"""
# Lesson 03 · Fused softmax, forward and backward

Nobody beats PyTorch on `x + y`, because there is nothing to save. Softmax is different: written in eager
PyTorch it is five kernels, and most of what they move are results that the next one reads again. One kernel
does it in a quarter of the traffic. On the way you meet reductions, the numbers that masked lanes must read,
gradients through a kernel of your own, and rows that are too long for one block.

You bring from lesson 02: a kernel and its host function, offsets and masks, `inspect_call` and findings,
counting traffic.

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
from autograder.eager import eager
from autograder.records import Rejected
from autograder.render.inspected import show
from autograder.render.lesson03 import lanes, online, passes, registers
from autograder.render.player import player

# %% [markdown]
r"""
## Eight passes, or two

Softmax makes every row positive with sum 1: $y = e^{x - m} / s$, where $m$ is the row's largest number and
$s = \sum e^{x - m}$. Eager PyTorch runs one kernel for each operation, and each reads its tensors from memory
and writes its result back. To read, or to write, all numbers of the matrix once is a **pass** over it.
"""

# %%
passes()

# %%
def naive(x):
    m = x.amax(dim=1, keepdim=True)
    t = x - m
    e = torch.exp(t)
    s = e.sum(dim=1, keepdim=True)
    return e / s


torch.manual_seed(0)
x = torch.randn(1823, 781)
print(eager(naive, x))

# %% [markdown]
r"""
`eager` runs the function on the CPU and notes what each operation reads and writes. The matrix has 1 423 763
numbers, so the sum is 8.01 passes. **Predict:** what does it say of `torch.softmax`?
"""

# %%
print(eager(torch.softmax, x, 1))

# %% [markdown]
r"""
PyTorch has a fused softmax, and yours will move as little. The gain is not special to softmax, and that is the
point: for the next formula, the one that PyTorch has no kernel for, you write it yourself.

## One program, one row

A **reduction** turns a block into fewer numbers: `tl.sum(x, axis=0)` and `tl.max(x, axis=0)` turn a block of
lanes into one number that the whole program knows. If a row lies in one block, the program never has to speak
to another one. So: one program a row, and a block as long as the row or longer. Here is a whole kernel of that
kind.
"""

# %%
@triton.jit
def row_sum_kernel(x_ptr, out_ptr, x_stride, n_cols, BLOCK_SIZE: tl.constexpr):
    """out[row] = sum of x[row], for the row of this program."""
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK_SIZE)
    x = tl.load(x_ptr + row * x_stride + cols, mask=cols < n_cols, other=0.0)
    tl.store(out_ptr + row, tl.sum(x, axis=0))


def row_sum(x):
    n_rows, n_cols = x.shape
    out = torch.empty(n_rows, dtype=x.dtype, device=x.device)
    block_size = triton.next_power_of_2(n_cols)
    row_sum_kernel[(n_rows,)](x, out, x.stride(0), n_cols, BLOCK_SIZE=block_size)
    return out


small = torch.randn(6, 13)
run = inspect_call(row_sum, small)
print(run.outputs[0].values)
print(small.sum(dim=1).numpy())

# %% [markdown]
r"""
Row number `row` begins at `row * x_stride`; `x.stride(0)` says how far apart two rows are in memory. The block has
16 lanes, the next power of two. Three of them are beyond the row. Step through the programs:
"""

# %%
player(run)

# %% [markdown]
r"""
### The row stride is not the width

Why hand over a stride, when the kernel knows the width? **Predict:** the tensor below is the left part of a wider
one. What does a kernel read that takes 13 for the distance between two rows?
"""

# %%
def row_sum_by_width(x):
    n_rows, n_cols = x.shape
    out = torch.empty(n_rows, dtype=x.dtype, device=x.device)
    # n_cols in place of x.stride(0)
    row_sum_kernel[(n_rows,)](x, out, n_cols, n_cols, BLOCK_SIZE=16)
    return out


left = torch.randn(6, 20)[:, :13]
print("shape", tuple(left.shape), "strides", left.stride())
show(inspect_call(row_sum_by_width, left))

# %% [markdown]
r"""
Row 1 begins at 20, not at 13: the program read the padding between the rows. Tensors without a gap would have
hidden the mistake.

## What the lanes beyond the row read

In vector add a masked lane was harmless: nobody stored it. Here it takes part in a reduction. **Predict:** with
`other=0.0`, what is the largest number of a row of −1, −2, −3?
"""

# %%
@triton.jit
def row_max_kernel(x_ptr, out_ptr, x_stride, n_cols, other, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK_SIZE)
    x = tl.load(x_ptr + row * x_stride + cols, mask=cols < n_cols, other=other)
    tl.store(out_ptr + row, tl.max(x, axis=0))


def row_max(x, other):
    n_rows, n_cols = x.shape
    out = torch.empty(n_rows, dtype=x.dtype, device=x.device)
    block_size = triton.next_power_of_2(n_cols)
    row_max_kernel[(n_rows,)](x, out, x.stride(0), n_cols, other, BLOCK_SIZE=block_size)
    return out


negative = torch.tensor([[-1.0, -2.0, -3.0]])
for other in (0.0, -float("inf")):
    run = inspect_call(row_max, negative, other)
    print(f"other = {other}: the largest is {run.outputs[0].values[0]}")

# %% [markdown]
r"""
The lane beyond the row must read the reduction's **neutral element**, the number that changes nothing: 0 for a
sum, −∞ for a maximum, +∞ for a minimum, 1 for a product.

And without `other`? Then a masked lane holds whatever was in its register. The check tries two fillings, and
where a result depends on them it says so. **Predict:** which of the two loads below is at fault?
"""

# %%
@triton.jit
def careless_kernel(x_ptr, out_ptr, x_stride, n_cols, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK_SIZE)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * x_stride + cols, mask=mask)  # first load
    largest = tl.max(x, axis=0)
    again = tl.load(x_ptr + row * x_stride + cols, mask=mask)  # second load
    tl.store(out_ptr + row * n_cols + cols, again - largest, mask=mask)


def careless(x):
    n_rows, n_cols = x.shape
    out = torch.empty(n_rows, n_cols)
    block_size = triton.next_power_of_2(n_cols)
    careless_kernel[(n_rows,)](x, out, x.stride(0), n_cols, BLOCK_SIZE=block_size)
    return out


show(inspect_call(careless, small))

# %% [markdown]
r"""
Only the first. Lanes of the second are never stored, so nobody asks what they hold.

Could `tl.where` do instead of a mask, as in NumPy? **Predict:** the row below the last one does not exist. Who
reads there?
"""

# %%
@triton.jit
def where_kernel(x_ptr, out_ptr, x_stride, n_cols, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK_SIZE)
    x = tl.load(x_ptr + row * x_stride + cols)  # no mask
    x = tl.where(cols < n_cols, x, 0.0)
    tl.store(out_ptr + row, tl.sum(x, axis=0))


def where_sum(x):
    n_rows, n_cols = x.shape
    out = torch.empty(n_rows, dtype=x.dtype, device=x.device)
    where_kernel[(n_rows,)](x, out, x.stride(0), n_cols, BLOCK_SIZE=16)
    return out


show(inspect_call(where_sum, small))

# %% [markdown]
r"""
`tl.where` chooses between numbers that are already loaded. It comes too late to protect a load; only a mask does.

## Softmax, lane by lane

Now both reductions in a row: a maximum, then a sum. Five numbers in a block of eight; the lanes beyond the row
read 0. **Predict:** is a 0 that is neutral in the sum still neutral when it has gone through `exp`?
"""

# %%
def steps(row, block, other):
    x = np.full(block, other)
    x[: len(row)] = row
    t = x - x.max()
    e = np.exp(t)
    return {"x": x, "x − max": t, "exp": e, "exp ÷ sum": e / e.sum()}


row = [1.2, -0.3, 2.0, 0.4, -1.1]
summed = ("exp", "exp ÷ sum")
lanes(steps(row, 8, 0.0), 5, "other=0.0: the tail gets a share of the sum", summed)

# %%
lanes(steps(row, 8, -np.inf), 5, "other=−inf: the tail adds exp(−∞) = 0", summed)

# %% [markdown]
r"""
−∞ serves both: it never is the maximum, and its exponential is 0.

### Why subtract the maximum at all?

$e^{x-m}/\sum e^{x-m}$ and $e^x/\sum e^x$ are the same number. **Predict:** are they the same in float32, for a row of
1000, 1001 and 1002?
"""

# %%
large = torch.tensor([1000.0, 1001.0, 1002.0])
for name, x in {"without the maximum": large, "with it": large - large.max()}.items():
    print(f"{name:20}", (x.exp() / x.exp().sum()).numpy())

# %% [markdown]
r"""
float32 ends at $3.4\cdot10^{38}$, which is $e^{88.7}$. After the subtraction no exponent is above 0: nothing
overflows, and what becomes 0 is too small to matter.

## Your turn: softmax

The kernel of this unit, with two holes. Fill them in and run the check; `hint("03.softmax")` helps.
"""

# %% stub=["other = 0.0  # is that neutral here? mend it", "y = e  # something is missing here"]
@triton.jit
def softmax_fwd_kernel(x_ptr, out_ptr, x_stride, out_stride, n_cols, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK_SIZE)
    mask = cols < n_cols
    ### BEGIN SOLUTION
    other = -float("inf")
    ### END SOLUTION
    x = tl.load(x_ptr + row * x_stride + cols, mask=mask, other=other).to(tl.float32)
    e = tl.exp(x - tl.max(x, axis=0))
    ### BEGIN SOLUTION
    y = e / tl.sum(e, axis=0)
    ### END SOLUTION
    tl.store(out_ptr + row * out_stride + cols, y, mask=mask)


def triton_softmax(x):
    out = torch.empty_like(x)
    n_rows, n_cols = x.shape
    block_size = triton.next_power_of_2(n_cols)
    warps = min(max(block_size // 1024, 4), 16)  # more threads for long rows: see further down
    softmax_fwd_kernel[(n_rows,)](
        x, out, x.stride(0), out.stride(0), n_cols, BLOCK_SIZE=block_size, num_warps=warps
    )
    return out

# %%
check("03.softmax", triton_softmax)

# %% [markdown]
r"""
### Store narrow, compute wide

`.to(tl.float32)` stands right behind the load. In memory a bfloat16 takes two bytes and has 8 significant bits;
in registers there is room for float32. So: load narrow, compute wide, round once when storing. The five eager
kernels cannot do that: whatever passes between two of them is rounded. **Predict:** how much larger is the error?
"""

# %%
b = torch.randn(64, 4096).bfloat16()
exact = torch.softmax(b.double(), dim=1)
results = {"five kernels": naive(b), "one, computing in float32": torch.softmax(b, dim=1)}
for name, y in results.items():
    error = ((y.double() - exact).abs() / exact).max()
    print(f"{name:26} largest relative error {error:.2%}")

# %% [markdown]
r"""
0.39 % is $2^{-8}$: half the distance between two neighbouring bfloat16 numbers, the least that rounding costs.

## Backward: one more reduction

Training wants the gradient. Softmax couples all elements of a row: $\partial y_j / \partial x_i = y_j(\delta_{ij} - y_i)$.
Sum over $j$ with the gradient $dy$ that comes in, and the matrix is gone:

$$dx_i = \sum_j dy_j\, y_j(\delta_{ij} - y_i) = y_i\,(dy_i - \langle dy, y\rangle)$$

One reduction over the row, then elementwise. Two reads, one write: $3MN$. The formula against autograd, in float64:
"""

# %%
x64 = torch.randn(4, 7, dtype=torch.float64, requires_grad=True)
dy64 = torch.randn(4, 7, dtype=torch.float64)
y64 = torch.softmax(x64, dim=1)
(dx64,) = torch.autograd.grad(y64, x64, dy64, retain_graph=True)
by_hand = y64 * (dy64 - (dy64 * y64).sum(dim=1, keepdim=True))
print("largest difference:", (dx64 - by_hand).abs().max().item())

# %% [markdown]
r"""
### autograd and a kernel of your own

autograd knows the derivative of every PyTorch operation that it sees. **Predict:** does it find the derivative of
`row_sum`?
"""

# %%
try:
    inspect_call(row_sum, small, gradients=(torch.ones(6),))
except Rejected as said:
    print(said)

# %% [markdown]
r"""
It cannot look into a kernel. You tell it, with a `torch.autograd.Function`: two static methods, and `apply` to
call them.

| | gets | returns |
|---|---|---|
| `forward(ctx, x)` | the inputs, as they were given to `apply` | the output |
| `backward(ctx, dy)` | the gradient of the output | a gradient, or None, for *each* input of `forward` |

`ctx.save_for_backward(…)` keeps tensors until backward, `ctx.saved_tensors` gives them back. A whole example,
$y = x^2$:
"""

# %%
@triton.jit
def square_kernel(x_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    tl.store(out_ptr + offsets, x * x, mask=offsets < n)


@triton.jit
def square_bwd_kernel(x_ptr, dy_ptr, dx_ptr, n, BLOCK_SIZE: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    dy = tl.load(dy_ptr + offsets, mask=offsets < n)
    tl.store(dx_ptr + offsets, 2 * x * dy, mask=offsets < n)


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = torch.empty_like(x)
        square_kernel[(triton.cdiv(x.numel(), 256),)](x, y, x.numel(), BLOCK_SIZE=256)
        ctx.save_for_backward(x)
        return y

    @staticmethod
    def backward(ctx, dy):
        (x,) = ctx.saved_tensors
        dx = torch.empty_like(x)
        square_bwd_kernel[(triton.cdiv(x.numel(), 256),)](x, dy, dx, x.numel(), BLOCK_SIZE=256)
        return dx


def square(x):
    return Square.apply(x)


run = inspect_call(square, torch.arange(5.0), gradients=(torch.ones(5),))
print("y ", run.outputs[0].values)
print("dx", run.outputs[1].values)

# %% [markdown]
r"""
For softmax, which tensor should forward save, `x` or `y`? The formula asks for $y$, and forward has just made it:
saving a tensor that exists costs no traffic.

One trap for later: autograd decides how `dy` lies in memory. **Predict:** the strides of the gradient that
`y.sum().backward()` sends to `y`.
"""

# %%
leaf = torch.randn(3, 4, requires_grad=True)
y = leaf * 1
y.register_hook(lambda dy: print("shape", tuple(dy.shape), "strides", dy.stride()))
y.sum().backward()

# %% [markdown]
r"""
One number stands for all twelve. A kernel that takes its place for a full matrix reads past it:
`dy = dy.contiguous()` in `backward` is cheap insurance, and costs nothing where `dy` is contiguous already, as the
exercise promises.

## Rows longer than a block

The block of a program lives in the registers of its threads. Threads come in **warps** of 32 that run together;
`num_warps` says how many a program gets, 4 by default. 16 384 numbers are 128 for each of 128 threads, and a thread
has at most 255 registers. What the compiler makes of it, without a card:
"""

# %%
from autograder.compiled import facts_of

blocks, calls = [], []
for warps in (4, 16):
    for block in (1024, 4096, 16384, 32768):
        wide = torch.empty(1, block, dtype=torch.bfloat16)
        arguments = (wide, wide, block, block, block)
        calls.append((arguments, dict(BLOCK_SIZE=block, num_warps=warps)))
        blocks.append(block)
facts = facts_of(softmax_fwd_kernel, calls)
registers(facts, blocks)

# %% [markdown]
r"""
What does not fit is **spilled**: written to memory and read again, traffic that no formula knows. More warps
share the row among more threads. Are more warps always better, then? **Predict** for a row of 1024: which number of
warps reads 16 bytes at a time (`ld.global.v4`)?
"""

# %%
wide = torch.empty(1, 1024, dtype=torch.bfloat16)
arguments = (wide, wide, 1024, 1024, 1024)
counts = (4, 8, 16)
calls = [(arguments, dict(BLOCK_SIZE=1024, num_warps=warps)) for warps in counts]
for warps, fact in zip(counts, facts_of(softmax_fwd_kernel, calls), strict=True):
    each, loads = 1024 // (32 * warps), fact.instructions["ld.global.v4"]
    print(f"{warps:2} warps: {each} numbers a thread, wide loads: {loads}")

# %% [markdown]
r"""
With 16 warps a thread has two numbers, too few for a wide load, and each reduction has to bring together 16 warps.
So expect more warps to help on long rows and to cost on short ones. (Measured on an H200 with 4096 rows: rows of 1024
take 9 µs with 4 warps and 30 µs with 32; rows of 16 384 take 89 µs with 4 warps and 74 µs with 16.)

Somewhere this ends, and a block may have $2^{20}$ elements at most. Then the program walks along the row, block by
block. A loop in a kernel looks as in Python, and two things are new:

- `tl.max` reduces a block to one number; the larger of *two* numbers or blocks is `tl.maximum(a, b)`.
- What the loop changes has to keep its type. A sum of floats begins with `0.0`, not with `0`; a maximum with
  `-float("inf")`.

**Predict:** how many numbers does this kernel move for 6 rows of 13 columns, in blocks of 4?
"""

# %%
@triton.jit
def long_max_kernel(x_ptr, out_ptr, x_stride, n_cols, BLOCK_SIZE: tl.constexpr):
    """out[row] = largest of x[row], in blocks of BLOCK_SIZE."""
    row = tl.program_id(0)
    m = -float("inf")
    for start in range(0, n_cols, BLOCK_SIZE):
        cols = start + tl.arange(0, BLOCK_SIZE)
        mask = cols < n_cols
        x = tl.load(x_ptr + row * x_stride + cols, mask=mask, other=-float("inf"))
        m = tl.maximum(m, tl.max(x, axis=0))
    tl.store(out_ptr + row, m)


def long_max(x, block_size):
    n_rows, n_cols = x.shape
    out = torch.empty(n_rows, dtype=x.dtype, device=x.device)
    long_max_kernel[(n_rows,)](x, out, x.stride(0), n_cols, BLOCK_SIZE=block_size)
    return out


run = inspect_call(long_max, small, 4)
print(run.outputs[0].values)
print(small.amax(dim=1).numpy())
print(run.elements, "numbers moved")

# %% [markdown]
r"""
84: each number of the matrix once, and one result a row. For softmax the maximum is known only at the row's end. Must
the program walk three times: for the maximum, for the sum, to store? That would be $4MN$.

Look at the first two walks. Suppose $m$ and $s = \sum e^{x-m}$ are right for the part that was seen. The next block has
a larger maximum $m'$. Then

$$\sum e^{x-m'} = e^{m-m'} \sum e^{x-m} :$$

one multiplication repairs the sum. This is the **online softmax**, and one walk gives both numbers.
"""

# %%
long_row = [0.5, 1.5, -0.5, 1.0, 2.5, 0.2, 1.1, 3.0, 0.7, 2.2, -1.0, 1.9, 4.0, 0.3]
online(long_row, block=4)

# %% [markdown]
r"""
The same in NumPy. **Predict:** what does it print if the first block holds nothing but −∞, as rows do whose beginning
was masked out?
"""

# %%
def online_sum(row, block):
    m, s = -np.inf, 0.0
    for start in range(0, len(row), block):
        x = np.array(row[start : start + block])
        new_m = max(m, x.max())
        s = s * np.exp(m - new_m) + np.exp(x - new_m).sum()
        m = new_m
    return float(m), float(s)


with np.errstate(invalid="ignore"):
    print("as above:         ", online_sum(long_row, 4))
    print("first block of −∞:", online_sum([-np.inf] * 4 + long_row, 4))

# %% [markdown]
r"""
As long as $m'$ is −∞, $x - m'$ is $-\infty + \infty$, which is NaN, and a NaN never leaves a sum. In the kernel: subtract
`tl.where(new_m == -float("inf"), 0.0, new_m)`, and those exponentials are 0. If the *whole* row is −∞, $s$ stays 0 and
the result is 0/0: NaN, as in torch.

Then a second walk reads the row again and stores $e^{x-m}/s$: $3MN$ in all. You will meet the online softmax again:
it is what makes FlashAttention (unit 06) possible.

## On a GPU
"""

# %%
def rivals(n_cols):
    x = torch.randn(4096, n_cols, device="cuda").bfloat16()
    compiled = torch.compile(naive, dynamic=False)
    return {
        "naive": lambda: naive(x),
        "compile": lambda: compiled(x),
        "triton": lambda: triton_softmax(x),
        "torch": lambda: torch.softmax(x, dim=1),
    }


measure(
    rivals,
    sizes=(256, 1024, 4096, 16384),
    bytes_of=lambda n_cols: 2 * 2 * 4096 * n_cols,
    unchecked=("naive",),  # five roundings to bfloat16 in place of one
    expect="for 4096 rows on an RTX 4080, triton at 80–90 % of 716.8 GB/s from 4096 columns on "
    "and naive at a quarter of that or less; up to 1024 columns the launch weighs.",
)

# %% [markdown]
r"""
`measure` compares the results first, lets the four take turns, empties the L2 cache before each run, and gives the
median with its spread. The bytes are those of two passes, so naive's GB/s show how far it is from the fused one.
(Measured on an H200 at 16 384 columns: naive 527 GB/s, compile 1802, torch 2072, this kernel with 8 warps 3204, and a
plain copy 3938.)

## What you can do now

- count the passes of an eager formula and say what fusing saves
- give a row to a program, by its stride, and reduce it
- choose what masked lanes read: the neutral element of what happens to them
- load narrow, compute wide, round once
- derive a backward kernel and hand it to autograd
- read registers and spills, and walk along a row that is too long for a block

### Ask yourself (not graded)
"""

# %%
from autograder.render.questions import ask

ask(
    {
        "question": "A kernel computes the minimum of each row. What do lanes beyond the row read?",
        "type": "multiple_choice",
        "answers": [
            {"answer": "0", "correct": False, "feedback": "A row of positive numbers would get 0."},
            {"answer": "−∞", "correct": False, "feedback": "Every minimum would be −∞."},
            {"answer": "+∞", "correct": True, "feedback": "No number of a row is above it."},
        ],
    },
    {
        "question": "torch.sigmoid(x) * x in eager PyTorch: how many passes over x's size?",
        "type": "numeric",
        "answers": [
            {"type": "value", "value": 5, "correct": True,
             "feedback": "sigmoid reads and writes; the product reads two and writes one."},
            {"type": "default", "feedback": "Two kernels: what does each read and write?"},
        ],
    },
    {
        "question": "backward of a Function whose forward got (ctx, x, scale), scale a number, returns",
        "type": "multiple_choice",
        "answers": [
            {"answer": "dx", "correct": False, "feedback": "One value for each input of forward."},
            {"answer": "dx, None", "correct": True, "feedback": "A number has no gradient."},
            {"answer": "None, dx", "correct": False, "feedback": "The order is that of forward's inputs."},
        ],
    },
    {
        "question": "m = 2 and s = 3. The next block is 2, 2. What is s afterwards?",
        "type": "numeric",
        "answers": [
            {"type": "value", "value": 5, "correct": True,
             "feedback": "The maximum stays, nothing shrinks, and exp(0) is added twice."},
            {"type": "default", "feedback": "Does the maximum change? What is exp(2 − 2)?"},
        ],
    },
)  # fmt: skip

# %% [markdown]
r"""
### One harder thing

A matrix of 100 000 rows with 17 columns: a block of 32 lanes cannot keep four warps busy. Give a program several
rows: `rows = … tl.arange(0, ROWS)[:, None]` and `cols = tl.arange(0, BLOCK_SIZE)[None, :]` together make a
two-dimensional block of offsets, and `tl.max(x, axis=1)` reduces each of its rows. The same
`check("03.softmax", triton_softmax)` judges it. Then open assignment 03.
"""
