# expect: out_of_bounds bounds
import torch
import triton
import triton.language as tl


@triton.jit
def row_max_kernel(x_ptr, out_ptr, x_stride, n_cols, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK_SIZE)
    x = tl.load(x_ptr + row * x_stride + cols)
    tl.store(out_ptr + row, tl.max(x, axis=0))


def row_max(x):
    n_rows, n_cols = x.shape
    out = torch.empty(n_rows, dtype=x.dtype, device=x.device)
    block_size = triton.next_power_of_2(n_cols)
    row_max_kernel[(n_rows,)](x, out, x.stride(0), n_cols, BLOCK_SIZE=block_size)
    return out
