# expect: traffic traffic
import torch
import triton
import triton.language as tl


@triton.jit
def softmax_long_kernel(
    x_ptr, out_ptr, x_row, x_col, out_row, out_col, n_cols, BLOCK_SIZE: tl.constexpr
):
    x_ptr += tl.program_id(0) * x_row
    out_ptr += tl.program_id(0) * out_row
    lanes = tl.arange(0, BLOCK_SIZE)
    m = -float("inf")
    for start in range(0, n_cols, BLOCK_SIZE):
        cols = start + lanes
        x = tl.load(x_ptr + cols * x_col, mask=cols < n_cols, other=-float("inf")).to(tl.float32)
        m = tl.maximum(m, tl.max(x, axis=0))
    s = 0.0
    for start in range(0, n_cols, BLOCK_SIZE):
        cols = start + lanes
        x = tl.load(x_ptr + cols * x_col, mask=cols < n_cols, other=-float("inf")).to(tl.float32)
        s += tl.sum(tl.exp(x - m), axis=0)
    for start in range(0, n_cols, BLOCK_SIZE):
        cols = start + lanes
        mask = cols < n_cols
        x = tl.load(x_ptr + cols * x_col, mask=mask, other=-float("inf")).to(tl.float32)
        tl.store(out_ptr + cols * out_col, tl.exp(x - m) / s, mask=mask)


def softmax_long(x, BLOCK_SIZE):
    out = torch.empty_like(x)
    rows, cols = x.shape
    softmax_long_kernel[(rows,)](x, out, *x.stride(), *out.stride(), cols, BLOCK_SIZE=BLOCK_SIZE)
    return out
