# The input is the output.
# status: ok
# finding: torch_computed
def add(x, y):
    x += y
    return x
