# %% [markdown]
r"""
# Lesson 06 · FlashAttention, the boss

Attention is two matrix products with a softmax between them, and what lies between is a square: every word of a text
meets every other. FlashAttention (Dao and others, 2022) never writes that square down. It needs two things that you
know, the tiles of lesson 05 and the online softmax of lesson 03. Here it is built first in NumPy, on the mini-Triton of
lesson 01, where every number can be printed; then it becomes a Triton kernel; then its gradients are derived.

You bring from lessons 01 to 05: programs, masks and traffic, the online softmax, `autograd.Function`, tiles,
`tl.dot`, shared memory.

Reading takes 25 minutes, running all cells less than two. The assignment has levels: **Strong** (forward), **Boss**
(causal) and **Legend** (backward; fewer key heads). This lesson says what these words mean.
"""

# %%
from lab_setup.roofline.measure import gpu, measure, peak_bytes, versions

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
from autograder.render.lesson06 import heads, memory, numerics, online_steps
from autograder.render.lesson06_square import causal_blocks, square
from autograder.render.player import player
from autograder.trace.plain import inspect_launch

# %% [markdown]
r"""
## A square that nobody asked for

A text of T **tokens** (words, or pieces of words) has three rows of D numbers for each token. The **query** says what the
token looks for, the **key** what it can be found by, the **value** what it has to tell. A query's inner product with a
key is their **score**; softmax turns the scores of a query into weights; the output is the mean of all values with these
weights.
"""

# %%
square()

# %% [markdown]
r"""
In formulas, with `q`, `k` and `v` of T × D:

$$S = q k^T / \sqrt D, \qquad P = \text{softmax of each row of } S, \qquad o = P v$$

**Predict** what $\sqrt D$ is good for:
"""

# %%
torch.manual_seed(0)
q, k = torch.randn(2, 1024, 64)
print(f"typical size of a score: {(q @ k.T).std():.1f} before, {(q @ k.T / 64**0.5).std():.1f} after")

# %% [markdown]
r"""
A sum of D products grows like $\sqrt D$; divided by it, scores stay near 1 for any D.

A network does this in H **heads** side by side, each with a `q`, `k` and `v` of its own, and for B texts at once: the
tensors are (B, H, T, D). A model that writes text must not look ahead: in **causal** attention query $i$ sees the
keys $0 \dots i$ only. In eager PyTorch:
"""

# %%
def naive_attention(q, k, v, causal=False):
    s = q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5
    if causal:
        hidden = torch.ones(s.shape[-2:], dtype=torch.bool, device=s.device).triu(1)
        s = s.masked_fill(hidden, -float("inf"))
    return torch.softmax(s, dim=-1) @ v


print(eager(naive_attention, *torch.randn(3, 1, 2, 1024, 64)))

# %% [markdown]
r"""
`q`, `k`, `v` and `o` have half a million numbers together; thirteen million move. **Predict:** what becomes of that
ratio when the text is twice as long?
"""

# %%
for t in (512, 1024, 2048):
    tensors = torch.randn(3, 1, 2, t, 64)
    moved, asked = eager(naive_attention, *tensors).elements, tensors.numel() * 4 // 3
    print(f"T = {t:4}: {moved:10,} numbers moved, {asked:7,} asked for, {moved / asked:.0f} times as many")

# %% [markdown]
r"""
And the square has to be kept somewhere:
"""

# %%
lengths = [1024, 2048, 4096, 8192, 16384]
memory(
    lengths,
    {
        "the scores of 16 heads": [16 * t * t * 2 for t in lengths],
        "q, k, v and o": [16 * t * 4 * 64 * 2 for t in lengths],
    },
)

# %% [markdown]
r"""
## The softmax of a row that comes in blocks

A program that owns 64 queries cannot hold 16 384 scores for each of them. It walks along the keys in blocks, and keeps
three things a query: the largest score so far, $m$; the sum of the weights, $l = \sum e^{s - m}$; and the weighted values,
$\mathit{acc} = \sum e^{s-m} v$. **Predict:** the second block below holds the largest score. What happens to the weights of
the first?
"""

# %%
scores = np.array([0.5, 1.2, -0.3, 0.8, 2.0, 1.1, 0.1, -1.0, 1.6])
values = np.arange(1.0, 10.0)
online_steps(scores, values, block=3)

# %% [markdown]
r"""
Read the first three columns downwards: all three became smaller by one factor, $e^{1.2 - 2} = 0.45$. For any score $s$

$$e^{s - m_\text{new}} = e^{s-m} \cdot e^{m - m_\text{new}},$$

and a factor that all terms share can be applied to their sums. So when a block with scores $s$ and values $v$ comes:

$$m_\text{new} = \max(m, \max s), \qquad \mathit{shrink} = e^{m - m_\text{new}}, \qquad p = e^{s - m_\text{new}}$$

$$l \leftarrow l \cdot \mathit{shrink} + \sum p, \qquad \mathit{acc} \leftarrow \mathit{acc} \cdot \mathit{shrink} + p\, v$$

At the end $o = \mathit{acc} / l$. At the beginning $m = -\infty$, so the first shrink is $e^{-\infty} = 0$: there was
nothing to shrink. **Predict:** does the size of the blocks change the result, or their order?
"""

# %%
def online(s, v, block):
    """m, l and acc of one query: scores s, values v."""
    m, l, acc = -np.inf, 0.0, 0.0
    for start in range(0, len(s), block):
        part = slice(start, start + block)
        new_m = max(m, s[part].max())
        shrink, p = np.exp(m - new_m), np.exp(s[part] - new_m)
        l = l * shrink + p.sum()
        acc = acc * shrink + p @ v[part]
        m = new_m
    return m, l, acc


whole = np.exp(scores) / np.exp(scores).sum() @ values
print(f"the whole row at once: {whole:.4f}")
for name, s, v in (("from left", scores, values), ("from right", scores[::-1], values[::-1])):
    for block in (1, 3, 9):
        m, l, acc = online(s, v, block)
        print(f"{name:10}, blocks of {block}: {acc / l:.4f}")

# %% [markdown]
r"""
### Does it cost precision?

Without the maximum there would be nothing to rescale, but float32 ends at $e^{88.7}$. With it, a sum over 256 keys in
blocks of 16 is multiplied up to 16 times. **Predict:** how much does that add to the error?
"""

# %%
def plain(s):
    e = np.exp(s)
    return e / e.sum()


def shifted(s):
    return plain(s - s.max())


def in_blocks(s):
    m, l, acc = online(s, np.eye(len(s), dtype=s.dtype), 16)  # these values give the weights
    return acc / l


largest = [1, 5, 20, 50, 80, 90, 200, 1000]
errors = {"without the maximum": [], "with the maximum": [], "online, in blocks of 16": []}
for size in largest:
    s = np.random.default_rng(0).uniform(-size, size, 256).astype(np.float32)
    s[-1] = size
    exact = shifted(s.astype(np.float64))
    for label, function in zip(errors, (plain, shifted, in_blocks), strict=True):
        with np.errstate(all="ignore"):
            errors[label].append(np.abs(function(s) - exact).max() / exact.max())
highest = np.maximum.accumulate(s.reshape(16, 16).max(axis=1))  # after each block
print("blocks that bring a larger maximum:", len(np.unique(highest)), "of", len(highest))
numerics(largest, errors)

# %% [markdown]
r"""
Next to nothing. Few blocks bring a larger maximum; for all others shrink is exactly 1.

## FlashAttention in NumPy

All of it, for one head. Program `pid[0]` owns `BM` queries. Read it to the end; the Triton kernel will be the same, line by
line. The last line stores a by-product, `lse`, that a section of its own explains.
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
        v = load(V, cols[:, None] * D + dims[None, :], cols[:, None] < T)
        s = q @ k.T / np.float32(np.sqrt(D))
        seen = cols[None, :] < T
        if causal:
            seen = seen & (cols[None, :] <= rows[:, None])
        s = np.where(seen, s, np.float32(-np.inf))
        new_m = np.maximum(m, s.max(axis=1))
        shrink, p = np.exp(m - new_m), np.exp(s - new_m[:, None])
        l = l * shrink + p.sum(axis=1)
        acc = acc * shrink[:, None] + p @ v
        m = new_m
    store(O, rows[:, None] * D + dims[None, :], acc / l[:, None], rows[:, None] < T)
    store(LSE, rows, m + np.log(l), rows < T)

# %% [markdown]
r"""
Ten tokens in blocks of four. **Predict** which blocks of `K` program 1 loads when the attention is causal.
"""

# %%
def some(T, D):
    """q, k, v of one head."""
    numbers = np.random.default_rng(1)
    return [numbers.standard_normal((T, D)).astype(np.float32) for _ in range(3)]


o, lse = np.full((10, 4), np.nan, np.float32), np.full(10, np.nan, np.float32)
player(inspect_launch(flash_kernel, (3,), *some(10, 4), o, lse, 10, 4, 4, 4, True))

# %% [markdown]
r"""
Now a size that fills no block, against PyTorch in float64:
"""

# %%
def flash(q, k, v, causal, BM=64, BN=32, **options):
    T, D = q.shape
    o, lse = np.empty_like(q), np.empty(T, np.float32)
    STATS.update(loads=0, stores=0)
    launch(flash_kernel, (cdiv(T, BM),), q, k, v, o, lse, T, D, BM, BN, causal, **options)
    return o, lse


T, D = 250, 64
q, k, v = some(T, D)
for causal in (False, True):
    o, lse = flash(q, k, v, causal)
    exact = naive_attention(*(torch.from_numpy(x).double() for x in (q, k, v)), causal)
    error = np.abs(o - exact.numpy()).max()
    print(f"causal={causal!s:5}  largest error {error:.1e}  numbers read {STATS['loads']:,}")

# %% [markdown]
r"""
What lies beyond T? *Queries* there compute something, and nobody stores it. *Keys* there are another matter: their lanes
of `k` read 0, and so their score is 0. **Predict:** may it stay 0?
"""

# %%
for name, score in {"0": 0.0, "−∞": -np.inf}.items():
    m, l, acc = online(np.append(scores, [score] * 3), np.append(values, [0.0] * 3), 3)
    print(f"three keys beyond T with score {name:2}: acc / l = {acc / l:.4f}; right is {whole:.4f}")

# %% [markdown]
r"""
A score of 0 is a score like others, and its weight enters $l$. So `seen` begins with `cols < T`.

### What it reads

`q` once, and `k` and `v` once for every block of queries. In the causal case a block of queries can stop at its own last
row:
"""

# %%
causal_blocks(250, block_m=64, block_n=32)

# %% [markdown]
r"""
**Predict** how much more is read when the loop runs to the end and the mask does all the work.
"""

# %%
def keys_loaded(T, BM, BN, causal):
    """Keys that all blocks of queries load together."""
    ends = [min(start + BM, T) if causal else T for start in range(0, T, BM)]
    return sum(min(cdiv(end, BN) * BN, T) for end in ends)


keys = keys_loaded(T, 64, 32, causal=True)
print(f"closed form with skipped blocks: T·D + 2·D·keys = {T * D + 2 * D * keys:,}")
for skip in (True, False):
    o, lse = flash(q, k, v, True, skip=skip)
    print(f"skip={skip!s:5}  numbers read {STATS['loads']:,}")
for t in (250, 1024, 16384):
    share = keys_loaded(t, 64, 32, True) / keys_loaded(t, 64, 32, False)
    print(f"T = {t:6,}: {share:.0%} of the keys are needed")

# %% [markdown]
r"""
The result is the same; for a long text half of the work is for nothing. The check compares with the closed form, at the
block sizes that the caller asks for. **Predict:** which of the two block sizes decides what a kernel reads that is not
causal?
"""

# %%
for bm, bn in ((32, 32), (64, 32), (64, 64), (128, 32)):
    read = 1024 * 64 + 2 * 64 * keys_loaded(1024, bm, bn, False)
    print(f"T = 1024, BM = {bm:3}, BN = {bn}: {read:9,} numbers read")
kv, square_of_scores = 2 * 16384 * 64 * 2, 16384**2 * 2
print(f"T = 16,384 in float16: k and v {kv / 1e6:.0f} MB a head, the scores {square_of_scores / 1e6:.0f} MB")

# %% [markdown]
r"""
`BM`. A block of keys brings $2 \cdot \mathrm{BN} \cdot D$ numbers and $4 \cdot \mathrm{BM} \cdot \mathrm{BN} \cdot D$
operations: in float16 BM FLOP a byte. What programs ask for still grows with T². But the L2 cache of lesson 05, 64 MB on
an RTX 4080, holds `k` and `v` of a head for the next program; the square would be too large for it.

### Can a row be hidden altogether?

If a query saw none of the keys so far, $m$ would stay $-\infty$. **Predict** what `online` makes of a first block of $-\infty$.
"""

# %%
with np.errstate(invalid="ignore"):
    print("m, l, acc:", *online(np.append([-np.inf] * 3, scores), np.append([0.0] * 3, values), 3))
seen = np.tril(np.ones((T, T), bool))
print("every query sees a key of the first block of 32:", seen[:, :32].any(axis=1).all())

# %% [markdown]
r"""
$-\infty + \infty$ is NaN, and a NaN never leaves a sum. Here it cannot happen: every query sees key 0, key 0 is in the
first block, and $m$ is finite from then on. (Other masks than the causal one do hide whole blocks, and their kernels
need the guard of `softmax_long`.)

### Can the mask wait until after the softmax?

It looks harmless: compute the softmax of the whole row, then put zeros where the future is. **Predict** what each of the
three versions gives query 0, which sees key 0 only, and so must take all from it. In the last three lines its hidden score
with key 3 is 200.
"""

# %%
def causal_weights(s, mask):
    hidden = np.triu(np.ones(s.shape, bool), 1)
    if mask == "before the softmax":
        s = np.where(hidden, np.float32(-np.inf), s)
    p = np.exp(s - s.max(axis=1, keepdims=True))
    if mask == "between exp and sum":
        p = np.where(hidden, np.float32(0), p)
    p = p / p.sum(axis=1, keepdims=True)
    return np.where(hidden, 0, p) if mask == "after the softmax" else p


s = np.random.default_rng(0).standard_normal((4, 4)).astype(np.float32)
for hidden_score in (s[0, 3], 200):
    s[0, 3] = hidden_score
    for mask in ("before the softmax", "between exp and sum", "after the softmax"):
        with np.errstate(invalid="ignore"):
            row = causal_weights(s, mask)[0]
        print(f"score {s[0, 3]:5.1f}, mask {mask:19}: {row.round(2)}, sum {row.sum():.2f}")

# %% [markdown]
r"""
After the softmax it is too late: hidden scores have taken their share of the sum, so the future leaks into the past.
Between the two the numbers are right, until a hidden score is large: it becomes the maximum, and everything that counts
falls to 0. The mask belongs on the scores, before the maximum.

### lse, one number a query

The kernel stores $\mathit{lse} = m + \log l$, the **log-sum-exp** of the query's scores. Since
$l = e^{-m} \sum e^{s}$, it is $\log \sum e^{s}$, without the overflow. **Predict:** can the weights be computed
from the scores and `lse` alone?
"""

# %%
with np.errstate(over="ignore"):
    big = scores.astype(np.float32) * 100
    m, l, _ = online(big, values, 3)
    print("log of the sum of exp:", np.log(np.exp(big).sum()), "  m + log l:", m + np.log(l))
m, l, _ = online(scores, values, 3)
print("weights by lse: ", np.exp(scores - (m + np.log(l))).round(2))
print("weights, softmax:", (np.exp(scores) / np.exp(scores).sum()).round(2))

# %% [markdown]
r"""
$P_{ij} = e^{S_{ij} - \mathit{lse}_i}$: no maximum, no sum, any block in any order. Keep it in mind for backward.

## Your turn: the Triton kernel

Several heads and any strides: the grid has a second axis with one program for each pair of batch and head, and every tensor
brings four strides. `tl.dot` wants `k` as D × BLOCK_N, so its block of addresses lies the other way round. In float16
`p` is rounded for the second product, as tensor cores want it; all else stays float32.

Lines that need you have their level beside them. The two of Strong you have seen in a picture; the three of Boss make the
kernel causal and give it its `lse`. (`tl.full` is `tl.zeros` with another number; `tl.log` is the natural logarithm.)
`hint("06.flash_strong")` and `hint("06.flash_boss")` help.
"""

# %% stub=["end = T  # Boss: where can the loop stop?", "# Boss: what else must hold for a key to be seen?", "l = l + tl.sum(p, axis=1)  # Strong: what about the sum so far?\nacc = tl.dot(p.to(v.dtype), v, acc)  # and the values so far?", "lse = tl.log(l)  # Boss: the logarithm of which sum is this?"]
@triton.jit
def flash_attention_kernel(
    q_ptr, k_ptr, v_ptr, o_ptr, lse_ptr,
    sqb, sqh, sqt, sqd, skb, skh, skt, skd, svb, svh, svt, svd,
    H, T, scale,
    D: tl.constexpr, CAUSAL: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):
    first = tl.program_id(0) * BLOCK_M
    batch, head = tl.program_id(1) // H, tl.program_id(1) % H
    rows, dims = first + tl.arange(0, BLOCK_M), tl.arange(0, D)
    row_mask = rows[:, None] < T
    q_ptr += batch * sqb + head * sqh
    k_ptr += batch * skb + head * skh
    v_ptr += batch * svb + head * svh
    q = tl.load(q_ptr + rows[:, None] * sqt + dims[None, :] * sqd, mask=row_mask, other=0.0)
    m = tl.full((BLOCK_M,), -float("inf"), tl.float32)
    l = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, D), tl.float32)
    ### BEGIN SOLUTION
    end = min(first + BLOCK_M, T) if CAUSAL else T
    ### END SOLUTION
    for start in range(0, end, BLOCK_N):
        cols = start + tl.arange(0, BLOCK_N)
        k_at = cols[None, :] * skt + dims[:, None] * skd
        v_at = cols[:, None] * svt + dims[None, :] * svd
        k = tl.load(k_ptr + k_at, mask=cols[None, :] < T, other=0.0)
        v = tl.load(v_ptr + v_at, mask=cols[:, None] < T, other=0.0)
        seen = cols[None, :] < T
        ### BEGIN SOLUTION
        if CAUSAL:
            seen = seen & (cols[None, :] <= rows[:, None])
        ### END SOLUTION
        s = tl.where(seen, tl.dot(q, k) * scale, -float("inf"))
        new_m = tl.maximum(m, tl.max(s, axis=1))
        shrink, p = tl.exp(m - new_m), tl.exp(s - new_m[:, None])
        ### BEGIN SOLUTION
        l = l * shrink + tl.sum(p, axis=1)
        acc = tl.dot(p.to(v.dtype), v, acc * shrink[:, None])
        ### END SOLUTION
        m = new_m
    ### BEGIN SOLUTION
    lse = m + tl.log(l)
    ### END SOLUTION
    at = tl.program_id(1) * T + rows
    o = (acc / l[:, None]).to(o_ptr.dtype.element_ty)
    tl.store(o_ptr + at[:, None] * D + dims[None, :], o, mask=row_mask)
    tl.store(lse_ptr + at, lse, mask=rows < T)

# %%
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
## Backward, by computing P again

For training, eager attention keeps $P$: T² numbers. But $P_{ij} = e^{S_{ij} - \mathit{lse}_i}$ needs only `q`, `k` and
`lse`. So forward saves $(q, k, v, o, \mathit{lse})$, all of them linear in T, and backward computes every block of $P$ once
more. More arithmetic, less memory.

To derive the gradients, take six tokens in float64, let autograd keep all that is on the way, and hold every formula against
it. $do$ is the gradient that comes in, $dP$ that of $P$, and so on.
"""

# %%
def keep_all(q, k, v):
    """S, P and o of causal attention; autograd keeps the gradients of S and P."""
    hidden = torch.ones(len(q), len(q), dtype=torch.bool).triu(1)
    S = (q @ k.T / q.shape[1] ** 0.5).masked_fill(hidden, -float("inf"))
    P = torch.softmax(S, dim=-1)
    S.retain_grad(), P.retain_grad()
    return S, P, P @ v


def compare(name, formula, wanted):
    print(f"{name:14} largest difference {(formula - wanted).abs().max():.1e}")


q6, k6, v6, do6 = torch.randn(4, 6, 4, dtype=torch.float64)
for x in (q6, k6, v6):
    x.requires_grad_()
S, P, o6 = keep_all(q6, k6, v6)
o6.backward(do6)
lse6 = S.logsumexp(dim=-1)
compare("P by lse", torch.exp(S - lse6[:, None]), P)

# %% [markdown]
r"""
From $o = P v$, a product of two matrices:

$$dv = P^T do, \qquad dP = do\, v^T$$
"""

# %%
dP = do6 @ v6.T
compare("dv", P.T @ do6, v6.grad)
compare("dP", dP, P.grad)

# %% [markdown]
r"""
Each row of $P$ is a softmax, and its gradient you know from lesson 03: $dS = P \odot (dP - \delta)$, where $\odot$ is
the product element by element, and $\delta_i = \sum_j P_{ij}\, dP_{ij}$. That sum goes over a whole row of blocks. But put
in what $dP$ is:

$$\delta_i = \sum_j P_{ij} \sum_d do_{id}\, v_{jd} = \sum_d do_{id} \sum_j P_{ij}\, v_{jd} = \sum_d do_{id}\, o_{id}$$

One number a query, from `do` and `o` alone.
"""

# %%
delta = (do6 * o6).sum(dim=1)
dS = P * (dP - delta[:, None])
compare("δ, both ways", delta, (P * dP).sum(dim=1))
compare("dS", dS, S.grad)

# %% [markdown]
r"""
And from $S = q k^T / \sqrt D$, a product again:

$$dq = dS\, k / \sqrt D, \qquad dk = dS^T q / \sqrt D$$
"""

# %%
compare("dq", dS @ k6 / 4**0.5, q6.grad)
compare("dk", dS.T @ q6 / 4**0.5, k6.grad)

# %% [markdown]
r"""
Every formula holds block by block. So the same in NumPy, without a T × T matrix:
"""

# %%
def flash_backward(q, k, v, o, lse, do, BM, BN):
    """Causal. Every block of P is computed again from q, k and lse."""
    T, D = q.shape
    dq, dk, dv = np.zeros_like(q), np.zeros_like(k), np.zeros_like(v)
    delta = (do * o).sum(axis=1)
    at = np.arange(T)
    for n in range(0, T, BN):  # a block of keys …
        for m in range(n // BM * BM, T, BM):  # … and the queries that see some of it
            rows, cols = slice(m, min(m + BM, T)), slice(n, min(n + BN, T))
            s = q[rows] @ k[cols].T / np.sqrt(D)
            p = np.where(at[cols] <= at[rows, None], np.exp(s - lse[rows, None]), 0.0)
            dv[cols] += p.T @ do[rows]
            ds = p * (do[rows] @ v[cols].T - delta[rows, None])
            dk[cols] += ds.T @ q[rows] / np.sqrt(D)
            dq[rows] += ds @ k[cols] / np.sqrt(D)
    return dq, dk, dv


x64 = [torch.from_numpy(x).double().requires_grad_() for x in (q, k, v)]
S, P, o64 = keep_all(*x64)
do64 = torch.randn_like(o64)
o64.backward(do64)
inputs = (x.detach().numpy() for x in (*x64, o64, S.logsumexp(dim=-1), do64))
gradients = flash_backward(*inputs, BM=64, BN=32)
for name, got, x in zip(("dq", "dk", "dv"), gradients, x64, strict=True):
    compare(name, torch.from_numpy(got), x.grad)

# %% [markdown]
r"""
Four of the five products take a block the other way round: $k^T$, $v^T$, $p^T$, $ds^T$. A kernel has it in registers:
`tl.trans(block)` turns it there. **Predict:** how many numbers does this one move, of 16 × 16 each?
"""

# %%
@triton.jit
def turned_kernel(a_ptr, b_ptr, out_ptr):
    """out = aᵀ b."""
    at = tl.arange(0, 16)
    block = at[:, None] * 16 + at[None, :]
    a, b = tl.load(a_ptr + block), tl.load(b_ptr + block)
    tl.store(out_ptr + block, tl.dot(tl.trans(a), b))


def turned(a, b):
    out = torch.empty(16, 16)
    turned_kernel[(1,)](a, b, out)
    return out


a, b = torch.randn(2, 16, 16)
run = inspect_call(turned, a, b)
print("largest difference:", np.abs(run.outputs[0].values - (a.T @ b).numpy()).max())
print(run.elements, "numbers moved")

# %% [markdown]
r"""
Three times 256: nothing is loaded a second time for being turned.

Now look at the three `+=`, and let every block of keys be a program of its own. **Predict:** which of the three lines is a
race? This kernel has the loop of such a program, and adds 1 to a number of each query:
"""

# %%
@triton.jit
def count_keys_kernel(sums_ptr, T, BLOCK_M: tl.constexpr):
    for start in range(0, T, BLOCK_M):
        rows = start + tl.arange(0, BLOCK_M)
        old = tl.load(sums_ptr + rows, mask=rows < T)
        tl.store(sums_ptr + rows, old + 1.0, mask=rows < T)


def count_keys(sums):
    count_keys_kernel[(8,)](sums, sums.numel(), BLOCK_M=64)
    return sums


show(inspect_call(count_keys, torch.zeros(250)))

# %% [markdown]
r"""
`dq` is one: it belongs to a block of queries, and every block of keys has a part of it. `dk` and `dv` belong to a block of
keys, and so to one program.

Two ways out, and both are in use: `tl.atomic_add` into a float32 tensor of zeros, or a second kernel whose programs own
queries and compute every block of $P$ a third time. Atomics add in whatever order the programs come. **Predict:** does the
order of eight float32 numbers change their sum?
"""

# %%
parts = np.random.default_rng(0).standard_normal(8).astype(np.float32)
orders = [np.random.default_rng(i).permutation(parts) for i in range(100)]
print("different sums:", len({sum(order, np.float32(0)) for order in orders}))

# %% [markdown]
r"""
The last digits differ from run to run.

## Fewer key heads

A model that writes text keeps `k` and `v` of all it has read. To make that smaller, several query heads share one key
head and its values: **grouped-query attention**. **Predict** which key head query head 5 reads, of 8 and 2.
"""

# %%
heads(queries=8, keys=2)

# %% [markdown]
r"""
`k.repeat_interleave(4, dim=1)` would give every query head its own copy. **Predict** what is left of the saving then.
"""

# %%
few = torch.empty(1, 2, 1024, 64)
many = few.repeat_interleave(4, dim=1)
print(f"k with 2 heads: {few.numel():,} numbers; repeated: {many.numel():,}")

# %% [markdown]
r"""
Nothing. The kernel only has to read another head: one division.

## Would it run on the card?

The check computes with any block sizes. A card has 101 376 bytes of shared memory for a block (compute capability 8.9).
In float16, D = 64 and 64 × 64, `q` takes 8 KB, and `k` and `v` take 8 KB each, twice: the loads of the next step are under
way. **Predict** which of these do not fit.
"""

# %%
def call(d, dtype, bm, bn, **options):
    x, lse = torch.empty(1, 1, 256, d, dtype=dtype), torch.empty(1, 1, 256)
    arguments = (x, x, x, x, lse, *x.stride() * 3, 1, 256, d**-0.5)
    return arguments, dict(D=d, CAUSAL=True, BLOCK_M=bm, BLOCK_N=bn, **options)


shapes = [(d, dtype, 64, 64) for dtype in (torch.float16, torch.float32) for d in (64, 128)]
facts = facts_of(flash_attention_kernel, [call(*shape) for shape in shapes])
print("   D  type           blocks   shared memory  registers")
for (d, dtype, bm, bn), f in zip(shapes, facts, strict=True):
    fits = "" if f.shared <= f.shared_limit else f"  more than {f.shared_limit:,}!"
    print(f"{d:4}  {dtype!s:13} {bm} × {bn} {f.shared:9,} bytes {f.registers:10}{fits}")

# %% [markdown]
r"""
40 KB, as counted. For D = 128 comes some room in which threads exchange values. Right in an interpreter does not mean that
it runs on the card: the assignment is compiled for 64 × 64, D = 64 and float16, and elsewhere the check warns.

## Measured, if there is a card

The rival is `scaled_dot_product_attention` (sdpa), PyTorch's own fused attention.
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

# %% [markdown]
r"""
And the memory that each takes. **Predict** what twice the length does to flash and to naive.
"""

# %%
if gpu("flash and sdpa take the bytes of o and lse, twice as many for twice the length; naive four times."):
    for t in (1024, 2048, 4096):
        functions = rivals(t)
        on_card = torch.randn(3, 1, 16, t, 64, device="cuda").half()
        functions["naive"] = lambda tensors=on_card: naive_attention(*tensors, True)
        print(t, {name: f"{peak_bytes(f) / 1e6:.1f} MB" for name, f in functions.items()})

# %% [markdown]
r"""
How far can it go? Measured on one H200, Triton 3.6, T = 8192 and D = 64, in TFLOP/s; cuDNN and FlashAttention-2 are libraries
in CUDA C++:

| forward | causal | full |
|---|---|---|
| a kernel like the one above, with the blocks that suit it best | 248 | 313 |
| powers of 2 (`tl.exp2`) in place of `tl.exp`, the factor $\log_2 e$ put into `scale` | 295 | 397 |
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
from autograder.render.lesson06_questions import QUESTIONS
from autograder.render.questions import ask

ask(*QUESTIONS)

# %% [markdown]
r"""
### One harder thing

Blocks that every query sees whole need no mask. Split the loop: first those blocks, without `tl.where` and without
masks on the loads; then the rest. The same `check("06.flash_boss", flash_attention)` judges it. Then open assignment 06.
"""
