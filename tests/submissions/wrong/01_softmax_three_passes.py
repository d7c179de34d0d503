# expect: traffic traffic
import numpy as np

from autograder.minitriton import arange, load, store


def softmax_kernel(pid, x, out, n_cols, BLOCK):
    lanes = arange(0, BLOCK)
    offs = pid[0] * n_cols + lanes
    mask = lanes < n_cols
    top = load(x, offs, mask, other=-np.inf).max()
    total = np.exp(load(x, offs, mask, other=-np.inf) - top).sum()
    store(out, offs, np.exp(load(x, offs, mask, other=-np.inf) - top) / total, mask)
