"""Which lines on the stack are the student's."""

from __future__ import annotations

import sys
import sysconfig
from pathlib import Path

import torch
import triton

_ROOTS = {
    *(sysconfig.get_paths()[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")),
    str(Path(torch.__file__).parent),
    str(Path(triton.__file__).parent),
    str(Path(__file__).parents[1]),
}
# As they are imported and as they lie on disk: a virtual environment may hold links.
_LIBRARIES = tuple({f"{root}/" for root in (*_ROOTS, *(str(Path(r).resolve()) for r in _ROOTS))})
_RECORDER = str(Path(__file__).with_name("record.py"))  # who calls record is no student


def is_library(file: str) -> bool:
    """Whether a frame's file is torch's, Triton's, Python's or ours rather than the student's."""
    return file.startswith(("<frozen", "<string>", "<__", *_LIBRARIES))


def student_line() -> int:
    """The line of the student's code that is running, 0 if there is none."""
    frame = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename != _RECORDER:
        if not is_library(frame.f_code.co_filename):
            return frame.f_lineno
        frame = frame.f_back
    return 0
