# Writes into the package, the interpreter and the system.
# status: ok
# finding: torch_computed
import os, sys
import autograder
for path in (autograder.__file__, sys.executable, torch.__file__, "/etc/passwd", "/opt/course/x", "/usr/x"):
    try:
        open(path, "a").write("x")
        raise SystemExit(f"wrote {path}")
    except OSError:
        pass

def add(x, y):
    return y
