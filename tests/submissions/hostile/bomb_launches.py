# A launch for every number.
# status: ok timeout crash memory
@triton.jit
def k(x_ptr, y_ptr, out_ptr, i):
    tl.store(out_ptr + i, tl.load(x_ptr + i) - tl.load(y_ptr + i))

def add(x, y):
    out = torch.empty_like(x)
    for i in range(x.numel()):
        k[(1,)](x, y, out, i)
    return out
