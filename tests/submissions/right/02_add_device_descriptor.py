"""Tensor descriptors made inside the kernel."""

import torch
import triton
import triton.language as tl


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    start = tl.program_id(0) * BLOCK_SIZE
    x = tl.make_tensor_descriptor(x_ptr, [n], [1], [BLOCK_SIZE])
    y = tl.make_tensor_descriptor(y_ptr, [n], [1], [BLOCK_SIZE])
    out = tl.make_tensor_descriptor(out_ptr, [n], [1], [BLOCK_SIZE])
    out.store([start], x.load([start]) + y.load([start]))


def add(x, y):
    out = torch.empty_like(x)
    n = x.numel()
    add_kernel[(triton.cdiv(n, 1024),)](x, y, out, n, BLOCK_SIZE=1024)
    return out
