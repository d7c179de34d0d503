"""Tensor descriptors: they read 0 beyond the row, which is what a sum of squares wants."""

import torch
import triton
import triton.language as tl


@triton.jit
def rmsnorm_kernel(x_ptr, w_ptr, out_ptr, x_stride, n_rows, n_cols, eps, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0)
    shape = [n_rows, n_cols]
    source = tl.make_tensor_descriptor(x_ptr, shape, [x_stride, 1], [1, BLOCK_SIZE])
    target = tl.make_tensor_descriptor(out_ptr, shape, [n_cols, 1], [1, BLOCK_SIZE])
    weights = tl.make_tensor_descriptor(w_ptr, [n_cols], [1], [BLOCK_SIZE])
    x = source.load([row, 0]).to(tl.float32)
    w = weights.load([0]).to(tl.float32)
    r = tl.rsqrt(tl.sum(x * x, axis=1) / n_cols + eps)
    y = x * r[:, None] * w[None, :]
    target.store([row, 0], y.to(out_ptr.dtype.element_ty))


def rmsnorm(x, w, eps=1e-6):
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    rows, cols = x.shape
    block = max(16, triton.next_power_of_2(cols))  # a descriptor's rows take 16 bytes or more
    rmsnorm_kernel[(rows,)](x, w, out, x.stride(0), rows, cols, eps, BLOCK_SIZE=block)
    return out
