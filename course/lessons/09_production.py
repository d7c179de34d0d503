# %% [markdown]
r"""
# Lesson 09 · Production

A kernel that is right is not yet one that ships. This lesson takes a matmul with eight-bit numbers and few rows, the
work of a language model that writes one word after the other, and goes the rest of the way: formats and scales, a sum
that several programs share, the budgets of shared memory and registers, autotuning that prunes, a CUDA graph, and a
list of gates.

You bring from lesson 05: tiles, `tl.dot`, stages, autotuning; from lesson 04: atomic additions.

Reading takes 20 to 25 minutes, running all cells less than one.
"""

# %%
from lab_setup.roofline.measure import gpu, measure, versions

print(versions())

# %%
from itertools import permutations

import torch
import triton
import triton.language as tl

from autograder.checking import inspect_call
from autograder.compiled import facts_of
from autograder.ir.cards import card
from autograder.render.inspected import show
from autograder.render.lesson09 import fp8_formats, split_k

# %% [markdown]
r"""
## Eight bits

**fp8** is two formats. **e4m3** has 4 bits of exponent and 3 of fraction, **e5m2** has 5 and 2. In torch they are
`float8_e4m3fn` and `float8_e5m2`; the `fn` says that there is no infinity ("finite"), only NaN.
"""

# %%
fp8_formats()

# %% [markdown]
r"""
**Predict** what becomes of these five numbers in e4m3.
"""

# %%
for x in (0.3, 17.0, 448.0, 1000.0, 0.0005):
    print(f"{x:8} → {torch.tensor(x).to(torch.float8_e4m3fn).float().item()}")

# %% [markdown]
r"""
Three bits of fraction keep about one digit; torch cuts what is too large to 448, and what is too small becomes 0. So a tensor
comes with a **scale**, one float32: numbers are divided by it before they are rounded, and the result of the
product is multiplied by it. The usual choice puts the largest number at 448. **Predict:** by which factor does a scale
improve weights around 0.002?
"""

# %%
torch.manual_seed(0)
w = 0.002 * torch.randn(10_000)
for name, scale in {"no scale": 1.0, "largest at 448": (w.abs().max() / 448).item()}.items():
    back = (w / scale).to(torch.float8_e4m3fn).float() * scale
    print(f"{name:15} typical error {((back - w).abs().mean() / w.abs().mean()).item():.1%}")

# %% [markdown]
r"""
Products of two such numbers have 8 bits and are exact in float32; the sum is kept in float32. (Some cards add fp8
products with fewer bits inside their tensor cores. The check computes in full.) What is won: half the bytes of bfloat16,
and up to twice the rate of the tensor cores.

## Few rows

With M = 16 rows a matmul has one row of tiles. Every number of `b` is used for 16 rows only, so memory sets the
pace: what counts is that *all* SMs are loading. **Predict:** N = 4096 in tiles of 16 × 128. How many of 76 SMs work?
"""

# %%
split_k(tiles=4096 // 128, split=4, steps=32)

# %% [markdown]
r"""
The sum along K is as long for 16 rows as for 4096, and one program does it alone. **Split-K** gives it to several:
program $(i, j, s)$ sums a part of K for tile $(i, j)$. Each has a **partial sum**, and the partial sums must be added.

In the picture 32 steps become 16, not 8: 128 programs are more than 76, so 52 wait for a second round. Splitting by 2
would give 64 programs and 16 steps as well.

## A race, an atomic, a second pass

Here is a split sum that is small enough to look at: row sums of a matrix, each row by `SPLIT` programs, which take
blocks in turn. **Predict** what the check says.
"""

# %%
@triton.jit
def row_sum_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr, SPLIT: tl.constexpr):
    row, split = tl.program_id(0), tl.program_id(1)
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(split * BLOCK, n, SPLIT * BLOCK):
        at = start + tl.arange(0, BLOCK)
        acc += tl.load(x_ptr + row * n + at, mask=at < n, other=0.0)
    tl.store(out_ptr + row, tl.sum(acc))  # every split stores


def row_sum(x, kernel=row_sum_kernel, split=4):
    out = torch.zeros(x.shape[0])
    kernel[(x.shape[0], split)](x, out, x.shape[1], BLOCK=16, SPLIT=split)
    return out


def wrong_rows(run, want):
    """How many results of a run differ from torch's."""
    return int((~torch.isclose(torch.from_numpy(run.outputs[0].values), want, atol=1e-4)).sum())


x = torch.randn(3, 100)
run = inspect_call(row_sum, x)
print("wrong rows:", wrong_rows(run, x.sum(1)), "of 3")
show(run)

# %% [markdown]
r"""
A **race**: the split that stores last wins. On a card the result changes from run to run. `tl.atomic_add` reads, adds and
writes in one go that nothing can come between:
"""

# %%
@triton.jit
def atomic_row_sum_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr, SPLIT: tl.constexpr):
    row, split = tl.program_id(0), tl.program_id(1)
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(split * BLOCK, n, SPLIT * BLOCK):
        at = start + tl.arange(0, BLOCK)
        acc += tl.load(x_ptr + row * n + at, mask=at < n, other=0.0)
    tl.atomic_add(out_ptr + row, tl.sum(acc))


run = inspect_call(row_sum, x, atomic_row_sum_kernel)
print("wrong rows:", wrong_rows(run, x.sum(1)), "of 3")
show(run)

# %% [markdown]
r"""
It needs an output of zeros, which somebody has to write.

### Where does a part end?

Instead of blocks in turn, each split may take one stretch of the row. **Predict:** the row has 100 numbers and there
are 3 splits of `n // SPLIT`. Which numbers does nobody read?
"""

# %%
@triton.jit
def stretch_sum_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr, SPLIT: tl.constexpr):
    row, split = tl.program_id(0), tl.program_id(1)
    size = n // SPLIT  # rounds down
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(split * size, (split + 1) * size, BLOCK):
        at = start + tl.arange(0, BLOCK)
        acc += tl.load(x_ptr + row * n + at, mask=at < (split + 1) * size, other=0.0)
    tl.atomic_add(out_ptr + row, tl.sum(acc))


run = inspect_call(row_sum, x, stretch_sum_kernel, 3)
print("numbers read:", sum(t.loaded for t in run.traffic if t.argument == "x_ptr"), "of", x.numel())
print("wrong rows:", wrong_rows(run, x.sum(1)), "of 3")

# %% [markdown]
r"""
The last of each row: 3 · 33 = 99. Rounding up instead needs a mask at the end of the stretch *and* at the end of the
row. Blocks in turn, as above, need neither: a split that has nothing left takes no step.

### The order of additions

Atomic additions arrive in any order. **Predict:** six partial sums, all 720 orders. How many different results?
"""

# %%
parts = torch.randn(6, 1000).sum(1)
sums = {sum(order, torch.tensor(0.0)).item() for order in permutations(parts)}
print(f"{len(sums)} different results of 720 orders, apart by at most {max(sums) - min(sums):.1e}")

# %% [markdown]
r"""
A few last bits. That is no error, but a test that compares bits fails, and so does a training run that is to be
repeated exactly. The other way has one order: every split stores its partial sum in a **plane** of its own, and a
second kernel adds the planes. It writes and reads `SPLIT_K` planes more and costs a second launch.

| | atomics | second pass |
|---|---|---|
| output | must be zeros before | any |
| traffic | one addition for each partial sum | one store and one load for each, one store of the result |
| same bits every time | no | yes |
| result narrower than float32 | rounded at every addition | rounded once |

### When does it pay?

Measured on one H200 with Triton 3.6, fp8, M of 1 to 64: splitting K rescued a tile that was too large, 15.3 to 9.1
microseconds. Tiles of 16 × 32 or 16 × 64 with steps of 256 and *no* split were as good: more columns of tiles, more
programs. Split-K is a tool for when tiles cannot be smaller, not the answer. Measure both.

## Two budgets

### Shared memory

While tensor cores work on one step, the tiles of later steps are on their way into shared memory. `num_stages` says how
many steps are under way. Here is a plain matmul for whole tiles, to ask the compiler about. **Predict** the bytes for 1 to 5
stages: tiles of 64 × 64, steps of 64, float16.
"""

# %%
@triton.jit
def tile_kernel(a_ptr, b_ptr, c_ptr, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    """c = a b for contiguous matrices of whole tiles."""
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, K, BLOCK_K):
        ks = start + tl.arange(0, BLOCK_K)
        a = tl.load(a_ptr + rows[:, None] * K + ks[None, :])
        b = tl.load(b_ptr + ks[:, None] * N + cols[None, :])
        acc = tl.dot(a, b, acc)
    tl.store(c_ptr + rows[:, None] * N + cols[None, :], acc)


half, single = torch.empty(1, dtype=torch.float16), torch.empty(1)


def call(bm, bn, bk, warps, stages):
    blocks = dict(BLOCK_M=bm, BLOCK_N=bn, BLOCK_K=bk)
    return (half, half, single, 1024, 1024), dict(blocks, num_warps=warps, num_stages=stages)


one_step = (64 * 64 + 64 * 64) * 2
for stages, f in enumerate(facts_of(tile_kernel, [call(64, 64, 64, 4, s) for s in range(1, 6)]), 1):
    print(f"num_stages={stages}: {f.shared:6,} bytes, {f.shared / one_step:g} × the two tiles of a step")

# %% [markdown]
r"""
On this card (compute capability 8.9): one copy fewer than stages, and one at least. `acc` is not there: it lies in
registers. A block may have 101 376 bytes.

### Registers

An SM has 65 536 registers of 4 bytes: 256 KB. `acc` takes one for each element of the tile, spread over the threads;
a thread has at most 255. **Predict** which of these tiles does not fit.
"""

# %%
tiles = [(64, 128, 32, 4, 3), (128, 128, 32, 4, 3), (128, 256, 32, 8, 3), (256, 256, 32, 8, 3)]
for (bm, bn, _, warps, _), f in zip(tiles, facts_of(tile_kernel, [call(*tile) for tile in tiles]), strict=True):
    share = bm * bn / card().registers_per_sm
    sums = bm * bn // (32 * warps)
    print(
        f"{bm:3} × {bn:3}, {warps} warps: acc is {share:4.0%} of the registers, {sums:3} a thread; "
        f"{f.registers} used, {f.spills:5,} bytes spilled"
    )

# %% [markdown]
r"""
A tile of 256 × 256 is the whole register file: it **spills**, numbers wander to memory and back. From these budgets
come rules of thumb for what to try first:

| you want | tile | because |
|---|---|---|
| throughput: large M and N | 128 × 128 or 128 × 256, 4 to 8 warps, 3 to 4 stages | most operations a byte; `acc` a quarter to half of the registers |
| balance: a few more tiles than SMs | one side halved | a last round with few programs costs a whole round |
| latency: few rows | 16 × 32 to 16 × 64, steps of 128 to 256 | more programs; deep steps keep many loads under way |

On AMD cards there is one more option, `waves_per_eu`: how many waves (their warps) shall share an execution unit, which tells
the compiler how many registers each may use.

## Autotuning that prunes

`key=["M", "N", "K"]` tunes anew for each shape. That costs a run of all configurations for each, so it pays to drop early what cannot
work. `prune_configs_by={"early_config_prune": rule}` calls a rule with all configurations before anything is tried.
Here is one as it may be found: it forgets that a byte is not a KB. **Predict** what the autotuner does.
"""

# %%
def published_rule(configs, named_args, **kwargs):
    return [c for c in configs if c.kwargs["BLOCK_M"] * c.kwargs["BLOCK_N"] * 4 <= 99]  # KB?


configs = [
    triton.Config({"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": 64}, num_warps=4, num_stages=3)
    for m, n in ((16, 64), (64, 64), (128, 128))
]
rule = {"early_config_prune": published_rule}
tuned_tile_kernel = triton.autotune(configs, key=["N", "K"], prune_configs_by=rule)(tile_kernel)


def tuned_matmul(a, b):
    c = torch.empty(a.shape[0], b.shape[1])
    grid = lambda meta: (a.shape[0] // meta["BLOCK_M"], b.shape[1] // meta["BLOCK_N"])
    tuned_tile_kernel[grid](a, b, c, b.shape[1], b.shape[0])
    return c


try:
    inspect_call(tuned_matmul, torch.randn(128, 64).half(), torch.randn(64, 128).half())
except Exception as error:
    print(error)

# %% [markdown]
r"""
It drops all of its own. A rule that prunes too much shows at once; one that prunes *good* configurations shows nowhere,
but in the clock. So compare a rule with the compiler's figures, as the assignment does.

### Tuning runs your kernel

Many times, on your tensors. **Predict** what an autotuned kernel with atomic additions leaves in its output.
"""

# %%
blocks = [triton.Config({"BLOCK": 16}), triton.Config({"BLOCK": 32})]
tuned_row_sum_kernel = triton.autotune(blocks, key=["n"])(atomic_row_sum_kernel)


def tuned_row_sum(x, kernel=tuned_row_sum_kernel):
    out = torch.zeros(x.shape[0], device=x.device)
    kernel[(x.shape[0], 4)](x, out, x.shape[1], SPLIT=4)
    return out


if gpu("the first result too large by a factor in the hundreds or thousands, the second right."):
    ones = torch.ones(3, 100, device="cuda")
    print("first call", tuned_row_sum(ones)[0].item(), "second call", tuned_row_sum(ones)[0].item())

# %% [markdown]
r"""
Without a card one can play it: `out` keeps what earlier runs have added.
"""

# %%
out = torch.zeros(3)
for trial in range(3):  # an autotuner makes hundreds
    run = inspect_call(row_sum, torch.ones(3, 100), atomic_row_sum_kernel)
    out += torch.from_numpy(run.outputs[0].values)
    print("after run", trial + 1, out.tolist())

# %% [markdown]
r"""
`reset_to_zero=["out_ptr"]` zeroes it before each trial, and once more before the run that counts; in *later* calls
nobody does, so the host still allocates zeros. For a kernel that changes a tensor in place, `restore_value=["x_ptr"]`
puts the old contents back before each trial. A kernel that only stores into a fresh output needs neither; but an output
that is shared with another stream is overwritten while tuning.

## A graph

A launch costs the host 16 to 19 microseconds (measured beside an H200), longer than many small kernels run. A **CUDA
graph** records launches once and repeats them all with one call; a graph of 100 small kernels cost 0.95 microseconds
for each. Two conditions follow from "records":

- Nothing may wait for the card while it is captured: no tuning, no compiling, no `.item()`. So call the function
  before.
- The graph keeps *addresses*. New inputs are copied into the old tensors; the result appears in the old output.

One hole: the capture. In it stands `with torch.cuda.graph(graph):`, one call, and its output is kept.
"""

# %% stub="replay_graph, out = (lambda: None), fn(*held)  # replays nothing: mend it"
def capture(fn, *inputs):
    """fn: tensors → tensor; inputs: tensors on the card. Returns replay(*new_inputs) → tensor."""
    held = [x.clone() for x in inputs]
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):  # torch asks for a stream of its own before a capture
        for _ in range(3):
            fn(*held)  # compiles, tunes
    torch.cuda.current_stream().wait_stream(side)
    ### BEGIN SOLUTION
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = fn(*held)
    replay_graph = graph.replay
    ### END SOLUTION

    def replay(*new_inputs):
        for old, new in zip(held, new_inputs, strict=True):
            old.copy_(new)
        replay_graph()
        return out

    return replay


if gpu("twice True: a replay gives what a call gives, for new inputs too."):
    replay = capture(tuned_row_sum, torch.ones(3, 100, device="cuda"))
    for _ in range(2):
        new = torch.randn(3, 100, device="cuda")
        print(torch.allclose(replay(new), new.sum(1), atol=1e-4))

# %% [markdown]
r"""
And what it saves:
"""

# %%
def ways(n):
    x = torch.randn(64, n, device="cuda")
    tuned_row_sum(x)
    replay = capture(tuned_row_sum, x)
    return {"replay": lambda: replay(x), "call": lambda: tuned_row_sum(x), "torch": lambda: x.sum(1)}


measure(
    ways,
    sizes=(256, 1024),
    bytes_of=lambda n: 4 * (64 * n + 64),
    atol_of=lambda n: 1e-3,
    expect="a replay below a plain call, which the host's launch dominates.",
)

# %% [markdown]
r"""
## Before it ships

| gate | what it asks |
|---|---|
| reference | float64, and a tolerance that follows from the roundings, not one that was turned until green |
| ragged sizes | 1, one less and one more than a block, primes, empty; strides that are no row length |
| bounds and races | no lane outside, no memory that nobody wrote, no two programs in one cell: `check` and `inspect_call` |
| types | which it takes, in which it adds, and a clear refusal of others |
| benchmark | against torch, at the sizes that matter, with the card's name and versions beside the figures |
| fallback | what runs where the card, the type or the size is not the kernel's |

The last two lines of code that a kernel gets are often these. **Predict** which of the three calls launches the kernel.
"""

# %%
def safe_row_sum(x):
    """Row sums by the kernel where it fits, by torch elsewhere."""
    fits = x.dtype == torch.float32 and x.is_contiguous() and x.numel() > 0
    return row_sum(x, atomic_row_sum_kernel) if fits else x.sum(1)


for name, given in {"float32": x, "float16": x.half(), "transposed": x.t()}.items():
    run = inspect_call(safe_row_sum, given)
    print(f"{name:11} kernel loads {sum(t.loaded for t in run.traffic if t.argument == 'x_ptr')} numbers")

# %% [markdown]
r"""
## What you can do now

- say what fp8 keeps, and choose a scale
- split a sum along K, end it at the right places, and add the parts without a race
- say when the last bits may differ, and how to avoid it
- compute shared memory and registers of a tile, and prune by them
- autotune without spoiling an output, and capture what is tuned
- name the gates that a kernel passes before it ships

### Ask yourself (not graded)
"""

# %%
from autograder.render.lesson09_questions import QUESTIONS
from autograder.render.questions import ask

ask(*QUESTIONS)

# %% [markdown]
r"""
### One harder thing

Let the *last* split that finishes a row add the planes: an atomic counter for each row tells who is last. One launch,
one order. What must the counter hold before the next call? Then open assignment 09.
"""
