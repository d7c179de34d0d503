# torch does the work.
# status: ok
# finding: torch_computed
def add(x, y):
    return torch.add(x, y)
