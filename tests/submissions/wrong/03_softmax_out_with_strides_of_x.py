# expect: out_of_bounds bounds
import torch
import triton
import triton.language as tl


@triton.jit
def softmax_fwd_kernel(x_ptr, out_ptr, x_stride, out_stride, n_cols, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK_SIZE)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * x_stride + cols, mask=mask, other=-float("inf")).to(tl.float32)
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + row * x_stride + cols, e / tl.sum(e, axis=0), mask=mask)


def triton_softmax(x):
    y = torch.empty_like(x)
    rows, cols = x.shape
    block = triton.next_power_of_2(cols)
    softmax_fwd_kernel[(rows,)](x, y, x.stride(0), y.stride(0), cols, BLOCK_SIZE=block)
    return y
