# expect: race races
import torch
import triton
import triton.language as tl


@triton.jit
def total_kernel(x_ptr, out_ptr, first, n, BLOCK_SIZE: tl.constexpr):
    offs = first + tl.arange(0, BLOCK_SIZE)
    x = tl.load(x_ptr + offs, mask=offs < n, other=0.0).to(tl.float32)
    so_far = tl.load(out_ptr)
    tl.store(out_ptr, so_far + tl.sum(x, axis=0))


def total(x):
    out = torch.zeros(1, dtype=torch.float32, device=x.device)
    n = x.numel()
    for first in range(0, n, 1024):
        total_kernel[(1,)](x, out, first, n, BLOCK_SIZE=1024)
    return out
