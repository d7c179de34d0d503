# %% [markdown]
r"""
# Lesson 06 · FlashAttention, the boss

Attention is two matrix products with a softmax between them, and its intermediate result is a square: every query
meets every key. FlashAttention (Dao and others, 2022) never writes that square down. It needs nothing that you have
not seen: the tiles of unit 05 and the running softmax of unit 03. Here it is built first on the mini-Triton of lesson
01, in NumPy, where every number can be printed; then it becomes a Triton kernel; then its gradients are derived.

The assignment has levels: **Strong** (forward), **Boss** (causal, with the log-sum-exp and no wasted block) and
**Legend** (backward; grouped-query heads).

Reading takes 25 minutes, running all cells less than two.
"""

# %%
from autograder.measuring import gpu, measure, peak_bytes, versions

print(versions())

# %%
import numpy as np
import torch
import triton
import triton.language as tl

from autograder import check, hint
from autograder.checking import inspect_call
from autograder.compiled import facts_of
from autograder.eager import eager
from autograder.minitriton import STATS, arange, cdiv, launch, load, store
from autograder.render.inspected import show
from autograder.render.lesson06 import causal_blocks, heads, memory, numerics, online_steps

# %% [markdown]
r"""
## A square that nobody asked for

For one head, `q`, `k` and `v` are T × D matrices. The **scores** are $S = q k^T / \sqrt D$, T × T; $P$ is the softmax
of each row of $S$; the result is $o = P v$, T × D again. In eager PyTorch:
"""

# %%
def naive_attention(q, k, v, causal=False):
    s = q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5
    if causal:
        hidden = torch.ones(s.shape[-2:], dtype=torch.bool, device=s.device).triu(1)
        s = s.masked_fill(hidden, -float("inf"))
    return torch.softmax(s, dim=-1) @ v


torch.manual_seed(0)
q, k, v = torch.randn(3, 1, 16, 1024, 64)
print(eager(naive_attention, q, k, v))
print(f"q, k, v and o: {4 * q.numel():,} numbers")

# %% [markdown]
r"""
Ninety-eight million numbers move, four million are asked for, and the ratio grows with T. So does the memory:
"""

# %%
lengths = [1024, 2048, 4096, 8192, 16384]
memory(
    lengths,
    {
        "the scores of 16 heads": [16 * t * t * 2 for t in lengths],
        "q, k, v, o and lse": [16 * t * (4 * 64 * 2 + 4) for t in lengths],
    },
)

# %% [markdown]
r"""
## The softmax of a row that comes in blocks

A program that owns 64 queries cannot hold 16 384 scores for each. It walks along the keys in blocks and keeps three
things a query: the largest score so far, $m$; the sum $l = \sum e^{s - m}$; and the weighted values
$\mathit{acc} = \sum e^{s-m} v$. When a block brings a larger maximum, everything that was summed with the old one is too
large by the same factor. One multiplication mends it:

$$\mathit{shrink} = e^{m - m_\text{new}}, \qquad l \leftarrow l \cdot \mathit{shrink} + \sum p, \qquad
\mathit{acc} \leftarrow \mathit{acc} \cdot \mathit{shrink} + p\, v, \qquad p = e^{s - m_\text{new}}$$

**Predict:** the second block below holds the largest score. What happens to the shares of the first block?
"""

# %%
online_steps([0.5, 1.2, -0.3, 0.8, 2.0, 1.1, 0.1, -1.0, 1.6], block=3)

# %% [markdown]
r"""
`shrink` of the first block is $e^{-\infty} = 0$: there was nothing to shrink.

Why the maximum at all? Without it there would be no rescaling. **Predict** from which score on it goes wrong in
float32.
"""

# %%
def plain(s):
    e = np.exp(s)
    return e / e.sum()


def shifted(s):
    e = np.exp(s - s.max())
    return e / e.sum()


def online(s, block=16):
    m, l, weights = np.float32(-np.inf), np.float32(0), np.zeros_like(s)
    for at in range(0, len(s), block):
        new_m = max(m, s[at : at + block].max())
        shrink = np.exp(m - new_m)
        weights[:at] *= shrink
        weights[at : at + block] = np.exp(s[at : at + block] - new_m)
        l = l * shrink + weights[at : at + block].sum()
        m = new_m
    return weights / l


largest = [1, 5, 20, 50, 80, 90, 200, 1000]
errors = {"without the maximum": [], "with the maximum": [], "online, in blocks of 16": []}
for size in largest:
    s = np.random.default_rng(0).uniform(-size, size, 256).astype(np.float32)
    s[0] = size
    exact = shifted(s.astype(np.float64))
    for label, function in zip(errors, (plain, shifted, online)):
        with np.errstate(all="ignore"):
            errors[label].append(np.abs(function(s) - exact).max() / exact.max())
numerics(largest, errors)

# %% [markdown]
r"""
## FlashAttention in NumPy

All of it, for one head, on the mini-Triton of lesson 01. Program `pid[0]` owns `BM` queries. Read it to the end
before you go on; the Triton kernel is the same, line by line.
"""

# %%
def flash_kernel(pid, Q, K, V, O, LSE, T, D, BM, BN, causal, skip=True):
    """o and lse for the BM queries of this program, in blocks of BN keys."""
    rows, dims = pid[0] * BM + arange(BM), arange(D)
    q = load(Q, rows[:, None] * D + dims[None, :], rows[:, None] < T)
    m = np.full(BM, -np.inf, np.float32)
    l = np.zeros(BM, np.float32)
    acc = np.zeros((BM, D), np.float32)
    end = min((pid[0] + 1) * BM, T) if causal and skip else T
    for start in range(0, end, BN):
        cols = start + arange(BN)
        k = load(K, cols[:, None] * D + dims[None, :], cols[:, None] < T)
        s = q @ k.T / np.float32(np.sqrt(D))
        seen = cols[None, :] < T
        if causal:
            seen = seen & (cols[None, :] <= rows[:, None])
        s = np.where(seen, s, np.float32(-np.inf))
        new_m = np.maximum(m, s.max(axis=1))
        p = np.exp(s - new_m[:, None])
        shrink = np.exp(m - new_m)
        l = l * shrink + p.sum(axis=1)
        v = load(V, cols[:, None] * D + dims[None, :], cols[:, None] < T)
        acc = acc * shrink[:, None] + p @ v
        m = new_m
    store(O, rows[:, None] * D + dims[None, :], acc / l[:, None], rows[:, None] < T)
    store(LSE, rows, m + np.log(l), rows < T)


def flash(q, k, v, causal, BM=64, BN=32, kernel=flash_kernel, **options):
    T, D = q.shape
    o, lse = np.empty_like(q), np.empty(T, np.float32)
    STATS.update(loads=0, stores=0)
    launch(kernel, (cdiv(T, BM),), q, k, v, o, lse, T, D, BM, BN, causal, **options)
    return o, lse


T, D = 250, 64
q, k, v = np.random.default_rng(1).standard_normal((3, T, D)).astype(np.float32)
for causal in (False, True):
    o, lse = flash(q, k, v, causal)
    exact = naive_attention(*(torch.from_numpy(x).double() for x in (q, k, v)), causal)
    print(f"causal={causal!s:5}  largest error {np.abs(o - exact.numpy()).max():.1e}  numbers read {STATS['loads']:,}")

# %% [markdown]
r"""
Queries beyond T compute something, and nobody stores it. Keys beyond T are another matter: they would enter the sum, so
their score becomes −∞.

### What it reads

`q` once; `k` and `v` once for every block of queries. In the causal case query $i$ sees the keys $0 \dots i$, and a
block of queries can stop at its own last row:
"""

# %%
causal_blocks(250, block_m=64, block_n=32)

# %% [markdown]
r"""
**Predict** how much more the kernel reads when the loop runs to the end and the mask does all the work.
"""

# %%
keys = sum(min(-(-min(start + 64, T) // 32) * 32, T) for start in range(0, T, 64))
print(f"closed form with skipped blocks: T·D + 2·D·keys = {T * D + 2 * D * keys:,}")
for skip in (True, False):
    o, lse = flash(q, k, v, True, skip=skip)
    print(f"skip={skip!s:5}  numbers read {STATS['loads']:,}")

# %% [markdown]
r"""
The result is the same, and for a long sequence half of the work is for nothing. The check compares with the closed form at
the block sizes that the caller asks for.

Can a row be hidden altogether? Then $m$ stays −∞ and $e^{-\infty + \infty}$ is NaN. Not here: every query sees key 0, key
0 is in the first block, and so every $m$ is finite from the first block on. (With padding masks or sliding windows it
happens, and the kernel must guard against it, as `softmax_long` did.)

### Can the mask wait until after the softmax?

It looks harmless: compute the softmax of the whole row, then put zeros where the future is. **Predict:** what do the
weights of row 0 sum up to?
"""

# %%
s = torch.randn(4, 4)
hidden = torch.ones(4, 4, dtype=torch.bool).triu(1)
before = torch.softmax(s.masked_fill(hidden, -float("inf")), dim=-1)
after = torch.softmax(s, dim=-1).masked_fill(hidden, 0.0)
print("sums, mask before the softmax:", before.sum(dim=-1).numpy())
print("sums, mask after it:          ", after.sum(dim=-1).numpy().round(2))

# %% [markdown]
r"""
The hidden scores have already taken their share of the sum, so the future has leaked into the past.

## Your turn: the Triton kernel

Several heads, any strides: the grid has a second axis with one number for each pair of batch and head, and every tensor
brings four strides. `tl.dot` wants `k` as D × BLOCK_N, so its block of addresses is built the other way round. In float16
`p` is rounded for the second product, as tensor cores want it, and everything else stays float32. Two holes;
`hint("06.flash_strong")` and `hint("06.flash_boss")` help.
"""

# %% stub=["total = total + tl.sum(p, axis=1)  # what about the sum so far?\nacc = acc + tl.dot(p.to(v.dtype), v)  # and the values so far?", "lse = tl.log(total)  # the logarithm of a sum of what?"]
@triton.jit
def flash_attention_kernel(
    q_ptr, k_ptr, v_ptr, o_ptr, lse_ptr,
    sqb, sqh, sqt, sqd, skb, skh, skt, skd, svb, svh, svt, svd,
    H, T, scale,
    D: tl.constexpr, CAUSAL: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):
    start = tl.program_id(0) * BLOCK_M
    batch, head = tl.program_id(1) // H, tl.program_id(1) % H
    rows, dims = start + tl.arange(0, BLOCK_M), tl.arange(0, D)
    q_ptr += batch * sqb + head * sqh
    k_ptr += batch * skb + head * skh
    v_ptr += batch * svb + head * svh
    q = tl.load(q_ptr + rows[:, None] * sqt + dims[None, :] * sqd, mask=rows[:, None] < T, other=0.0)
    m = tl.full((BLOCK_M,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, D), tl.float32)
    end = min(start + BLOCK_M, T) if CAUSAL else T
    for at in range(0, end, BLOCK_N):
        cols = at + tl.arange(0, BLOCK_N)
        k = tl.load(k_ptr + cols[None, :] * skt + dims[:, None] * skd, mask=cols[None, :] < T, other=0.0)
        v = tl.load(v_ptr + cols[:, None] * svt + dims[None, :] * svd, mask=cols[:, None] < T, other=0.0)
        seen = cols[None, :] < T
        if CAUSAL:
            seen = seen & (cols[None, :] <= rows[:, None])
        s = tl.where(seen, tl.dot(q, k) * scale, -float("inf"))
        new_m = tl.maximum(m, tl.max(s, axis=1))
        p = tl.exp(s - new_m[:, None])
        shrink = tl.exp(m - new_m)
        ### BEGIN SOLUTION
        total = total * shrink + tl.sum(p, axis=1)
        acc = tl.dot(p.to(v.dtype), v, acc * shrink[:, None])
        ### END SOLUTION
        m = new_m
    ### BEGIN SOLUTION
    lse = m + tl.log(total)
    ### END SOLUTION
    at = tl.program_id(1) * T + rows
    o = (acc / total[:, None]).to(o_ptr.dtype.element_ty)
    tl.store(o_ptr + at[:, None] * D + dims[None, :], o, mask=rows[:, None] < T)
    tl.store(lse_ptr + at, lse, mask=rows < T)


def flash_attention(q, k, v, causal=True, BLOCK_M=64, BLOCK_N=64, **options):
    b, h, t, d = q.shape
    o = torch.empty((b, h, t, d), dtype=q.dtype, device=q.device)
    lse = torch.empty((b, h, t), dtype=torch.float32, device=q.device)
    grid = (triton.cdiv(t, BLOCK_M), b * h)
    strides = (*q.stride(), *k.stride(), *v.stride())
    flash_attention_kernel[grid](
        q, k, v, o, lse, *strides, h, t, d**-0.5,
        D=d, CAUSAL=causal, BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, **options,
    )
    return o, lse


# %%
check("06.flash_strong", flash_attention)

# %%
check("06.flash_boss", flash_attention)

# %% [markdown]
r"""
The logarithm of the sum, $\mathit{lse} = m + \log l$, is one number a query. It looks like a by-product. It is what makes the
gradient possible without the square.

## Backward, by computing P again

For training, eager attention keeps $P$: T² numbers. But $P_{ij} = e^{S_{ij} - \mathit{lse}_i}$ needs only `q`, `k` and
`lse`. So forward saves $(q, k, v, o, \mathit{lse})$, all of them linear in T, and backward computes every block of $P$ once
more. More arithmetic, less memory.

The gradients, with $do$ coming in. From $o = P v$:

$$dv = P^T do, \qquad dP = do\, v^T$$

Each row of $P$ is a softmax, and you know its gradient from unit 03: $dS = P \odot (dP - \delta)$, with
$\delta_i = \sum_j P_{ij}\, dP_{ij}$. That sum goes over a whole row of blocks, but it need not be computed that way:

$$\delta_i = \sum_j P_{ij} \sum_d do_{id}\, v_{jd} = \sum_d do_{id} \sum_j P_{ij}\, v_{jd} = \sum_d do_{id}\, o_{id}$$

One number a query, from `do` and `o` alone. And from $S = q k^T / \sqrt D$:

$$dq = dS\, k / \sqrt D, \qquad dk = dS^T q / \sqrt D$$

In blocks, in NumPy, against autograd in float64:
"""

# %%
def flash_backward(q, k, v, o, lse, do, BM, BN):
    """Causal. Every block of P is computed again from q, k and lse; no T × T matrix exists."""
    T, D = q.shape
    dq, dk, dv = np.zeros_like(q), np.zeros_like(k), np.zeros_like(v)
    delta = (do * o).sum(axis=1)
    for n in range(0, T, BN):  # a block of keys …
        for m in range(n // BM * BM, T, BM):  # … and the queries that see some of it
            rows, cols = slice(m, min(m + BM, T)), slice(n, min(n + BN, T))
            s = q[rows] @ k[cols].T / np.sqrt(D)
            seen = np.arange(T)[cols][None, :] <= np.arange(T)[rows][:, None]
            p = np.where(seen, np.exp(s - lse[rows, None]), 0.0)
            dv[cols] += p.T @ do[rows]
            ds = p * (do[rows] @ v[cols].T - delta[rows, None])
            dk[cols] += ds.T @ q[rows] / np.sqrt(D)
            dq[rows] += ds @ k[cols] / np.sqrt(D)
    return dq, dk, dv


x64 = [torch.from_numpy(x).double().requires_grad_() for x in (q, k, v)]
o64 = naive_attention(*x64, causal=True)
do64 = torch.randn_like(o64)
lse64 = (x64[0] @ x64[1].T / D**0.5).masked_fill(torch.ones(T, T, dtype=torch.bool).triu(1), -float("inf")).logsumexp(-1)
wanted = torch.autograd.grad(o64, x64, do64)
found = flash_backward(*(x.detach().numpy() for x in (*x64, o64, lse64, do64)), BM=64, BN=32)
for name, a, b in zip(("dq", "dk", "dv"), found, wanted):
    print(name, "largest difference", np.abs(a - b.numpy()).max())

# %% [markdown]
r"""
Look at the three `+=`. `dk` and `dv` belong to a block of keys, `dq` to a block of queries. **Predict:** if every
block of keys is a program of its own, which of the three lines is a race?
"""

# %%
@triton.jit
def count_queries_kernel(sums_ptr, T, BLOCK_M: tl.constexpr):
    """Every program adds 1 to each query, as the block of keys of this program adds to dq."""
    for start in range(0, T, BLOCK_M):
        rows = start + tl.arange(0, BLOCK_M)
        old = tl.load(sums_ptr + rows, mask=rows < T)
        tl.store(sums_ptr + rows, old + 1.0, mask=rows < T)


def count_queries(sums):
    count_queries_kernel[(8,)](sums, sums.numel(), BLOCK_M=64)
    return sums


show(inspect_call(count_queries, torch.zeros(250)))

# %% [markdown]
r"""
Two ways out: `tl.atomic_add` into a float32 tensor of zeros, or a second kernel whose programs own queries and compute
every block of $P$ a third time. Most production kernels choose the second; sums of atomics come in another order on
every run, and so do their last digits.

## Fewer key heads

A language model that writes text keeps `k` and `v` of everything it has read. To make that smaller, several query heads
share one key head:
"""

# %%
heads(queries=8, keys=2)

# %% [markdown]
r"""
`k.repeat_interleave(4, dim=1)` would undo the saving. The kernel only has to read another head: one division.

## Would it run on the card?

The check computes with any block sizes. A card has 101 376 bytes of shared memory for a block (compute capability 8.9).
**Predict** which of these do not fit.
"""

# %%
def call(d, dtype, bm, bn, **options):
    x, lse = torch.empty(1, 1, 256, d, dtype=dtype), torch.empty(1, 1, 256)
    arguments = (x, x, x, x, lse, *x.stride() * 3, 1, 256, d**-0.5)
    return arguments, dict(D=d, CAUSAL=True, BLOCK_M=bm, BLOCK_N=bn, **options)


shapes = [(64, torch.float16, 64, 64), (128, torch.float16, 64, 64), (64, torch.float32, 64, 64), (128, torch.float32, 64, 64)]
facts = facts_of(flash_attention_kernel, [call(*shape) for shape in shapes])
for (d, dtype, bm, bn), f in zip(shapes, facts):
    fits = "fits" if f.shared <= f.shared_limit else "does not fit"
    print(f"D = {d:3}, {str(dtype):13} {bm} × {bn}: {f.shared:7,} bytes of shared memory, {f.registers} registers: {fits}")

# %% [markdown]
r"""
Right in an interpreter does not mean that it runs on the card. The assignment is compiled for blocks of 64 × 64, D = 64
and float16; elsewhere the check warns.

## Measured, if there is a card

Against `scaled_dot_product_attention`, PyTorch's fused attention. Its memory must grow linearly, and so must yours.
"""

# %%
def rivals(t):
    q, k, v = torch.randn(3, 1, 16, t, 64, device="cuda").half()
    sdpa = torch.nn.functional.scaled_dot_product_attention
    return {
        "flash": lambda: flash_attention(q, k, v, True)[0],
        "sdpa": lambda: sdpa(q, k, v, is_causal=True),
    }


measure(
    rivals,
    sizes=(1024, 4096, 16384),
    bytes_of=lambda t: 2 * 16 * t * 64 * 4,
    flop_of=lambda t: 2 * 2 * 16 * t * t * 64 / 2,
    atol_of=lambda t: 2e-3,
    expect="on an RTX 4080, flash at a half to three quarters of sdpa's TFLOP/s, both rising with T.",
)

# %%
if gpu("flash and sdpa take the bytes of o and lse, twice as many for twice the length; naive four times."):
    for t in (1024, 2048, 4096):
        functions = rivals(t)
        q, k, v = torch.randn(3, 1, 16, t, 64, device="cuda").half()
        functions["naive"] = lambda: naive_attention(q, k, v, True)
        print(t, {name: f"{peak_bytes(f) / 1e6:.1f} MB" for name, f in functions.items()})

# %% [markdown]
r"""
| one H200, forward, D = 64, T = 8192, TFLOP/s | causal | full |
|---|---|---|
| the kernel above, tuned | 248 | 313 |
| exp2, with the scale folded in | 295 | 397 |
| no masks in blocks that are seen whole | 328 | 435 |
| whole blocks in a loop of their own, then the diagonal | 414 | 435 |
| cuDNN | 446–463 | |
| FlashAttention-2 | 292 | 305 |

The steps between are lesson 11. Not one of them changes what you have seen here.

## What you can do now

- compute the softmax of a row that never exists as a whole, and carry the weighted values along
- build FlashAttention in NumPy and in Triton, causal and not, and say what it has to read
- say why the mask comes before the softmax, and why no row is ever hidden altogether
- derive the gradients from $(q, k, v, o, \mathit{lse})$, and see which sums race
- tell what fits the card's shared memory

### Ask yourself (not graded)
"""

# %%
from autograder.render.questions import ask
from autograder.render.lesson06_questions import QUESTIONS

ask(*QUESTIONS)

# %% [markdown]
r"""
### One harder thing

Blocks that every query sees whole need no mask. Split the loop: first those blocks, without `tl.where` and without
masks on the loads; then the rest. The same `check("06.flash_boss", flash_attention)` judges it. Then open assignment 06.
"""
