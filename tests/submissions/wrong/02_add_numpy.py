# expect: torch_computed kernel
import torch


def add(x, y):
    return torch.from_numpy(x.numpy() + y.numpy())
