"""nbgrader on every server of the lab; the grading account's course adds its own to this."""

import os

c = get_config()  # noqa: F821  (traitlets puts it there)

c.CourseDirectory.course_id = "triton-course"
c.Exchange.root = os.environ["COURSE_EXCHANGE"]
c.Exchange.path_includes_course = True

# Who is in which course: the hub's groups nbgrader-COURSE and formgrade-COURSE.
c.Authenticator.plugin_class = "nbgrader.auth.JupyterHubAuthPlugin"
