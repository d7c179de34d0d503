import numpy as np

from autograder.minitriton import *


def weights(numbers, on):
    """Powers of two, 0 where no number is."""
    top = numbers.max(where=on, initial=-np.inf)
    return np.where(on, np.exp2((numbers - top) * np.log2(np.e)), 0)


def softmax_kernel(pid, source, target, width, lanes):
    (number,) = pid
    column = arange(lanes)
    address, on = column + width * number, column < width
    w = weights(load(source, address, mask=on), on)
    store(target, address, w / np.add.reduce(w), mask=on)
