# An endless loop in the call that ignores signals and errors.
# status: timeout
import signal
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM, signal.SIGXCPU):
    signal.signal(number, signal.SIG_IGN)

def add(x, y):
    while True:
        try:
            while True:
                pass
        except BaseException:
            pass
