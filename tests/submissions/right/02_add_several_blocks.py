"""Four blocks a program, unrolled when it compiles; the grid is a function of the parameters."""

import torch
import triton
import triton.language as tl


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr, BLOCKS: tl.constexpr):
    first = tl.program_id(0) * BLOCK_SIZE * BLOCKS
    for block in tl.static_range(BLOCKS):
        offsets = first + block * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
        mask = offsets < n
        x = tl.load(x_ptr + offsets, mask=mask)
        y = tl.load(y_ptr + offsets, mask=mask)
        tl.store(out_ptr + offsets, x + y, mask=mask)


def add(x, y):
    out = torch.empty_like(x)
    n = x.numel()
    grid = lambda meta: (triton.cdiv(n, meta["BLOCK_SIZE"] * meta["BLOCKS"]),)  # noqa: E731
    add_kernel[grid](x, y, out, n, BLOCK_SIZE=128, BLOCKS=4)
    return out
