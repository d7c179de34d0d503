import numpy as np

from autograder.minitriton import arange, load, store


def softmax_kernel(pid, x, out, n_cols, BLOCK):
    offs = pid[0] * n_cols + arange(0, BLOCK)
    mask = offs < (pid[0] + 1) * n_cols
    row = load(x, offs, mask, other=-np.inf)
    shifted = row - np.max(row)
    store(out, offs, np.exp(shifted - np.log(np.sum(np.exp(shifted)))), mask)
