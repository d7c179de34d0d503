import numpy as np

from autograder import minitriton as tl


def block_of(pid, n, BLOCK):
    offs = pid[0] * BLOCK + tl.arange(0, BLOCK)
    return {"offs": offs, "mask": np.where(offs < n, 1, 0)}


def add_kernel(pid, x, y, out, n, BLOCK):
    block = block_of(pid, n, BLOCK)
    total = tl.load(x, other=-1.0, **block)
    total += tl.load(y, **block)
    tl.store(out, values=total, **block)
