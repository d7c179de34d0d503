# expect: values values
import torch
import triton
import triton.language as tl


@triton.jit
def parts_kernel(x_ptr, parts_ptr, n, BLOCK_SIZE: tl.constexpr):
    pid = tl.program_id(0)
    offs = pid * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    x = tl.load(x_ptr + offs, mask=offs < n, other=0.0).to(tl.float32)
    tl.store(parts_ptr + pid, tl.sum(x, axis=0))


@triton.jit
def add_up_kernel(parts_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    offs = tl.arange(0, BLOCK_SIZE)
    parts = tl.load(parts_ptr + offs, mask=offs < n, other=0.0)
    tl.store(out_ptr, tl.sum(parts, axis=0))


def total(x):
    programs = triton.cdiv(x.numel(), 1024)
    parts = torch.empty(programs, dtype=torch.float32, device=x.device)
    out = torch.empty(1, dtype=torch.float32, device=x.device)
    parts_kernel[(programs,)](x, parts, x.numel(), BLOCK_SIZE=1024)
    block_size = triton.next_power_of_2(programs)
    add_up_kernel[(1,)](parts, out, programs - 1, BLOCK_SIZE=block_size)
    return out
