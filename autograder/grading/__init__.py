"""Grading a class: canonical submissions, sandbox, judge, driver, nbgrader plug-ins."""
