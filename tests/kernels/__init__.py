"""Small Triton kernels as data: what the interpreter must find in the faulty ones, and that it
finds nothing in the right ones. Wherever a kernel is at fault its line ends in ``# <-- here``."""
