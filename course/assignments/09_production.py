# %% [markdown]
r"""
# Assignment 09 · Production: fp8 with split K, a prune rule, a graph

A kernel, a rule for the autotuner, a function for the card, and a short quiz. Lesson 09 has all that they need.

For the kernel, `check` answers four questions, here and on the CPU: is it right, does every lane stay inside its
tensor, does it move no more than theory says, would it compile for the card. Check as often as you like: your grade
comes from the same check, on further sizes, strides and configurations. `hint("09.fp8_splitk")` opens a hint; call it
again for the next one.
"""

# %%
from lab_setup.roofline.measure import gpu, measure, versions

print(versions())

# %%
import torch
import triton
import triton.language as tl

from autograder import check, hint

# %% [markdown]
r"""
## 09.fp8_splitk · few rows, a long sum

$\mathit{out} = \mathit{scale}_a\,\mathit{scale}_b\; a \cdot b$ for few rows, with the sum along K split among `SPLIT_K`
programs a tile.

- `a` is M × K and `b` is K × N, both `torch.float8_e4m3fn` (in a kernel `tl.float8e4nv`), **any** strides, no copies.
  M is 1 to 64, N and K are at least 1 and divide nothing.
- `scale_a` and `scale_b` are float32 tensors of one element, in the card's memory: the kernel loads them.
  (`.item()` would make the host wait for the card.)
- `SPLIT_K` is a Python int, at least 1: 1, 2, 3, 4, 8 … Where K is long, each split has its part of it, and stores or
  adds a partial sum of its own for each element. K is no multiple of `SPLIT_K * BLOCK_K`, and may be shorter.
- `fp8_gemm` returns a new M × N tensor of float32. Sums are kept in float32, products with scales too.
- Partial sums are added by `tl.atomic_add`, or stored and added by a second kernel: choose. What torch adds or multiplies earns
  nothing; it may allocate and fill with zeros.
- At most $MNK(1/16 + 1/32) + (2\,\mathit{SPLIT\_K} + 1)MN$ numbers are read and written: tiles of 16 × 32 or larger, a
  ragged edge counted as a whole tile and N below 64 as 64, and partial sums that are written and read once (the check allows 5 % more).
- Whole tiles in shared memory must fit the card: 101 376 bytes a block.

`tl.dot` on fp8 wants `BLOCK_K` of 32 or more. About eighteen lines in the kernel and six in the function.
"""

# %% solution="09.fp8_splitk" stub=["pass  # your lines here", "raise NotImplementedError('fp8_gemm is not written yet')"]
@triton.jit
def fp8_gemm_kernel(
    a_ptr, b_ptr, out_ptr, scale_a_ptr, scale_b_ptr, M, N, K,
    stride_am, stride_ak, stride_bk, stride_bn,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, SPLIT_K: tl.constexpr,
):
    """out += scale_a scale_b a b, for the tile and the part of K of this program."""
    ### BEGIN SOLUTION
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    split = tl.program_id(2)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(split * BLOCK_K, K, SPLIT_K * BLOCK_K):  # steps in turn: a split may have none
        ks = start + tl.arange(0, BLOCK_K)
        a_mask = (rows[:, None] < M) & (ks[None, :] < K)
        b_mask = (ks[:, None] < K) & (cols[None, :] < N)
        a = tl.load(a_ptr + rows[:, None] * stride_am + ks[None, :] * stride_ak, mask=a_mask, other=0.0)
        b = tl.load(b_ptr + ks[:, None] * stride_bk + cols[None, :] * stride_bn, mask=b_mask, other=0.0)
        acc = tl.dot(a, b, acc)
    acc *= tl.load(scale_a_ptr) * tl.load(scale_b_ptr)
    out_ptrs = out_ptr + rows[:, None] * N + cols[None, :]
    tl.atomic_add(out_ptrs, acc, mask=(rows[:, None] < M) & (cols[None, :] < N))
    ### END SOLUTION


def fp8_gemm(a, b, scale_a, scale_b, SPLIT_K):
    """a: (M, K), b: (K, N), float8_e4m3fn; scales: float32, (1,). Returns (M, N) float32."""
    ### BEGIN SOLUTION
    (m, k), n = a.shape, b.shape[1]
    out = torch.zeros((m, n), dtype=torch.float32, device=a.device)
    grid = (triton.cdiv(m, 16), triton.cdiv(n, 64), SPLIT_K)
    blocks = dict(BLOCK_M=16, BLOCK_N=64, BLOCK_K=128, SPLIT_K=SPLIT_K)
    fp8_gemm_kernel[grid](a, b, out, scale_a, scale_b, m, n, k, *a.stride(), *b.stride(), **blocks)
    return out
    ### END SOLUTION


# %% check="09.fp8_splitk"

# %% [markdown]
r"""
## 09.prune · keep what fits

Triton's autotuner calls a prune rule before it tries anything: `prune(configs, named_args, **kwargs)` returns the
configurations that are worth a try.

- `configs` is a list of `triton.Config`: block sizes in `config.kwargs`, and `config.num_stages`.
- `named_args` holds the arguments of the launch by the kernel's names: tensors `a_ptr`, `b_ptr`, `c_ptr`, numbers `M`,
  `N`, `K`. `kwargs` holds what the launch gives by keyword: a block size may stand there in place of the config.
- Return a list of exactly those configurations of the matmul kernel of unit 05 that fit an RTX 4080: at most 101 376
  bytes of shared memory a block, by the compiler's own figures. Their order is free. `a` and `b` are of one type, whose
  numbers have 1, 2 or 4 bytes; the result is float32.

The rule below looks as such rules do where they are published, and drops every one of its own configurations.
**Predict** what the autotuner does with an empty list, read what it says, then repair the rule. Four things
are wrong with it. Lesson 09 prints what the compiler takes.
"""

# %%
kernel_configs = [
    triton.Config({"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": k}, num_warps=w, num_stages=s)
    for m, n, k, w, s in ((128, 128, 32, 4, 3), (128, 256, 64, 8, 3), (64, 64, 64, 4, 4), (128, 256, 64, 8, 4))
]

# %% solution="09.prune" stub=["LIMIT = 48 * 1024", "needed = (m * k + k * n + m * n) * 4 * config.num_stages"]
### BEGIN SOLUTION
LIMIT = 101_376
### END SOLUTION


def prune(configs, named_args, **kwargs):
    """configs: triton.Config; named_args: the launch's arguments by name. Returns those that fit."""
    kept = []
    for config in configs:
        block = {**kwargs, **config.kwargs}
        m, n, k = block["BLOCK_M"], block["BLOCK_N"], block["BLOCK_K"]
        ### BEGIN SOLUTION
        step = (m * k + k * n) * named_args["a_ptr"].element_size()  # the m × n sums lie in registers
        needed = step * max(config.num_stages - 1, 1)
        ### END SOLUTION
        if needed <= LIMIT:
            kept.append(config)
    return kept


# %%
@triton.autotune(configs=kernel_configs, key=["M", "N", "K"], prune_configs_by={"early_config_prune": prune})
@triton.jit
def tuned_kernel(a_ptr, b_ptr, c_ptr, M, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    pass  # what it computes does not matter here: only its configurations do


half = torch.empty(1, dtype=torch.float16)
tuned_kernel.nargs = {"a_ptr": half, "b_ptr": half, "c_ptr": half, "M": 64, "N": 4096, "K": 4096}
try:
    for config in tuned_kernel.prune_configs({}):
        print("kept:", config)
except Exception as error:
    print(f"{type(error).__name__}: {error}")

# %% check="09.prune"

# %% [markdown]
r"""
## On a GPU, if there is one (not graded)

First the numbers, then fp8 for 16 rows beside torch's own `_scaled_mm`. The tensor cores of some cards add fp8 products
with fewer bits than float32 has, so the results agree less closely than on the CPU. Without a card the cells say what
they would have shown.
"""

# %%
def fp8_pair(m, n, k):
    """a (m, k), b (k, n) with columns one behind the other, as torch's fp8 product wants it, scales."""
    a = torch.randn(m, k, device="cuda").to(torch.float8_e4m3fn)
    b = torch.randn(n, k, device="cuda").to(torch.float8_e4m3fn).t()
    return a, b, torch.full((1,), 0.5, device="cuda"), torch.full((1,), 0.25, device="cuda")


if gpu("no output: fp8_gemm agrees with a product in float32."):
    for m, n, k, split_k in ((16, 512, 4096, 1), (16, 512, 4096, 4), (13, 141, 999, 4)):
        a, b, scale_a, scale_b = fp8_pair(m, n, k)
        want = (a.float() @ b.float()) * (scale_a * scale_b)
        torch.testing.assert_close(fp8_gemm(a, b, scale_a, scale_b, split_k), want, rtol=1e-2, atol=k**0.5 / 256)

# %%
def rivals(n):
    a, b, scale_a, scale_b = fp8_pair(16, n, n)
    return {
        "SPLIT_K 1": lambda: fp8_gemm(a, b, scale_a, scale_b, 1),
        "SPLIT_K 4": lambda: fp8_gemm(a, b, scale_a, scale_b, 4),
        "_scaled_mm": lambda: torch._scaled_mm(a, b, scale_a, scale_b, out_dtype=torch.float32),
    }


measured = measure(
    rivals,
    sizes=(1024, 4096, 8192),
    bytes_of=lambda n: n * n + 16 * n + 4 * 16 * n,
    atol_of=lambda n: n**0.5 / 256,
    expect="on an RTX 4080 all near the time that memory takes for b, once b is larger than L2 (from n = 8192 "
    "on); SPLIT_K 4 ahead of 1 where N / 64 programs are fewer than the card's 76 SMs.",
)
measured

# %% [markdown]
r"""
### 09.graph · capture once, replay

A launch costs the host more than ten microseconds, and a small kernel less than that on the card. `capture(fn, *inputs)`
calls `fn` outside the graph first, so that everything is compiled and tuned, captures one call in a CUDA graph, and
returns `replay(*new_inputs)`: it copies new inputs into the captured tensors, replays, and returns the captured
output. As it stands it captures nothing, and the cell below shows what that costs: write it. Lesson 09 has the steps; about twelve lines.
Only a card can run it, so nothing here is graded.
"""

# %%
def capture(fn, *inputs):
    """fn: tensors → tensor; inputs: tensors on the card. Returns replay(*new_inputs) → tensor."""
    return fn  # no graph yet: every call launches anew


# %%
def small_calls(n):
    pair = fp8_pair(1, 256, n)
    gemm = lambda *tensors: fp8_gemm(*tensors, 4)
    replay = capture(gemm, *pair)
    return {"replay": lambda: replay(*pair), "call": lambda: gemm(*pair)}


measured = measure(
    small_calls,
    sizes=(512, 1024),
    bytes_of=lambda n: 256 * n + n + 4 * 256,
    atol_of=lambda n: n**0.5 / 256,
    expect="with a graph a replay takes fewer microseconds than a call; without one, the same.",
)
measured

# %% [markdown]
r"""
## Quiz

Graded with the assignment, a point each; the check below looks at the form of your answers only. Put them into the
next cell: a number, a letter such as `"a"`, or a list of letters such as `["a", "b"]`.

**q1.** M = 16, N = 4096, tiles of 16 × 64, SPLIT_K = 1: how many programs?

**q2.** The same call of a split-K kernel with atomic additions, twice, on the same tensors. What may differ?

- a) Nothing: atomic additions come in the order of program ids.
- b) The last bits: additions arrive in another order, and float32 sums depend on their order.
- c) Whole elements: an addition is sometimes lost.
- d) Whole elements: an addition is sometimes made twice.

**q3.** Which of these may go wrong while a kernel is autotuned? Name all.

- a) A kernel that adds into a tensor the caller gave leaves it with many additions.
- b) A kernel that only stores into a fresh output leaves wrong numbers there.
- c) A split-K kernel with atomic additions leaves too much in its output.
- d) A kernel that normalises a tensor in place does so many times.
- e) A configuration that is slow leaves wrong numbers in the output.

**q4.** Tiles of 128 × 128, steps of 64, float16, an RTX 4080 (101 376 bytes). How many copies of a step's two tiles fit
in shared memory?

**q5.** Why is a function that launches autotuned kernels called once before it is captured in a CUDA graph?

- a) So that L2 holds its inputs.
- b) Because the first replay would be slow otherwise.
- c) Because tuning times kernels and waits for the card, which a capture does not allow.
- d) Because a graph holds one kernel only.
"""

# %% quiz="09.quiz"

# %% check="09.quiz"
