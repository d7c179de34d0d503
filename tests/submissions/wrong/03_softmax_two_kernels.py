# expect: traffic traffic
import torch
import triton
import triton.language as tl


@triton.jit
def statistics_kernel(x_ptr, m_ptr, s_ptr, x_stride, n_cols, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK_SIZE)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * x_stride + cols, mask=mask, other=-float("inf")).to(tl.float32)
    m = tl.max(x, axis=0)
    tl.store(m_ptr + row, m)
    tl.store(s_ptr + row, tl.sum(tl.exp(x - m), axis=0))


@triton.jit
def divide_kernel(x_ptr, m_ptr, s_ptr, out_ptr, x_stride, n_cols, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK_SIZE)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * x_stride + cols, mask=mask, other=0.0).to(tl.float32)
    y = tl.exp(x - tl.load(m_ptr + row)) / tl.load(s_ptr + row)
    tl.store(out_ptr + row * n_cols + cols, y, mask=mask)


def triton_softmax(x):
    y = torch.empty_like(x)
    rows, cols = x.shape
    m = torch.empty(rows, dtype=torch.float32, device=x.device)
    s = torch.empty_like(m)
    block = triton.next_power_of_2(cols)
    statistics_kernel[(rows,)](x, m, s, x.stride(0), cols, BLOCK_SIZE=block)
    divide_kernel[(rows,)](x, m, s, y, x.stride(0), cols, BLOCK_SIZE=block)
    return y
