"""Every lane keeps a maximum and a sum of its own; they meet after the first walk."""

import torch
import triton
import triton.language as tl


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
    lanes = tl.arange(0, BLOCK_SIZE)
    m = tl.full((BLOCK_SIZE,), -float("inf"), tl.float32)
    s = tl.zeros((BLOCK_SIZE,), tl.float32)
    start = 0
    while start < n_cols:
        cols = start + lanes
        x = tl.load(x_ptr + cols * x_col, mask=cols < n_cols, other=-float("inf")).to(tl.float32)
        new_m = tl.maximum(m, x)
        # A lane that has met nothing but −inf so far has a sum of 0.
        s = tl.where(new_m == -float("inf"), 0.0, s * tl.exp(m - new_m) + tl.exp(x - new_m))
        m = new_m
        start += BLOCK_SIZE
    whole = tl.max(m, axis=0)
    total = tl.sum(s * tl.exp(m - whole), axis=0)
    for start in range(0, n_cols, BLOCK_SIZE):
        cols = start + lanes
        mask = cols < n_cols
        x = tl.load(x_ptr + cols * x_col, mask=mask, other=-float("inf")).to(tl.float32)
        tl.store(out_ptr + cols * out_col, tl.exp(x - whole) / total, mask=mask)


def softmax_long(x, BLOCK_SIZE):
    out = torch.empty_like(x)
    rows, cols = x.shape
    softmax_long_kernel[(rows,)](x, out, *x.stride(), *out.stride(), cols, BLOCK_SIZE=BLOCK_SIZE)
    return out
