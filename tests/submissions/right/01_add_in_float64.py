import numpy as np

from autograder.minitriton import *


def add_kernel(pid, x, y, out, n, BLOCK):
    # The lanes backwards, the sum wide: neither matters.
    offs = pid[0] * BLOCK + BLOCK - 1 - arange(BLOCK)
    a = load(x, offs, offs < n).astype(np.float64)
    store(out, offs, a + load(y, offs, offs < n), offs < n)
