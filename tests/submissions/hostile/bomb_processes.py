# Starts programs.
# status: ok
import subprocess
subprocess.Popen(["sleep", "1000"])
