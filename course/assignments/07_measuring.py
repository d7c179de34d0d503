# %% [markdown]
r"""
# Assignment 07 · Measuring

A quiz, and nothing else: lesson 07 has all that it asks for, and the cell below is there for your arithmetic. Put your answers into
the last but one cell. The last one says whether they have the form that is asked for, and not whether they are right.
"""

# %%
from autograder import check

card = {"bandwidth": 716.8, "bf16": 97.5, "l2": 64}  # an RTX 4080: GB/s, TFLOP/s, MB

# %% [markdown]
r"""
## Quiz

A point each. A number, a letter such as `"a"`, or a list of letters such as `["a", "b"]`.

**q1.** A fused softmax of 4096 × 8192 numbers in bfloat16 takes 0.2 ms. How many GB/s is that, by the bytes that the task needs?

**q2.** On an RTX 4080 a matmul of two 4096 × 4096 matrices in bfloat16 takes 2 ms. How many percent of roof is that?

**q3.** Someone times 100 launches in a loop with `time.perf_counter()`, divides by 100 and gets 9 µs at $n = 2^{18}$ and 9 µs at
$n = 2^{26}$. What is missing?

- a) a warm-up, for the compiler
- b) a synchronisation behind the loop
- c) emptying L2 before each launch
- d) the median in place of the mean

**q4.** What holds for `triton.testing.do_bench(f)` as you call it here, without other arguments?

- a) It runs `f` many more than 125 times if `f` takes a few µs.
- b) It warms up with 25 runs.
- c) It empties L2 before each timed run.
- d) It returns the median.
- e) The host's time for a launch is not in its result as long as the card has other work before.

**q5.** A kernel that reads and writes 30 MB in all takes 45 µs by `do_bench` on an RTX 4080 and 14 µs by `do_bench_cudagraph`. Why?

- a) A graph saves 31 µs of launch.
- b) `do_bench` counts the compiler.
- c) In a graph, the kernel uses more warps.
- d) The graph's runs find their data in L2.

**q6.** The profiler gives a kernel 40 of the program's 100 ms. You make it twice as fast. How many ms does the program take?
"""

# %% quiz="07.quiz"

# %% check="07.quiz"
