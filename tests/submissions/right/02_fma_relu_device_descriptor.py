"""Tensor descriptors made inside the kernel."""

import torch
import triton
import triton.language as tl


@triton.jit
def fma_relu_kernel(x_ptr, y_ptr, z_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    start = tl.program_id(0) * BLOCK_SIZE
    x = tl.make_tensor_descriptor(x_ptr, [n], [1], [BLOCK_SIZE]).load([start])
    y = tl.make_tensor_descriptor(y_ptr, [n], [1], [BLOCK_SIZE]).load([start])
    z = tl.make_tensor_descriptor(z_ptr, [n], [1], [BLOCK_SIZE]).load([start])
    out = tl.make_tensor_descriptor(out_ptr, [n], [1], [BLOCK_SIZE])
    out.store([start], tl.maximum(x * y + z, 0.0))


def fma_relu(x, y, z):
    out = torch.empty_like(x)
    n = x.numel()
    fma_relu_kernel[(triton.cdiv(n, 1024),)](x, y, z, out, n, BLOCK_SIZE=1024)
    return out
