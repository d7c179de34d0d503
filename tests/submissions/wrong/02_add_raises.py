# expect: interface values
import torch


def add(x, y):
    out = torch.empty_like(x)
    raise ValueError("not finished")
