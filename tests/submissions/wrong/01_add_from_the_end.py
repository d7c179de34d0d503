# expect: out_of_bounds bounds
# NumPy would take negative offsets from the end.
from autograder.minitriton import arange, load, store


def add_kernel(pid, x, y, out, n, BLOCK):
    offs = n - (pid[0] + 1) * BLOCK + arange(0, BLOCK)
    mask = offs < n
    store(out, offs, load(x, offs, mask) + load(y, offs, mask), mask)
