# expect: interface values


def fma_relu(x, y, z):
    return (x
