# expect: out_of_bounds bounds
import torch
import triton
import triton.language as tl


@triton.jit
def scaled_copy_kernel(x_ptr, out_ptr, alpha, n, BLOCK_SIZE: tl.constexpr):
    offs = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offs < n
    x = tl.load(x_ptr + offs)
    tl.store(out_ptr + offs, alpha * x, mask=mask)


def scaled_copy(x, alpha):
    out = torch.empty_like(x)
    n = x.numel()
    scaled_copy_kernel[(triton.cdiv(n, 16),)](x, out, alpha, n, BLOCK_SIZE=16)
    return out
