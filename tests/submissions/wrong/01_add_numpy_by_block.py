# expect: torch_computed values


def add_kernel(pid, x, y, out, n, BLOCK):
    here = slice(pid[0] * BLOCK, (pid[0] + 1) * BLOCK)
    out[here] = x[here] + y[here]
