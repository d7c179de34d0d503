# expect: values values
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
    tl.store(out_ptr + row * out_stride + cols, e / tl.sum(e, axis=0), mask=mask)


@triton.jit
def softmax_bwd_kernel(
    y_ptr, dy_ptr, dx_ptr, y_stride, dy_stride, dx_stride, n_cols, BLOCK_SIZE: tl.constexpr
):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK_SIZE)
    mask = cols < n_cols
    y = tl.load(y_ptr + row * y_stride + cols, mask=mask, other=0.0).to(tl.float32)
    dy = tl.load(dy_ptr + row * dy_stride + cols, mask=mask, other=0.0).to(tl.float32)
    dx = dy - tl.sum(dy * y, axis=0)
    tl.store(dx_ptr + row * dx_stride + cols, dx, mask=mask)


class TritonSoftmax(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = torch.empty_like(x)
        rows, cols = x.shape
        block = triton.next_power_of_2(cols)
        softmax_fwd_kernel[(rows,)](x, y, x.stride(0), y.stride(0), cols, BLOCK_SIZE=block)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, dy):
        (y,) = ctx.saved_tensors
        dx = torch.empty_like(y)
        rows, cols = y.shape
        block = triton.next_power_of_2(cols)
        strides = (y.stride(0), dy.stride(0), dx.stride(0))
        softmax_bwd_kernel[(rows,)](y, dy, dx, *strides, cols, BLOCK_SIZE=block)
        return dx


def triton_softmax(x):
    return TritonSoftmax.apply(x)
