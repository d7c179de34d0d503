"""The grading service: formgrader, and a terminal for `python -m autograder grade`."""

c = get_config()  # noqa: F821  (traitlets puts it there)

# Formgrader is a page in a frame of JupyterLab's. The hub forbids all frames; here our own pages
# may frame one another.
c.ServerApp.tornado_settings = {
    "headers": {"Content-Security-Policy": "frame-ancestors 'self'"},
}
