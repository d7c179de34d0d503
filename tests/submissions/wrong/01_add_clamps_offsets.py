# expect: traffic traffic
# The numbers are right; the last one is read and written again and again.
import numpy as np

from autograder.minitriton import arange, load, store


def add_kernel(pid, x, y, out, n, BLOCK):
    offs = pid[0] * BLOCK + arange(0, BLOCK)
    offs = np.minimum(offs, n - 1)
    store(out, offs, load(x, offs) + load(y, offs))
