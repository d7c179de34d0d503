# expect: out_of_bounds bounds
from autograder.minitriton import arange, load, store


def add_kernel(pid, x, y, out, n, BLOCK):
    lanes = arange(0, BLOCK)
    offs = pid[0] * BLOCK + lanes
    mask = lanes < n
    store(out, offs, load(x, offs, mask) + load(y, offs, mask), mask)
