"""Triton IR in NumPy: lower, parse, run all programs at once, and record every access."""
