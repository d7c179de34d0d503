# %% [markdown]
r"""
# Assignment 06 · FlashAttention, in three levels

Four exercises and a short quiz. Lesson 06 has all that they need.

| level | exercise | what is new |
|---|---|---|
| **Strong** | 06.flash_strong | online softmax over blocks of keys |
| **Boss** | 06.flash_boss | the causal case, with the blocks that nobody sees left out, and lse |
| **Legend** | 06.flash_backward, 06.flash_gqa | gradients without a T × T matrix; fewer key heads |

A level is yours with full points in all of its exercises. The highest one stands beside your points.

For every kernel, `check` answers four questions, here and on the CPU: is it right, does every lane stay inside its
tensor, does it move no more than theory says, would it compile for the card. Check as often as you like: your grade
comes from the same check, on further lengths, blocks, strides and types. `hint("06.flash_strong")` opens a hint; call
it again for the next one.
"""

# %%
from lab_setup.roofline.measure import gpu, measure, peak_bytes, versions

print(versions())

# %%
from functools import partial

import torch
import triton
import triton.language as tl

from autograder import check, hint

# %% [markdown]
r"""
## 06.flash_strong · level Strong

Write $o = \mathrm{softmax}(q\,k^\top / \sqrt D)\,v$ for every head, in one kernel, and the function that launches it. No
T × T matrix is stored anywhere.

- `q`, `k` and `v` are (B, H, T, D), of one type: float32, float16 or bfloat16. **Any** strides, and not the same ones:
  a third of a packed projection, heads inside, transposed. T ≥ 1 divides nothing. D is 16, 32, 64 or 128.
- `BLOCK_M` queries a program and `BLOCK_N` keys a step, as the caller says: powers of two from 16 to 128.
- `flash_attention` returns two new tensors: `o` with q's shape and type, and `lse`, (B, H, T) in float32. On this level
  `lse` may hold any finite numbers; every one has to be stored (the running maximum will do). It copies no input.
- Maximum, sum and weighted values are kept in float32. Scores may be large: exp must not overflow. `tl.dot` takes the
  probabilities in v's type; `o` is rounded once, when stored.
- `causal` is False throughout. Every query sees every key, so no row of scores is empty.
- At most $BH(2TD + T + 2TD\,\lceil T / \mathrm{BLOCK\_M} \rceil)$ numbers are read and written: q once, o and lse once, k
  and v once for every block of queries (the check allows 5 % more).
- It must fit the card: 101 376 bytes of shared memory a block, for blocks of 64 × 64, D = 64, in float16.

About 26 lines in the kernel and eight in the function.
"""


# %% solution="06.flash_strong" stub=["pass  # your lines here", "raise NotImplementedError('flash_attention of level Strong is not written yet')"]
@triton.jit
def strong_kernel(
    q_ptr, k_ptr, v_ptr, o_ptr, lse_ptr,
    sqb, sqh, sqt, sqd, skb, skh, skt, skd, svb, svh, svt, svd,  # q's stride of b, of h, …
    H, T, scale,
    D: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):
    """o = softmax(q kᵀ · scale) v, for BLOCK_M queries of one head. Axis 1 of the grid has B · H programs."""
    ### BEGIN SOLUTION
    batch, head = tl.program_id(1) // H, tl.program_id(1) % H
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    dims = tl.arange(0, D)
    q_ptr += batch * sqb + head * sqh
    k_ptr += batch * skb + head * skh
    v_ptr += batch * svb + head * svh
    q = tl.load(q_ptr + rows[:, None] * sqt + dims[None, :] * sqd, mask=rows[:, None] < T, other=0.0)
    m = tl.full((BLOCK_M,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, D), tl.float32)
    for start in range(0, T, BLOCK_N):
        cols = start + tl.arange(0, BLOCK_N)
        k = tl.load(k_ptr + cols[None, :] * skt + dims[:, None] * skd, mask=cols[None, :] < T, other=0.0)
        v = tl.load(v_ptr + cols[:, None] * svt + dims[None, :] * svd, mask=cols[:, None] < T, other=0.0)
        s = tl.where(cols[None, :] < T, tl.dot(q, k) * scale, -float("inf"))
        new_m = tl.maximum(m, tl.max(s, axis=1))
        p = tl.exp(s - new_m[:, None])
        shrink = tl.exp(m - new_m)
        total = total * shrink + tl.sum(p, axis=1)
        acc = tl.dot(p.to(v.dtype), v, acc * shrink[:, None])
        m = new_m
    at = tl.program_id(1) * T + rows
    o = (acc / total[:, None]).to(o_ptr.dtype.element_ty)
    tl.store(o_ptr + at[:, None] * D + dims[None, :], o, mask=rows[:, None] < T)
    tl.store(lse_ptr + at, m, mask=rows < T)
    ### END SOLUTION


def flash_attention(q, k, v, causal=True, BLOCK_M=64, BLOCK_N=64):
    """q, k, v: (B, H, T, D), any strides, one type. Returns o, (B, H, T, D), and lse, (B, H, T)."""
    ### BEGIN SOLUTION
    b, h, t, d = q.shape
    o = torch.empty((b, h, t, d), dtype=q.dtype, device=q.device)
    lse = torch.empty((b, h, t), dtype=torch.float32, device=q.device)
    grid = (triton.cdiv(t, BLOCK_M), b * h)
    strides = (*q.stride(), *k.stride(), *v.stride())
    blocks = {"D": d, "BLOCK_M": BLOCK_M, "BLOCK_N": BLOCK_N}
    strong_kernel[grid](q, k, v, o, lse, *strides, h, t, d**-0.5, **blocks)
    return o, lse
    ### END SOLUTION


# %% check="06.flash_strong"

# %% [markdown]
r"""
## 06.flash_boss · level Boss

Now `causal` may be True: query $i$ sees the keys $0 \ldots i$ and no others. `flash_attention` is defined once more;
start from your kernel above.

- Everything that 06.flash_strong asks for still holds, in both cases.
- `lse` is asked for: the log-sum-exp of a query's scores, $\ln \sum_j e^{s_{ij}}$ over the keys that it sees, with the
  natural logarithm, in float32. The levels after this one live on it.
- Every query sees key 0, so a row that is masked altogether cannot occur.
- At most $BH(2TD + T + 2D \cdot \mathit{keys})$ numbers are read and written (the check allows 5 % more). $\mathit{keys}$
  counts the keys that blocks of queries load, all together: a block whose last query is $e$ needs the blocks of keys up
  to the one that holds key $e$, and the last block ends at T. Not causal, each needs all T.

About four new lines in the kernel.
"""


# %% solution="06.flash_boss" stub=["pass  # your lines here", "raise NotImplementedError('flash_attention of level Boss is not written yet')"]
@triton.jit
def boss_kernel(
    q_ptr, k_ptr, v_ptr, o_ptr, lse_ptr,
    sqb, sqh, sqt, sqd, skb, skh, skt, skd, svb, svh, svt, svd,
    H, T, scale,
    D: tl.constexpr, CAUSAL: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):
    """o and lse for BLOCK_M queries of one head; with CAUSAL, query i sees keys 0 … i."""
    ### BEGIN SOLUTION
    first = tl.program_id(0) * BLOCK_M
    batch, head = tl.program_id(1) // H, tl.program_id(1) % H
    rows, dims = first + tl.arange(0, BLOCK_M), tl.arange(0, D)
    q_ptr += batch * sqb + head * sqh
    k_ptr += batch * skb + head * skh
    v_ptr += batch * svb + head * svh
    q = tl.load(q_ptr + rows[:, None] * sqt + dims[None, :] * sqd, mask=rows[:, None] < T, other=0.0)
    m = tl.full((BLOCK_M,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, D), tl.float32)
    end = min(first + BLOCK_M, T) if CAUSAL else T  # no query of this block sees a key beyond
    for start in range(0, end, BLOCK_N):
        cols = start + tl.arange(0, BLOCK_N)
        k = tl.load(k_ptr + cols[None, :] * skt + dims[:, None] * skd, mask=cols[None, :] < T, other=0.0)
        v = tl.load(v_ptr + cols[:, None] * svt + dims[None, :] * svd, mask=cols[:, None] < T, other=0.0)
        seen = cols[None, :] < T
        if CAUSAL:
            seen = seen & (cols[None, :] <= rows[:, None])
        s = tl.where(seen, tl.dot(q, k) * scale, -float("inf"))
        new_m = tl.maximum(m, tl.max(s, axis=1))
        p = tl.exp(s - new_m[:, None])
        shrink = tl.exp(m - new_m)
        total = total * shrink + tl.sum(p, axis=1)
        acc = tl.dot(p.to(v.dtype), v, acc * shrink[:, None])
        m = new_m
    at = tl.program_id(1) * T + rows
    o = (acc / total[:, None]).to(o_ptr.dtype.element_ty)
    tl.store(o_ptr + at[:, None] * D + dims[None, :], o, mask=rows[:, None] < T)
    tl.store(lse_ptr + at, m + tl.log(total), mask=rows < T)
    ### END SOLUTION


def flash_attention(q, k, v, causal=True, BLOCK_M=64, BLOCK_N=64):
    """q, k, v: (B, H, T, D), any strides, one type. Returns o, (B, H, T, D), and lse, (B, H, T)."""
    ### BEGIN SOLUTION
    b, h, t, d = q.shape
    o = torch.empty((b, h, t, d), dtype=q.dtype, device=q.device)
    lse = torch.empty((b, h, t), dtype=torch.float32, device=q.device)
    grid = (triton.cdiv(t, BLOCK_M), b * h)
    strides = (*q.stride(), *k.stride(), *v.stride())
    blocks = {"D": d, "CAUSAL": causal, "BLOCK_M": BLOCK_M, "BLOCK_N": BLOCK_N}
    boss_kernel[grid](q, k, v, o, lse, *strides, h, t, d**-0.5, **blocks)
    return o, lse
    ### END SOLUTION


boss = flash_attention  # level Legend defines flash_attention once more; cells below call this one

# %% check="06.flash_boss"

# %% [markdown]
r"""
## 06.flash_backward · level Legend

Put `boss` into a `torch.autograd.Function` and write its backward pass. Nothing of size T × T is kept between the two:
the probabilities are computed again, block by block, from q, k and lse.

- `q`, `k`, `v` as above, with as many key heads as query heads; `causal` is True or False. `do`, the gradient of `o`
  that comes in, is contiguous and has o's shape and type.
- With $p_{ij} = e^{s_{ij} - \mathit{lse}_i}$ for the keys that query $i$ sees, 0 for the others, and
  $\delta_i = \sum_d do_{id}\, o_{id}$:

$$dv = p^\top do \qquad ds = p \odot (do\, v^\top - \delta) \qquad dq = ds\, k / \sqrt D \qquad dk = ds^\top q / \sqrt D$$

- Sums are kept in float32; `tl.dot` takes `p` and `ds` in the tensors' type, `tl.trans` turns a block.
  `backward` returns `dq`, `dk` and `dv` in that type and in the shapes of `q`, `k` and `v`, and None for `causal`. Their
  strides may be any.
- Blocks are your choice. At most as much is read and written, forward and backward together, as by the forward kernel,
  a kernel for δ, one for dq and one for dk and dv, in blocks of 64 × 64 (the check allows 5 % more). Causal, blocks of
  queries that a block of keys is hidden from are left out.
- Programs that add into one element do so by `tl.atomic_add`, or do not do so at all.

About 85 lines in all. Look at δ first, then at dv: it needs the least.
"""


# %% solution="06.flash_backward" stub=["pass  # your lines here", "pass  # your lines here", "pass  # your lines here", "raise NotImplementedError('forward is not written yet')", "raise NotImplementedError('backward is not written yet')"]
@triton.jit
def delta_kernel(o_ptr, do_ptr, delta_ptr, n, D: tl.constexpr, BLOCK: tl.constexpr):
    """delta[i] = Σ do[i] · o[i], for BLOCK of the n = B · H · T queries."""
    ### BEGIN SOLUTION
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    at = rows[:, None] * D + tl.arange(0, D)[None, :]
    o = tl.load(o_ptr + at, mask=rows[:, None] < n, other=0.0).to(tl.float32)
    do = tl.load(do_ptr + at, mask=rows[:, None] < n, other=0.0).to(tl.float32)
    tl.store(delta_ptr + rows, tl.sum(o * do, axis=1), mask=rows < n)
    ### END SOLUTION


@triton.jit
def dq_kernel(
    q_ptr, k_ptr, v_ptr, do_ptr, lse_ptr, delta_ptr, dq_ptr,
    sqb, sqh, sqt, sqd, skb, skh, skt, skd, svb, svh, svt, svd,
    H, T, scale,
    D: tl.constexpr, CAUSAL: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):
    """dq of BLOCK_M queries of one head: walks along the keys that they see."""
    ### BEGIN SOLUTION
    first, pair = tl.program_id(0) * BLOCK_M, tl.program_id(1)
    batch, head = pair // H, pair % H
    rows, dims = first + tl.arange(0, BLOCK_M), tl.arange(0, D)
    q_ptr += batch * sqb + head * sqh
    k_ptr += batch * skb + head * skh
    v_ptr += batch * svb + head * svh
    inside = rows[:, None] < T
    at = (pair * T + rows[:, None]) * D + dims[None, :]
    q = tl.load(q_ptr + rows[:, None] * sqt + dims[None, :] * sqd, mask=inside, other=0.0)
    do = tl.load(do_ptr + at, mask=inside, other=0.0)
    lse = tl.load(lse_ptr + pair * T + rows, mask=rows < T, other=0.0)
    delta = tl.load(delta_ptr + pair * T + rows, mask=rows < T, other=0.0)
    dq = tl.zeros((BLOCK_M, D), tl.float32)
    end = min(first + BLOCK_M, T) if CAUSAL else T
    for start in range(0, end, BLOCK_N):
        cols = start + tl.arange(0, BLOCK_N)
        k = tl.load(k_ptr + cols[:, None] * skt + dims[None, :] * skd, mask=cols[:, None] < T, other=0.0)
        v = tl.load(v_ptr + cols[None, :] * svt + dims[:, None] * svd, mask=cols[None, :] < T, other=0.0)
        seen = cols[None, :] < T
        if CAUSAL:
            seen = seen & (cols[None, :] <= rows[:, None])
        s = tl.dot(q, tl.trans(k)) * scale
        p = tl.where(seen, tl.exp(s - lse[:, None]), 0.0)
        ds = p * (tl.dot(do, v) - delta[:, None])
        dq = tl.dot(ds.to(k.dtype), k, dq)
    tl.store(dq_ptr + at, (dq * scale).to(dq_ptr.dtype.element_ty), mask=inside)
    ### END SOLUTION


@triton.jit
def dkv_kernel(
    q_ptr, k_ptr, v_ptr, do_ptr, lse_ptr, delta_ptr, dk_ptr, dv_ptr,
    sqb, sqh, sqt, sqd, skb, skh, skt, skd, svb, svh, svt, svd,
    H, T, scale,
    D: tl.constexpr, CAUSAL: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):
    """dk and dv of BLOCK_N keys of one head: walks along the queries that see them."""
    ### BEGIN SOLUTION
    first, pair = tl.program_id(0) * BLOCK_N, tl.program_id(1)
    batch, head = pair // H, pair % H
    cols, dims = first + tl.arange(0, BLOCK_N), tl.arange(0, D)
    q_ptr += batch * sqb + head * sqh
    k_ptr += batch * skb + head * skh
    v_ptr += batch * svb + head * svh
    inside = cols[:, None] < T
    k = tl.load(k_ptr + cols[:, None] * skt + dims[None, :] * skd, mask=inside, other=0.0)
    v = tl.load(v_ptr + cols[:, None] * svt + dims[None, :] * svd, mask=inside, other=0.0)
    dk = tl.zeros((BLOCK_N, D), tl.float32)
    dv = tl.zeros((BLOCK_N, D), tl.float32)
    for start in range(first // BLOCK_M * BLOCK_M if CAUSAL else 0, T, BLOCK_M):
        rows = start + tl.arange(0, BLOCK_M)
        at = (pair * T + rows[:, None]) * D + dims[None, :]
        q = tl.load(q_ptr + rows[:, None] * sqt + dims[None, :] * sqd, mask=rows[:, None] < T, other=0.0)
        do = tl.load(do_ptr + at, mask=rows[:, None] < T, other=0.0)
        lse = tl.load(lse_ptr + pair * T + rows, mask=rows < T, other=0.0)
        delta = tl.load(delta_ptr + pair * T + rows, mask=rows < T, other=0.0)
        seen = (cols[None, :] < T) & (rows[:, None] < T)
        if CAUSAL:
            seen = seen & (cols[None, :] <= rows[:, None])
        s = tl.dot(q, tl.trans(k)) * scale
        p = tl.where(seen, tl.exp(s - lse[:, None]), 0.0)
        dv = tl.dot(tl.trans(p).to(do.dtype), do, dv)
        ds = p * (tl.dot(do, tl.trans(v)) - delta[:, None])
        dk = tl.dot(tl.trans(ds).to(q.dtype), q, dk)
    at = (pair * T + cols[:, None]) * D + dims[None, :]
    tl.store(dk_ptr + at, (dk * scale).to(dk_ptr.dtype.element_ty), mask=inside)
    tl.store(dv_ptr + at, dv.to(dv_ptr.dtype.element_ty), mask=inside)
    ### END SOLUTION


class FlashAttention(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, k, v, causal):
        """Returns o and saves what backward needs."""
        ### BEGIN SOLUTION
        o, lse = boss(q, k, v, causal)
        ctx.save_for_backward(q, k, v, o, lse)
        ctx.causal = causal
        return o
        ### END SOLUTION

    @staticmethod
    def backward(ctx, do):
        """do: the gradient of o. Returns the gradients of q, k and v, and None for causal."""
        ### BEGIN SOLUTION
        q, k, v, o, lse = ctx.saved_tensors
        b, h, t, d = q.shape
        do = do.contiguous()  # a no-op in the check; elsewhere autograd may hand in an expanded one
        delta = torch.empty_like(lse)
        delta_kernel[(triton.cdiv(b * h * t, 64),)](o, do, delta, b * h * t, D=d, BLOCK=64)
        dq, dk, dv = (torch.empty((b, h, t, d), dtype=q.dtype, device=q.device) for _ in range(3))
        given = (q, k, v, do, lse, delta)
        rest = (*q.stride(), *k.stride(), *v.stride(), h, t, d**-0.5)
        blocks = {"D": d, "CAUSAL": ctx.causal, "BLOCK_M": 64, "BLOCK_N": 64}
        grid = (triton.cdiv(t, 64), b * h)
        dq_kernel[grid](*given, dq, *rest, **blocks)
        dkv_kernel[grid](*given, dk, dv, *rest, **blocks)
        return dq, dk, dv, None
        ### END SOLUTION


# %% check="06.flash_backward"

# %% [markdown]
r"""
## 06.flash_gqa · level Legend

Grouped-query heads: `q` has H heads, `k` and `v` have KV heads, and KV divides H. Query head $h$ reads key head
$\lfloor h / (H / KV) \rfloor$. `flash_attention` is defined for the last time; start from the kernel of level Boss.

- Everything that 06.flash_boss asks for still holds, with `k` and `v` of shape (B, KV, T, D). KV = 1 and KV = H occur.
- No head of `k` or `v` is copied. The limit is that of 06.flash_boss, with H query heads.

About two new lines.
"""


# %% solution="06.flash_gqa" stub=["pass  # your lines here", "raise NotImplementedError('flash_attention for grouped-query heads is not written yet')"]
@triton.jit
def gqa_kernel(
    q_ptr, k_ptr, v_ptr, o_ptr, lse_ptr,
    sqb, sqh, sqt, sqd, skb, skh, skt, skd, svb, svh, svt, svd,
    H, GROUP, T, scale,
    D: tl.constexpr, CAUSAL: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):
    """o and lse for BLOCK_M queries of one query head; GROUP query heads share a key head."""
    ### BEGIN SOLUTION
    first = tl.program_id(0) * BLOCK_M
    batch, head = tl.program_id(1) // H, tl.program_id(1) % H
    kv_head = head // GROUP
    rows, dims = first + tl.arange(0, BLOCK_M), tl.arange(0, D)
    q_ptr += batch * sqb + head * sqh
    k_ptr += batch * skb + kv_head * skh
    v_ptr += batch * svb + kv_head * svh
    q = tl.load(q_ptr + rows[:, None] * sqt + dims[None, :] * sqd, mask=rows[:, None] < T, other=0.0)
    m = tl.full((BLOCK_M,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, D), tl.float32)
    end = min(first + BLOCK_M, T) if CAUSAL else T
    for start in range(0, end, BLOCK_N):
        cols = start + tl.arange(0, BLOCK_N)
        k = tl.load(k_ptr + cols[None, :] * skt + dims[:, None] * skd, mask=cols[None, :] < T, other=0.0)
        v = tl.load(v_ptr + cols[:, None] * svt + dims[None, :] * svd, mask=cols[:, None] < T, other=0.0)
        seen = cols[None, :] < T
        if CAUSAL:
            seen = seen & (cols[None, :] <= rows[:, None])
        s = tl.where(seen, tl.dot(q, k) * scale, -float("inf"))
        new_m = tl.maximum(m, tl.max(s, axis=1))
        p = tl.exp(s - new_m[:, None])
        shrink = tl.exp(m - new_m)
        total = total * shrink + tl.sum(p, axis=1)
        acc = tl.dot(p.to(v.dtype), v, acc * shrink[:, None])
        m = new_m
    at = tl.program_id(1) * T + rows
    o = (acc / total[:, None]).to(o_ptr.dtype.element_ty)
    tl.store(o_ptr + at[:, None] * D + dims[None, :], o, mask=rows[:, None] < T)
    tl.store(lse_ptr + at, m + tl.log(total), mask=rows < T)
    ### END SOLUTION


def flash_attention(q, k, v, causal=True, BLOCK_M=64, BLOCK_N=64):
    """q: (B, H, T, D); k, v: (B, KV, T, D). Returns o, (B, H, T, D), and lse, (B, H, T)."""
    ### BEGIN SOLUTION
    (b, h, t, d), kv = q.shape, k.shape[1]
    o = torch.empty((b, h, t, d), dtype=q.dtype, device=q.device)
    lse = torch.empty((b, h, t), dtype=torch.float32, device=q.device)
    grid = (triton.cdiv(t, BLOCK_M), b * h)
    strides = (*q.stride(), *k.stride(), *v.stride())
    blocks = {"D": d, "CAUSAL": causal, "BLOCK_M": BLOCK_M, "BLOCK_N": BLOCK_N}
    gqa_kernel[grid](q, k, v, o, lse, *strides, h, h // kv, t, d**-0.5, **blocks)
    return o, lse
    ### END SOLUTION


# %% check="06.flash_gqa"

# %% [markdown]
r"""
## On a GPU, if there is one (not graded)

The same kernels against `scaled_dot_product_attention`, PyTorch's fused attention: first the numbers in bfloat16, then
time, then memory. Without a card the cells say what they would have shown. A cell for each level; run those of the
levels that you have reached.
"""

# %%
sdpa = torch.nn.functional.scaled_dot_product_attention


def heads(t, h=16, kv=16):
    """q, k and v on the card, in bfloat16, D = 64."""
    return (torch.randn(1, n, t, 64, device="cuda").bfloat16() for n in (h, kv, kv))


if gpu("no output: level Boss agrees with torch in bfloat16."):
    for causal in (True, False):
        q, k, v = heads(1000)
        o, lse = boss(q, k, v, causal)
        torch.testing.assert_close(o, sdpa(q, k, v, is_causal=causal), rtol=1.6e-2, atol=1e-2)
        scores = q.float() @ k.float().transpose(-1, -2) / 8
        if causal:
            scores = scores.masked_fill(torch.ones_like(scores, dtype=torch.bool).triu(1), -torch.inf)
        torch.testing.assert_close(lse, scores.logsumexp(-1), rtol=1e-4, atol=1e-3)


# %%
def rivals(t):
    q, k, v = heads(t)
    return {
        "64 × 64": lambda: boss(q, k, v)[0],
        "128 × 64": lambda: boss(q, k, v, BLOCK_M=128)[0],
        "sdpa": lambda: sdpa(q, k, v, is_causal=True),
    }


measured = measure(
    rivals,
    sizes=(1024, 2048, 4096, 8192, 16384),
    bytes_of=lambda t: 2 * 4 * 16 * t * 64,
    flop_of=lambda t: 2 * 2 * 16 * 64 * t * t / 2,
    atol_of=lambda t: 1e-2,
    expect="16 heads, causal, on an RTX 4080: a half to three quarters of sdpa's TFLOP/s, both rising with T.",
)
measured


# %%
def doubles(name, function, lengths=(1024, 2048, 4096, 8192, 16384)):
    """Prints the memory that a call takes for each length; more than linear growth is an error."""
    before = None
    for t in lengths:
        q, k, v = heads(t)
        took = peak_bytes(partial(function, q, k, v))
        print(f"{name}   T = {t:6,}   {took / 1e6:6.1f} MB")
        assert before is None or took < 2.5 * before, f"{name}: from {before:,} to {took:,} bytes is more than double"
        before = took


if gpu("boss and sdpa take the same memory, and twice as much for twice the length."):
    doubles("boss", lambda q, k, v: boss(q, k, v)[0])
    doubles("sdpa", lambda q, k, v: sdpa(q, k, v, is_causal=True))

# %% [markdown]
r"""
Level Legend: the gradients, and grouped-query heads.
"""

# %%
if gpu("no output: level Legend agrees with torch in bfloat16."):
    q, k, v = (x.requires_grad_() for x in heads(1000))
    do = torch.randn_like(q)
    ours = torch.autograd.grad(FlashAttention.apply(q, k, v, True), (q, k, v), do)
    theirs = torch.autograd.grad(sdpa(q, k, v, is_causal=True), (q, k, v), do)
    torch.testing.assert_close(ours, theirs, rtol=1.6e-2, atol=5e-2)
    q, k, v = heads(1000, kv=4)
    wanted = sdpa(q, k, v, is_causal=True, enable_gqa=True)
    torch.testing.assert_close(flash_attention(q, k, v)[0], wanted, rtol=1.6e-2, atol=1e-2)


# %%
def gradients(t):
    q, k, v = (x.requires_grad_() for x in heads(t))
    do = torch.randn_like(q)
    both = {"backward": FlashAttention.apply(q, k, v, True), "sdpa": sdpa(q, k, v, is_causal=True)}
    return {
        name: lambda o=o: torch.autograd.grad(o, (q, k, v), do, retain_graph=True)
        for name, o in both.items()
    }


measured = measure(
    gradients,
    sizes=(1024, 4096, 16384),
    bytes_of=lambda t: 2 * 8 * 16 * t * 64,
    flop_of=lambda t: 5 * 2 * 16 * 64 * t * t / 2,
    atol_of=lambda t: 5e-2,
    expect="16 heads, causal, on an RTX 4080: backward at a third to a half of sdpa's TFLOP/s, since it computes "
    "seven products a block where five would do.",
)
measured

# %% [markdown]
r"""
## Quiz

Graded with the assignment, a point each; the check below looks at the form of your answers only. Put them into the
next cell: a number, a letter such as `"a"`, or a list of letters such as `["a", "b"]`.

**q1.** Causal, T = 4096, blocks of 64 × 64. How many pairs of a block of queries and a block of keys does a head
compute, if none is computed that is hidden altogether?

**q2.** A whole block of keys may be hidden from a query: all its scores are −∞. Why does the kernel never compute
$-\infty - (-\infty)$, which would be NaN?

- a) `tl.exp` turns NaN into 0.
- b) The mask is applied after the maximum is taken.
- c) Key 0 comes in the first block, and every query sees it.
- d) The running maximum begins at 0.

**q3.** A query's largest score was 1 so far; the next block of keys brings a 3. By which number are the running sum
and the weighted values multiplied?

**q4.** What does the backward pass use that the forward pass left behind? Name all of it.

- a) q, k and v
- b) the probabilities P
- c) one number a query, the log-sum-exp
- d) the output o
- e) the scores before the softmax

**q5.** Naive attention stores the probabilities of 16 heads at T = 16 384 in bfloat16. How many GB (10⁹ bytes) is that?
"""

# %% quiz="06.quiz"

# %% check="06.quiz"
