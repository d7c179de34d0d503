# Below the Python dispatch key.
# status: ok
def add(x, y):
    guard = torch._C._DisableTorchDispatch()
    out = x + y
    del guard
    return out
