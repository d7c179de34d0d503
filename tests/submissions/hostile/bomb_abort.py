# Dies by abort, after it has closed the grader's pipe.
# status: crash
import os
os.close(3)
os.abort()
