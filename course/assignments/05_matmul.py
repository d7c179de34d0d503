# %% [markdown]
r"""
# Assignment 05 · Matmul: tiles, their order, an epilogue

Three kernels and a short quiz; each kernel grows out of the one before. Lesson 05 has all that they need.

For every kernel, `check` answers four questions, here and on the CPU: is it right, does every lane stay inside its
tensor, does it move no more than theory says, would it compile for the card. Check as often as you like: your grade
comes from the same check, on further sizes, strides and types. `hint("05.matmul")` opens a hint; call it again for
the next one.
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
from autograder.render.figures import program_map, tiles_of

# %% [markdown]
r"""
## 05.matmul · a tile a program

Write a matmul kernel and the function that launches it.

- `a` is M × K and `b` is K × N, of one type: float32, float16 or bfloat16. **Any** strides: transposed, every second
  column, padded rows. Sizes divide nothing, M or N may be 1, K may be 0: then the result is zeros, and the kernel
  writes them. M and N are at least 1.
- `matmul` returns a new M × N tensor of that type and leaves `a` and `b` as they were. It copies neither.
- Sums are kept in float32 and rounded once, when stored. `tl.dot` may use TF32 or IEEE: the check computes in full.
- At most $MNK(1/32 + 1/32) + MN$ numbers are read and written: tiles of 32 × 32 or larger, a ragged edge counted as a
  whole tile and a side below 64 as 64 (the check allows 5 % more).
- Whole tiles in shared memory must fit the card: 101 376 bytes a block, in bfloat16.

About eighteen lines in the kernel and five in the function.
"""

# %% solution="05.matmul"
@triton.jit
def matmul_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K,
    stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):
    """c = a b, for the tile of this program."""
    ### BEGIN SOLUTION
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, K, BLOCK_K):
        ks = start + tl.arange(0, BLOCK_K)
        a_mask = (rows[:, None] < M) & (ks[None, :] < K)
        b_mask = (ks[:, None] < K) & (cols[None, :] < N)
        a = tl.load(a_ptr + rows[:, None] * stride_am + ks[None, :] * stride_ak, mask=a_mask, other=0.0)
        b = tl.load(b_ptr + ks[:, None] * stride_bk + cols[None, :] * stride_bn, mask=b_mask, other=0.0)
        acc = tl.dot(a, b, acc)
    c_ptrs = c_ptr + rows[:, None] * stride_cm + cols[None, :] * stride_cn
    tl.store(c_ptrs, acc.to(c_ptr.dtype.element_ty), mask=(rows[:, None] < M) & (cols[None, :] < N))
    ### END SOLUTION


def matmul(a, b):
    """a: (M, K), b: (K, N), any strides, one type. Returns a @ b as a new tensor."""
    ### BEGIN SOLUTION
    (m, k), n = a.shape, b.shape[1]
    c = torch.empty((m, n), dtype=a.dtype, device=a.device)
    grid = (triton.cdiv(m, 64), triton.cdiv(n, 64))
    strides = (*a.stride(), *b.stride(), *c.stride())
    matmul_kernel[grid](a, b, c, m, n, k, *strides, BLOCK_M=64, BLOCK_N=64, BLOCK_K=32)
    return c
    ### END SOLUTION


# %% check="05.matmul"

# %% [markdown]
r"""
## 05.grouping · an order that spares memory

Give your programs an order in which those that run at the same time share what the cache holds, and autotune the
kernel if you like. `matmul` is defined once more; start from the kernel above.

- Everything that 05.matmul asks for still holds.
- The order is judged by the L2 model of the lesson: 1024 × 1024 × 64 and 2048 × 2048 × 64 in float16, 76 programs at a
  time. The cache has 128 KB for tiles of 32 × 32, and in proportion to their area for others. For your tiles in your
  order it may fetch no more than for the same tiles in groups of 8 rows, or of 8 columns (the check allows 5 % more).
- Any order that reaches that will do, in a grid of one, two or three axes, one tile a program or several.

About six new lines in the kernel.
"""

# %% solution="05.grouping"
@triton.jit
def grouped_matmul_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K,
    stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
):
    """c = a b; programs take tiles in groups of GROUP_M rows of tiles."""
    ### BEGIN SOLUTION
    pid = tl.program_id(0)
    tiles_m, tiles_n = tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N)
    in_group = GROUP_M * tiles_n
    first_m = pid // in_group * GROUP_M
    size = min(tiles_m - first_m, GROUP_M)  # the last group may have fewer rows
    pid_m = first_m + pid % in_group % size
    pid_n = pid % in_group // size
    rows = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, K, BLOCK_K):
        ks = start + tl.arange(0, BLOCK_K)
        a_mask = (rows[:, None] < M) & (ks[None, :] < K)
        b_mask = (ks[:, None] < K) & (cols[None, :] < N)
        a = tl.load(a_ptr + rows[:, None] * stride_am + ks[None, :] * stride_ak, mask=a_mask, other=0.0)
        b = tl.load(b_ptr + ks[:, None] * stride_bk + cols[None, :] * stride_bn, mask=b_mask, other=0.0)
        acc = tl.dot(a, b, acc)
    c_ptrs = c_ptr + rows[:, None] * stride_cm + cols[None, :] * stride_cn
    tl.store(c_ptrs, acc.to(c_ptr.dtype.element_ty), mask=(rows[:, None] < M) & (cols[None, :] < N))
    ### END SOLUTION


def matmul(a, b):
    """a: (M, K), b: (K, N), any strides, one type. Returns a @ b as a new tensor."""
    ### BEGIN SOLUTION
    (m, k), n = a.shape, b.shape[1]
    c = torch.empty((m, n), dtype=a.dtype, device=a.device)
    grid = (triton.cdiv(m, 64) * triton.cdiv(n, 64),)
    strides = (*a.stride(), *b.stride(), *c.stride())
    grouped_matmul_kernel[grid](
        a, b, c, m, n, k, *strides, BLOCK_M=64, BLOCK_N=64, BLOCK_K=32, GROUP_M=8
    )
    return c
    ### END SOLUTION


# %% check="05.grouping"

# %% [markdown]
r"""
Look at the order that your programs take (not graded). The cell finds out who stores which tile; set `tile` to the
rows and columns of yours.
"""

# %%
tile = (64, 64)
run = inspect_call(matmul, torch.randn(640, 64), torch.randn(64, 384))
stores = [access for access in run.accesses if access.operation == "store"]
program_map(tiles_of(stores, tile)) if stores else "matmul stores nothing yet"

# %% [markdown]
r"""
## 05.matmul_bias_gelu · an epilogue

$\mathrm{gelu}(a \cdot b + \mathit{bias})$ in one kernel. Asked for is the tanh form of gelu:

$$\mathrm{gelu}(z) = 0.5\, z \left(1 + \tanh\left(\sqrt{2/\pi}\,(z + 0.044715\, z^3)\right)\right)$$

- `a` and `b` are as above, `bias` is a contiguous vector of N numbers of their type; number $j$ is added to column $j$.
- Everything behind the product is computed in float32, and the result is rounded once, to the type of `a`. The
  argument of tanh may be very large: the result is then $z$ or 0, and never NaN. $\tanh w = 2\,\mathrm{sigmoid}(2w) - 1$.
- At most $MNK(1/32 + 1/32) + MN + MN/32$ numbers are read and written, counted as in 05.matmul.

About five lines more than a matmul.
"""

# %% solution="05.matmul_bias_gelu"
@triton.jit
def matmul_bias_gelu_kernel(
    a_ptr, b_ptr, bias_ptr, c_ptr, M, N, K,
    stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):
    """c = gelu(a b + bias), for the tile of this program."""
    ### BEGIN SOLUTION
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, K, BLOCK_K):
        ks = start + tl.arange(0, BLOCK_K)
        a_mask = (rows[:, None] < M) & (ks[None, :] < K)
        b_mask = (ks[:, None] < K) & (cols[None, :] < N)
        a = tl.load(a_ptr + rows[:, None] * stride_am + ks[None, :] * stride_ak, mask=a_mask, other=0.0)
        b = tl.load(b_ptr + ks[:, None] * stride_bk + cols[None, :] * stride_bn, mask=b_mask, other=0.0)
        acc = tl.dot(a, b, acc)
    bias = tl.load(bias_ptr + cols, mask=cols < N, other=0.0).to(tl.float32)
    z = acc + bias[None, :]
    inner = 0.7978845608028654 * (z + 0.044715 * z * z * z)
    c = z * tl.sigmoid(2 * inner)  # 0.5 (1 + tanh(w)) = sigmoid(2 w)
    c_ptrs = c_ptr + rows[:, None] * stride_cm + cols[None, :] * stride_cn
    tl.store(c_ptrs, c.to(c_ptr.dtype.element_ty), mask=(rows[:, None] < M) & (cols[None, :] < N))
    ### END SOLUTION


def matmul_bias_gelu(a, b, bias):
    """a: (M, K), b: (K, N), any strides; bias: (N,). Returns gelu(a @ b + bias), tanh form."""
    ### BEGIN SOLUTION
    (m, k), n = a.shape, b.shape[1]
    c = torch.empty((m, n), dtype=a.dtype, device=a.device)
    grid = (triton.cdiv(m, 64), triton.cdiv(n, 64))
    strides = (*a.stride(), *b.stride(), *c.stride())
    matmul_bias_gelu_kernel[grid](
        a, b, bias, c, m, n, k, *strides, BLOCK_M=64, BLOCK_N=64, BLOCK_K=32
    )
    return c
    ### END SOLUTION


# %% check="05.matmul_bias_gelu"

# %% [markdown]
r"""
## On a GPU, if there is one (not graded)

First the numbers in bfloat16. Then autotuning: fill in tiles, warps and stages to try around the kernel of
05.grouping, and race the fastest against cuBLAS. Without a card the cells say what they would have shown.
"""

# %%
if gpu("no output: both functions agree with torch in bfloat16."):
    a, b = torch.randn(1000, 700, device="cuda").bfloat16(), torch.randn(700, 900, device="cuda").bfloat16()
    bias = torch.randn(900, device="cuda").bfloat16()
    torch.testing.assert_close(matmul(a, b), a @ b, rtol=2**-6, atol=0.2)
    z = a.float() @ b.float() + bias.float()
    gelu = torch.nn.functional.gelu(z, approximate="tanh").bfloat16()
    torch.testing.assert_close(matmul_bias_gelu(a, b, bias), gelu, rtol=2**-6, atol=0.2)

# %%
configs = [
    triton.Config({"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64, "GROUP_M": 8}, num_warps=8, num_stages=3),
    triton.Config({"BLOCK_M": 128, "BLOCK_N": 64, "BLOCK_K": 64, "GROUP_M": 8}, num_warps=4, num_stages=4),
    triton.Config({"BLOCK_M": 64, "BLOCK_N": 128, "BLOCK_K": 32, "GROUP_M": 8}, num_warps=4, num_stages=4),
    triton.Config({"BLOCK_M": 128, "BLOCK_N": 256, "BLOCK_K": 32, "GROUP_M": 8}, num_warps=8, num_stages=3),
]
kernel = grouped_matmul_kernel
if isinstance(kernel, triton.runtime.Autotuner):  # you have autotuned it already: take what is inside
    kernel = kernel.fn
tuned_kernel = triton.autotune(configs=configs, key=["M", "N", "K"])(kernel)


def tuned_matmul(a, b):
    (m, k), n = a.shape, b.shape[1]
    c = torch.empty((m, n), dtype=a.dtype, device=a.device)
    strides = (*a.stride(), *b.stride(), *c.stride())
    grid = lambda meta: (triton.cdiv(m, meta["BLOCK_M"]) * triton.cdiv(n, meta["BLOCK_N"]),)
    tuned_kernel[grid](a, b, c, m, n, k, *strides)
    return c


# %%
best = {}


def rivals(n):
    a, b = torch.randn(2, n, n, device="cuda").bfloat16()
    tuned_matmul(a, b)
    best[n] = tuned_kernel.best_config
    return {"64 × 64": lambda: matmul(a, b), "tuned": lambda: tuned_matmul(a, b), "cuBLAS": lambda: a @ b}


measured = measure(
    rivals,
    sizes=(1024, 2048, 4096, 8192),
    bytes_of=lambda n: 3 * 2 * n * n,
    flop_of=lambda n: 2 * n**3,
    atol_of=lambda n: n**0.5 / 128,
    expect="on an RTX 4080, cuBLAS at 70–85 % of 97.5 TFLOP/s, tuned at 80 % to nearly 100 % of cuBLAS.",
)
for n, config in best.items():
    print(f"best at {n}: {config}")
measured

# %% [markdown]
r"""
## Quiz

Graded with the assignment, a point each; the check below looks at the form of your answers only. Put them into the
next cell: a number, a letter such as `"a"`, or a list of letters such as `["a", "b"]`.

**q1.** A product of 1024 × 1024 in tiles of 128 × 128: how many programs?

**q2.** The card has 76 SMs. What does it make of the programs of q1?

- a) It splits tiles so that every SM has the same work.
- b) 64 SMs compute one tile each, at the same time, and 12 have nothing to do.
- c) It runs 76 programs, of which 12 compute a tile once more.
- d) Programs run one after the other until all 64 are done.

**q3.** A tile of 64 × 64 in bfloat16: how many floating-point operations for each byte that its program loads?

**q4.** K = 70 and BLOCK_K = 32. A kernel masks the loads of `a` in M only, those of `b` in K and N with `other=0.0`.
Which statements hold? Name all of them.

- a) Every element of the result is wrong.
- b) Lanes of `a` beyond K hold numbers of the next row, or of none.
- c) The check finds nothing, since the numbers are right.
- d) Where `a` holds infinity or NaN, an element may become NaN that should not.
- e) In the last row, the load of `a` reads past the end of the tensor.

**q5.** 80 programs run at a time, and the result has 40 columns of tiles. Row by row they read 2 strips of `a` and 40 of
`b` together. How many strips, of both together, do they read in groups of 8 rows?
"""

# %% quiz="05.quiz"

# %% check="05.quiz"
