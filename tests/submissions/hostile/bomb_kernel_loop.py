# A kernel that never ends.
# status: ok timeout
@triton.jit
def k(x_ptr, out_ptr, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    count = 0
    while count >= 0:
        count = (count + 1) % 7
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)

def add(x, y):
    out = torch.empty_like(x)
    k[(triton.cdiv(x.numel(), 128),)](x, out, x.numel(), B=128)
    return out
