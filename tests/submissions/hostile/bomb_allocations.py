# Buffers of a terabyte, never touched.
# status: ok memory crash
def add(x, y):
    keep = [torch.empty(1 << 30) for _ in range(256)]
    return torch.empty_like(x)
