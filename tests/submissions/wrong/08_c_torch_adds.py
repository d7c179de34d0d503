# expect: torch_computed kernel
import torch
import triton
import triton.language as tl


def add_bias(x, bias):
    return x + bias
