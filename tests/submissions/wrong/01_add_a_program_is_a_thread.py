# expect: unwritten values
from autograder.minitriton import arange, load, store


def add_kernel(pid, x, y, out, n, BLOCK):
    i = pid[0]
    store(out, i, load(x, i) + load(y, i))
