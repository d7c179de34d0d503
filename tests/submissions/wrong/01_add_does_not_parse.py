# expect: interface values


def add_kernel(pid, x, y, out, n, BLOCK):
    store(out, 0, load(x, 0)
