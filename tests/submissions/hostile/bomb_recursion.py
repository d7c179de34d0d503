# Recursion without a limit.
# status: timeout crash memory ok
import sys
sys.setrecursionlimit(10**8)

def deep(n):
    return [deep(n + 1)]

def add(x, y):
    return deep(0)
