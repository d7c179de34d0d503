# expect: unwritten values
from autograder.minitriton import arange, load, store


def add_kernel(pid, x, y, out, n, BLOCK):
    pass
