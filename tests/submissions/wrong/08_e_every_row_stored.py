# expect: traffic traffic
import torch
import triton
import triton.language as tl


@triton.jit
def column_sums_kernel(x_ptr, out_ptr, n_rows, n_cols, BLOCK_SIZE: tl.constexpr):
    cols = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = cols < n_cols
    acc = tl.zeros((BLOCK_SIZE,), dtype=tl.float32)
    for row in range(n_rows):
        x = tl.load(x_ptr + row * n_cols + cols, mask=mask, other=0.0)
        acc += x.to(tl.float32)
        tl.store(out_ptr + cols, acc, mask=mask)


def column_sums(x):
    n_rows, n_cols = x.shape
    out = torch.empty(n_cols, dtype=torch.float32, device=x.device)
    column_sums_kernel[(triton.cdiv(n_cols, 64),)](x, out, n_rows, n_cols, BLOCK_SIZE=64)
    return out
