from autograder.minitriton import load, store


def add_kernel(pid, x, y, out, n, BLOCK):
    # Offsets may be single numbers, too.
    for lane in range(BLOCK):
        i = pid[0] * BLOCK + lane
        if i < n:
            store(out, i, load(x, i) + load(y, i))
