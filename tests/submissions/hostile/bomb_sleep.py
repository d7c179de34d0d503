# Waits for ever, with a sign of life now and then.
# status: timeout
import os, time

def add(x, y):
    while True:
        os.write(3, b"{}\n")
        time.sleep(0.2)
