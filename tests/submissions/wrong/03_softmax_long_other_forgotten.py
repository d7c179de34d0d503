# expect: undefined_lane bounds
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
    row = tl.program_id(0)
    m = -float("inf")
    s = 0.0
    for start in range(0, n_cols, BLOCK_SIZE):
        cols = start + tl.arange(0, BLOCK_SIZE)
        at = x_ptr + row * x_row + cols * x_col
        x = tl.load(at, mask=cols < n_cols).to(tl.float32)
        new_m = tl.maximum(m, tl.max(x, axis=0))
        shift = tl.where(new_m == -float("inf"), 0.0, new_m)
        s = s * tl.exp(m - shift) + tl.sum(tl.exp(x - shift), axis=0)
        m = new_m
    for start in range(0, n_cols, BLOCK_SIZE):
        cols = start + tl.arange(0, BLOCK_SIZE)
        mask = cols < n_cols
        at = x_ptr + row * x_row + cols * x_col
        x = tl.load(at, mask=mask, other=-float("inf")).to(tl.float32)
        y = tl.exp(x - m) / s
        tl.store(out_ptr + row * out_row + cols * out_col, y, mask=mask)


def softmax_long(x, BLOCK_SIZE):
    out = torch.empty_like(x)
    rows, cols = x.shape
    softmax_long_kernel[(rows,)](x, out, *x.stride(), *out.stride(), cols, BLOCK_SIZE=BLOCK_SIZE)
    return out
