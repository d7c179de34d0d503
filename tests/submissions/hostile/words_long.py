# An error whose text has a hundred megabytes.
# status: ok timeout
def add(x, y):
    raise ValueError("x" * (100 << 20))
