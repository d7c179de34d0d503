"""tl.reduce over pairs (maximum, sum), joined by one function for blocks and for the walk."""

import torch
import triton
import triton.language as tl


@triton.jit
def joined(m_a, s_a, m_b, s_b):
    m = tl.maximum(m_a, m_b)
    shift = tl.where(m == -float("inf"), 0.0, m)
    return m, s_a * tl.exp(m_a - shift) + s_b * tl.exp(m_b - shift)


@triton.jit
def softmax_long_kernel(
    x_ptr,
    out_ptr,
    x_row,
    x_col,
    out_row,
    out_col,
    n_cols,
    BLOCK_SIZE: tl.constexpr,
):
    x_ptr += tl.program_id(0) * x_row
    out_ptr += tl.program_id(0) * out_row
    m = -float("inf")
    s = 0.0
    for start in range(0, n_cols, BLOCK_SIZE):
        cols = start + tl.arange(0, BLOCK_SIZE)
        x = tl.load(x_ptr + cols * x_col, mask=cols < n_cols, other=-float("inf")).to(tl.float32)
        ones = tl.where(x == -float("inf"), 0.0, 1.0)
        block_m, block_s = tl.reduce((x, ones), 0, joined)
        m, s = joined(m, s, block_m, block_s)
    for start in range(0, n_cols, BLOCK_SIZE):
        cols = start + tl.arange(0, BLOCK_SIZE)
        mask = cols < n_cols
        x = tl.load(x_ptr + cols * x_col, mask=mask, other=-float("inf")).to(tl.float32)
        tl.store(out_ptr + cols * out_col, tl.exp(x - m) / s, mask=mask)


def softmax_long(x, BLOCK_SIZE):
    out = torch.empty_like(x)
    rows, cols = x.shape
    softmax_long_kernel[(rows,)](x, out, *x.stride(), *out.stride(), cols, BLOCK_SIZE=BLOCK_SIZE)
    return out
