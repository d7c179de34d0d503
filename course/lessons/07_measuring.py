# %% [markdown]
r"""
# Lesson 07 · Measuring

A right kernel has a speed, and most first attempts at measuring it give a wrong number: the time of a launch, of the
compiler, or of a cache. This lesson says what a time is, turns times into percent of what the card can do, and puts
your kernel beside the one that `torch.compile` writes. It ends with an order of work: when to write Triton, and when not.

You bring from lessons 01 to 06: programs, traffic, the roofline, `check`, the compiler's facts.

Reading takes 20 to 25 minutes, running all cells less than one.
"""

# %%
from lab_setup.roofline.measure import Measured, Timing, gpu, measure, versions

print(versions())

# %%
import inspect
import os
import statistics
import tempfile
import time
from pathlib import Path

import torch
import triton
import triton.language as tl

from autograder import interpret
from autograder.clock import ModelCard
from autograder.compiled import compile_seconds, facts_of
from autograder.generated import generated
from autograder.ir.cards import card
from autograder.render.figures import roofline
from autograder.render.lesson07 import answers, timeline
from lab_setup.roofline.results import entries, note, table

# %% [markdown]
r"""
## Two clocks

Python runs on the **host**, the kernel on the card. A launch puts work into a queue and returns; the card takes the
work out when it is free. So there are two clocks. To try them without a card, `ModelCard` keeps both: a launch costs the host
17 µs (16 to 19 µs were measured for Triton on one H200 machine in November 2026, 6 to 9 µs for PyTorch), and a kernel
takes as long as its bytes need. It computes nothing, and its times are the model's.
"""

# %%
def add_kernel(model, n, **options):
    """Launches x + y on vectors of n float32."""
    return model.kernel("add", x=4 * n, y=4 * n, out=4 * n, **options)


def four_launches(n):
    model = ModelCard("RTX 4080")
    launch = add_kernel(model, n)
    for _ in range(4):
        launch()
    model.synchronize()
    return model.spans


timeline(
    {"n = 2¹⁸": four_launches(2**18), "n = 2²²": four_launches(2**22)},
    "A launch returns long before its kernel has run",
    "four launches of add, then a synchronisation; by the model of an RTX 4080",
)

# %% [markdown]
r"""
Small kernels wait for the host, large ones make the host wait. (The first add of a row is longer than the others; the reason
comes in a moment.) **Predict:** a stopwatch starts before one call of add and stops
behind it. How does what it shows grow with n?
"""

# %%
for n in (2**18, 2**22, 2**26):
    model = ModelCard()
    launch = add_kernel(model, n)
    launch()
    shown = model.host
    model.synchronize()
    print(f"n = {n:10,}: the stopwatch shows {shown:4.1f} µs; the card is done after {model.host:8.1f} µs")

# %% [markdown]
r"""
Not at all: it measured the launch. `torch.cuda.synchronize()` before the stop makes the host wait.

### The first call

So: synchronise, and the time of a call is the kernel's time? **Predict** what the very first call gives. What the compiler
takes is measured here, on your machine; the rest is the model's.
"""

# %%
@triton.jit
def add_for_real_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    offs = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offs < n
    x, y = tl.load(x_ptr + offs, mask=mask), tl.load(y_ptr + offs, mask=mask)
    tl.store(out_ptr + offs, x + y, mask=mask)


x = torch.zeros(2**20)
compiling = 1e6 * compile_seconds(add_for_real_kernel, x, x, x, 2**20, BLOCK_SIZE=1024)
model = ModelCard()
launch = add_kernel(model, 2**20, compile_us=compiling)
for call in ("first", "second", "third"):
    start = model.host
    launch()
    model.synchronize()
    print(f"{call:6} call: {model.host - start:12,.1f} µs")

# %% [markdown]
r"""
The first call's time is the compiler's. And even the third is not the kernel's: it holds the launch, and it is shorter
than it should be. Twelve bytes for each of $2^{20}$ elements need 17.6 µs from memory; the second and the third call
found them in L2.

## `do_bench`

`triton.testing.do_bench(function)` avoids all of this. It calls once, so that the compiler is done; it marks begin and end in
the card's own queue, so that launches do not count; it empties L2 before each run. Inside `with model:` those marks read
the model's clocks, and the function that runs is Triton's own.

**Predict:** with `warmup=25, rep=100`, how often is a kernel called: 125 times?
"""

# %%
def counted(launch):
    def call():
        call.times += 1
        launch()

    call.times = 0
    return call


for n in (2**18, 2**22, 2**26):
    model = ModelCard()
    call = counted(add_kernel(model, n))
    with model:
        ms = triton.testing.do_bench(call, warmup=25, rep=100)
    print(f"n = {n:10,}: {1e3 * ms:8.1f} µs, called {call.times:3} times")

# %% [markdown]
r"""
`warmup` and `rep` are milliseconds, not iterations: a short kernel is called hundreds of times, a long one a few. Why warm up at all?
A card that was idle begins with a low clock.

### One number for many runs

Runs differ. These are real, of a small softmax on your CPU:
"""

# %%
small = torch.randn(16, 64)
times = []
for _ in range(1000):
    start = time.perf_counter()
    torch.softmax(small, dim=1)
    times.append(1e6 * (time.perf_counter() - start))
tenths = statistics.quantiles(times, n=10)
print(f"least {min(times):.1f}, 20 % {tenths[1]:.1f}, median {tenths[4]:.1f}, 80 % {tenths[7]:.1f} µs")
print(f"mean {statistics.mean(times):.1f}, largest {max(times):.1f} µs")

# %% [markdown]
r"""
A few slow runs pull the mean and leave the **median** alone: half of the runs were faster. The **quantiles** at 20 % and 80 %
say how far to trust it. **Predict** which of them `do_bench` returns; its docstring says the median.
"""

# %%
print(inspect.signature(triton.testing.do_bench))

# %% [markdown]
r"""
`return_mode='mean'`: the signature decides, not the docstring. Ask for `quantiles=[0.5, 0.2, 0.8]` and get three numbers; `measure`,
which the GPU cells of this course use, does.

## Warm or cold

`do_bench` empties L2. In a network the tensor that a kernel reads was often written by the one before, and lies there. And small
kernels can be recorded into a **CUDA graph**, which hands all of them to the card in one launch (lesson 09 does it);
`do_bench_cudagraph` times that. **Predict:** it does not empty L2. What does it say of add at $n = 2^{22}$, where three
vectors of 16.8 MB fit the 64 MB of an RTX 4080's L2?
"""

# %%
sizes = {"2¹⁸": 2**18, "2²⁰": 2**20, "2²²": 2**22, "2²⁴": 2**24}
found = {"stopwatch, one call": [], "stopwatch, 100 calls": [], "do_bench_cudagraph": [], "do_bench": []}
for n in sizes.values():
    model = ModelCard()
    launch = add_kernel(model, n)
    launch()
    found["stopwatch, one call"].append(model.host)
    model.synchronize()
    start = model.host
    for _ in range(100):
        launch()
    model.synchronize()
    found["stopwatch, 100 calls"].append((model.host - start) / 100)
    with model:
        found["do_bench_cudagraph"].append(1e3 * triton.testing.do_bench_cudagraph(launch))
        found["do_bench"].append(1e3 * triton.testing.do_bench(launch))
least = [12 * n / 716.8e3 for n in sizes.values()]  # µs: bytes over GB/s
for name, us in found.items():
    print(f"{name:21}", "  ".join(f"{t:7.1f}" for t in us), " µs")
answers(list(sizes), found, least)

# %% [markdown]
r"""
18.6 µs, a quarter of the time that memory needs. Neither number is wrong, they answer two questions: how long with
the data in memory, and how long with the data in L2. Say which one you give. At $2^{24}$ nothing fits, and all but the first agree. The
model takes L2 for four times as fast as memory; that is an assumption. What a graph does to the launches was measured on one
H200: 0.95 µs a kernel in a graph of 100, against 16 to 19.

One more trap: a card that meets its power limit lowers its clock. On that H200, `do_bench` in different places of a script
varied by ±5 % for one and the same kernel. So rivals take turns, in one loop. `measure` does that, and measures nothing if their results differ:
"""

# %%
def adds(n):
    x, y = torch.randn(2, n, device="cuda")
    out = torch.empty_like(x)
    grid = (triton.cdiv(n, 1024),)

    def mine():
        add_for_real_kernel[grid](x, y, out, n, BLOCK_SIZE=1024)
        return out

    return {"triton": mine, "torch": lambda: x + y}


measure(
    adds,
    sizes=(2**18, 2**22, 2**26),
    bytes_of=lambda n: 12 * n,
    expect="on an RTX 4080, both at 80–90 % of 716.8 GB/s for 2^26, and close together everywhere.",
)

# %%
if gpu("the graph's time far below do_bench's at 2^18 and 2^22, the same at 2^26."):
    for n in (2**18, 2**22, 2**26):
        mine = adds(n)["triton"]
        cold, warm = triton.testing.do_bench(mine), triton.testing.do_bench_cudagraph(mine)
        print(f"n = {n:10,}: {1e3 * cold:7.1f} µs by do_bench, {1e3 * warm:7.1f} µs in a graph")

# %% [markdown]
r"""
## From a time to percent of the roof

5.7 ms: is that good? A time says nothing without the work. Divide by what the task needs at least:

- **GB/s** = bytes / ms / 10⁶, with the bytes that must move, not those that did;
- **TFLOP/s** = operations / ms / 10⁹;
- **percent of roof** = the least time / the time, where the least time is the larger of bytes over bandwidth and operations over
  peak.

The last is the one to compare. Write the least time:
"""

# %% stub="return 1.0  # ms: the larger of two times"
def least_ms(nbytes, flop, row):
    """Least milliseconds on a card: row.bandwidth in GB/s, row.bf16_tflops in TFLOP/s."""
    ### BEGIN SOLUTION
    return max(nbytes / row.bandwidth / 1e6, flop / row.bf16_tflops / 1e9)
    ### END SOLUTION


tasks = {  # bytes, operations
    "add, float32, 2²⁷": (12 * 2**27, 2**27),
    "softmax, bf16, 4096 × 16 384": (4 * 2**26, 5 * 2**26),
    "matmul, bf16, 1024³": (3 * 2 * 1024**2, 2 * 1024**3),
    "matmul, bf16, 4096³": (3 * 2 * 4096**2, 2 * 4096**3),
    "attention, bf16, 16 × 8192 × 64": (4 * 16 * 8192 * 64 * 2, 4 * 16 * 8192**2 * 64),
}
for name, (nbytes, flop) in tasks.items():
    times = [least_ms(nbytes, flop, card(c)) for c in ("RTX 4080", "H200 SXM")]
    print(f"{name:31} {flop / nbytes:7.1f} FLOP a byte, at least {times[0]:.3f} ms on a 4080, {times[1]:.3f} on H200")

# %% [markdown]
r"""
(FLOP of softmax: five an element, as in lesson 01. float32 adds do not run on tensor cores, but for add only the bytes count.)
**Predict:** which of the five has the compute roof, which the memory roof, on a card whose corner lies at 206 FLOP a byte?

Here are three of them on an H200, *measured* in November 2026 (Triton 3.6): 4322 GB/s for add, 3770 GB/s, the lower end, for
softmax, and 450 TFLOP/s for the attention forward, full, after lesson 11's steps.
"""

# %%
h200 = card("H200 SXM")
measured_there = {"add": (1 / 12, 4322), "softmax": (5 / 4, 3770)}
points = [
    {"label": f"{name}, {gbs:,} GB/s", "intensity": i, "performance": gbs * i / 1e3}
    for name, (i, gbs) in measured_there.items()
]
points.append({"label": "attention, 450 TFLOP/s", "intensity": 8192 / 2, "performance": 450})
for name, (_, gbs) in measured_there.items():
    print(f"{name:10} {gbs / h200.bandwidth:.0%} of roof")
print(f"attention  {450 / h200.bf16_tflops:.0%} of roof")
roofline({"name": "H200", "bandwidth": h200.bandwidth, "peak": h200.bf16_tflops}, points)

# %% [markdown]
r"""
Is 79 % bad? A plain copy of the same size is hardly faster: softmax reached 0.96 to 1.00 of its speed. And attention has a softmax
in its loop, which the roof of the tensor cores does not know; cuDNN reached 446 to 463 TFLOP/s there. So put a rival beside the
percentage: a copy for kernels of memory, cuBLAS or cuDNN for the others.

## A journal

A number without its card and its versions is worth nothing next month. `entries` makes a line a size: card, versions, ms,
GB/s, TFLOP/s, percent of roof, and PyTorch's time over yours in percent. `note` adds the lines to a file, `table` prints it. Without a
card you get two lines of the model, and the column "card" says so.
"""

# %%
def modelled(n_cols, rows=4096):
    """Softmax in one kernel of two passes against five kernels of eight, in bfloat16, by the model."""
    once = 2 * rows * n_cols
    model = ModelCard()
    fused = model.kernel("softmax", x=once, y=once)
    five = [
        model.kernel("max", x=once),
        model.kernel("sub", x=once, t=once),
        model.kernel("exp", t=once, e=once),
        model.kernel("sum", e=once),
        model.kernel("div", e=once, y=once),
    ]
    with model:
        times = {
            "triton": triton.testing.do_bench(fused),
            "torch": triton.testing.do_bench(lambda: [kernel() for kernel in five]),
        }
    timings = [Timing(name, n_cols, ms, ms, ms, 2 * once / ms / 1e6) for name, ms in times.items()]
    return Measured(tuple(timings), model.name, model.bandwidth)


journal = Path(tempfile.mkdtemp()) / "results.jsonl"
for n_cols in (1024, 16384):
    note(entries("softmax", modelled(n_cols), "triton", "torch", versions()), journal)
print(table(journal))
print(journal.read_text().splitlines()[-1])

# %% [markdown]
r"""
**Predict**, before you read it: eight passes against two. Why is it not 400 % at 1024 columns?

At 1024 columns a tensor has 8.4 MB, and what one of the five kernels wrote the next one finds in L2. At 16 384 columns it has 134 MB,
and nothing stays.

## The profiler names kernels

A program has many kernels. Which one is worth your time? The **profiler** notes every kernel with its time. On a card you see
your own kernels there by name; here, what five operations take on the CPU:
"""

# %%
def naive(x):
    m = x.amax(dim=1, keepdim=True)
    t = x - m
    e = torch.exp(t)
    s = e.sum(dim=1, keepdim=True)
    return e / s


def profiled(function, on_card=False):
    """Name, calls and µs of all that one call runs, the longest first."""
    os.environ.setdefault("KINETO_LOG_LEVEL", "6")  # the profiler's notes on itself are not wanted
    kind = torch.profiler.ProfilerActivity.CUDA if on_card else torch.profiler.ProfilerActivity.CPU
    function()  # what is compiled or loaded by the first call is not wanted
    with torch.profiler.profile(activities=[kind]) as profile:
        function()
        if on_card:
            torch.cuda.synchronize()
    rows = profile.key_averages()
    times = [r.self_device_time_total if on_card else r.self_cpu_time_total for r in rows]
    for us, row in sorted(zip(times, rows), key=lambda pair: -pair[0]):
        if us:
            print(f"{row.key[:60]:60} {row.count:3} × {us / row.count:9.1f} µs  {us / sum(times):4.0%}")


x = torch.randn(1823, 781)
profiled(lambda: naive(x))

# %% [markdown]
r"""
Names such as `aten::exp` are PyTorch's operations. If `exp` took 5 % of the time of your network, a kernel that makes it free
would gain 5 %: so profile first.

Now your kernel. It is that of lesson 03, with its two holes; fill them in once more, or paste yours.
"""

# %% stub=["other = 0.0  # as in lesson 03", "y = e  # as in lesson 03"]
@triton.jit
def softmax_fwd_kernel(x_ptr, out_ptr, x_stride, out_stride, n_cols, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK_SIZE)
    mask = cols < n_cols
    ### BEGIN SOLUTION
    other = -float("inf")
    ### END SOLUTION
    x = tl.load(x_ptr + row * x_stride + cols, mask=mask, other=other).to(tl.float32)
    e = tl.exp(x - tl.max(x, axis=0))
    ### BEGIN SOLUTION
    y = e / tl.sum(e, axis=0)
    ### END SOLUTION
    tl.store(out_ptr + row * out_stride + cols, y, mask=mask)


def triton_softmax(x, num_warps=8):
    out = torch.empty_like(x)
    n_rows, n_cols = x.shape
    block_size = triton.next_power_of_2(n_cols)
    softmax_fwd_kernel[(n_rows,)](
        x, out, x.stride(0), out.stride(0), n_cols, BLOCK_SIZE=block_size, num_warps=num_warps
    )
    return out


if gpu("five kernels of PyTorch with vectorized or reduce in their names; then one, softmax_fwd_kernel."):
    on_card = torch.randn(4096, 4096, device="cuda")
    profiled(lambda: naive(on_card), on_card=True)
    profiled(lambda: triton_softmax(on_card), on_card=True)

# %% [markdown]
r"""
## What `torch.compile` writes

`torch.compile(naive)` turns the five operations into one kernel as well, and that kernel is *Triton*: for a card, its
code generator, **inductor**, writes Triton. The generator needs no card if something answers its questions about one. So this
is no stored answer: the text is generated now, by your PyTorch, for an RTX 4080 that is not there. **Predict** what you will
recognise.
"""

# %%
(compiled,) = generated(naive, torch.empty(1823, 781))
print(compiled.source)
print(compiled.call)

# %% [markdown]
r"""
Program id, `tl.arange`, a mask, a maximum, an exponential, a sum, one load and one store: your kernel, in a machine's hand. Shapes are
written in as numbers, the tail is `tl.where(…, float("-inf"))`. XBLOCK, the rows a program has, is tried out on the card.

Does it compute softmax? It is a kernel like any other, so the interpreter of this course runs it:
"""

# %%
out = torch.empty_like(x)
record = interpret(compiled.kernel)[(1823,)](x, out, 1823, 781, XBLOCK=1)
print("largest difference from torch.softmax:", (out - torch.softmax(x, dim=1)).abs().max().item())
print(record)

# %% [markdown]
r"""
Each number is read once and written once, two passes. Now wider rows. **Predict:** does inductor still read a row once when it has
4096 columns? And your kernel?
"""

# %%
for n_cols in (781, 1024, 1025, 4096):
    row = torch.randn(4, n_cols)
    (wide,) = generated(naive, torch.empty(4096, n_cols, device="meta"))  # shapes are all it needs
    blocks = {"XBLOCK": 1} | ({"R0_BLOCK": 1024} if "R0_BLOCK" in wide.kernel.arg_names else {})
    theirs = interpret(wide.kernel)[(4,)](row, torch.empty_like(row), 4, n_cols, **blocks)
    with interpret() as mine:
        triton_softmax(row)
    both = {"torch.compile": theirs, "yours": mine}
    print(f"{n_cols:5} columns:", {name: f"{run.bytes / row.nbytes:.2f} passes" for name, run in both.items()})

# %% [markdown]
r"""
From 1025 columns on inductor walks the row in blocks, with the online softmax, and then reads it again: three passes. Yours keeps the row
in registers. It does not always know better, but it knows *your* rows. On one H200, with 16 384 columns in bfloat16,
compile reached 1802 GB/s and the kernel of lesson 03 reached 3204.

The compiler's facts for both, for the card that is not there:
"""

# %%
x = torch.empty(4096, 781)
call = (x, x, x.stride(0), x.stride(0), 781), dict(BLOCK_SIZE=1024, num_warps=4)
theirs = (x, x, 4096, 781), dict(XBLOCK=1, num_warps=4)
for f in (*facts_of(softmax_fwd_kernel, [call]), *facts_of(compiled.kernel, [theirs])):
    loads = f.instructions["ld.global"]
    print(f"{f.kernel[:34]:34} {f.registers:3} registers, {f.shared:3} bytes shared, {loads} loads")

# %%
def softmaxes(n_cols):
    x = torch.randn(4096, n_cols, device="cuda").bfloat16()
    compiled = torch.compile(naive, dynamic=False)
    return {"triton": lambda: triton_softmax(x), "compile": lambda: compiled(x), "torch": lambda: torch.softmax(x, dim=1)}


if gpu("triton and compile close together at 1024 columns, triton far ahead at 16 384; lines in results.jsonl."):
    ran = measure(softmaxes, sizes=(1024, 4096, 16384), bytes_of=lambda n: 4 * 4096 * n, expect="")
    note(entries("softmax", ran, "triton", "torch", versions()))
    print(ran, table(), sep="\n")

# %% [markdown]
r"""
## More warps are faster?

A **warp** is 32 threads that go together; `num_warps` says how many share a program's block. More threads, more speed? An SM of an
RTX 4080 has room for 1536 threads and for 65 536 registers, whoever uses them. **Predict:** for rows of 1024 bfloat16, which number of
warps keeps most threads busy, and which still loads 16 bytes at a time (`ld.global.v4`)?
"""

# %%
x = torch.empty(4096, 1024, dtype=torch.bfloat16)
warps = (1, 2, 4, 8, 16, 32)
calls = [((x, x, 1024, 1024, 1024), dict(BLOCK_SIZE=1024, num_warps=w)) for w in warps]
print("warps  numbers a thread  registers  16-byte loads  exchange, bytes  programs an SM  threads an SM")
for w, f in zip(warps, facts_of(softmax_fwd_kernel, calls)):
    fit = min(1536 // (32 * w), 65536 // (32 * w * f.registers), 24)  # 24 programs at most
    wide, loads = f.instructions["ld.global.v4"], f.instructions["ld.global"]
    print(f"{w:5} {1024 // (32 * w):17} {f.registers:10} {wide:7} of {loads:2} {f.shared:16} {fit:15} {fit * 32 * w:14}")

# %% [markdown]
r"""
Not the most: with 32 warps a thread has one number, its load is 2 bytes wide, every reduction goes through shared memory between 32
warps, and one program leaves a third of the SM empty. With one warp half of it is empty. What lies
between must be measured: on the H200, 8 warps beat 4 on wide rows.

## When Triton, and when not

| | you write | you control | take it when |
|---|---|---|---|
| PyTorch | operations | nothing | it is fast enough; most of the time |
| `torch.compile` | the same, and one line | what it may fuse | the profiler shows many small kernels |
| Triton | a block's work | blocks, traffic, order of programs | you know something about your data that the compiler does not: a fused softmax, attention, odd types |
| TileLang | a block's work, and where tiles lie | shared memory, layouts, pipelines | Triton's choice of these is the limit |
| CUTLASS / CuTe | C++ or Python templates of NVIDIA | layouts down to the instruction | the last percent of a matmul on one card |
| CUDA C++ | a thread's work | everything | nothing above can say it |

The order of work follows: **profiler → `torch.compile` → Triton → CUDA.** Each step costs more of your time than the one before, and
you stop as soon as the percent of roof says that little is left. Arithmetic for that:
"""

# %%
for share, faster in ((0.05, 10), (0.30, 2), (0.60, 2)):
    print(f"a kernel with {share:.0%} of the time, {faster} times as fast: the program takes {1 - share + share / faster:.0%}")

# %% [markdown]
r"""
## What you can do now

- say which clock a time is from, and what of launch, compiler and L2 is in it
- use `do_bench` and know its milliseconds, its mean and its cold cache; use a graph and say so
- turn a time into GB/s, TFLOP/s and percent of roof, and keep a journal
- find the kernel that matters with the profiler
- read what `torch.compile` wrote, count its passes and beat it, or leave it alone

### Ask yourself (not graded)
"""

# %%
from autograder.render.lesson07_questions import QUESTIONS
from autograder.render.questions import ask

ask(*QUESTIONS)

# %% [markdown]
r"""
### One harder thing

Lesson 04's RMSNorm has six eager kernels. Write it in eager PyTorch, let `generated` compile it for 512 × 896, and read the result
beside yours: how many kernels, how many passes, and what happens to the weights? Then find a width at which inductor's
kernel reads the rows twice. Assignment 07 is a quiz of a few minutes.
"""
