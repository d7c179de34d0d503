# expect: torch_computed kernel
import torch
import triton
import triton.language as tl


def attention(q, k, v):
    return torch.nn.functional.scaled_dot_product_attention(q, k, v)
