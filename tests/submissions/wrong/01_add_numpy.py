# expect: torch_computed values


def add_kernel(pid, x, y, out, n, BLOCK):
    out[:] = x + y
