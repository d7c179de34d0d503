# A kernel whose name and argument are markup.
# status: ok crash
@triton.jit
def k(x_ptr, out_ptr, n, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(out_ptr + i, tl.load(x_ptr + i))

k.fn.__name__ = k.__name__ = "<b onmouseover=alert(1)>k</b>"

def add(x, y):
    out = torch.empty_like(x)
    k[(1,)](x, out, x.numel(), B=64)
    return out
