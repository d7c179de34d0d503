# %% [markdown]
r"""
# Assignment 04 · RMSNorm, a bug hunt in LayerNorm, and gradients

Three exercises and a short quiz. Lesson 04 has all that they need. The last exercise is a stretch.

`check` answers four questions, here and on the CPU: is it right, does every lane stay inside its tensor, does
it move no more than theory says, would it compile for the card. Your grade comes from the same check, on
further sizes and types. `hint("04.rmsnorm")` opens a hint; call it again for the next one.
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
## 04.rmsnorm · forward, in one pass

Write a kernel for $y = x \cdot r \cdot w$ with $r = 1/\sqrt{\frac1N\sum x^2 + eps}$ along each row, and the
function that launches it.

- `x` has $M \ge 0$ rows and $N \ge 1$ columns, float32, float16 or bfloat16. A row's elements are neighbours;
  between two rows there may be a gap: `x.stride(0)` $\ge N$. `w` has N elements of x's type, contiguous, and
  serves all rows.
- `rmsnorm` returns a **fresh contiguous** tensor of x's shape and type. It leaves `x` and `w` as they were.
- Compute in float32, whatever x's type, and round once, when you store. Numbers may be as large as ±10 000.
- At most $3MN$ numbers are read and written: x, the output, and the weights once for each row (the check allows
  5 % more). Programs that have no row should load nothing.

About eight lines in the kernel and four in the function.
"""

# %% solution="04.rmsnorm"
@triton.jit
def rmsnorm_kernel(x_ptr, w_ptr, out_ptr, x_stride, n_cols, eps, BLOCK_SIZE: tl.constexpr):
    """out[row] = x[row] / sqrt(mean(x[row]²) + eps) * w, for the row of this program."""
    ### BEGIN SOLUTION
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK_SIZE)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * x_stride + cols, mask=mask, other=0.0).to(tl.float32)
    w = tl.load(w_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    r = tl.rsqrt(tl.sum(x * x, axis=0) / n_cols + eps)
    tl.store(out_ptr + row * n_cols + cols, x * r * w, mask=mask)
    ### END SOLUTION


def rmsnorm(x, w, eps=1e-6):
    """x: (M, N), rows may be padded; w: (N,). Returns a fresh contiguous tensor of x's shape."""
    ### BEGIN SOLUTION
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    n_rows, n_cols = x.shape
    block_size = triton.next_power_of_2(n_cols)
    warps = min(max(block_size // 1024, 4), 16)
    rmsnorm_kernel[(n_rows,)](
        x, w, out, x.stride(0), n_cols, eps, BLOCK_SIZE=block_size, num_warps=warps
    )
    return out
    ### END SOLUTION


# %% check="04.rmsnorm"

# %% [markdown]
r"""
## 04.layernorm · a bug hunt

This LayerNorm looks right. It even is right, for some widths. Find out for which, find the reason, and mend it.

$$y = \frac{x - \bar x}{\sqrt{\sigma^2 + eps}} \cdot w + b, \qquad \sigma^2 = \frac1N\sum (x - \bar x)^2$$

- `x` is as above; `w` and `b` have N elements of x's type. `layernorm` returns a fresh contiguous tensor.
- Numbers may be far from zero. $\sigma^2$ as the mean of squares minus the square of the mean is no way out: two
  large numbers cancel there.
- At most $4MN$ numbers are read and written: x, the output, and both vectors of parameters once for each row.

One line is enough.
"""

# %% solution="04.layernorm" stub="variance = tl.sum((x - mean) * (x - mean), axis=0) / n_cols"
@triton.jit
def layernorm_kernel(x_ptr, w_ptr, b_ptr, out_ptr, x_stride, n_cols, eps, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK_SIZE)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * x_stride + cols, mask=mask, other=0.0).to(tl.float32)
    mean = tl.sum(x, axis=0) / n_cols
    ### BEGIN SOLUTION
    centered = tl.where(mask, x - mean, 0.0)
    variance = tl.sum(centered * centered, axis=0) / n_cols
    ### END SOLUTION
    w = tl.load(w_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    b = tl.load(b_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    y = (x - mean) * tl.rsqrt(variance + eps) * w + b
    tl.store(out_ptr + row * n_cols + cols, y, mask=mask)


def layernorm(x, w, b, eps=1e-5):
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    n_rows, n_cols = x.shape
    block_size = max(128, triton.next_power_of_2(n_cols))
    layernorm_kernel[(n_rows,)](x, w, b, out, x.stride(0), n_cols, eps, BLOCK_SIZE=block_size)
    return out


# %% [markdown]
r"""
A place to experiment. The cell compares with torch, width by width; change what it tries.
"""

# %%
torch.manual_seed(0)
for n_cols in (128, 100, 256, 200):
    x, w, b = torch.rand(4, n_cols), torch.ones(n_cols), torch.zeros(n_cols)
    got = torch.from_numpy(inspect_call(layernorm, x, w, b).outputs[0].values)
    want = torch.nn.functional.layer_norm(x, (n_cols,), w, b)
    print(f"{n_cols} columns: largest difference {(got - want).abs().max():.2g}")

# %% check="04.layernorm"

# %% [markdown]
r"""
## 04.rmsnorm_backward · the gradients (stretch)

Write RMSNorm's backward and put both directions into `TritonRMSNorm`, a `torch.autograd.Function`.

With $\hat x = x\,r$ and, along each row, $c = \frac1N\sum w\,dy\,\hat x$:

$$dx = r\,(w\,dy - \hat x\,c), \qquad dw = \sum_{\text{rows}} dy\,\hat x$$

- $M \ge 1$; `x`, `w` and the output are as in 04.rmsnorm; `dy` is contiguous. `dx` and `dw` have the types of x and w.
- Everything in float32, rounded once: the sum over the rows too, which no type but float32 can hold.
- Every row adds to `dw`, and programs run at the same time: lesson 04 shows two ways without a race.
- At most $8MN + 2M + 80N$ numbers: $3MN$ forward; backward x, dy, w, dx and one addition to dw a row; one r a
  row, written and read; and room for partial sums, one for each of an RTX 4080's 76 SMs.
- torch may fill a tensor with zeros and convert dw to w's type; the adding is for your kernels.
- The kernels' parameters are a proposal: change them, or add a kernel, as your way needs it.

About twenty lines in kernels and twenty in the Function.
"""

# %% solution="04.rmsnorm_backward" stub=["pass  # your lines here", "pass  # your lines here", "raise NotImplementedError('forward is not written yet')", "raise NotImplementedError('backward is not written yet')"]
@triton.jit
def rmsnorm_fwd_kernel(x_ptr, w_ptr, y_ptr, r_ptr, x_stride, n_cols, eps, BLOCK_SIZE: tl.constexpr):
    """y[row] as before, and r[row], one number a row, for backward."""
    ### BEGIN SOLUTION
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK_SIZE)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * x_stride + cols, mask=mask, other=0.0).to(tl.float32)
    w = tl.load(w_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    r = tl.rsqrt(tl.sum(x * x, axis=0) / n_cols + eps)
    tl.store(r_ptr + row, r)
    tl.store(y_ptr + row * n_cols + cols, x * r * w, mask=mask)
    ### END SOLUTION


@triton.jit
def rmsnorm_bwd_kernel(
    x_ptr, w_ptr, r_ptr, dy_ptr, dx_ptr, dw_ptr, x_stride, n_cols, BLOCK_SIZE: tl.constexpr
):
    """dx[row], and this row's share of dw."""
    ### BEGIN SOLUTION
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK_SIZE)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * x_stride + cols, mask=mask, other=0.0).to(tl.float32)
    dy = tl.load(dy_ptr + row * n_cols + cols, mask=mask, other=0.0).to(tl.float32)
    w = tl.load(w_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    r = tl.load(r_ptr + row)
    normed = x * r
    c = tl.sum(w * dy * normed, axis=0) / n_cols
    tl.store(dx_ptr + row * n_cols + cols, r * (w * dy - normed * c), mask=mask)
    tl.atomic_add(dw_ptr + cols, dy * normed, mask=mask)
    ### END SOLUTION


class TritonRMSNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w, eps):
        """Returns rmsnorm(x, w, eps) and saves what backward needs."""
        ### BEGIN SOLUTION
        n_rows, n_cols = x.shape
        y = torch.empty(x.shape, dtype=x.dtype, device=x.device)
        r = torch.empty(n_rows, dtype=torch.float32, device=x.device)
        block_size = triton.next_power_of_2(n_cols)
        rmsnorm_fwd_kernel[(n_rows,)](x, w, y, r, x.stride(0), n_cols, eps, BLOCK_SIZE=block_size)
        ctx.save_for_backward(x, w, r)
        return y
        ### END SOLUTION

    @staticmethod
    def backward(ctx, dy):
        """dy: the gradient of y. Returns the gradients of x and w, and None for eps."""
        ### BEGIN SOLUTION
        x, w, r = ctx.saved_tensors
        n_rows, n_cols = x.shape
        dx = torch.empty(x.shape, dtype=x.dtype, device=x.device)
        dw = torch.zeros(n_cols, dtype=torch.float32, device=x.device)
        block_size = triton.next_power_of_2(n_cols)
        rmsnorm_bwd_kernel[(n_rows,)](
            x, w, r, dy, dx, dw, x.stride(0), n_cols, BLOCK_SIZE=block_size
        )
        return dx, dw.to(w.dtype), None
        ### END SOLUTION


# %% check="04.rmsnorm_backward"

# %% [markdown]
r"""
## On a GPU, if there is one (not graded)

The same functions on the card: first the numbers in bfloat16, then the time against the eager lines,
`torch.nn.functional.rms_norm` and `torch.compile`. Without a card the cells say what they would have shown.
"""

# %%
if gpu("no output: the functions agree with torch in bfloat16."):
    x = torch.randn(512, 896, device="cuda").bfloat16().requires_grad_()
    w, b = (torch.randn(896, device="cuda").bfloat16().requires_grad_() for _ in range(2))
    reference = torch.nn.functional.rms_norm(x, (896,), w, 1e-6)
    torch.testing.assert_close(rmsnorm(x.detach(), w.detach()), reference)
    normed = torch.nn.functional.layer_norm(x, (896,), w, b)
    torch.testing.assert_close(layernorm(x.detach(), w.detach(), b.detach()), normed)
    dy = torch.randn_like(x)
    ours = torch.autograd.grad(TritonRMSNorm.apply(x, w, 1e-6), (x, w), dy)
    theirs = torch.autograd.grad(reference, (x, w), dy)
    torch.testing.assert_close(ours, theirs, atol=2e-2, rtol=2**-6)


# %%
def eager(x, w, eps=1e-6):
    x32 = x.float()
    return (x32 * torch.rsqrt(x32.pow(2).mean(-1, keepdim=True) + eps) * w.float()).to(x.dtype)


def rivals(n_cols):
    compiled = torch.compile(eager, dynamic=False)
    x = torch.randn(4096, n_cols, device="cuda").bfloat16()
    w = torch.randn(n_cols, device="cuda").bfloat16()
    return {
        "eager": lambda: eager(x, w),
        "compile": lambda: compiled(x, w),
        "triton": lambda: rmsnorm(x, w),
        "torch": lambda: torch.nn.functional.rms_norm(x, (n_cols,), w, 1e-6),
    }


measured = measure(
    rivals,
    sizes=(256, 896, 4096, 16384),
    bytes_of=lambda n_cols: 2 * 2 * 4096 * n_cols,
    expect="for 4096 rows on an RTX 4080, triton, compile and torch at 80–90 % of 716.8 GB/s "
    "from 4096 columns on, eager far below; up to 896 columns the launch weighs.",
)
measured

# %%
roof({"triton": (4, 4)}, measured=measured)

# %% [markdown]
r"""
## Quiz

Graded with the assignment, a point each; the check below looks at the form of your answers only. Put them into the
next cell: a number, a letter such as `"a"`, or a list of letters such as `["a", "b"]`.

**q1.** Lanes beyond the row read 0 in RMSNorm and −∞ in softmax. Why?

- a) RMSNorm's inputs are never negative.
- b) −∞ would be just as right in RMSNorm, only slower.
- c) Each is the number that changes nothing: 0 in a sum of squares, −∞ in a maximum and under exp.
- d) Softmax needs a number that is not in the row.

**q2.** A row is 2, 4, 6 in a block of four, and lanes beyond the row read 0. A LayerNorm kernel sums (x − mean)²
over all lanes and divides by 3. Which variance does it find?

**q3.** Every row adds to dw. Which ways are free of races? Name all of them.

- a) Every program loads dw, adds its row, and stores dw.
- b) `tl.atomic_add` into float32 zeros.
- c) Every program stores a partial sum in a row of its own, and a second kernel adds up the columns.
- d) A single program walks over all rows and keeps dw in registers.

**q4.** RMSNorm on 4096 × 896, four rows a program, the weights loaded once a program. How many numbers are read
and written in all?

**q5.** Five thousand fours are added one after the other in float16, which has 11 significant bits. What is the
sum?
"""

# %% quiz="04.quiz"

# %% check="04.quiz"
