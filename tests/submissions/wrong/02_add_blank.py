# expect: interface values


def add(x, y):
    pass  # your code
