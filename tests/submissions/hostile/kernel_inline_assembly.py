# Assembly in the kernel, which the interpreter does not run.
# status: ok
@triton.jit
def k(x_ptr, y_ptr, out_ptr, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    z = tl.inline_asm_elementwise("mov.u32 $0, %clock;", "=r,r", [i], tl.int32, True, 1)
    tl.store(out_ptr + i, z.to(tl.float32), mask=i < n)

def add(x, y):
    out = torch.empty_like(x)
    k[(triton.cdiv(x.numel(), 128),)](x, y, out, x.numel(), B=128)
    return out
