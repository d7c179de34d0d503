# expect: race races values
# A tuple times BLOCK is a long tuple, not a number.
from autograder.minitriton import arange, load, store


def add_kernel(pid, x, y, out, n, BLOCK):
    offs = pid * BLOCK + arange(0, BLOCK)
    mask = offs < n
    store(out, offs, load(x, offs, mask) + load(y, offs, mask), mask)
