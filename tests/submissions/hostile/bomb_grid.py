# Two billion programs.
# status: ok timeout crash memory
@triton.jit
def k(out_ptr, n, B: tl.constexpr):
    tl.store(out_ptr + tl.arange(0, B), 0.0, mask=tl.arange(0, B) < n)

def add(x, y):
    out = torch.empty_like(x)
    k[(2**31 - 1, 60000, 60000)](out, x.numel(), B=16)
    return out
