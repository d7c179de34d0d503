# expect: values values
from autograder.minitriton import arange, load, store


def add_kernel(pid, x, y, out, n, BLOCK):
    offs = pid[0] * BLOCK + arange(0, BLOCK)
    mask = offs < n
    load(y, offs, mask)
    store(out, offs, load(x, offs, mask), mask)
