# Forks until nothing is left.
# status: ok memory
import os
while True:
    os.fork()
