# expect: race races traffic
# Every number is right, and most are written by two programs.
import torch
import triton
import triton.language as tl


@triton.jit
def EXERCISE_kernel(x_ptr, out_ptr, factor, n, BLOCK_SIZE: tl.constexpr):
    offsets = tl.program_id(0) * 512 + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, factor * x, mask=mask)


def EXERCISE(x, factor):
    out = torch.empty_like(x)
    n = x.numel()
    EXERCISE_kernel[(triton.cdiv(n, 512),)](x, out, factor, n, BLOCK_SIZE=1024)
    return out
