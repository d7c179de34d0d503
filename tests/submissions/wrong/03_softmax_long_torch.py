# expect: torch_computed kernel
import torch


def softmax_long(x, BLOCK_SIZE):
    return torch.softmax(x, dim=-1)
