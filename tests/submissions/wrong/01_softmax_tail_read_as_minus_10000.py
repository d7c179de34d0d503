# expect: values values
# The lowest score that the text allows is no -inf: it counts among its like.
import numpy as np

from autograder.minitriton import arange, load, store


def softmax_kernel(pid, x, out, n_cols, BLOCK):
    lanes = arange(0, BLOCK)
    offs = pid[0] * n_cols + lanes
    mask = lanes < n_cols
    row = load(x, offs, mask, other=-1e4)
    powers = np.exp(row - row.max())
    store(out, offs, powers / powers.sum(), mask)
