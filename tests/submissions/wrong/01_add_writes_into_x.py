# expect: interface values
from autograder.minitriton import arange, load, store


def add_kernel(pid, x, y, out, n, BLOCK):
    offs = pid[0] * BLOCK + arange(0, BLOCK)
    mask = offs < n
    total = load(x, offs, mask) + load(y, offs, mask)
    store(x, offs, total, mask)
    store(out, offs, total, mask)
