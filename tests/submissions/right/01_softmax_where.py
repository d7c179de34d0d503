import numpy as np

from autograder.minitriton import arange, load, store


def softmax_kernel(pid, x, out, n_cols, BLOCK):
    # A tail of zeros that np.where sets to -inf afterwards is right as well.
    lanes = arange(0, BLOCK)
    mask = lanes < n_cols
    row = np.where(mask, load(x, pid[0] * n_cols + lanes, mask), -np.inf)
    row = row.astype(np.float64)
    powers = np.exp(row - row.max())
    store(out, pid[0] * n_cols + lanes, powers / powers.sum(), mask)
