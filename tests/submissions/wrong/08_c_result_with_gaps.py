# expect: interface values
# The result is padded like x; a contiguous one is asked for.
import torch
import triton
import triton.language as tl


@triton.jit
def add_bias_kernel(x_ptr, bias_ptr, out_ptr, stride, n_cols, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK_SIZE)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * stride + cols, mask=mask)
    bias = tl.load(bias_ptr + cols, mask=mask)
    tl.store(out_ptr + row * stride + cols, x + bias, mask=mask)


def add_bias(x, bias):
    n_rows, n_cols = x.shape
    out = torch.empty_strided(x.shape, x.stride(), dtype=x.dtype, device=x.device)
    block_size = triton.next_power_of_2(n_cols)
    add_bias_kernel[(n_rows,)](x, bias, out, x.stride(0), n_cols, BLOCK_SIZE=block_size)
    return out
