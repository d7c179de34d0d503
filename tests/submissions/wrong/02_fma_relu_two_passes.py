# expect: traffic traffic
# Two kernels: 6n instead of 4n.
import torch
import triton
import triton.language as tl


@triton.jit
def multiply_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n
    product = tl.load(x_ptr + offsets, mask=mask) * tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, product, mask=mask)


@triton.jit
def add_relu_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n
    total = tl.load(x_ptr + offsets, mask=mask) + tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, tl.maximum(total, 0.0), mask=mask)


def fma_relu(x, y, z):
    product, out = torch.empty_like(x), torch.empty_like(x)
    n = x.numel()
    grid = (triton.cdiv(n, 1024),)
    multiply_kernel[grid](x, y, product, n, BLOCK_SIZE=1024)
    add_relu_kernel[grid](product, z, out, n, BLOCK_SIZE=1024)
    return out
