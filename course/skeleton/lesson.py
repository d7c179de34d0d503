# %% [markdown]
r"""
# Lesson NN · FILL IN the title

FILL IN what a reader can do after this page, and what is brought along from earlier ones. If the next cell says that
Triton is missing, stop there: every cell after it would fail.
"""

# %%
import torch
import triton
import triton.language as tl

from autograder import interpret

# %% [markdown]
r"""
## FILL IN the first idea

One idea a section, the picture before the formula, every claim a cell that runs. Here: a kernel that copies, with the
mask left as a hole. **Predict:** with 24 numbers in blocks of 16, which lanes touch memory that is not theirs?
"""

# %% stub="mask = offsets >= 0  # lets every lane through: mend it"
@triton.jit
def copy_kernel(x_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    """out[i] = x[i] for the block of this program."""
    offsets = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    ### BEGIN SOLUTION
    mask = offsets < n
    ### END SOLUTION
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=mask), mask=mask)


# %%
x, out = torch.arange(24.0), torch.empty(24)
interpret(copy_kernel)[(2,)](x, out, 24, BLOCK_SIZE=16)

# %% [markdown]
r"""
## Questions (not graded)

FILL IN two or three. 1. What does the picture show when the mask is right?
"""
