# The input comes back.
# status: ok
# finding: torch_computed
def add(x, y):
    return x
