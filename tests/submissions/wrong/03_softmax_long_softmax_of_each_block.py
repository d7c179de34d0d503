# expect: values values
import torch
import triton
import triton.language as tl


@triton.jit
def softmax_long_kernel(
    x_ptr, out_ptr, x_row, x_col, out_row, out_col, n_cols, BLOCK_SIZE: tl.constexpr
):
    row = tl.program_id(0)
    cols = tl.program_id(1) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * x_row + cols * x_col, mask=mask, other=-float("inf")).to(tl.float32)
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + row * out_row + cols * out_col, e / tl.sum(e, axis=0), mask=mask)


def softmax_long(x, BLOCK_SIZE):
    out = torch.empty_like(x)
    rows, cols = x.shape
    grid = (rows, triton.cdiv(cols, BLOCK_SIZE))
    softmax_long_kernel[grid](x, out, *x.stride(), *out.stride(), cols, BLOCK_SIZE=BLOCK_SIZE)
    return out
