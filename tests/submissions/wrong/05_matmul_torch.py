# expect: torch_computed kernel
import torch


def matmul(a, b):
    return torch.matmul(a, b)
