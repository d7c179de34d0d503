# The exit status claims that the sandbox could not be set up.
# status: crash
import os
os.write(3, b"FOSError: unshare\n")
os._exit(71)
