"""Public Triton kernels, run by the interpreter through their own host functions.

``python -m tests.others`` needs the packages that it finds installed, and ``--tutorials DIR`` for
Triton's own; nothing of them is copied here. docs/INTERPRETER.md holds the table that it printed.
"""
