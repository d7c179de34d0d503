"""Feedback back through nbgrader's exchange; nbgrader_config.py names ``ReleaseFeedback``."""

from __future__ import annotations

import glob
from pathlib import Path

from nbgrader.exchange.default import ExchangeReleaseFeedback

from autograder.grading.submission import SECRET, read_secret


class ReleaseFeedback(ExchangeReleaseFeedback):
    """nbgrader's own, but one submission that did not come through the exchange, or whose files
    somebody wrote by hand, does not keep the feedback of everybody behind it."""

    def copy_files(self) -> None:
        """A page goes back under a name made of its submission's secret: without one, that student
        is left out and named in one sentence. The time stamp is only read aloud."""
        left_out = []
        for directory in map(Path, sorted(glob.glob(self.src_path))):
            student = directory.parent.name
            if not read_secret(directory):
                left_out.append(student)
                self.log.error(
                    f"No feedback is released to {student}: the submission holds no "
                    f"{SECRET} as `nbgrader submit` writes it. Hand over "
                    f"feedback/{student}/{directory.name} yourself, or have it submitted again."
                )
            elif not (directory / "timestamp.txt").exists():
                (directory / "timestamp.txt").touch()  # nbgrader's word for: nobody knows when
        before = self.coursedir.student_id_exclude
        self.coursedir.student_id_exclude = ",".join([*filter(None, [before]), *left_out])
        try:
            super().copy_files()
        finally:
            self.coursedir.student_id_exclude = before
