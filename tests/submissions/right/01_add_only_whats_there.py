from autograder.minitriton import arange, load, store


def add_kernel(pid, x, y, out, n, BLOCK):
    # The last block is made shorter, so that no lane needs a mask.
    start = pid[0] * BLOCK
    offs = arange(start, min(start + BLOCK, n))
    store(out, offs, load(x, offs) + load(y, offs))
