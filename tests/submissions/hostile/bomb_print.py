# Two hundred megabytes of output.
# status: ok
# finding: torch_computed
line = "x" * (1 << 20)
for _ in range(200):
    print(line)

def add(x, y):
    return x
