# %% [markdown]
r"""
# Lesson 10 · Where to go next

You can write a kernel, prove it right, say what it moves and measure it. This lesson shows where such kernels live: a large
code base in Triton that you can read now, languages beside Triton, courses to go on with, and the Chinese words for what you
know, since much of this field is written in Chinese. The example kernel is one of a style you will meet there.

You bring all lessons before, above all 03, 06 and 07.

Reading takes 20 minutes, running all cells less than half of one.
"""

# %%
from lab_setup.roofline.measure import versions

print(versions())

# %%
import torch
import triton
import triton.language as tl

from autograder import interpret
from autograder.records import Rejected
from autograder.render.lesson10 import levels

# %% [markdown]
r"""
## What sits where

All of these turn a description into a kernel. They differ in what *you* describe, and what the compiler decides.
"""

# %%
levels()

# %% [markdown]
r"""
None of them is the best. Lesson 07's order of work says how to move: downwards, one step at a time, and only when a profiler sends
you.

- **[Triton](https://triton-lang.org)** has tutorials of its own: vector add, fused softmax, matmul, dropout, layer norm, attention. You have
  written most of them. New to you are *persistent matmul* (lesson 11), *grouped GEMM* and *block-scaled matmul*.
- **[TileLang](https://github.com/tile-ai/tilelang)**, from Peking University, is Python as well, and a program owns a block. But you say where a tile lies: `T.alloc_shared`,
  `T.alloc_fragment` (registers), `T.copy` between them, `T.Pipelined` for the loop with its stages. Its README names NVIDIA cards from SM70 to SM120, AMD,
  and Apple's Metal; an adapter for Huawei's Ascend lives beside it. (SM89 is NVIDIA's short name for compute capability 8.9.)
- **[TileKernels](https://github.com/deepseek-ai/TileKernels)** is DeepSeek's library of kernels in TileLang, under the MIT licence: for SM90 and SM100, and since 30 September 2026 for Ascend 950.
  It shows what a model in production needs besides matmul and attention.

## A code base that you can read now

**[flash-linear-attention](https://github.com/fla-org/flash-linear-attention)** (`fla`) has the layers of Qwen3-Next (Gated DeltaNet) and of Kimi Linear (Kimi Delta Attention), in Triton. In
attention every query meets every key, and the work grows with T². **Linear attention** leaves the softmax out. Then the sums can be
taken in another order:

$$o_t = \sum_{i \le t} (q_t \cdot k_i)\, v_i = q_t \Big(\sum_{i \le t} k_i v_i^T\Big) = q_t\, S_t, \qquad S_t = S_{t-1} + k_t v_t^T$$

$S_t$ is a matrix of D × D, the **state**. It has one size, however long the text. **Predict:** in the formula above, how many programs
can work on one head at a time, if each token waits for the state before it?
"""

# %%
def by_the_formula(q, k, v):
    """Linear attention, token by token: T steps, one after the other."""
    state, outputs = torch.zeros(k.shape[1], v.shape[1]), []
    for q_t, k_t, v_t in zip(q, k, v):
        state = state + torch.outer(k_t, v_t)
        outputs.append(q_t @ state)
    return torch.stack(outputs)


torch.manual_seed(0)
T, D = 200, 32
q, k, v = torch.randn(3, T, D)
o = by_the_formula(q, k, v)
print("largest difference from the masked product:", (o - (q @ k.T).tril() @ v).abs().max().item())

# %% [markdown]
r"""
One, and it never fills a tensor core. So code bases of this kind cut the text into **chunks**. Within a chunk it is attention with a causal mask
and no softmax; between chunks the state is carried. Here is such a kernel, written for this page in the style that you will meet:
`b_` before a block, `i_` before an index, `BT` for the length of a chunk, descriptors in place of pointer arithmetic.

A **tensor descriptor** is what lesson 05 did by hand: base, shape, strides and how large a block is. `load` and `store` are told where the block begins.
They make the mask themselves: beyond the shape a load gives 0, and a store writes nothing.
"""

# %%
@triton.jit
def chunk_fwd_kernel(q, k, v, o, T, D: tl.constexpr, BT: tl.constexpr, BV: tl.constexpr):
    """o of one head, for the BV columns of v that this program owns; all chunks in order."""
    i_v = tl.program_id(0)
    d_q = tl.make_tensor_descriptor(q, [T, D], [D, 1], [BT, D])
    d_k = tl.make_tensor_descriptor(k, [T, D], [D, 1], [BT, D])
    d_v = tl.make_tensor_descriptor(v, [T, D], [D, 1], [BT, BV])
    d_o = tl.make_tensor_descriptor(o, [T, D], [D, 1], [BT, BV])
    b_h = tl.zeros([D, BV], dtype=tl.float32)  # the state
    o_i = tl.arange(0, BT)
    for i_t in range(0, tl.cdiv(T, BT)):
        b_q = d_q.load([i_t * BT, 0])
        b_k = tl.trans(d_k.load([i_t * BT, 0]))
        b_v = d_v.load([i_t * BT, i_v * BV])
        b_s = tl.where(o_i[:, None] >= o_i[None, :], tl.dot(b_q, b_k), 0.0)
        b_o = tl.dot(b_s.to(b_v.dtype), b_v) + tl.dot(b_q, b_h.to(b_q.dtype))
        b_h += tl.dot(b_k, b_v)
        d_o.store([i_t * BT, i_v * BV], b_o.to(o.dtype.element_ty))


def chunked(q, k, v, BT=64, BV=16):
    T, D = q.shape
    o = torch.empty_like(v)
    chunk_fwd_kernel[(triton.cdiv(D, BV),)](q, k, v, o, T, D=D, BT=BT, BV=BV)
    return o

# %% [markdown]
r"""
Read it with the four questions of this course. *Is it right? Is it in bounds?* T is 200 and chunks have 64 tokens. **Predict:** what do the 56 rows
beyond the text hold, and what do they add to the state? *What does it move?* Two programs own 16 columns each.
**Predict** which of q, k and v are read twice.
"""

# %%
with interpret() as record:
    result = chunked(q, k, v)
exact = (q.double() @ k.double().T).tril() @ v.double()
print(f"largest error {(result - exact).abs().max():.1e}, outputs are about {exact.std():.0f}")
print(record)

# %% [markdown]
r"""
The rows hold zeros, and zeros are neutral in sums of products. `q` and `k` are read by both programs, `v` and `o` belong to one each.
Why then cut the columns at all? For more programs at a time; that is the price. **Predict:** with BV = 32, how much is read?
"""

# %%
for BV in (16, 32):
    with interpret() as record:
        chunked(q, k, v, BV=BV)
    print(f"BV = {BV}: {record.bytes // 4:,} numbers moved; once each would be {4 * T * D:,}")
for t in (200, 400, 800):
    longer = torch.randn(3, t, D)
    with interpret() as record:
        chunked(*longer)
    print(f"T = {t}: {record.operations.dot / 1e6:5.2f} million operations in tl.dot, {record.bytes // 4:,} numbers moved")

# %% [markdown]
r"""
Twice the text is twice the work: linear, as the name says.

**Now break it**, as a reader of unknown code should. The state enters `b_o` *before* this chunk is added to it. **Predict** what happens if the two
lines change places:
"""

# %%
source = chunk_fwd_kernel.src
print(*[line.strip() for line in source.splitlines() if "b_h" in line], sep="\n")
both = result + torch.cat([c_q @ (c_k.T @ c_v) for c_q, c_k, c_v in zip(q.split(64), k.split(64), v.split(64))])
print(f"largest difference then: {(both - exact).abs().max():.0f}")

# %% [markdown]
r"""
Every token would count the tokens of its chunk up to itself twice, and see those after it: the future would leak, as in lesson 06. In a real code base a test
against the token-by-token formula finds it. Look for that test first, and read the kernel beside it.

### The older spelling

Most of `fla` was written before descriptors, with **block pointers**. One is made for every block, with the place where it begins. `boundary_check` names the
axes that get a mask, and `padding_option` is its `other`. Triton 3.7 warns of them and 3.9 has none, so such code has to be rewritten, and read before that.
This kernel computes what a chunk adds to the state. **Predict:** much code says `boundary_check=(0, 1)` and nothing of padding. What do the 56 rows beyond
the text hold then?
"""

# %%
@triton.jit
def chunk_state_kernel(k, v, h, T, D: tl.constexpr, BT: tl.constexpr, PAD: tl.constexpr):
    """h, (chunks · D, D): kᵀ v of the chunk that this program owns."""
    i_t = tl.program_id(0)
    p_k = tl.make_block_ptr(k, (D, T), (1, D), (0, i_t * BT), (D, BT), (0, 1))
    p_v = tl.make_block_ptr(v, (T, D), (D, 1), (i_t * BT, 0), (BT, D), (1, 0))
    p_h = tl.make_block_ptr(h, (tl.cdiv(T, BT) * D, D), (D, 1), (i_t * D, 0), (D, D), (1, 0))
    b_k = tl.load(p_k, boundary_check=(0, 1), padding_option=PAD)
    b_v = tl.load(p_v, boundary_check=(0, 1), padding_option=PAD)
    tl.store(p_h, tl.dot(b_k, b_v))


def chunk_states(k, v, PAD, BT=64):
    chunks, D = triton.cdiv(len(k), BT), k.shape[1]
    h = torch.empty(chunks, D, D)
    chunk_state_kernel[(chunks,)](k, v, h, len(k), D=D, BT=BT, PAD=PAD)
    return h


try:
    for PAD in ("", "zero"):
        with interpret() as record:
            states = chunk_states(k, v, PAD)
        print(f'padding_option="{PAD}":', *[f.message for f in record.findings] or ["no findings"])
    print("largest difference from the state:", (states.sum(0) - k.T @ v).abs().max().item())
except Rejected as said:  # Triton 3.9 and later
    print(said)

# %% [markdown]
r"""
Up to Triton 3.8: anything. Without `padding_option` they are what a load without `other` gives, and a row of `k` and `v` beyond the text would enter the state. A
test whose T fills its chunks never sees it. From 3.9 on the kernel is refused, and the sentence says what takes the place of block pointers.

### A reading list

In `fla/ops`, from short to long; for each, write down the grid, what a program owns, the traffic, and the neutral element of every masked lane:

1. `utils/cumsum.py`: a running sum along chunks. What does a program do with the end of the text?
2. `common/chunk_h.py`: only the states, one a chunk. Why is this a kernel of its own?
3. `common/chunk_o.py`: the outputs, once the states are there. How many programs now, against ours?
4. `gated_delta_rule/chunk.py`: which kernels it calls, in which order, and what forward keeps for backward.
5. `kda/`: the same with a gate for each channel.

For each: run it through `interpret` with a T that fills no chunk. (File names as of autumn 2026; they move.)

## The words

| English | 中文 | pinyin | here |
|---|---|---|---|
| operator | 算子 | suànzǐ | an operation of a network, such as softmax; "writing operators" means writing kernels for them |
| kernel | 内核 · 核函数 | nèihé · hé hánshù | the function that runs on the card |
| tiling | 分块 | fēn kuài | cutting the work into blocks |
| autotuning | 自动调优 | zìdòng tiáoyōu | timing several configurations and taking the fastest |
| mask | 掩码 | yǎnmǎ | which lanes take part |

Two courses in Chinese, both by the community Datawhale:

- **[llm-algo-leetcode](https://github.com/datawhalechina/llm-algo-leetcode)**: exercises on the algorithms of language models, with a chapter on Triton kernels.
- **[diy-llm](https://github.com/datawhalechina/diy-llm)**: building a language model, after Stanford's CS336.

And the original: **[CS336, assignment 2](https://github.com/stanford-cs336/assignment2-systems)** (Stanford, "systems"): profile a transformer, write FlashAttention-2 in Triton, then train on several cards. Lessons 06
and 07 are its first half.

**Predict** with the table: 融合算子 joins 融合, "to fuse", with a word of the table. Which lesson is about one?

### Ask yourself (not graded)
"""

# %%
from autograder.render.lesson10_questions import QUESTIONS
from autograder.render.questions import ask

ask(*QUESTIONS)

# %% [markdown]
r"""
## What you can do now

- say what a language leaves to its compiler, and choose one
- read a kernel in another house's style, and ask it the four questions
- find your way in a large code base: the slow formula, its test, then the kernel
- recognise the words in Chinese

### One harder thing

Give `chunk_fwd_kernel` a decay: $S_t = g\, S_{t-1} + k_t v_t^T$ with one $g < 1$ a head, as in RetNet. What must each weight within a chunk be
multiplied by, and what the state? Write the token-by-token formula first, then the kernel, then let `interpret` look at it.
"""
