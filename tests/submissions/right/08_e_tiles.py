import torch
import triton
import triton.language as tl


@triton.jit
def column_sums_kernel(x_ptr, out_ptr, M, N, ROWS: tl.constexpr, COLS: tl.constexpr):
    cols = tl.program_id(0) * COLS + tl.arange(0, COLS)
    acc = tl.zeros((COLS,), dtype=tl.float32)
    for start in range(0, M, ROWS):
        rows = start + tl.arange(0, ROWS)
        mask = (rows[:, None] < M) & (cols[None, :] < N)
        x = tl.load(x_ptr + rows[:, None] * N + cols[None, :], mask=mask, other=0.0)
        acc += tl.sum(x.to(tl.float32), axis=0)
    tl.store(out_ptr + cols, acc, mask=cols < N)


def column_sums(x):
    m, n = x.shape
    out = torch.empty(n, dtype=torch.float32, device=x.device)
    column_sums_kernel[(triton.cdiv(n, 32),)](x, out, m, n, ROWS=16, COLS=32)
    return out
