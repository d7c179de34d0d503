"""nbgrader's settings, the same for its commands, formgrader and ``python -m autograder grade``.

The course root is the folder in which nbgrader starts: this checkout, or any folder whose own
nbgrader_config.py is ``load_subconfig("nbgrader_config.py", path="…/this checkout")``.
"""

import os
import sys
from pathlib import Path

from nbgrader.converters import GenerateAssignment
from nbgrader.preprocessors import ClearSolutions

c = get_config()  # noqa: F821  (traitlets puts it there)
_checkout = Path(__file__).resolve().parent

# nbgrader's own commands start without the checkout on the path, and need our classes.
sys.path.insert(0, str(_checkout))
from course.stubs import ClearSolutionsByCell  # noqa: E402

# The name under which the class appears in the exchange and in the gradebook.
c.CourseDirectory.course_id = "triton-course"

# A text or a solution beside a notebook in source/ would be copied to release/, solutions included.
c.CourseDirectory.ignore = [".ipynb_checkpoints", "__pycache__", "*.pyc", "*.py", "feedback"]

# A lab names one directory that all accounts can write to (mode 1777); alone, one in the checkout.
c.Exchange.root = os.environ.get("COURSE_EXCHANGE") or str(_checkout / "exchange")

# Students of several courses keep them apart: fetching makes triton-course/02_vector_add/.
c.Exchange.path_includes_course = True

# The stub is chosen cell by cell: a raise inside @triton.jit breaks compilation obscurely.
c.GenerateAssignment.preprocessors = [
    ClearSolutionsByCell if step is ClearSolutions else step
    for step in GenerateAssignment.preprocessors.default_args[0]
]
