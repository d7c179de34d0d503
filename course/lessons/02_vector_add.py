# %% [markdown]
r"""
# Lesson 02 · Vector add, the first real kernel

In lesson 01 a kernel was a Python function on NumPy arrays. Now it becomes a Triton kernel: the same five
lines, compiled for a graphics card. You need no card. Every kernel of this page runs on the CPU, lane by
lane, and tells what each lane touched. Two cells measure speed; without a GPU they say what they would have
shown.

You bring from lesson 01: a kernel describes the work of one **program**; a program works on one **block**, a
group of **lanes** with one number each; a **mask** switches lanes off; the **grid** says how many programs
there are. Four questions come back in every check: *is it right, is it in bounds, what did it move, would it
run on the card?*

Reading takes 20 to 25 minutes, running all cells about one. If the next cell says that Triton is missing, stop
there: every cell after it would fail.
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
from autograder.render.inspected import show
from autograder.render.lesson02 import fusion, roof, tail
from autograder.render.player import player

# %% [markdown]
r"""
## From mini-Triton to Triton, line by line

| lesson 01, NumPy | Triton | what is different |
|---|---|---|
| `def kernel(pid, x, out, n, BLOCK)` | `@triton.jit`<br>`def kernel(x_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr)` | compiled at the first launch, and never called like a function; `tl.constexpr` marks a number that the compiler must know |
| `pid[0]` | `tl.program_id(0)` | the program asks for its number |
| `arange(0, BLOCK)` | `tl.arange(0, BLOCK_SIZE)` | the length is a power of two, and a `tl.constexpr` |
| `load(x, offs, mask, other=-np.inf)` | `tl.load(x_ptr + offs, mask=mask, other=float("-inf"))` | a tensor arrives as a **pointer**, the address of its first element; pointer + offsets is a block of addresses |
| `load(x, offs, mask)`: lanes that are off hold 0 | `tl.load(x_ptr + offs, mask=mask)`: they hold anything | without `other=` their value is undefined |
| `store(out, offs, values, mask)` | `tl.store(out_ptr + offs, values, mask=mask)` | the same |
| `launch(kernel, grid, x, out, n, BLOCK)` | `kernel[grid](x, out, n, BLOCK_SIZE=BLOCK)` | programs run at the same time, in no order |
| `np.maximum(a, b)`, `np.where(cond, a, b)` | `tl.maximum(a, b)`, `tl.where(cond, a, b)` | lane by lane, also with a number for `b`; `tl.max(a)`, the largest lane of a block, is another function |
| an IndexError outside the array | nothing | a card does not know where your array ends |

Here is a whole kernel with its **host function**, the Python function that makes the output and launches the
kernel. It multiplies a vector by a number. Its load has no `other=`, so what a lane that is off holds is undefined; that
does no harm here, because the same mask keeps the lane from storing.
"""

# %%
@triton.jit
def scale_kernel(x_ptr, out_ptr, factor, n, BLOCK_SIZE: tl.constexpr):
    """out[i] = factor * x[i] for the block of this program."""
    pid = tl.program_id(0)
    offsets = pid * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, factor * x, mask=mask)


def scale(x, factor, block_size=1024):
    out = torch.empty_like(x)
    n = x.numel()
    scale_kernel[(triton.cdiv(n, block_size),)](x, out, factor, n, BLOCK_SIZE=block_size)
    return out


# %% [markdown]
r"""
`scale(x, 10.0)` would launch it on a card; without one it stops with *0 active drivers*. `inspect_call(scale, x, 10.0)`
makes the same call, notes the launch, and plays the compiled kernel in NumPy, every lane of every program.
"""

# %%
torch.manual_seed(0)
x = torch.randn(98432)
run = inspect_call(scale, x, 10.0)

print(run.outputs[0].values[:4])
print((10.0 * x)[:4].numpy())

# %% [markdown]
r"""
## 98 432 numbers, 97 programs

`triton.cdiv(98432, 1024)` rounds 96.125 up: 97 programs. Program 96 owns the offsets 98 304 … 99 327. Only
128 of those 1024 exist.
"""

# %%
tail(n=98432, block=1024)

# %% [markdown]
r"""
Step through programs of the launch: the slider has 64 of the 97, evenly spread, the first and the last among
them. Blue lanes read or write, hatched ones are switched off by the mask. (Without widgets three of
them are drawn, each row cut out of the array around its block, so widths do not compare: all blocks have 1024 lanes.)
"""

# %%
player(run)

# %% [markdown]
r"""
Must the block size divide n? **Predict:** which of these block sizes give the right result?
"""

# %%
for block_size in (128, 512, 1024, 4096):
    run = inspect_call(scale, x, 10.0, block_size)
    right = torch.equal(torch.from_numpy(run.outputs[0].values), 10.0 * x)
    print(f"BLOCK_SIZE {block_size:4}: n / BLOCK_SIZE = {x.numel() / block_size:.3f}, right: {right}")

# %% [markdown]
r"""
All of them, though only 128 divides 98 432: masks take care of the rest. What must fit is the *number of
programs*, and it has to be rounded up. **Predict:** what is missing when it is rounded down?
"""

# %%
def scale_rounded_down(x, factor, block_size=1024):
    out = torch.empty_like(x)
    n = x.numel()
    scale_kernel[(n // block_size,)](x, out, factor, n, BLOCK_SIZE=block_size)
    return out


show(inspect_call(scale_rounded_down, x, 10.0))

# %% [markdown]
r"""
## Masks: one for every load, one for every store

The last program has lanes past the end. Suppose they are kept from *storing*, but not from *loading*.
**Predict:** are the numbers right? Is the kernel right?

(Kernels that are wrong on purpose are only inspected on this page, never launched on a card.)
"""

# %%
@triton.jit
def unmasked_load_kernel(x_ptr, out_ptr, factor, n, BLOCK_SIZE: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    x = tl.load(x_ptr + offsets)  # no mask
    tl.store(out_ptr + offsets, factor * x, mask=offsets < n)


def scale_unmasked_load(x, factor):
    out = torch.empty_like(x)
    n = x.numel()
    unmasked_load_kernel[(triton.cdiv(n, 1024),)](x, out, factor, n, BLOCK_SIZE=1024)
    return out


run = inspect_call(scale_unmasked_load, x, 10.0)
torch.testing.assert_close(torch.from_numpy(run.outputs[0].values), 10.0 * x)
print("the numbers are right")
show(run)

# %% [markdown]
r"""
The numbers are right and the kernel is wrong. A test of values cannot see it. On a card it goes well for
weeks, because the memory behind `x` usually belongs to something else of yours; the day it does not, the
launch ends with *an illegal memory access was encountered*, and no line is named.

### How to read a finding

A finding says, in this order:

1. **what**: a load or a store, and the argument by its name in the kernel;
2. **how many lanes** went wrong, out of how many in that program: 896 = 1024 − 128 is the ragged end. Only lanes
   that the mask leaves on can go wrong;
3. **where**: a program and a line of your cell;
4. **which offsets**, beside the size of the tensor.

Read the numbers before you read the code. A count like 896 points at the end of the array; every lane of
every program points at the offsets; a multiple of the block size points at the grid. Then comes a question to
ask, not a correction to copy.

A mask on the load and none on the store does more harm: **predict** which element of `out` is hit first.
"""

# %%
@triton.jit
def unmasked_store_kernel(x_ptr, out_ptr, factor, n, BLOCK_SIZE: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    tl.store(out_ptr + offsets, factor * x)  # no mask


def scale_unmasked_store(x, factor):
    out = torch.empty_like(x)
    n = x.numel()
    unmasked_store_kernel[(triton.cdiv(n, 1024),)](x, out, factor, n, BLOCK_SIZE=1024)
    return out


show(inspect_call(scale_unmasked_store, x, 10.0))

# %% [markdown]
r"""
On a card those 896 numbers land in whatever lies behind `out`.

## The grid as a function

A grid is a tuple of up to three sizes, or a function that returns one. Triton calls the function with all
arguments of the launch by name, so the block size stands in one place only. Later, when autotuning tries
several block sizes, there is no other way.
"""

# %%
def grid(meta):
    print("called with", ", ".join(meta))
    return (triton.cdiv(meta["n"], meta["BLOCK_SIZE"]),)


def scale_by_function(x, factor):
    out = torch.empty_like(x)
    scale_kernel[grid](x, out, factor, x.numel(), BLOCK_SIZE=512)
    return out


show(inspect_call(scale_by_function, x, 10.0))

# %% [markdown]
r"""
## Your turn: add

The kernel of this unit, with two holes. Fill them in and run the check below; `hint("02.add")` helps. (Jupyter
shows what stands in the last line of a cell: a `check(…)` or `hint(…)` further up says nothing.)
"""

# %% stub=["mask = offsets < 0  # switches every lane off: mend it", "result = x  # something is missing here"]
@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    pid = tl.program_id(0)
    offsets = pid * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    ### BEGIN SOLUTION
    mask = offsets < n
    ### END SOLUTION
    x = tl.load(x_ptr + offsets, mask=mask)
    ### BEGIN SOLUTION
    y = tl.load(y_ptr + offsets, mask=mask)
    result = x + y
    ### END SOLUTION
    tl.store(out_ptr + offsets, result, mask=mask)


def add(x, y):
    out = torch.empty_like(x)
    n = x.numel()
    add_kernel[lambda meta: (triton.cdiv(n, meta["BLOCK_SIZE"]),)](x, y, out, n, BLOCK_SIZE=1024)
    return out


# %%
check("02.add", add)

# %% [markdown]
r"""
## How the check works on a CPU

`@triton.jit` does not run the function. At a launch Triton reads its source and translates it into **Triton
IR**, a list of operations on whole blocks (IR: intermediate representation), and from there into machine
code. Only the launch needs a card. This is the IR of `scale_kernel`:
"""

# %%
from autograder.compiled import compile_seconds, ir_of

print(ir_of(scale_kernel, x, x, 10.0, 98432, BLOCK_SIZE=1024))

# %% [markdown]
r"""
Your five lines are all there: `tt.get_program_id`, `tt.make_range` for `tl.arange`, `arith.cmpi slt` for `<`,
`tt.load` and `tt.store`. The check executes this list in NumPy, once for all 97 programs: each variable is an
array with one row a program and one column a lane. Before a load or store touches anything, every address is
looked up: which tensor, inside or not, written before or not, by which program. That is how it sees what no
test of values sees. It does so for several lengths and types, and then hands the kernel to the real compiler,
which needs no card either, for an RTX 4080. What that says stands in the report's line *compiled*: how many registers a thread
gets; whether all values fit in them (what does not, **spills**: it travels to memory and back); and how wide loads
and stores are, 16 bytes at best, four float32 at once by each thread.

## Compiled once, for one kind of call

The translation is kept and used again. The IR above shows what it depends on: the kernel's source, the
element types (`!tt.ptr<f32>`), every `tl.constexpr` (1024), and whether pointers and whole numbers are
multiples of 16 (`tt.divisibility`), because that allows wide loads. A whole number equal to 1 is built in
like a constexpr.

**Predict:** n = 98 432 has been compiled. Which of the other calls compile again?
"""

# %%
first = ir_of(scale_kernel, x, x, 10.0, 98432, BLOCK_SIZE=1024)
b = x.bfloat16()
for call, ir in {
    "other numbers in x": ir_of(scale_kernel, x + 1, x, 10.0, 98432, BLOCK_SIZE=1024),
    "factor = 3.0": ir_of(scale_kernel, x, x, 3.0, 98432, BLOCK_SIZE=1024),
    "n = 98416 = 16 * 6151": ir_of(scale_kernel, x, x, 10.0, 98416, BLOCK_SIZE=1024),
    "n = 98431": ir_of(scale_kernel, x, x, 10.0, 98431, BLOCK_SIZE=1024),
    "n = 1": ir_of(scale_kernel, x, x, 10.0, 1, BLOCK_SIZE=1024),
    "x begins at element 1": ir_of(scale_kernel, x[1:], x, 10.0, 98432, BLOCK_SIZE=1024),
    "bfloat16": ir_of(scale_kernel, b, b, 10.0, 98432, BLOCK_SIZE=1024),
    "BLOCK_SIZE = 512": ir_of(scale_kernel, x, x, 10.0, 98432, BLOCK_SIZE=512),
}.items():
    print(f"{call:22}", "already there" if ir == first else "compiled again")

# %% [markdown]
r"""
So the first call of each kind pays for the compiler. How much? A kernel that reads and writes 98 432 float32
needs at least $2 \cdot 4 \cdot 98\,432 / 716.8\cdot 10^9$ seconds on an RTX 4080, the bytes over the card's
bandwidth. **Predict:** how many times longer does compiling take?
"""

# %%
compiling = compile_seconds(scale_kernel, x, x, 10.0, 98432, BLOCK_SIZE=1024)
running = 2 * 4 * 98432 / 716.8e9
print(f"compiling, measured here:          {compiling * 1e6:12,.1f} µs")
print(f"running on an RTX 4080, predicted: {running * 1e6:12,.1f} µs")
print(f"one is {compiling / running:,.0f} times the other")

# %% [markdown]
r"""
The time of the first call is the compiler's time, not the kernel's.

## A tensor arrives as an address, and nothing else

Shape and strides stay behind on the host: the kernel sees the first element's address and walks on from
there, one element at a time. **Predict:** what does `scale` make of every second element of a tensor?
"""

# %%
y = torch.arange(10.0)
every_second = y[::2]
run = inspect_call(scale, every_second, 10.0)
print("asked for:", (10.0 * every_second).numpy())
print("returned: ", run.outputs[0].values)
print(run.findings[0].message)

# %% [markdown]
r"""
The kernel of the first section went to the offsets 0, 1, 2, 3, 4 of the memory. The view holds 0, 2, 4, 6, 8: offsets 1
and 3 are no part of it, and the check hands out NaN for them. `every_second.contiguous()` makes a copy whose elements are neighbours;
another way is to pass the stride as a number, which unit 03 does. The exercises of this unit promise
contiguous tensors.

On a GPU the address must belong to the card as well. *Pointer argument cannot be accessed from Triton (cpu
tensor?)* means that a tensor was left on the CPU.

## Is it right? `torch.testing.assert_close`

It compares values, but also shape, type and device, and says where the worst difference is. Its tolerance
depends on the type; `|a − b| ≤ atol + rtol · |b|` must hold for every element:

| | rtol | atol |
|---|---|---|
| float32 | 1.3e-6 | 1e-5 |
| float16 | 1e-3 | 1e-5 |
| bfloat16 | 1.6e-2 | 1e-5 |

Widening `atol` until a test passes is a trap. **Predict:** a row of a softmax with 4096 columns, and zeros in
its place, at `atol=1e-2`: pass or fail?
"""

# %%
row = torch.softmax(torch.randn(4096), dim=0)
torch.testing.assert_close(torch.zeros(4096), row, atol=1e-2, rtol=0)
print("zeros pass for a softmax")

# %% [markdown]
r"""
Numbers around 1/4096 are all smaller than 0.01. The check of this course uses no fixed tolerance: it computes
in float64 and allows what the roundings of the kernel's own operations can add up to. For `x + y` that is one
rounding.

## What did it move?
"""

# %%
run = inspect_call(scale, x, 10.0)
for t in run.traffic:
    print(f"{t.argument:8} loaded {t.loaded:7,}  stored {t.stored:7,}  masked off {t.masked:4,}")
print(f"{run.elements:,} numbers, {run.bytes:,} bytes; 2n = {2 * 98432:,}")

# %% [markdown]
r"""
`add` reads two vectors and writes one: $3n$ numbers, $12n$ bytes in float32, for $n$ additions. Its arithmetic
intensity is 1/12 FLOP a byte. Under the roofline of lesson 01, bandwidth times intensity is the most that a
card can do; on an RTX 4080, memory sets the pace up to 68 FLOP a byte. Vector add is 800 times below.
"""

# %%
roof({"add": (1, 12), "fma_relu": (2, 16)})

# %% [markdown]
r"""
So only the bytes count, and a good kernel is one that moves them at full speed. Expect 80 to 90 % of 716.8
GB/s on an RTX 4080 at $n = 2^{24}$ and $2^{27}$, for your kernel and for PyTorch's `x + y` alike. At $2^{20}$
expect far less: 12.6 MB would take 18 µs, and starting and ending a kernel costs several of them.

| measured on one H200 (4800 GB/s) | $2^{20}$ | $2^{24}$ | $2^{27}$ |
|---|---|---|---|
| add, GB/s | 1579 | 3770 | 4322 |
| `x + y`, GB/s | 1579 | 3806 | 4320 |

Nobody beats PyTorch on add. The win begins where PyTorch needs several kernels and you need one:
"""

# %%
fusion()

# %% [markdown]
r"""
That is the second half of the assignment. (On the H200 at $2^{27}$: 0.49 ms in one pass, 0.99 ms by
`torch.relu(x * y + z)`.)

## Measuring: `do_bench`

A launch returns before the kernel has finished, and the first one compiles, so a stopwatch around one call
measures neither. `triton.testing.do_bench(function)` calls the function once, estimates its time from five
more runs, warms up, then times many runs with events on the card and empties the L2 cache before each. It
returns milliseconds.

`warmup=25` and `rep=100` look like numbers of runs. **Predict** what the docstring says.
"""

# %%
print("\n".join(line.strip() for line in triton.testing.do_bench.__doc__.splitlines() if "time (in" in line))

# %%
calls = 0


def counted():
    global calls
    calls += 1
    scale(on_card, 10.0)


if gpu("over a thousand calls, not 125, since a run takes few µs; on an H200 they were 1614."):
    on_card = x.cuda()
    triton.testing.do_bench(counted, warmup=25, rep=100)
    print(calls, "calls")


# %% [markdown]
r"""
`measure` does the same for several functions side by side: it compares their results first, lets them take turns,
so that a card that grows warm is fair to all, and divides the bytes by the median. A kernel that is wrong gets
no time.
"""

# %%
def rivals(n):
    x, y = torch.randn(2, n, device="cuda")
    return {"add": lambda: add(x, y), "torch": lambda: x + y}


measure(
    rivals,
    sizes=(2**20, 2**24, 2**27),
    bytes_of=lambda n: 12 * n,
    expect="on an RTX 4080, 80–90 % of 716.8 GB/s for add and for torch at 2^24 and 2^27, "
    "and far less at 2^20, where the launch weighs.",
)

# %% [markdown]
r"""
## Looking inside: `print`

Triton has an interpreter of its own. It runs a kernel program by program in Python, so that `print` works
inside. It is switched on by the environment variable `TRITON_INTERPRET=1`, which must be set *before* `import
triton`. This notebook has imported it already, so `interpret` sends the source of the kernel and the lines of
`call` to another Python, which takes seconds to start once. A vector of five, a block of four:
"""

# %%
from autograder.triton_interpreter import interpret


@triton.jit
def talking_kernel(x_ptr, out_ptr, factor, n, BLOCK_SIZE: tl.constexpr):
    pid = tl.program_id(0)
    offsets = pid * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    print("program", pid, "offsets", offsets, "mask", mask, "x", x)
    tl.store(out_ptr + offsets, factor * x, mask=mask)


call = """
x, out = torch.arange(5.0), torch.zeros(5)
talking_kernel[(2,)](x, out, 10.0, 5, BLOCK_SIZE=4)
print(out)
"""
print(interpret(talking_kernel, call))

# %% [markdown]
r"""
The three lanes of program 1 that are off show 0. That is this interpreter's choice: on a card, without `other=`, they
may hold anything, and the check puts NaN there. Keep such runs small: five numbers tell more than five thousand.
(`tl.device_print` prints from a card.)

Is a kernel that is right in Triton's interpreter right on a GPU? In this one all 97 programs add 1 to the
same number. **Predict** what the interpreter prints, and what a card would.
"""

# %%
@triton.jit
def count_kernel(total_ptr):
    tl.store(total_ptr, tl.load(total_ptr) + 1)


def count(total):
    count_kernel[(97,)](total)
    return total


print(interpret(count_kernel, count, "print(count(torch.zeros(1)))"))

# %% [markdown]
r"""
97, because the interpreter runs one program after the other. On a card the programs run at the same time:
many load the old number before any has stored a new one. (On an H200 five launches gave 1, 2, 1, 1 and 1.)
The check sees that, whatever the numbers are:
"""

# %%
show(inspect_call(count, torch.zeros(1)))

# %% [markdown]
r"""
The check has limits too. It knows nothing about speed, and it computes every float32 product in full, where a
card may round the inputs of `tl.dot` to TF32 (unit 05). It proves what it says it proves, and no more.

## What you can do now

- turn a block-wise NumPy kernel into a Triton kernel and launch it
- compute grid, offsets and masks for lengths that divide nothing
- say which call compiles again, and why the first one is slow
- read a finding, and tell *right* from *in bounds* from *free of races*
- count the bytes of a kernel and say how fast a card could run it
- measure with `do_bench`, and look inside with `print`

### Ask yourself (not graded)
"""

# %%
from autograder.render.questions import ask
from autograder.render.lesson02_questions import QUESTIONS

ask(*QUESTIONS)

# %% [markdown]
r"""
### One harder thing

Launch `add` with 76 programs whatever n is, one for each SM of an RTX 4080, and let each program walk over
the array in a loop until nothing is left. `tl.num_programs(0)` tells a program how many there are. The same
`check("02.add", add)` judges it. Does the traffic change? Then open assignment 02.
"""
