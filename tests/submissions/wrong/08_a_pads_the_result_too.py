# expect: traffic traffic
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
    n = x.numel()
    whole = triton.cdiv(n, 1024) * 1024
    padded = torch.zeros(whole, dtype=x.dtype, device=x.device)
    padded[:n] = x
    out = torch.empty(whole, dtype=x.dtype, device=x.device)
    scaled_copy_kernel[(triton.cdiv(n, 1024),)](padded, out, alpha, whole, BLOCK_SIZE=1024)
    return out[:n]
