# expect: values values
# The right sums, in the wrong order.
from autograder.minitriton import arange, load, store


def add_kernel(pid, x, y, out, n, BLOCK):
    offs = pid[0] * BLOCK + arange(0, BLOCK)
    mask = offs < n
    total = load(x, offs, mask) + load(y, offs, mask)
    store(out, n - 1 - offs, total, mask)
