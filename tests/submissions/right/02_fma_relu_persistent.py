"""Eight programs for any length; a program without a block does nothing."""

import torch
import triton
import triton.language as tl


@triton.jit
def fma_relu_kernel(x_ptr, y_ptr, z_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    blocks = tl.cdiv(n, BLOCK_SIZE)
    for block in range(tl.program_id(0), blocks, tl.num_programs(0)):
        offsets = block * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
        mask = offsets < n
        x = tl.load(x_ptr + offsets, mask=mask)
        y = tl.load(y_ptr + offsets, mask=mask)
        z = tl.load(z_ptr + offsets, mask=mask)
        tl.store(out_ptr + offsets, tl.maximum(x * y + z, 0.0), mask=mask)


def fma_relu(x, y, z):
    out = torch.empty_like(x)
    fma_relu_kernel[(8,)](x, y, z, out, x.shape[0], BLOCK_SIZE=512)
    return out
