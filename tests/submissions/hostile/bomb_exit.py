# Leaves without a word.
# status: crash
import os
os._exit(0)
