# expect: out_of_bounds bounds
# The numbers are right.
from autograder.minitriton import arange, load, store


def add_kernel(pid, x, y, out, n, BLOCK):
    offs = pid[0] * BLOCK + arange(0, BLOCK)
    try:
        store(out, offs, load(x, offs) + load(y, offs))
    except IndexError:
        mask = offs < n
        store(out, offs, load(x, offs, mask) + load(y, offs, mask), mask)
