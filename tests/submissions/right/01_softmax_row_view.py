import numpy as np

from autograder.minitriton import arange, load, store


def softmax_kernel(pid, x, out, n_cols, BLOCK):
    # A row of x is an array of its own, flat, with n_cols numbers.
    lanes = arange(0, n_cols)
    row = load(x[pid[0]], lanes)
    row -= row.max()
    np.exp(row, out=row)
    store(out[pid[0]], lanes, row / row.sum())
