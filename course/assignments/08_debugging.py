# %% [markdown]
r"""
# Assignment 08 · eight kernels to repair

Six small kernels and two templates. Each of them is broken by one kind of fault that people meet in real code; the
templates have two faults each. Your part is the repair: find the line, say to yourself why it is wrong, mend it.

Run the check of an exercise before you change anything: it names kind, line and lanes. Then go through the order of
lesson 08: the smallest input that fails, values, bounds, races, traffic, one program by hand.

- The fault itself has to go. A repair that only hides it fails: the numbers alone are not enough.
- A line or two is all it takes, but any repair counts, a kernel of your own too. Keep the function's name and arguments.
- A kernel earns nothing on an input on which its fault still shows or is only hidden.

`hint("08.a")` opens a hint; call it again for the next one.
"""

# %%
from lab_setup.roofline.measure import gpu, versions

print(versions())

# %%
import torch
import triton
import triton.language as tl

from autograder import check, hint, interpret
from autograder.checking import inspect_call

# %% [markdown]
r"""
## 08.a · scaled copy

`scaled_copy(x, alpha)` returns alpha · x, a fresh tensor; `x` is a contiguous vector of any length from 1 on, float32 or
float16. The numbers come out right, here and on most cards on most days. On others the launch ends with "an illegal
memory access was encountered".

At most $2n$ numbers are read and written, copies that torch makes included (the check allows 5 % more).
"""

# %% solution="08.a" stub="x = tl.load(x_ptr + offs)"
@triton.jit
def scaled_copy_kernel(x_ptr, out_ptr, alpha, n, BLOCK_SIZE: tl.constexpr):
    offs = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offs < n
    ### BEGIN SOLUTION
    x = tl.load(x_ptr + offs, mask=mask)
    ### END SOLUTION
    tl.store(out_ptr + offs, alpha * x, mask=mask)


def scaled_copy(x, alpha):
    out = torch.empty_like(x)
    n = x.numel()
    scaled_copy_kernel[(triton.cdiv(n, 1024),)](x, out, alpha, n, BLOCK_SIZE=1024)
    return out


# %% check="08.a"

# %% [markdown]
r"""
## 08.b · row maximum

`row_max(x)` returns the largest number of each row. `x` has M rows of N columns, float32, float16 or bfloat16; a row's
elements are neighbours, and rows may be padded, so `x.stride(0)` may be larger than N. A row may hold −∞, and nothing but
−∞; no row holds NaN. The tests that came with the kernel used `torch.rand`, and pass.

At most $MN + M$ numbers are read and written.
"""

# %% solution="08.b" stub="x = tl.load(x_ptr + row * x_stride + cols, mask=cols < n_cols, other=0.0)"
@triton.jit
def row_max_kernel(x_ptr, out_ptr, x_stride, n_cols, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK_SIZE)
    ### BEGIN SOLUTION
    x = tl.load(x_ptr + row * x_stride + cols, mask=cols < n_cols, other=-float("inf"))
    ### END SOLUTION
    tl.store(out_ptr + row, tl.max(x, axis=0))


def row_max(x):
    n_rows, n_cols = x.shape
    out = torch.empty(n_rows, dtype=x.dtype, device=x.device)
    block_size = triton.next_power_of_2(n_cols)
    row_max_kernel[(n_rows,)](x, out, x.stride(0), n_cols, BLOCK_SIZE=block_size)
    return out


# %% check="08.b"

# %% [markdown]
r"""
## 08.c · a bias added to padded rows

`add_bias(x, bias)` returns x + bias, a fresh contiguous tensor. `x` is as in 08.b, `bias` is contiguous and has N numbers
of x's type. It worked for a year, until somebody passed `x[:, :100]`.

At most $3MN$ numbers are read and written: x, the bias once for each row, the result.
"""

# %% solution="08.c" stub=["x_ptr, bias_ptr, out_ptr, n_cols, BLOCK_SIZE: tl.constexpr", "x = tl.load(x_ptr + row * n_cols + cols, mask=mask)", "add_bias_kernel[(n_rows,)](x, bias, out, n_cols, BLOCK_SIZE=block_size)"]
@triton.jit
def add_bias_kernel(
    ### BEGIN SOLUTION
    x_ptr, bias_ptr, out_ptr, x_stride, n_cols, BLOCK_SIZE: tl.constexpr
    ### END SOLUTION
):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK_SIZE)
    mask = cols < n_cols
    ### BEGIN SOLUTION
    x = tl.load(x_ptr + row * x_stride + cols, mask=mask)
    ### END SOLUTION
    bias = tl.load(bias_ptr + cols, mask=mask)
    tl.store(out_ptr + row * n_cols + cols, x + bias, mask=mask)


def add_bias(x, bias):
    n_rows, n_cols = x.shape
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    block_size = triton.next_power_of_2(n_cols)
    ### BEGIN SOLUTION
    add_bias_kernel[(n_rows,)](x, bias, out, x.stride(0), n_cols, BLOCK_SIZE=block_size)
    ### END SOLUTION
    return out


# %% check="08.c"

# %% [markdown]
r"""
## 08.d · the sum of a vector

`total(x)` returns a float32 tensor of one number, the sum of all of x; `x` is a contiguous vector, float32 or float16, of
more than 2048 numbers. In Triton's interpreter the sum is right. On a card it is another one in every run.

- One program reads at most 2048 numbers of x, so that a card is busy. Programs run at the same time: handing all the
  work to one of them, or one launch after the other, is no repair.
- At most $n + n/64 + 16$ numbers are read and written.
- float32 sums may be added up in any order.
"""

# %% solution="08.d" stub="so_far = tl.load(out_ptr)\ntl.store(out_ptr, so_far + tl.sum(x, axis=0))"
@triton.jit
def total_kernel(x_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    offs = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    x = tl.load(x_ptr + offs, mask=offs < n, other=0.0).to(tl.float32)
    ### BEGIN SOLUTION
    tl.atomic_add(out_ptr, tl.sum(x, axis=0))
    ### END SOLUTION


def total(x):
    out = torch.zeros(1, dtype=torch.float32, device=x.device)
    n = x.numel()
    total_kernel[(triton.cdiv(n, 1024),)](x, out, n, BLOCK_SIZE=1024)
    return out


# %% check="08.d"

# %% [markdown]
r"""
## 08.e · column sums

`column_sums(x)` returns N sums in float32, one for each column of `x`, as for the gradient of a bias. `x` is M × N,
contiguous, float16 or bfloat16. A model trained well with 32 rows; with 2000 its bias no longer moved, and once it
became infinite.

At most $MN + N$ numbers are read and written, copies that torch makes included.
"""

# %% solution="08.e" stub=["acc = tl.zeros((BLOCK_SIZE,), dtype=x_ptr.dtype.element_ty)", "acc += x"]
@triton.jit
def column_sums_kernel(x_ptr, out_ptr, n_rows, n_cols, BLOCK_SIZE: tl.constexpr):
    cols = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = cols < n_cols
    ### BEGIN SOLUTION
    acc = tl.zeros((BLOCK_SIZE,), dtype=tl.float32)
    ### END SOLUTION
    for row in range(n_rows):
        x = tl.load(x_ptr + row * n_cols + cols, mask=mask, other=0.0)
        ### BEGIN SOLUTION
        acc += x.to(tl.float32)
        ### END SOLUTION
    tl.store(out_ptr + cols, acc, mask=mask)


def column_sums(x):
    n_rows, n_cols = x.shape
    out = torch.empty(n_cols, dtype=torch.float32, device=x.device)
    column_sums_kernel[(triton.cdiv(n_cols, 64),)](x, out, n_rows, n_cols, BLOCK_SIZE=64)
    return out


# %% check="08.e"

# %% [markdown]
r"""
## 08.f · causal softmax

`causal_softmax(s)` gets the scores of T tokens, T × T, contiguous, float32, float16 or bfloat16, and returns the causal
weights, a tensor of the same shape and type: row i is the softmax of its elements 0 … i, and 0 behind them. "There was a
NaN, but only in row 0", said the one who wrote it.

At most $2T^2$ numbers are read and written.
"""

# %% solution="08.f" stub="seen = cols < row"
@triton.jit
def causal_softmax_kernel(s_ptr, out_ptr, T, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK_SIZE)
    ### BEGIN SOLUTION
    seen = cols <= row
    ### END SOLUTION
    s = tl.load(s_ptr + row * T + cols, mask=seen, other=-float("inf")).to(tl.float32)
    e = tl.exp(s - tl.max(s, axis=0))
    tl.store(out_ptr + row * T + cols, e / tl.sum(e, axis=0), mask=cols < T)


def causal_softmax(s):
    T = s.shape[0]
    out = torch.empty_like(s)
    causal_softmax_kernel[(T,)](s, out, T, BLOCK_SIZE=triton.next_power_of_2(T))
    return out


# %% check="08.f"

# %% [markdown]
r"""
## 08.g · a template: attention

Templates like this one are published by the dozen, and by no means all of them have ever been run. `attention(q, k, v)`
returns softmax(q kᵀ/√D) v, not causal; all tensors are (B, H, T, D), contiguous, float32, float16 or bfloat16, with D a
power of two from 16 on. This one has two faults.

At most $B \cdot H \cdot (2TD + T + 2D \cdot \mathit{keys})$ numbers are read and written, where *keys* counts the keys that
blocks of 32 queries load: T for each of them.
"""

# %% solution="08.g" stub=["for start in range(0, SEQ_LEN, BLOCK_N):", "acc = acc * shrink[:, None] + tl.dot(p.to(k.dtype), k)"]
@triton.jit
def attention_kernel(
    q_ptr, k_ptr, v_ptr, o_ptr, T, scale, D: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr
):
    head = tl.program_id(1) * T * D
    rows, dims = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M), tl.arange(0, D)
    row_at = head + rows[:, None] * D + dims[None, :]
    q = tl.load(q_ptr + row_at, mask=rows[:, None] < T, other=0.0)
    m = tl.full((BLOCK_M,), -float("inf"), tl.float32)
    l = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, D), tl.float32)
    ### BEGIN SOLUTION
    for start in range(0, T, BLOCK_N):
    ### END SOLUTION
        cols = start + tl.arange(0, BLOCK_N)
        key_at = head + cols[:, None] * D + dims[None, :]
        k = tl.load(k_ptr + key_at, mask=cols[:, None] < T, other=0.0)
        s = tl.where(cols[None, :] < T, tl.dot(q, tl.trans(k)) * scale, -float("inf"))
        new_m = tl.maximum(m, tl.max(s, axis=1))
        shrink, p = tl.exp(m - new_m), tl.exp(s - new_m[:, None])
        l = l * shrink + tl.sum(p, axis=1)
        ### BEGIN SOLUTION
        v = tl.load(v_ptr + key_at, mask=cols[:, None] < T, other=0.0)
        acc = tl.dot(p.to(v.dtype), v, acc * shrink[:, None])
        ### END SOLUTION
        m = new_m
    o = (acc / l[:, None]).to(o_ptr.dtype.element_ty)
    tl.store(o_ptr + row_at, o, mask=rows[:, None] < T)


def attention(q, k, v):
    b, h, t, d = q.shape
    o = torch.empty_like(q)
    grid = (triton.cdiv(t, 32), b * h)
    attention_kernel[grid](q, k, v, o, t, d**-0.5, D=d, BLOCK_M=32, BLOCK_N=32)
    return o


# %% check="08.g"

# %% [markdown]
r"""
## 08.h · a template: split-K

With 16 rows a matmul has few tiles, so few programs, and most of the card is idle. **Split-K** cuts K into SPLIT_K parts
and gives each tile to SPLIT_K programs, which compute a summand of it each. `splitk_matmul(a, b, SPLIT_K)` returns a b in
float32; `a` is M × K, `b` is K × N, contiguous, float16 or bfloat16, and SPLIT_K ≥ 2. What this template does with the
summands is wrong in two ways.

- The work stays split: SPLIT_K programs or more read a and b in one launch (fewer only if K has fewer steps of 128).
- At most $2 \cdot 32 \cdot \mathit{tiles} \cdot K + (2\,\mathit{SPLIT\_K} + 1)\,MN$ numbers are read and written, for tiles
  of 32 × 32 and with room for partial results that a second kernel adds up.
"""

# %% solution="08.h" stub=["tl.store(c_ptr + rows * N, tl.sum(acc, axis=1), mask=rows < M)", "c = torch.empty((M, N), dtype=torch.float32, device=a.device)"]
@triton.jit
def splitk_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K,
    SPLIT_K: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    split = tl.program_id(2)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(split * BLOCK_K, K, SPLIT_K * BLOCK_K):
        ks = start + tl.arange(0, BLOCK_K)
        a_mask = (rows[:, None] < M) & (ks[None, :] < K)
        b_mask = (ks[:, None] < K) & (cols[None, :] < N)
        a = tl.load(a_ptr + rows[:, None] * K + ks[None, :], mask=a_mask, other=0.0)
        b = tl.load(b_ptr + ks[:, None] * N + cols[None, :], mask=b_mask, other=0.0)
        acc = tl.dot(a, b, acc)
    ### BEGIN SOLUTION
    c_mask = (rows[:, None] < M) & (cols[None, :] < N)
    tl.atomic_add(c_ptr + rows[:, None] * N + cols[None, :], acc, mask=c_mask)
    ### END SOLUTION


def splitk_matmul(a, b, SPLIT_K=4):
    (M, K), N = a.shape, b.shape[1]
    ### BEGIN SOLUTION
    c = torch.zeros((M, N), dtype=torch.float32, device=a.device)
    ### END SOLUTION
    grid = (triton.cdiv(M, 32), triton.cdiv(N, 32), SPLIT_K)
    splitk_kernel[grid](a, b, c, M, N, K, SPLIT_K=SPLIT_K, BLOCK_M=32, BLOCK_N=32, BLOCK_K=32)
    return c


# %% check="08.h"

# %% [markdown]
r"""
## On a GPU, if there is one (not graded)

The repaired functions on the card, against torch. Without a card the cell says what it would have shown.
"""

# %%
if gpu("no output: all eight agree with torch."):
    x = torch.randn(3000, device="cuda")
    close = torch.testing.assert_close
    close(scaled_copy(x, 0.5), 0.5 * x)
    close(total(x), x.sum().reshape(1), atol=1e-2, rtol=0.0)
    padded = -torch.rand(37, 128, device="cuda")[:, :100]
    close(row_max(padded), padded.amax(1))
    close(add_bias(padded, padded[0]), padded + padded[0])
    half = torch.rand(500, 100, device="cuda").half()
    close(column_sums(half), half.float().sum(0))
    scores = torch.randn(77, 77, device="cuda")
    hidden = torch.ones(77, 77, dtype=torch.bool, device="cuda").triu(1)
    close(causal_softmax(scores), scores.masked_fill(hidden, -float("inf")).softmax(1))
    q, k, v = torch.randn(3, 1, 2, 77, 32, device="cuda").half()
    sdpa = torch.nn.functional.scaled_dot_product_attention
    close(attention(q, k, v), sdpa(q, k, v), atol=2e-3, rtol=2e-3)
    a, b = torch.randn(16, 1000, device="cuda").half(), torch.randn(1000, 50, device="cuda").half()
    close(splitk_matmul(a, b, 4), a.float() @ b.float(), atol=1e-2, rtol=1e-3)

# %% [markdown]
r"""
## Quiz

Graded with the assignment, a point each; the check below looks at the form of your answers only. Put them into the
next cell: a number, a letter such as `"a"`, or a list of letters such as `["a", "b"]`.

**q1.** A matrix has 20 rows of 5 columns, and its rows begin 8 elements apart. A kernel takes the width for the row
stride and reads "row 3, column 2". In which column of memory's rows of 8 does it end up, counted from 0?

**q2.** What does Triton's own interpreter (TRITON_INTERPRET=1) **not** show? Name all.

- a) what a variable of the kernel holds, by `print`
- b) a load without a mask that runs past the end
- c) a race between two programs
- d) a wrong result of a float32 softmax
- e) the true result of `tl.dot` in bfloat16

**q3.** 97 programs each load a counter that begins at 0, add 1, and store it. On a card all of them may load before the
first one stores. What does the counter hold then?

**q4.** A kernel gives right numbers in every test, and on some days ends with "illegal memory access". What comes first?

- a) Run it with fewer warps.
- b) Put `torch.cuda.synchronize()` behind the launch and see whether it goes away.
- c) Take the smallest input whose last block is not full, and look at the mask of every load and store.
- d) Raise the tolerance of the test.
"""

# %% quiz="08.quiz"

# %% check="08.quiz"
