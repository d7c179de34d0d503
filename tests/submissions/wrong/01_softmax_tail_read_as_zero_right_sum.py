# expect: values values
# The tail is left out of the sum, but its zeros take part in the maximum, and all powers underflow.
import numpy as np

from autograder.minitriton import arange, load, store


def softmax_kernel(pid, x, out, n_cols, BLOCK):
    lanes = arange(0, BLOCK)
    offs = pid[0] * n_cols + lanes
    mask = lanes < n_cols
    row = load(x, offs, mask)
    powers = np.exp(row - row.max())[mask]
    store(out, offs[mask], powers / powers.sum())
