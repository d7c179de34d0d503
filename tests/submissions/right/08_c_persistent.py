"""A few programs share the rows; the bias stays with each of them."""

import torch
import triton
import triton.language as tl


@triton.jit
def add_bias_kernel(out_ptr, bias_ptr, x_ptr, n_rows, n_cols, x_stride, LANES: tl.constexpr):
    cols = tl.arange(0, LANES)
    there = cols < n_cols
    bias = tl.load(bias_ptr + cols, there)
    for row in range(tl.program_id(0), n_rows, tl.num_programs(0)):
        x = tl.load(x_ptr + row * x_stride + cols, there)
        tl.store(out_ptr + row * n_cols + cols, x + bias, there)


def add_bias(x, bias):
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    lanes = triton.next_power_of_2(x.size(1))
    add_bias_kernel[(min(len(x), 6),)](out, bias, x, *x.shape, x.stride(0), LANES=lanes)
    return out
