# Text that a template would run.
# status: ok
def add(x, y):
    raise ValueError("{{ resources.nbgrader }} {% for x in range(10**9) %}{% endfor %} %s %(x)s {0}")
