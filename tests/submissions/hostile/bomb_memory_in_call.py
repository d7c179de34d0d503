# All the memory there is, in the call.
# status: ok memory crash
def add(x, y):
    return torch.ones(1 << 40)
