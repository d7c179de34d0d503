# expect: interface values


def add(x, y)
    return x
