import torch
import triton
import triton.language as tl


@triton.jit
def scaled_copy_kernel(x_ptr, out_ptr, alpha, n, BLOCK_SIZE: tl.constexpr):
    step = tl.num_programs(0) * BLOCK_SIZE
    for start in range(tl.program_id(0) * BLOCK_SIZE, n, step):
        offs = start + tl.arange(0, BLOCK_SIZE)
        x = tl.load(x_ptr + offs, mask=offs < n)
        tl.store(out_ptr + offs, alpha * x, mask=offs < n)


def scaled_copy(x, alpha):
    out = torch.empty_like(x)
    scaled_copy_kernel[(4,)](x, out, alpha, x.numel(), BLOCK_SIZE=128)
    return out
