"""Block pointers with a boundary check."""

import torch
import triton
import triton.language as tl


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    start = tl.program_id(0) * BLOCK_SIZE
    x = tl.make_block_ptr(x_ptr, (n,), (1,), (start,), (BLOCK_SIZE,), (0,))
    y = tl.make_block_ptr(y_ptr, (n,), (1,), (start,), (BLOCK_SIZE,), (0,))
    out = tl.make_block_ptr(out_ptr, (n,), (1,), (start,), (BLOCK_SIZE,), (0,))
    total = tl.load(x, boundary_check=(0,)) + tl.load(y, boundary_check=(0,))
    tl.store(out, total, boundary_check=(0,))


def add(x, y):
    out = torch.empty_like(x)
    n = x.numel()
    add_kernel[(triton.cdiv(n, 1024),)](x, y, out, n, BLOCK_SIZE=1024)
    return out
