# expect: unwritten values
# The block size must divide n, thinks the author.
from autograder.minitriton import arange, load, store


def add_kernel(pid, x, y, out, n, BLOCK):
    if (pid[0] + 1) * BLOCK > n:
        return
    offs = pid[0] * BLOCK + arange(0, BLOCK)
    store(out, offs, load(x, offs) + load(y, offs))
