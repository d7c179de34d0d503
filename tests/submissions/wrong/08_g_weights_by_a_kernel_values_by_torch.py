# expect: torch_computed kernel
import torch
import triton
import triton.language as tl


@triton.jit
def weights_kernel(q_ptr, k_ptr, p_ptr, T, scale, D: tl.constexpr, KEYS: tl.constexpr):
    head, row = tl.program_id(1) * T, tl.program_id(0)
    cols, dims = tl.arange(0, KEYS), tl.arange(0, D)
    q = tl.load(q_ptr + (head + row) * D + dims).to(tl.float32)
    k_at = (head + cols[:, None]) * D + dims[None, :]
    k = tl.load(k_ptr + k_at, mask=cols[:, None] < T, other=0.0).to(tl.float32)
    s = tl.where(cols < T, tl.sum(k * q[None, :], axis=1) * scale, -float("inf"))
    e = tl.exp(s - tl.max(s, axis=0))
    tl.store(p_ptr + (head + row) * T + cols, e / tl.sum(e, axis=0), mask=cols < T)


def attention(q, k, v):
    b, h, t, d = q.shape
    p = torch.empty((b, h, t, t), dtype=q.dtype, device=q.device)
    weights_kernel[(t, b * h)](q, k, p, t, d**-0.5, D=d, KEYS=triton.next_power_of_2(t))
    return p @ v
