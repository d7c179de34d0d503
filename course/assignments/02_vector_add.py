# %% [markdown]
r"""
# Assignment 02 · Vector add, and a fused one

Two kernels and a short quiz. Lesson 02 has all that they need; its first table has every function. If the next
cell says that Triton is missing, stop there: every cell after it would fail.

For every kernel, `check` answers four questions, here and on the CPU: is it right, does every lane stay
inside its tensor, does it move no more than theory says, would it compile for the card. Check as often as you
like: your grade comes from the same check, on further lengths and types. `hint("02.add")` opens a hint; call
it again for the next one. To try one call by hand without a card, write `inspect_call(add, x, y).outputs[0].values`: `add(x, y)`
itself needs a card. (Jupyter shows what stands in the last line of a cell, so let `check(…)` be the last line.)
"""

# %%
from lab_setup.roofline.measure import gpu, measure, versions

print(versions())

# %%
import torch
import triton
import triton.language as tl

from autograder import check, hint
from autograder.checking import inspect_call
from autograder.render.lesson02 import roof

# %% [markdown]
r"""
## 02.add · x + y

Write a kernel that adds two vectors, and the function that launches it.

- `x` and `y` have one dimension, the same length $n \ge 1$ and the same type: float32, float16 or bfloat16.
  They are contiguous.
- `add` returns a new tensor of that length and type. It leaves `x` and `y` as they were.
- At most $3n$ numbers are read and written (the check allows 5 % more).
- Any block size will do, any number of programs, one or several blocks a program, autotuning as well.

About six lines in the kernel and four in the function.
"""

# %% solution="02.add"
@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    """out[i] = x[i] + y[i] for the block of this program."""
    ### BEGIN SOLUTION
    offsets = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x + y, mask=mask)
    ### END SOLUTION


def add(x, y):
    """x, y: contiguous vectors, one length, one type. Returns x + y as a new tensor."""
    ### BEGIN SOLUTION
    out = torch.empty_like(x)
    n = x.numel()
    grid = lambda meta: (triton.cdiv(n, meta["BLOCK_SIZE"]),)
    add_kernel[grid](x, y, out, n, BLOCK_SIZE=1024)
    return out
    ### END SOLUTION


# %% check="02.add"

# %% [markdown]
r"""
## 02.fma_relu · relu(x·y + z) in one pass

`torch.relu(x * y + z)` runs three kernels. Two intermediate results travel to memory and back, 8n numbers in
all. Do it in one kernel. (*fma* is a fused multiply-add, x·y + z in one instruction; *relu* turns negative numbers into
0.)

- `x`, `y` and `z` are like the vectors of 02.add. `fma_relu` returns a new tensor of their length and type
  and leaves them as they were.
- At most $4n$ numbers are read and written (the check allows 5 % more).
- Compute in the vectors' own type or in float32, as you like: the tolerance has room for both.

About seven lines in the kernel and four in the function.
"""

# %% solution="02.fma_relu"
@triton.jit
def fma_relu_kernel(x_ptr, y_ptr, z_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    """out[i] = relu(x[i] * y[i] + z[i]) for the block of this program."""
    ### BEGIN SOLUTION
    offsets = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    z = tl.load(z_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, tl.maximum(x * y + z, 0.0), mask=mask)
    ### END SOLUTION


def fma_relu(x, y, z):
    """x, y, z: contiguous vectors, one length, one type. Returns relu(x·y + z) as a new tensor."""
    ### BEGIN SOLUTION
    out = torch.empty_like(x)
    n = x.numel()
    grid = lambda meta: (triton.cdiv(n, meta["BLOCK_SIZE"]),)
    fma_relu_kernel[grid](x, y, z, out, n, BLOCK_SIZE=1024)
    return out
    ### END SOLUTION


# %% check="02.fma_relu"

# %% [markdown]
r"""
## On a GPU, if there is one (not graded)

The same two functions on the card: first the numbers in bfloat16, then the time against PyTorch, then the
point under the roof. Without a card the cells say what they would have shown.
"""

# %%
if gpu("no output: both functions agree with torch in bfloat16."):
    x, y, z = torch.randn(3, 98432, device="cuda").bfloat16()
    torch.testing.assert_close(add(x, y), x + y)
    product = x.double() * y.double()
    error = fma_relu(x, y, z).double() - torch.relu(product + z)
    assert (error.abs() <= 2**-7 * (product.abs() + (product + z).abs())).all()


# %%
def rivals(n):
    x, y, z = torch.randn(3, n, device="cuda")
    return {
        "fma_relu": lambda: fma_relu(x, y, z),
        "torch": lambda: torch.relu(x * y + z),
    }


measured = measure(
    rivals,
    sizes=(2**20, 2**24, 2**27),
    bytes_of=lambda n: 16 * n,
    expect="from 2^24 on an RTX 4080, fma_relu at 80–90 % of 716.8 GB/s and in about half of "
    "torch's time, whose three kernels move twice as much; at 2^20 the launches weigh more.",
)
measured

# %%
roof({"fma_relu": (2, 16)}, measured=measured)

# %% [markdown]
r"""
## Quiz

Graded with the assignment, a point each; the check below looks at the form of your answers only. Put them into the
next cell: a number, a letter such as `"a"`, or a list of letters such as `["a", "b"]`.

**q1.** A vector-add kernel stores without a mask, and n is no multiple of BLOCK_SIZE. What happens on the
card?

- a) Triton raises an IndexError that names the program.
- b) Nothing: Triton switches off lanes that have no element.
- c) The last program writes past the end of the output: into other data, or into a memory fault.
- d) The kernel does not compile.

**q2.** n = 1 000 000 and BLOCK_SIZE = 4096. How many lanes of the last program are masked off?

**q3.** `fma_relu` in bfloat16, in one pass: how many floating-point operations per byte? Count the
multiplication and the addition, not the relu.

**q4.** A kernel has run with n = 98 432 on float32 tensors at BLOCK_SIZE 1024. Which later calls make Triton
compile it again? Name all of them.

- a) n = 98 433
- b) n = 98 448, which is 16 · 6153
- c) BLOCK_SIZE = 2048
- d) bfloat16 tensors
- e) the same call with other numbers in the tensors
"""

# %% quiz="02.quiz"

# %% check="02.quiz"
