# %% [markdown]
r"""
# Lesson 08 · debugging

A kernel that is wrong rarely says so. Its numbers may agree with PyTorch for months while it reads memory that is not its
own; it may be right on your machine and wrong on the next; and when a card does complain, it names no line. This lesson
is about finding out: what a finding of the check says word by word, what `print` can show, what Triton's own interpreter
does **not** see, and in which order to look.

You bring from lessons 02 to 06: programs, blocks, masks, strides, `tl.dot`, atomics.

Reading takes 20 minutes, running all cells less than one. In the assignment eight broken kernels wait to be repaired.
"""

# %%
from lab_setup.roofline.measure import gpu, versions

print(versions())

# %%
import os

import torch
import triton
import triton.language as tl

from autograder import interpret
from autograder.checking import inspect_call
from autograder.render.lesson08 import order_of_work, races, who_sees
from autograder.triton_interpreter import interpret as triton_interpret

# %% [markdown]
r"""
Two tools with one name, so be careful from here on:

- `interpret` is the interpreter of this course, the one that `check` is built on. It reads what Triton makes of a kernel
  and watches every access. `interpret(kernel)[grid](...)` launches any kernel of yours on CPU tensors.
- `triton_interpret` runs a script under *Triton's own* interpreter, in another Python.

## A row of five, a block of eight

Small enough to do by hand, and the block is longer than the row: if a kernel is careless about its tail, it shows here.
**Predict:** are the results right?
"""

# %%
@triton.jit
def double_kernel(x_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    offs = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    x = tl.load(x_ptr + offs)
    tl.store(out_ptr + offs, 2 * x, mask=offs < n)


x, out = torch.arange(1.0, 6.0), torch.zeros(5)
record = interpret(double_kernel)[(1,)](x, out, 5, BLOCK_SIZE=8)
print(out, "right:", torch.equal(out, 2 * x))

# %% [markdown]
r"""
They are. And yet:
"""

# %%
record

# %% [markdown]
r"""
Read the finding from left to right, since each word answers a question:

| words | question |
|---|---|
| load from `x_ptr` | which operation, on which argument? |
| 3 of 8 lanes past the end | what is wrong with how many lanes of the block? With a mask it says *unmasked lanes*: those that the mask lets through. (*before the start* and *outside*, between the rows of a padded tensor, are others) |
| program 0 | which program is the first that does it? Take this one for your calculation by hand |
| line 4 | which line of the cell, counted from its first line? |
| offsets 5…7, `x_ptr` has 5 elements | which addresses, and what would have been right? |

The same as data, for a test of your own:
"""

# %%
(finding,) = record.findings
print(finding.kind, finding.argument, finding.line, finding.program, finding.lanes)

# %% [markdown]
r"""
Other kinds of findings:

| kind | it means | look at |
|---|---|---|
| `out_of_bounds` | a lane touches what is not its tensor | the mask, the stride |
| `undefined_lane` | a lane that was masked off reaches a result | `other=` |
| `uninitialised` | memory is read that nobody has written | `torch.empty`, the order of launches |
| `unwritten` | no program wrote some of the result | the grid, the mask of the store |
| `race` | two programs meet in a cell, and one of them writes | whose cell is it? |
| `values` | the numbers differ from the reference | *where* they differ, see below |
| `traffic` | more is moved than the exercise allows | what is read twice, or copied |
| `compile` | Triton does not take the kernel | the line that it names |

## `print`

Triton's interpreter runs a kernel as Python, one program after the other, and so `print` works in it. `triton_interpret`
takes kernels and lines of a script. **Predict** what the last three lanes of `x` hold.
"""

# %%
@triton.jit
def talking_kernel(x_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    offs = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    x = tl.load(x_ptr + offs)
    print("offs", offs)
    print("mask", offs < n)
    print("x", x)
    tl.store(out_ptr + offs, 2 * x, mask=offs < n)


call = """
x, out = torch.arange(1.0, 6.0), torch.zeros(5)
talking_kernel[(1,)](x, out, 5, BLOCK_SIZE=8)
print("right:", torch.equal(out, 2 * x))
"""
print(triton_interpret(talking_kernel, call))

# %% [markdown]
r"""
Whatever lay behind `x` in memory: run the cell again, and it may be something else. Nobody complained, the result is
right, and the script ended well. `print` shows values; whether a lane had a right to them, it does not say.

### Set it before the import

Outside this course one switches that interpreter on with the environment variable `TRITON_INTERPRET=1`. It must be set
*before* `import triton`, in the shell or in the first line. This notebook has imported Triton already. **Predict:** does it
work all the same? `doubled` uses `tl.load` and `tl.store` only, `summed` uses `tl.sum` as well.
"""

# %%
os.environ["TRITON_INTERPRET"] = "1"


@triton.jit
def doubled(x_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    offs = tl.arange(0, BLOCK_SIZE)
    x = tl.load(x_ptr + offs, mask=offs < n, other=0.0)
    tl.store(out_ptr + offs, 2 * x, mask=offs < n)


@triton.jit
def summed(x_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    offs = tl.arange(0, BLOCK_SIZE)
    x = tl.load(x_ptr + offs, mask=offs < n, other=0.0)
    tl.store(out_ptr, tl.sum(x, axis=0))


for kernel in (doubled, summed):
    try:
        kernel[(1,)](torch.ones(5), out := torch.zeros(5), 5, BLOCK_SIZE=8)
        print(kernel.fn.__name__, "works:", out)
    except Exception as error:
        print(kernel.fn.__name__, "fails:", error)
del os.environ["TRITON_INTERPRET"]

# %% [markdown]
r"""
Half of it works, which is worse than nothing. `tl.sum` is a kernel of Triton's library; it was compiled for a card when
Triton was imported, and an interpreted kernel cannot call it. If you ever read "Cannot call @triton.jit'd outside of the
scope of a kernel", look at the order of your first lines.

## What Triton's interpreter is blind to

It was made to show values, and that it does well. Some say "it is right in the interpreter, so it is right on the card".
Let us put five faults before it. **Predict** which of them it notices. First a kernel that sums rows, with a fault to
choose; the rows are padded: five columns out of eight.
"""

# %%
@triton.jit
def sums_kernel(x_ptr, out_ptr, stride, n_cols, FAULT: tl.constexpr, BLOCK_SIZE: tl.constexpr):
    row, cols = tl.program_id(0), tl.arange(0, BLOCK_SIZE)
    at, mask = x_ptr + row * stride + cols, cols < n_cols
    if FAULT == "where behind the load":
        x = tl.where(mask, tl.load(at), 0.0)
    elif FAULT == "mask without other":
        x = tl.load(at, mask=mask)
    elif FAULT == "reads twice":
        x = tl.load(at, mask=mask, other=0.0) + tl.load(at, mask=mask, other=0.0)
        x = x / 2
    else:
        x = tl.load(at, mask=mask, other=0.0)
    tl.store(out_ptr + row, tl.sum(x, axis=0))


FAULTS = ("no fault", "where behind the load", "mask without other", "reads twice")
call = f"""
for fault in {FAULTS}:
    x, out = torch.rand(6, 8)[:, :5], torch.zeros(6)
    sums_kernel[(6,)](x, out, 8, 5, FAULT=fault, BLOCK_SIZE=8)
    print(f"{{fault:22}} right: {{torch.allclose(out, x.sum(1))}}")
"""
print(triton_interpret(sums_kernel, call))

# %% [markdown]
r"""
Right, four times. The same four in the interpreter of this course:
"""

# %%
for fault in FAULTS:
    x, out = torch.rand(6, 8)[:, :5], torch.zeros(6)
    record = interpret(sums_kernel)[(6,)](x, out, 8, 5, FAULT=fault, BLOCK_SIZE=8)
    (loaded,) = [t.loaded for t in record.traffic if t.argument == "x_ptr"]
    print(f"{fault}: {loaded} numbers loaded")
    for finding in record.findings:
        print("  ✗", finding.message)

# %% [markdown]
r"""
- `tl.where` chooses between numbers that are loaded already. It protects no load. In rows 0 to 4 the lanes even stay within
  the memory of x, in the padding between two rows: nothing on a card would ever notice.
- Without `other=` a lane that is off holds *anything*. In Triton's interpreter it is always 0, which is right for a sum by
  luck.
- Traffic is no fault of values, and takes time. Here 60 numbers were loaded where 30 were needed.

**A race.** Every program writes the larger of its own maximum and the one so far. **Predict** what Triton's interpreter
says, and what three orders of programs give in ours.
"""

# %%
@triton.jit
def best_kernel(x_ptr, best_ptr, n, BLOCK_SIZE: tl.constexpr):
    offs = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    x = tl.load(x_ptr + offs, mask=offs < n, other=-float("inf"))
    tl.store(best_ptr, tl.maximum(tl.load(best_ptr), tl.max(x, axis=0)))


call = """
x, best = torch.randn(1000), torch.full((1,), -float("inf"))
best_kernel[(8,)](x, best, 1000, BLOCK_SIZE=128)
print("Triton's interpreter, right:", best[0] == x.max())
"""
print(triton_interpret(best_kernel, call))

torch.manual_seed(0)
x = torch.randn(1000)
for order in ("forward", "reversed", "shuffled"):
    best = torch.full((1,), -float("inf"))
    record = interpret(best_kernel, order=order)[(8,)](x, best, 1000, BLOCK_SIZE=128)
    print(f"{order:9} {best[0]:.4f}, right is {x.max():.4f}")
print("✗", record.findings[0].message)

# %%
races()

# %% [markdown]
r"""
Triton's interpreter runs one program to its end, then the next. On a card they run at the same time, and ours lets all
of them load before the first one stores. Whatever the numbers are, it says that two programs met in a cell.

**bfloat16.** **Predict** the product of two 16 × 16 matrices of ones.
"""

# %%
@triton.jit
def product_kernel(a_ptr, c_ptr):
    at = tl.arange(0, 16)[:, None] * 16 + tl.arange(0, 16)[None, :]
    a = tl.load(a_ptr + at)
    tl.store(c_ptr + at, tl.dot(a, a))


def products(launch):
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        c = torch.zeros(16, 16)
        launch(torch.ones(16, 16, dtype=dtype), c)
        print(f"{dtype!s:14} {c[0, 0]:g}")


print("Triton's interpreter")
print(triton_interpret(product_kernel, products, "products(product_kernel[(1,)])"))
print("ours")
products(interpret(product_kernel)[(1,)])

# %% [markdown]
r"""
16 each time, and garbage for bfloat16 in Triton's interpreter: it keeps such numbers as plain 16-bit integers, and
multiplies those. (Reported as triton #11584; with Triton 3.7 it is still so.) If a bfloat16 kernel looks mad there, try
it in float32 before you doubt the kernel.

**A store past the end** is the one fault that it may notice, in its way:
"""

# %%
@triton.jit
def ones_kernel(out_ptr, BLOCK_SIZE: tl.constexpr):
    tl.store(out_ptr + tl.arange(0, BLOCK_SIZE), 1.0)


call = "out = torch.zeros(5)\nones_kernel[(1,)](out, BLOCK_SIZE={})\nprint(out)\n"
for block_size in (8, 2**20):
    print(triton_interpret(ones_kernel, call.format(block_size)))

# %% [markdown]
r"""
It writes over the memory of its own Python, which dies of it, now, later or never, and without a word about the line. In
a notebook that would be your kernel, with everything in it. So `triton_interpret` uses another process. All in one table:
"""

# %%
who_sees()

# %% [markdown]
r"""
## "An illegal memory access was encountered"

That is all that a card says, if it says anything. It almost always is a forgotten mask. What one has to know:

- A launch returns at once. The error is raised by some *later* line, the first one that waits for the card. With
  `CUDA_LAUNCH_BLOCKING=1` in the environment it is the launch itself.
- After it the process can no longer use the card: restart the kernel of the notebook.
- There is no error as long as the address lies in memory that the process has. PyTorch takes large pieces and hands out
  parts of them, so a lane past the end mostly reads another tensor.

The usual suspects, each on a row of five in a block of eight. **Predict** which of them read out of bounds.
"""

# %%
@triton.jit
def suspects_kernel(x_ptr, out_ptr, n, SUSPECT: tl.constexpr, BLOCK_SIZE: tl.constexpr):
    offs = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    if SUSPECT == "mask on the store only":
        x = tl.load(x_ptr + offs)
    elif SUSPECT == "offs <= n":
        x = tl.load(x_ptr + offs, mask=offs <= n)
    elif SUSPECT == "mask with the length of the block":
        x = tl.load(x_ptr + offs, mask=offs < BLOCK_SIZE)
    elif SUSPECT == "the neighbour before":
        x = tl.load(x_ptr + offs - 1, mask=offs < n)
    else:
        x = tl.load(x_ptr + offs, mask=offs < n)
    tl.store(out_ptr + offs, x, mask=offs < n)


SUSPECTS = ("mask on the store only", "offs <= n", "mask with the length of the block", "the neighbour before", "none")
for suspect in SUSPECTS:
    record = interpret(suspects_kernel)[(1,)](torch.ones(5), torch.zeros(5), 5, SUSPECT=suspect, BLOCK_SIZE=8)
    print(f"{suspect}:", *(f.message for f in record.findings))

# %% [markdown]
r"""
### On a card

Three helpers for a kernel that runs there:

- `tl.device_print("x", x)` prints from every thread, where Python's `print` has nothing to print. Put it under `if tl.program_id(0) == 0:`, or drown.
- `tl.device_assert(x >= 0, "x is negative")` stops the kernel; it is compiled only with `TRITON_DEBUG=1`, or with
  `@triton.jit(debug=True)`.
- `compute-sanitizer python script.py` watches each access while the kernel runs, many times slower. Its tool *memcheck*
  finds lanes outside all memory that was asked for; set `PYTORCH_NO_CUDA_MEMORY_CACHING=1`, so that each tensor is a piece
  of its own. *racecheck* looks at shared memory only: a race between programs passes.

This is the race from above on a card, if there is one:
"""

# %%
if gpu("five numbers, hardly ever the maximum: on a card the last program to store decides."):
    x = torch.randn(1_000_000, device="cuda")
    for _ in range(5):
        best = torch.full((1,), -float("inf"), device="cuda")
        best_kernel[(triton.cdiv(x.numel(), 128),)](x, best, x.numel(), BLOCK_SIZE=128)
        print(f"{best.item():.4f}, right is {x.max().item():.4f}")

# %% [markdown]
r"""
## An order of work

Guessing is quick, and goes on for ever. This takes ten minutes and ends:
"""

# %%
order_of_work()

# %% [markdown]
r"""
Let us go through it with a kernel for differences of neighbours: $\text{out}_i = x_i - x_{i-1}$, and $\text{out}_0 = x_0$.
Somebody reports "NaN, sometimes". Read the kernel, but do not search for the fault yet.
"""

# %%
@triton.jit
def differences_kernel(x_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    offs = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    x = tl.load(x_ptr + offs, mask=offs < n)
    before = tl.load(x_ptr + offs - 1, mask=offs < n)
    tl.store(out_ptr + offs, x - before, mask=offs < n)


def differences(x):
    out = torch.empty_like(x)
    n = x.numel()
    differences_kernel[(max(n // 4, 1),)](x, out, n, BLOCK_SIZE=4)
    return out


def reference(x):
    x = x.double()
    return torch.cat((x[:1], x[1:] - x[:-1]))

# %% [markdown]
r"""
**1 · Shrink.** A block of four instead of 1024, and a loop over sizes. `inspect_call` calls a host function and hands back
what its launches did. A string shows where the wrong numbers are: `x` is wrong, `.` is right.
"""

# %%
def where_wrong(function, n):
    x = torch.arange(1.0, n + 1) ** 2
    run = inspect_call(function, x)
    got = torch.from_numpy(run.outputs[0].values)
    right = torch.isclose(got.double(), reference(x))
    return "".join("." if ok else "x" for ok in right), run


for n in (1, 3, 4, 5, 8, 10):
    wrong, run = where_wrong(differences, n)
    print(f"n = {n:2}  {wrong:10}  {sorted({f.kind for f in run.findings})}")

# %% [markdown]
r"""
**2 · Values.** Where the wrong ones lie says most of it:

| wrong are | think of |
|---|---|
| all of them | scale, wrong argument, wrong sign |
| the last block | grid, mask |
| all but row 0 | a stride |
| the first element, or the first row | a neighbour before the beginning, a softmax of nothing |
| the upper or lower triangle | rows and columns exchanged, a causal mask |
| all, by little | a sum in a narrow type |
| others in each run | a race, or memory that nobody wrote |

Here are two patterns, so there are two faults: the first element, whatever n is; and the end, where n is no multiple of 4.
The second is in the host function. **Predict** what `n // 4` is for n = 10, and mend it:
"""

# %% stub="programs = max(n // 4, 1)"
def differences(x):
    out = torch.empty_like(x)
    n = x.numel()
    ### BEGIN SOLUTION
    programs = triton.cdiv(n, 4)
    ### END SOLUTION
    differences_kernel[(programs,)](x, out, n, BLOCK_SIZE=4)
    return out


for n in (1, 5, 10):
    wrong, run = where_wrong(differences, n)
    print(f"n = {n:2}  {wrong}")

# %% [markdown]
r"""
**3 · Bounds.** The first element is left. The smallest case is a single number:
"""

# %%
wrong, run = where_wrong(differences, 1)
for finding in run.findings:
    print("✗", finding.message)

# %% [markdown]
r"""
**6 · By hand.** One program, lane by lane: `accesses` has the offsets of every operation, and which lanes were on. (Steps 4
and 5 come to their right below.) **Predict** the second line.
"""

# %%
_, run = where_wrong(differences, 5)
for access in run.accesses:
    print(f"line {access.line}, {access.operation:5} {access.argument:7}", access.offsets[0], access.active[0])

# %% [markdown]
r"""
Lane 0 of program 0 asks for offset −1. On a card that is whatever lies before x: another tensor, mostly with ordinary
numbers in it, sometimes a NaN. So who reported "sometimes" was right. Element 0 has no neighbour: mend the line.
"""

# %% stub="before = tl.load(x_ptr + offs - 1, mask=offs < n)"
@triton.jit
def differences_kernel(x_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    offs = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    x = tl.load(x_ptr + offs, mask=offs < n)
    ### BEGIN SOLUTION
    before = tl.load(x_ptr + offs - 1, mask=(offs > 0) & (offs < n), other=0.0)
    ### END SOLUTION
    tl.store(out_ptr + offs, x - before, mask=offs < n)


for n in (1, 3, 4, 5, 8, 10):
    wrong, run = where_wrong(differences, n)
    print(f"n = {n:2}  {wrong:10}  {sorted({f.kind for f in run.findings})}")

# %% [markdown]
r"""
**4 · Races.** A year later somebody saves memory: `differences_kernel[...](x, x, ...)`, in place. **Predict** which of ten
elements are wrong, in blocks of four.
"""

# %%
x = torch.arange(1.0, 11) ** 2
wanted = reference(x)
record = interpret(differences_kernel)[(3,)](x, x, 10, BLOCK_SIZE=4)
print("wrong:", (x != wanted).nonzero().flatten().tolist())
print("✗", *(f.message for f in record.findings if f.kind == "race"))

# %% [markdown]
r"""
None, here, once the line above is mended: all programs have loaded before one stores. The finding does not depend on that. Element 3 belongs to program 0,
and program 1 reads it as a neighbour: who is first? In Triton's interpreter program 0 has ended by then:
"""

# %%
call = """
x = torch.arange(1.0, 11) ** 2
differences_kernel[(3,)](x, x, 10, BLOCK_SIZE=4)
print(x)
"""
print("wanted", wanted.tolist())
print("is    ", triton_interpret(differences_kernel, call))

# %% [markdown]
r"""
The first element of each later block is wrong: 25 − 16 = 9 is wanted, and 25 − 7 = 18 came out, for program 0 had already
put 7 where 16 was. One race looks right in Triton's interpreter and another one wrong; on a card both are a matter of
luck. A tool that shows a race *sometimes* proves nothing when it shows none.

**5 · Traffic.** Last, since it makes nothing wrong: n numbers are read as x and n − 1 as neighbours, n are written.
**Predict** the sum for n = 1000, and whether there is a way to read less.
"""

# %%
run = inspect_call(differences, torch.rand(1000))
for t in run.traffic:
    print(f"{t.argument:7} {t.loaded} loaded, {t.stored} stored, {t.masked} lanes off")

# %% [markdown]
r"""
Each number is asked for twice, and the second time it comes from a cache: neighbours share their 32-byte sectors. That is
how a stencil is written in Triton, and no fault. A fault is what the closed form of the task does not explain.

## Mended, or made up?

A repair is done when the *cause* is gone. Some lines make a symptom go away:

| the symptom | made up | mended |
|---|---|---|
| NaN in one row | `torch.nan_to_num`, `tl.where(y == y, y, 0.0)` | why was there nothing to sum? |
| out of bounds | room behind the tensor; indices clamped to n − 1 | a mask: such a lane reads nothing |
| out of bounds in padded rows | `.contiguous()` | the stride |
| a race | one program does it all; one launch after the other | an atomic, or a cell for each program |
| small differences | a larger tolerance; a cast at the end | the type in which the sum is kept |

The check of the assignment knows the left column: values alone earn nothing there. And once you have mended one, keep the
smallest failing case as a test.

## What you can do now

- read a finding word by word, and as data
- print from a kernel, and say why TRITON_INTERPRET must be set before the import
- say what Triton's interpreter does not see, and what compute-sanitizer does not
- take "illegal memory access" for what it almost always is
- go from the smallest failing case to the line, in an order that ends
- tell a repair from make-up

### Ask yourself (not graded)
"""

# %%
from autograder.render.lesson08_questions import QUESTIONS
from autograder.render.questions import ask

ask(*QUESTIONS)

# %% [markdown]
r"""
### One harder thing

Make `differences` work in place. Programs cannot wait for each other, so each needs its neighbour's last element before
anybody overwrites it: which second, small tensor would you fill first, by which kernel? Then open assignment 08.
"""
