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

# nbgrader calls alembic by name when it opens a gradebook; an environment that is not activated
# has it beside its Python.
os.environ["PATH"] = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))

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

# ---- Grading: a judge stands where nbgrader would run submissions (docs/GRADING.md)
from nbgrader.converters import Autograde  # noqa: E402
from nbgrader.preprocessors import (  # noqa: E402
    ClearHiddenTests,
    Execute,
    GetGrades,
    SaveAutoGrades,
)

from autograder.grading import exchange, export, feedback, preprocessors  # noqa: E402

# Links and stray files of a submission would be copied to autograded/ and feedback/.
c.Autograde.pre_convert_hook = preprocessors.set_aside

# Of a submission only the solution cells are read, into the released notebook.
c.Autograde.exporter_class = preprocessors.CanonicalExporter

# No student code in a kernel beside the gradebook; and a score that nobody decided stays blank.
_steps = {
    Execute: [preprocessors.Judge],
    SaveAutoGrades: [preprocessors.SaveTogether, preprocessors.KeepUndecided],
}
c.Autograde.autograde_preprocessors = [
    new
    for step in Autograde.autograde_preprocessors.default_args[0]
    for new in _steps.get(step, [step])
]

# The page that students get: their code and the judge's words; no hidden tests, no script.
c.GenerateFeedback.preprocessors = [GetGrades, ClearHiddenTests, feedback.FeedbackOnly]
c.GenerateFeedback.HTMLExporter.template_name = "course_feedback"
c.GenerateFeedback.HTMLExporter.extra_template_basedirs = [str(feedback.TEMPLATES)]

# Grades with a status; blank, not 0, for what was not handed in or not graded.
c.ExportApp.plugin_class = export.GradesWithStatus

# One submission without the exchange's secret would stop the feedback of the whole class.
c.ExchangeFactory.release_feedback = exchange.ReleaseFeedback
