# %% [markdown]
r"""
# Lesson 04 · Norms: RMSNorm, sums that need width, and how to hunt a bug

RMSNorm stands in front of every layer of today's language models. It is softmax's little sister, one reduction
and one pass; but it brings weights that all rows share, and with them a gradient to which every program adds.
The lesson's other half is a craft: finding what is wrong with a kernel that looks right.

You bring from lesson 03: a row a program, neutral elements, load narrow and compute wide, `autograd.Function`.

Reading takes 20 to 25 minutes, running all cells less than one.
"""

# %%
from lab_setup.roofline.measure import gpu, measure, versions

print(versions())

# %%
from itertools import accumulate

import torch
import triton
import triton.language as tl

from autograder import check, hint
from autograder.checking import inspect_call
from autograder.eager import eager
from autograder.render.inspected import show
from autograder.render.lesson03 import lanes
from autograder.render.lesson04 import accumulation, by_width, passes

# %% [markdown]
r"""
## Six kernels, or one

RMSNorm divides every row by the root of the mean of its squares, and multiplies by a weight a column:

$$y = x \cdot r \cdot w, \qquad r = \frac{1}{\sqrt{\frac1N \sum x^2 + eps}}$$

`eps` is a small number that keeps a row of zeros from being divided by 0. In eager PyTorch that is six kernels.
**Predict:** how many passes over the matrix?
"""

# %%
passes()

# %%
def eager_rmsnorm(x, w, eps=1e-6):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * w


torch.manual_seed(0)
x, w = torch.randn(512, 896), torch.randn(896)
print(eager(eager_rmsnorm, x, w))
print(f"{eager(eager_rmsnorm, x, w).elements / x.numel():.2f} passes")

# %% [markdown]
r"""
512 × 896 are 512 rows of Qwen2.5-0.5B, whose hidden states have 896 numbers each: no power of two, so the block has
1024 lanes and 128 of them lie beyond the row.

## What do they read this time?

The reduction is a sum of squares, so the neutral number is 0. Five elements in a block of eight:
"""

# %%
def steps(row, block):
    x = [*row, *[0.0] * (block - len(row))]
    squares = [v * v for v in x]
    r = (sum(squares) / len(row)) ** -0.5
    return {"x": x, "x²": squares, "x · r": [v * r for v in x]}


row = [1.2, -0.3, 2.0, 0.4, -1.1]
lanes(steps(row, 8), 5, "0 adds nothing to a sum of squares", sums=("x²",))

# %% [markdown]
r"""
The sum is right, and so is its mean if it is divided by five. Keep an eye on that divisor: the block has eight
lanes, the row has five elements, and `tl.sum` does not know the difference.

## Your turn: RMSNorm

The kernel of this unit, with two holes. Fill them in and run the check; `hint("04.rmsnorm")` helps.
"""

# %% stub=["other = 1.0  # is that neutral here? mend it", "r = tl.rsqrt(tl.sum(x * x, axis=0) + eps)  # the mean, not the sum"]
@triton.jit
def rmsnorm_kernel(x_ptr, w_ptr, out_ptr, x_stride, n_cols, eps, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK_SIZE)
    mask = cols < n_cols
    ### BEGIN SOLUTION
    other = 0.0
    ### END SOLUTION
    x = tl.load(x_ptr + row * x_stride + cols, mask=mask, other=other).to(tl.float32)
    w = tl.load(w_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    ### BEGIN SOLUTION
    r = tl.rsqrt(tl.sum(x * x, axis=0) / n_cols + eps)
    ### END SOLUTION
    tl.store(out_ptr + row * n_cols + cols, x * r * w, mask=mask)


def rmsnorm(x, w, eps=1e-6):
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    n_rows, n_cols = x.shape
    block_size = triton.next_power_of_2(n_cols)
    warps = min(max(block_size // 1024, 4), 16)
    rmsnorm_kernel[(n_rows,)](
        x, w, out, x.stride(0), n_cols, eps, BLOCK_SIZE=block_size, num_warps=warps
    )
    return out

# %%
check("04.rmsnorm", rmsnorm)

# %% [markdown]
r"""
Two strides are at work: `x` may have gaps between its rows, the output has none, so it is addressed by `n_cols`.
**Predict:** does `torch.empty_like` always give a tensor without gaps, one row after the other?
"""

# %%
padded = torch.randn(4, 20)[:, :13]
transposed = torch.randn(13, 4).t()
for name, t in {"padded": padded, "transposed": transposed}.items():
    like, fresh = torch.empty_like(t), torch.empty(t.shape)
    print(f"{name:10} strides {t.stride()}, empty_like {like.stride()}, empty {fresh.stride()}")

# %% [markdown]
r"""
`empty_like` keeps the order of strides where it can. Ask a tensor for its strides, or make a fresh one by its shape:
both are safe, guessing is not.

## A sum needs width

Squares grow fast. **Predict:** the mean of the squares of 300, 300, 300 in float16?
"""

# %%
half = torch.tensor([300.0, 300.0, 300.0]).half()
print("in float16:", (half * half).mean().item())
print("in float32:", (half.float() ** 2).mean().item())

# %% [markdown]
r"""
float16 ends at 65 504. bfloat16 reaches as far as float32 but has 8 significant bits, and that is the other way to
lose. Add 8192 numbers between 0 and 1, one after the other, and round after each addition. **Predict:** where does
the sum in bfloat16 end?
"""

# %%
numbers = torch.rand(8192).half()
sums = {}
for dtype in (torch.float16, torch.bfloat16, torch.float32):
    name = str(dtype).removeprefix("torch.")
    sums[name] = torch.stack(list(accumulate(numbers.to(dtype)))).double()
    print(f"{name:9} {sums[name][-1]:8.2f}")
exact = numbers.double().cumsum(0)
print(f"exact     {exact[-1]:8.2f}")

# %%
accumulation(sums, exact)

# %% [markdown]
r"""
From 256 on, neighbouring bfloat16 numbers are 2 apart: adding less than 1 changes nothing, and the sum stops. In
float32 the error stays near $10^{-6}$. That is why every kernel here says `.to(tl.float32)` right after a load, and
why the exercises ask for it.

## How to hunt a bug

Somebody hands you a kernel. It ran in production for weeks; with a new model the results are off.
"""

# %%
@triton.jit
def suspect_kernel(x_ptr, out_ptr, x_stride, n_cols, eps, BLOCK_SIZE: tl.constexpr):
    """RMSNorm without weights."""
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK_SIZE)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * x_stride + cols, mask=mask, other=0.0).to(tl.float32)
    mean = tl.sum(x * x, axis=0) / BLOCK_SIZE
    tl.store(out_ptr + row * n_cols + cols, x * tl.rsqrt(mean + eps), mask=mask)


def suspect(x, eps=1e-6):
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    n_rows, n_cols = x.shape
    block_size = triton.next_power_of_2(n_cols)
    suspect_kernel[(n_rows,)](x, out, x.stride(0), n_cols, eps, BLOCK_SIZE=block_size)
    return out


show(inspect_call(suspect, x))

# %% [markdown]
r"""
No finding: every access is in bounds, every lane defined, nobody races. What is wrong is the arithmetic.

**First: for which sizes?** Try many, and look at the error, not at the code.
"""

# %%
def largest_error(n_cols):
    torch.manual_seed(0)
    x = torch.rand(3, n_cols) + 0.5
    got = torch.from_numpy(inspect_call(suspect, x, keep_accesses=False).outputs[0].values)
    want = torch.nn.functional.rms_norm(x, (n_cols,), eps=1e-6)
    return ((got - want).abs() / want).max().item()


widths = list(range(1, 41))
by_width(widths, [largest_error(n) for n in widths], [triton.next_power_of_2(n) for n in widths])

# %% [markdown]
r"""
Right for 1, 2, 4, 8, 16, 32, and wrong in between, most where a block is just over half full. A picture like this is
worth an hour of reading: the fault has to do with the lanes beyond the row. (Production had 1024 columns.)

**Second: the smallest row that fails**, and what its lanes hold. Triton's interpreter prints from inside: three
elements, a block of four.
"""

# %%
from autograder.triton_interpreter import interpret


@triton.jit
def talking_kernel(x_ptr, out_ptr, x_stride, n_cols, eps, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK_SIZE)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * x_stride + cols, mask=mask, other=0.0).to(tl.float32)
    mean = tl.sum(x * x, axis=0) / BLOCK_SIZE
    print("x", x, "squares", x * x, "sum", tl.sum(x * x, axis=0), "mean", mean)
    tl.store(out_ptr + row * n_cols + cols, x * tl.rsqrt(mean + eps), mask=mask)


call = """
x, out = torch.tensor([[1.0, 2.0, 2.0]]), torch.empty(1, 3)
talking_kernel[(1,)](x, out, 3, 3, 0.0, BLOCK_SIZE=4)
"""
print(interpret(talking_kernel, call))

# %% [markdown]
r"""
**Third: do the sum by hand.** 1 + 4 + 4 is 9, the lane beyond adds 0, so the sum is right. The mean is 3. The kernel
says 2.25: it divided by four.

Sizes, smallest case, by hand, in this order. In the assignment a LayerNorm waits for you that is wrong in another
way, and the three steps find it too. LayerNorm subtracts the row's mean before it squares; ask of every line what a
lane beyond the row holds *after* it.

## A gradient to which every row adds

Backward of RMSNorm, with $\hat x = x r$ and along each row $c = \frac1N\sum w\,dy\,\hat x$:

$$dx = r\,(w\,dy - \hat x\,c), \qquad dw = \sum_{\text{rows}} dy\,\hat x$$

The first term of $dx$ is what it would be if $r$ were a constant; the second is there because $r$ depends on every
element of the row. Both against autograd, in float64:
"""

# %%
x64, w64, dy64 = torch.randn(5, 7).double(), torch.randn(7).double(), torch.randn(5, 7).double()
x64.requires_grad_(), w64.requires_grad_()
dx, dw = torch.autograd.grad(eager_rmsnorm(x64, w64), (x64, w64), dy64)

with torch.no_grad():
    r = torch.rsqrt(x64.pow(2).mean(1, keepdim=True) + 1e-6)
    normed = x64 * r
    c = (w64 * dy64 * normed).mean(1, keepdim=True)
    print("dx:", (dx - r * (w64 * dy64 - normed * c)).abs().max().item())
    print("dw:", (dw - (dy64 * normed).sum(0)).abs().max().item())

# %% [markdown]
r"""
$dx$ is a row's own business. $dw$ is a sum over *rows*, and each row belongs to another program. Take the sum of the
columns of a matrix as the smallest example. **Predict:** what does the check say of this one?
"""

# %%
@triton.jit
def add_kernel(x_ptr, out_ptr, x_stride, n_cols, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK_SIZE)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * x_stride + cols, mask=mask)
    total = tl.load(out_ptr + cols, mask=mask)
    tl.store(out_ptr + cols, total + x, mask=mask)


def column_sums(x):
    n_rows, n_cols = x.shape
    out = torch.zeros(n_cols, dtype=torch.float32, device=x.device)
    block_size = triton.next_power_of_2(n_cols)
    add_kernel[(n_rows,)](x, out, x.stride(0), n_cols, BLOCK_SIZE=block_size)
    return out


show(inspect_call(column_sums, torch.randn(6, 13)))

# %% [markdown]
r"""
Two programs load the same total, each adds its row, and the second store wipes out the first. There are two ways out.

**Atomic additions.** `tl.atomic_add` loads, adds and stores in one step that nothing can interrupt. Zeros must be
there before, and the type is float32, whatever x's type: many roundings to a narrow one would add up. The addition is
done in the L2 cache, so only the number to add travels: the check counts one number an addition. **Predict:** how many
passes over x are that?
"""

# %%
@triton.jit
def atomic_kernel(x_ptr, out_ptr, x_stride, n_cols, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK_SIZE)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * x_stride + cols, mask=mask)
    tl.atomic_add(out_ptr + cols, x, mask=mask)


def column_sums_atomic(x):
    n_rows, n_cols = x.shape
    out = torch.zeros(n_cols, dtype=torch.float32, device=x.device)
    block_size = triton.next_power_of_2(n_cols)
    atomic_kernel[(n_rows,)](x, out, x.stride(0), n_cols, BLOCK_SIZE=block_size)
    return out


tall = torch.randn(500, 13)
atomic = inspect_call(column_sums_atomic, tall)
print("largest difference:", abs(atomic.outputs[0].values - tall.sum(0).numpy()).max())
show(atomic)

# %% [markdown]
r"""
**Partial sums.** A few programs, each with many rows, add up in registers and store one row each of a small matrix; a
second kernel adds up its columns. No atomics, the same order of additions on every run, and less traffic.

Two functions are new. `tl.zeros((BLOCK_SIZE,), tl.float32)` is a block of zeros to begin with, and `tl.num_programs(0)`
says how many programs the launch has. So `range(tl.program_id(0), n_rows, tl.num_programs(0))` deals out the rows: with 16
programs, program 3 gets the rows 3, 19, 35 and so on.
"""

# %%
@triton.jit
def partial_kernel(x_ptr, partial_ptr, x_stride, n_rows, n_cols, BLOCK_SIZE: tl.constexpr):
    cols = tl.arange(0, BLOCK_SIZE)
    mask = cols < n_cols
    total = tl.zeros((BLOCK_SIZE,), tl.float32)
    for row in range(tl.program_id(0), n_rows, tl.num_programs(0)):
        total += tl.load(x_ptr + row * x_stride + cols, mask=mask, other=0.0)
    tl.store(partial_ptr + tl.program_id(0) * n_cols + cols, total, mask=mask)


def column_sums_partial(x, programs=16):
    n_rows, n_cols = x.shape
    partial = torch.empty((programs, n_cols), dtype=torch.float32, device=x.device)
    out = torch.empty((1, n_cols), dtype=torch.float32, device=x.device)
    block_size = triton.next_power_of_2(n_cols)
    partial_kernel[(programs,)](x, partial, x.stride(0), n_rows, n_cols, BLOCK_SIZE=block_size)
    partial_kernel[(1,)](partial, out, n_cols, programs, n_cols, BLOCK_SIZE=block_size)
    return out[0]


partial = inspect_call(column_sums_partial, tall)
print("largest difference:", abs(partial.outputs[0].values - tall.sum(0).numpy()).max())
for name, run in {"atomic": atomic, "partial sums": partial}.items():
    print(f"{name:13} {run.elements:6} numbers moved, {run.elements / tall.numel():.2f} passes")

# %% [markdown]
r"""
Sixteen programs keep sixteen SMs busy and leave the others idle: on a card, take as many programs as it has SMs. Which way
is faster then depends on how many programs meet in one element. Atomic additions arrive in another
order on every run, so the last bits of $dw$ differ from run to run: harmless for training, a nuisance for whoever
compares two runs. **Predict:** does the order of additions matter in float32?
"""

# %%
torch.manual_seed(2)
column = torch.randn(500)
*_, downwards = accumulate(column)
*_, upwards = accumulate(column.flip(0))
print(f"{downwards:.7f} downwards\n{upwards:.7f} upwards\n{column.double().sum():.7f} exact")

# %% [markdown]
r"""
The check of this course allows for every order: its tolerance is what the roundings of the additions can add up to,
in whichever order they happen.

## On a GPU
"""

# %%
def wide_eager(x, w, eps=1e-6):  # computes in float32, as the kernel does
    x32 = x.float()
    return (x32 * torch.rsqrt(x32.pow(2).mean(-1, keepdim=True) + eps) * w.float()).to(x.dtype)


def rivals(n_cols):
    x = torch.randn(4096, n_cols, device="cuda").bfloat16()
    w = torch.randn(n_cols, device="cuda").bfloat16()
    compiled = torch.compile(wide_eager, dynamic=False)
    return {
        "eager": lambda: wide_eager(x, w),
        "compile": lambda: compiled(x, w),
        "triton": lambda: rmsnorm(x, w),
        "torch": lambda: torch.nn.functional.rms_norm(x, (n_cols,), w, 1e-6),
    }


measure(
    rivals,
    sizes=(256, 896, 4096, 16384),
    bytes_of=lambda n_cols: 2 * 2 * 4096 * n_cols,
    expect="for 4096 rows on an RTX 4080, triton, compile and torch at 80–90 % of 716.8 GB/s "
    "from 4096 columns on, eager far below; up to 896 columns the launch weighs.",
)

# %% [markdown]
r"""
## What you can do now

- fuse a norm into one pass, with weights that all rows share
- say why sums are kept in float32, and what happens where they are not
- address padded rows and a fresh output, each by its own strides
- hunt a bug: sizes, the smallest case, by hand
- add up over programs without a race, in two ways

### Ask yourself (not graded)
"""

# %%
from autograder.render.questions import ask

ask(
    {
        "question": "A kernel is right for rows of 64, 128 and 256 columns and wrong for all others. Look at",
        "type": "multiple_choice",
        "answers": [
            {"answer": "the grid", "correct": False, "feedback": "A wrong grid misses rows, whatever their width."},
            {"answer": "what lanes beyond the row hold", "correct": True,
             "feedback": "Those widths fill their blocks: there are no such lanes."},
            {"answer": "the row stride", "correct": False, "feedback": "That shows on padded rows."},
        ],
    },
    {
        "question": "From which whole number on does adding 1 in bfloat16 (8 significant bits) change nothing?",
        "type": "numeric",
        "answers": [
            {"type": "value", "value": 256, "correct": True, "feedback": "256 + 1 needs nine bits."},
            {"type": "default", "feedback": "Which power of two needs all eight bits for a step of 1?"},
        ],
    },
    {
        "question": "dw of a matrix with 1000 rows, 8 programs with partial sums: how many rows has the small matrix?",
        "type": "numeric",
        "answers": [
            {"type": "value", "value": 8, "correct": True, "feedback": "One a program."},
            {"type": "default", "feedback": "What does each program store?"},
        ],
    },
    {
        "question": "Two runs of a kernel with tl.atomic_add differ in the last digit. That is",
        "type": "multiple_choice",
        "answers": [
            {"answer": "a race", "correct": False, "feedback": "No addition is lost; only their order changes."},
            {"answer": "another order of additions", "correct": True, "feedback": "Rounding depends on it."},
            {"answer": "a missing mask", "correct": False, "feedback": "That would give a finding."},
        ],
    },
)  # fmt: skip

# %% [markdown]
r"""
### One harder thing

A model adds a residual before it norms: `h = x + residual; y = rmsnorm(h, w)`, and both `h` and `y` are needed later.
In eager PyTorch the sum is a seventh kernel. Fuse it: count the passes first (how many are left of ten?), then let
`inspect_call` count them. Then open assignment 04.
"""
