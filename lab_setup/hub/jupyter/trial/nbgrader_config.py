"""A trial hub only: all dummy accounts are one UNIX account, so nbgrader asks the hub for names.

nbgrader does so where the account is called jovyan, the name in Jupyter's container images.
"""

import nbgrader.utils

c = get_config()  # noqa: F821  (traitlets puts it there)

nbgrader.utils.get_osusername = lambda: "jovyan"
c.ExchangeCollect.check_owner = False
