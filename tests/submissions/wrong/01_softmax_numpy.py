# expect: torch_computed values
import numpy as np


def softmax_kernel(pid, x, out, n_cols, BLOCK):
    row = x[pid[0]]
    powers = np.exp(row - row.max())
    out[pid[0]] = powers / powers.sum()
