# expect: interface values
# A tuple times BLOCK would be a long tuple: the pid of a launch refuses, and says what to write.
from autograder.minitriton import arange, load, store


def add_kernel(pid, x, y, out, n, BLOCK):
    offs = pid * BLOCK + arange(0, BLOCK)
    mask = offs < n
    store(out, offs, load(x, offs, mask) + load(y, offs, mask), mask)
