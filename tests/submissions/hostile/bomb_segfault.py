# Dies by a signal.
# status: crash
import ctypes

def add(x, y):
    ctypes.string_at(0)
