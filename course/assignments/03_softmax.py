# %% [markdown]
r"""
# Assignment 03 · Softmax: forward, backward, and rows longer than a block

Three exercises and a short quiz. Lesson 03 has all that they need.

`check` answers four questions, here and on the CPU: is it right, does every lane stay inside its tensor, does
it move no more than theory says, would it compile for the card. Your grade comes from the same check, on
further sizes and types. `hint("03.softmax")` opens a hint; call it again for the next one.
"""

# %%
from lab_setup.roofline.measure import gpu, measure, versions

print(versions())

# %%
import torch
import triton
import triton.language as tl

from autograder import check, hint
from autograder.render.lesson02 import roof

# %% [markdown]
r"""
## 03.softmax · forward, in one pass

Write a kernel that takes softmax along every row, and the function that launches it.

- `x` has $M \ge 0$ rows and $N \ge 1$ columns, float32, float16 or bfloat16. A row's elements are neighbours;
  between two rows there may be a gap: `x.stride(0)` $\ge N$.
- `triton_softmax` returns a new tensor of x's shape and type, and leaves `x` as it was.
- Compute in float32, whatever x's type, and round once, when you store.
- Numbers may be as large as ±10 000, and some may be −∞. A row of nothing but −∞ gives NaN, as in torch.
- At most $2MN$ numbers are read and written (the check allows 5 % more).
- One row a program or several, any number of programs; the whole row may be in one block.

About seven lines in the kernel and five in the function.
"""

# %% solution="03.softmax"
@triton.jit
def softmax_fwd_kernel(x_ptr, out_ptr, x_stride, out_stride, n_cols, BLOCK_SIZE: tl.constexpr):
    """out[row] = softmax(x[row]), for the row of this program."""
    ### BEGIN SOLUTION
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK_SIZE)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * x_stride + cols, mask=mask, other=-float("inf")).to(tl.float32)
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + row * out_stride + cols, e / tl.sum(e, axis=0), mask=mask)
    ### END SOLUTION


def triton_softmax(x):
    """x: (M, N), rows may be padded. Returns softmax along the rows as a new tensor."""
    ### BEGIN SOLUTION
    out = torch.empty_like(x)
    n_rows, n_cols = x.shape
    block_size = triton.next_power_of_2(n_cols)
    warps = min(max(block_size // 1024, 4), 16)
    softmax_fwd_kernel[(n_rows,)](
        x, out, x.stride(0), out.stride(0), n_cols, BLOCK_SIZE=block_size, num_warps=warps
    )
    return out
    ### END SOLUTION


# %% check="03.softmax"

# %% [markdown]
r"""
## 03.softmax_backward · the gradient, through autograd

Write the backward kernel, put both kernels into a `torch.autograd.Function`, and give `triton_softmax` its
final form: it calls the Function, so that autograd works through it.

- `x` is as above. The gradient `dy` that comes in is contiguous and has the shape and type of the output.
- For $y = \mathrm{softmax}(x)$ and each row: $dx = y \odot (dy - \langle dy, y\rangle)$. In float32, rounded once.
- At most $2MN$ numbers forward and $3MN$ backward (the check allows 5 % more).
- The kernel of the first exercise is at your disposal. Which tensor you save for backward is up to you.

About seven lines in the kernel and ten in the Function.
"""

# %% solution="03.softmax_backward" stub=["pass  # your lines here", "raise NotImplementedError('forward is not written yet')", "raise NotImplementedError('backward is not written yet')", "raise NotImplementedError('call TritonSoftmax here')"]
@triton.jit
def softmax_bwd_kernel(
    y_ptr, dy_ptr, dx_ptr, y_stride, dy_stride, dx_stride, n_cols, BLOCK_SIZE: tl.constexpr
):
    """dx[row] = y[row] * (dy[row] - sum(dy[row] * y[row])), for the row of this program."""
    ### BEGIN SOLUTION
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK_SIZE)
    mask = cols < n_cols
    y = tl.load(y_ptr + row * y_stride + cols, mask=mask, other=0.0).to(tl.float32)
    dy = tl.load(dy_ptr + row * dy_stride + cols, mask=mask, other=0.0).to(tl.float32)
    dx = y * (dy - tl.sum(dy * y, axis=0))
    tl.store(dx_ptr + row * dx_stride + cols, dx, mask=mask)
    ### END SOLUTION


class TritonSoftmax(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        """Returns softmax(x) and saves what backward needs."""
        ### BEGIN SOLUTION
        y = torch.empty_like(x)
        n_rows, n_cols = x.shape
        block_size = triton.next_power_of_2(n_cols)
        softmax_fwd_kernel[(n_rows,)](
            x, y, x.stride(0), y.stride(0), n_cols, BLOCK_SIZE=block_size,
            num_warps=min(max(block_size // 1024, 4), 16),
        )
        ctx.save_for_backward(y)
        return y
        ### END SOLUTION

    @staticmethod
    def backward(ctx, dy):
        """dy: the gradient of the output. Returns the gradient of x."""
        ### BEGIN SOLUTION
        (y,) = ctx.saved_tensors
        dx = torch.empty_like(y)
        n_rows, n_cols = y.shape
        block_size = triton.next_power_of_2(n_cols)
        softmax_bwd_kernel[(n_rows,)](
            y, dy, dx, y.stride(0), dy.stride(0), dx.stride(0), n_cols, BLOCK_SIZE=block_size,
            num_warps=min(max(block_size // 1024, 4), 16),
        )
        return dx
        ### END SOLUTION


def triton_softmax(x):
    """x: (M, N), rows may be padded. softmax along the rows, which autograd can differentiate."""
    ### BEGIN SOLUTION
    return TritonSoftmax.apply(x)
    ### END SOLUTION


# %% check="03.softmax_backward"

# %% [markdown]
r"""
## 03.softmax_long · rows longer than a block

A row in one block ends where registers end, and a block may have $2^{20}$ elements at most. Write a softmax whose
block is shorter than the row: walk along the row with a running maximum and a running sum, then walk once more
and store.

- `x` is M × N with **any** strides: transposed, every second column, padded rows. Types, large numbers, −∞ and
  NaN as in the first exercise. A first block of nothing but −∞ may be followed by numbers.
- `BLOCK_SIZE` is a power of two; blocks are no longer than that. Rows may have more than a million columns.
- `softmax_long` returns a new tensor of x's shape and type. Its strides may be any.
- At most $3MN$ numbers are read and written (the check allows 5 % more).

About seventeen lines in the kernel and four in the function.
"""

# %% solution="03.softmax_long"
@triton.jit
def softmax_long_kernel(
    x_ptr, out_ptr, x_row, x_col, out_row, out_col, n_cols, BLOCK_SIZE: tl.constexpr
):
    """out[row] = softmax(x[row]) in blocks of BLOCK_SIZE, for the row of this program."""
    ### BEGIN SOLUTION
    x_ptr += tl.program_id(0) * x_row
    out_ptr += tl.program_id(0) * out_row
    m = -float("inf")
    s = 0.0
    for start in range(0, n_cols, BLOCK_SIZE):
        cols = start + tl.arange(0, BLOCK_SIZE)
        x = tl.load(x_ptr + cols * x_col, mask=cols < n_cols, other=-float("inf")).to(tl.float32)
        new_m = tl.maximum(m, tl.max(x, axis=0))
        shift = tl.where(new_m == -float("inf"), 0.0, new_m)  # −inf + inf would be NaN
        s = s * tl.exp(m - shift) + tl.sum(tl.exp(x - shift), axis=0)
        m = new_m
    for start in range(0, n_cols, BLOCK_SIZE):
        cols = start + tl.arange(0, BLOCK_SIZE)
        mask = cols < n_cols
        x = tl.load(x_ptr + cols * x_col, mask=mask, other=-float("inf")).to(tl.float32)
        tl.store(out_ptr + cols * out_col, tl.exp(x - m) / s, mask=mask)
    ### END SOLUTION


def softmax_long(x, BLOCK_SIZE):
    """x: (M, N), any strides. Returns softmax along the rows as a new tensor."""
    ### BEGIN SOLUTION
    out = torch.empty_like(x)
    n_rows, n_cols = x.shape
    strides = (*x.stride(), *out.stride())
    softmax_long_kernel[(n_rows,)](x, out, *strides, n_cols, BLOCK_SIZE=BLOCK_SIZE)
    return out
    ### END SOLUTION


# %% check="03.softmax_long"

# %% [markdown]
r"""
## On a GPU, if there is one (not graded)

The same functions on the card: first the numbers in bfloat16, then the time against eager PyTorch, `torch.softmax`
and what `torch.compile` makes of the eager lines, then the point under the roof. Without a card the cells say
what they would have shown.
"""

# %%
if gpu("no output: all three functions agree with torch in bfloat16."):
    x = torch.randn(1823, 781, device="cuda").bfloat16().requires_grad_()
    dy = torch.randn_like(x)
    torch.testing.assert_close(triton_softmax(x), torch.softmax(x, dim=1))
    torch.testing.assert_close(softmax_long(x.detach(), 256), torch.softmax(x, dim=1))
    (ours,) = torch.autograd.grad(triton_softmax(x), x, dy)
    (theirs,) = torch.autograd.grad(torch.softmax(x, dim=1), x, dy)
    torch.testing.assert_close(ours, theirs, atol=1e-4, rtol=2**-6)


# %%
def naive(x):
    e = torch.exp(x - x.amax(dim=1, keepdim=True))
    return e / e.sum(dim=1, keepdim=True)


def rivals(n_cols):
    compiled = torch.compile(naive, dynamic=False)
    x = torch.randn(4096, n_cols, device="cuda").bfloat16()
    return {
        "naive": lambda: naive(x),
        "compile": lambda: compiled(x),
        "long": lambda: softmax_long(x, 2048),
        "triton": lambda: triton_softmax(x),
        "torch": lambda: torch.softmax(x, dim=1),
    }


measured = measure(
    rivals,
    sizes=(256, 1024, 4096, 16384),
    bytes_of=lambda n_cols: 2 * 2 * 4096 * n_cols,
    unchecked=("naive",),  # five roundings to bfloat16 in place of one
    expect="for 4096 rows on an RTX 4080, triton at 80–90 % of 716.8 GB/s from 4096 columns on, "
    "naive at a quarter of that or less, long at two thirds; up to 1024 columns the launch weighs.",
)
measured

# %%
roof({"triton": (5, 4)}, measured=measured)

# %% [markdown]
r"""
## Quiz

Graded with the assignment, a point each; the check below looks at the form of your answers only. Put them into the
next cell: a number, a letter such as `"a"`, or a list of letters such as `["a", "b"]`.

**q1.** Why do the lanes beyond a row read −∞ in softmax, and not 0?

- a) Because a masked load without `other=-float("inf")` does not compile.
- b) Because −∞ changes neither the maximum nor the sum of the exponentials.
- c) Because −∞ keeps the exponentials from overflowing.
- d) Because lanes that hold −∞ are not stored.

**q2.** Eager softmax passes over the matrix eight times, the fused kernel twice. By what factor does the traffic
shrink?

**q3.** Which statements about `torch.autograd.Function` hold? Name all of them.

- a) `forward` may launch a kernel of your own.
- b) `ctx.save_for_backward` keeps tensors that `backward` needs.
- c) `backward` returns a gradient (or None) for every input of `forward`.
- d) autograd derives `backward` from the kernel that `forward` launches.
- e) `backward` gets the gradient of what `forward` returned.

**q4.** A row is 1, 3, 2, 5 and the block has two elements. By which number is the running sum multiplied when the
second block arrives? Three digits are enough.

**q5.** A row of 40 000 numbers in one block, 4 warps of 32 threads: how many numbers does a thread hold?
"""

# %% quiz="03.quiz"

# %% check="03.quiz"
