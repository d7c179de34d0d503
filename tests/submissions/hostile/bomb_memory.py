# All the memory there is.
# status: ok memory crash timeout
hoard = []
try:
    while True:
        hoard.append(bytearray(64 << 20))
except MemoryError:
    raise SystemExit

def add(x, y):
    return x
