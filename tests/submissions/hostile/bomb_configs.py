# A million autotune configurations.
# status: ok timeout crash memory
configs = [triton.Config({"B": 128}, num_warps=4) for _ in range(1_000_000)]

@triton.autotune(configs, key=["n"])
@triton.jit
def k(x_ptr, out_ptr, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)

def add(x, y):
    out = torch.empty_like(x)
    k[lambda m: (triton.cdiv(x.numel(), m["B"]),)](x, out, x.numel())
    return out
