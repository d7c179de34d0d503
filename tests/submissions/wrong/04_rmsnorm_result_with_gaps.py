# expect: interface values
# The result is padded like x; a contiguous one is asked for.
import torch
import triton
import triton.language as tl


@triton.jit
def rmsnorm_kernel(x_ptr, w_ptr, out_ptr, stride, n_cols, eps, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK_SIZE)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * stride + cols, mask=mask, other=0.0).to(tl.float32)
    w = tl.load(w_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    r = tl.rsqrt(tl.sum(x * x, axis=0) / n_cols + eps)
    tl.store(out_ptr + row * stride + cols, x * r * w, mask=mask)


def rmsnorm(x, w, eps=1e-6):
    out = torch.empty_strided(x.shape, x.stride(), dtype=x.dtype, device=x.device)
    rows, cols = x.shape
    block = triton.next_power_of_2(cols)
    rmsnorm_kernel[(rows,)](x, w, out, x.stride(0), cols, eps, BLOCK_SIZE=block)
    return out
