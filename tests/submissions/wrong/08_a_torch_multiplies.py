# expect: torch_computed kernel
import torch
import triton
import triton.language as tl


def scaled_copy(x, alpha):
    return alpha * x
