# expect: interface values
from autograder.minitriton import arange, load, store


def add_kernel(x, y, out, n):
    offs = arange(0, 256)
    store(out, offs, load(x, offs) + load(y, offs), offs < n)
