# expect: traffic traffic
import torch
import triton
import triton.language as tl


@triton.jit
def EXERCISE_kernel(x_ptr, out_ptr, factor, n, BLOCK_SIZE: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    again = tl.load(x_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, factor * (x + again) / 2, mask=mask)


def EXERCISE(x, factor):
    out = torch.empty_like(x)
    n = x.numel()
    EXERCISE_kernel[(triton.cdiv(n, 1024),)](x, out, factor, n, BLOCK_SIZE=1024)
    return out
