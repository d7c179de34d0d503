# expect: torch_computed kernel
# Python adds, number by number.
import torch


def add(x, y):
    return torch.tensor([a + b for a, b in zip(x.tolist(), y.tolist())], dtype=x.dtype)
