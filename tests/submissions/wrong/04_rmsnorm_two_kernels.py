# expect: traffic traffic
import torch
import triton
import triton.language as tl


@triton.jit
def rms_kernel(x_ptr, r_ptr, x_stride, n_cols, eps, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK_SIZE)
    x = tl.load(x_ptr + row * x_stride + cols, mask=cols < n_cols, other=0.0).to(tl.float32)
    tl.store(r_ptr + row, tl.rsqrt(tl.sum(x * x, axis=0) / n_cols + eps))


@triton.jit
def scale_kernel(x_ptr, r_ptr, w_ptr, out_ptr, x_stride, n_cols, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK_SIZE)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * x_stride + cols, mask=mask, other=0.0).to(tl.float32)
    w = tl.load(w_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    tl.store(out_ptr + row * n_cols + cols, x * tl.load(r_ptr + row) * w, mask=mask)


def rmsnorm(x, w, eps=1e-6):
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    rows, cols = x.shape
    r = torch.empty(rows, dtype=torch.float32, device=x.device)
    block = triton.next_power_of_2(cols)
    rms_kernel[(rows,)](x, r, x.stride(0), cols, eps, BLOCK_SIZE=block)
    scale_kernel[(rows,)](x, r, w, out, x.stride(0), cols, BLOCK_SIZE=block)
    return out
