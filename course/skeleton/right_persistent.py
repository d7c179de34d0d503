"""FILL IN: another right way. Here eight programs, each of which takes several blocks."""

import torch
import triton
import triton.language as tl


@triton.jit
def EXERCISE_kernel(x_ptr, out_ptr, factor, n, BLOCK_SIZE: tl.constexpr):
    step = tl.num_programs(0) * BLOCK_SIZE
    for start in range(tl.program_id(0) * BLOCK_SIZE, n, step):
        offsets = start + tl.arange(0, BLOCK_SIZE)
        mask = offsets < n
        x = tl.load(x_ptr + offsets, mask=mask)
        tl.store(out_ptr + offsets, factor * x, mask=mask)


def EXERCISE(x, factor):
    out = torch.empty_like(x)
    EXERCISE_kernel[(8,)](x, out, factor, x.numel(), BLOCK_SIZE=256)
    return out
