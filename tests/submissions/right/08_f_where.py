import torch
import triton
import triton.language as tl


@triton.jit
def causal_softmax_kernel(s_ptr, out_ptr, T, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK_SIZE)
    seen = cols <= row
    s = tl.load(s_ptr + row * T + cols, mask=cols < T, other=0.0).to(tl.float32)
    s = tl.where(seen, s, -float("inf"))
    e = tl.exp(s - tl.max(s, axis=0))
    tl.store(out_ptr + row * T + cols, e / tl.sum(e, axis=0), mask=cols < T)


def causal_softmax(s):
    T = s.shape[0]
    out = torch.empty_like(s)
    causal_softmax_kernel[(T,)](s, out, T, BLOCK_SIZE=triton.next_power_of_2(T))
    return out
