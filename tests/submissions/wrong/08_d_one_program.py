# expect: race races
import torch
import triton
import triton.language as tl


@triton.jit
def total_kernel(x_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    acc = tl.zeros((BLOCK_SIZE,), tl.float32)
    for start in range(0, n, BLOCK_SIZE):
        offs = start + tl.arange(0, BLOCK_SIZE)
        acc += tl.load(x_ptr + offs, mask=offs < n, other=0.0).to(tl.float32)
    tl.store(out_ptr, tl.sum(acc, axis=0))


def total(x):
    out = torch.empty(1, dtype=torch.float32, device=x.device)
    total_kernel[(1,)](x, out, x.numel(), BLOCK_SIZE=1024)
    return out
