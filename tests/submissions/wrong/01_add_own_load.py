# expect: torch_computed values
import numpy as np

from autograder.minitriton import arange, store


def load(arr, offs, mask):
    return np.where(mask, arr[offs % arr.size], 0)


def add_kernel(pid, x, y, out, n, BLOCK):
    offs = pid[0] * BLOCK + arange(0, BLOCK)
    mask = offs < n
    store(out, offs, load(x, offs, mask) + load(y, offs, mask), mask)
