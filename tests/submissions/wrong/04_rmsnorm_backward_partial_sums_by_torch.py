# expect: torch_computed kernel
import torch
import triton
import triton.language as tl


@triton.jit
def rmsnorm_fwd_kernel(x_ptr, w_ptr, y_ptr, r_ptr, x_stride, n_cols, eps, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK_SIZE)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * x_stride + cols, mask=mask, other=0.0).to(tl.float32)
    w = tl.load(w_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    r = tl.rsqrt(tl.sum(x * x, axis=0) / n_cols + eps)
    tl.store(r_ptr + row, r)
    tl.store(y_ptr + row * n_cols + cols, x * r * w, mask=mask)


@triton.jit
def rmsnorm_bwd_kernel(
    x_ptr,
    w_ptr,
    r_ptr,
    dy_ptr,
    dx_ptr,
    partial_ptr,
    x_stride,
    n_rows,
    n_cols,
    BLOCK_SIZE: tl.constexpr,
):
    cols = tl.arange(0, BLOCK_SIZE)
    mask = cols < n_cols
    w = tl.load(w_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    dw = tl.zeros((BLOCK_SIZE,), tl.float32)
    for row in range(tl.program_id(0), n_rows, tl.num_programs(0)):
        x = tl.load(x_ptr + row * x_stride + cols, mask=mask, other=0.0).to(tl.float32)
        dy = tl.load(dy_ptr + row * n_cols + cols, mask=mask, other=0.0).to(tl.float32)
        r = tl.load(r_ptr + row)
        normed = x * r
        c = tl.sum(w * dy * normed, axis=0) / n_cols
        tl.store(dx_ptr + row * n_cols + cols, r * (w * dy - normed * c), mask=mask)
        dw += dy * normed
    tl.store(partial_ptr + tl.program_id(0) * n_cols + cols, dw, mask=mask)


@triton.jit
def add_up_kernel(partial_ptr, dw_ptr, n_partials, n_cols, BLOCK_SIZE: tl.constexpr):
    cols = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = cols < n_cols
    dw = tl.zeros((BLOCK_SIZE,), tl.float32)
    for i in range(n_partials):
        dw += tl.load(partial_ptr + i * n_cols + cols, mask=mask, other=0.0)
    tl.store(dw_ptr + cols, dw, mask=mask)


class TritonRMSNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w, eps):
        rows, cols = x.shape
        y = torch.empty(x.shape, dtype=x.dtype, device=x.device)
        r = torch.empty(rows, dtype=torch.float32, device=x.device)
        block = triton.next_power_of_2(cols)
        rmsnorm_fwd_kernel[(rows,)](x, w, y, r, x.stride(0), cols, eps, BLOCK_SIZE=block)
        ctx.save_for_backward(x, w, r)
        return y

    @staticmethod
    def backward(ctx, dy):
        x, w, r = ctx.saved_tensors
        rows, cols = x.shape
        dx = torch.empty(x.shape, dtype=x.dtype, device=x.device)
        programs = min(rows, 76)
        partial = torch.empty((programs, cols), dtype=torch.float32, device=x.device)
        block = triton.next_power_of_2(cols)
        rmsnorm_bwd_kernel[(programs,)](
            x, w, r, dy, dx, partial, x.stride(0), rows, cols, BLOCK_SIZE=block
        )
        return dx, partial.sum(dim=0).to(w.dtype), None
