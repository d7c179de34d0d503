# %% [markdown]
r"""
# Assignment NN · FILL IN the title

FILL IN what the assignment is about, in two sentences, and which lesson has what it needs. If the next cell says
that Triton is missing, stop there: every cell after it would fail.

`check` may be called as often as you like: your grade comes from the same check, on further sizes and types.
`hint("NN.EXERCISE")` opens a hint; call it again for the next one.
"""

# %%
import torch
import triton
import triton.language as tl

from autograder import check, hint

# %% [markdown]
r"""
## NN.EXERCISE · factor · x

FILL IN the task. Write a kernel that multiplies a vector by a number, and the function that launches it.

- `x` is a contiguous vector of $n \ge 1$ numbers in float32, float16 or bfloat16; `factor` is a Python float.
- `EXERCISE` returns a new tensor of that length and type. It leaves `x` as it was.
- At most $2n$ numbers are read and written (the check allows 5 % more).

About five lines in the kernel and four in the function.
"""

# %% solution="NN.EXERCISE"
@triton.jit
def EXERCISE_kernel(x_ptr, out_ptr, factor, n, BLOCK_SIZE: tl.constexpr):
    """out[i] = factor * x[i] for the block of this program."""
    ### BEGIN SOLUTION
    offsets = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, factor * x, mask=mask)
    ### END SOLUTION


def EXERCISE(x, factor):
    """x: a contiguous vector; factor: a float. Returns factor · x as a new tensor."""
    ### BEGIN SOLUTION
    out = torch.empty_like(x)
    n = x.numel()
    EXERCISE_kernel[(triton.cdiv(n, 1024),)](x, out, factor, n, BLOCK_SIZE=1024)
    return out
    ### END SOLUTION


# %% check="NN.EXERCISE"
