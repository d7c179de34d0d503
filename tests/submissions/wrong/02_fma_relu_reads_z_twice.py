# expect: traffic traffic
import torch
import triton
import triton.language as tl


@triton.jit
def fma_relu_kernel(x_ptr, y_ptr, z_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    pid = tl.program_id(0)
    offsets = pid * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    z = tl.load(z_ptr + offsets, mask=mask)
    z += tl.load(z_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, tl.maximum(x * y + z / 2, 0.0), mask=mask)


def fma_relu(x, y, z):
    out = torch.empty_like(x)
    n = x.numel()
    fma_relu_kernel[(triton.cdiv(n, 1024),)](x, y, z, out, n, BLOCK_SIZE=1024)
    return out
