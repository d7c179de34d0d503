"""The course's JupyterHub, to be read in one sitting.

    make hub                        a trial on loopback, without root: lab_setup/hub/trial.py
    systemctl start triton-course   the lab box, set up by lab_setup/hub/install.py

The lab's own words (places, ports, users a card) come from the environment: lab_setup/hub/site.py.
"""

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from lab_setup.hub.site import COURSE, Site

c = get_config()  # noqa: F821  (traitlets puts it there)
site = Site.from_environment()
# -P: no module from the working directory, which is a user's home.
python = [sys.executable, "-P", "-m"]

# ---- Where the hub answers: loopback, until somebody puts TLS before it (docs/LAB.md).
c.JupyterHub.bind_url = site.url
c.JupyterHub.hub_port = site.hub_port
c.JupyterHub.db_url = f"sqlite:///{site.state}/jupyterhub.sqlite"
c.JupyterHub.cookie_secret_file = f"{site.state}/cookie_secret"
c.ConfigurableHTTPProxy.command = [site.proxy]
c.ConfigurableHTTPProxy.api_url = f"http://127.0.0.1:{site.hub_port + 1}"
c.ConfigurableHTTPProxy.pid_file = f"{site.state}/proxy.pid"

# Students keep their servers, kernels and cards when the hub is restarted; a trial leaves nothing.
c.JupyterHub.cleanup_servers = bool(site.trial)

# ---- Who may enter: members of two UNIX groups, with their passwords on this machine.
if site.trial:
    c.JupyterHub.authenticator_class = "shared-password"
    c.SharedPasswordAuthenticator.user_password = site.trial
    c.Authenticator.allowed_users = {*site.students, *site.instructors}
else:
    c.JupyterHub.authenticator_class = "pam"
    c.PAMAuthenticator.open_sessions = False  # a server outlives the login that started it
    c.LocalAuthenticator.allowed_groups = {site.student_group, site.instructor_group}

# ---- A server each, on one card each.
if site.trial:
    from lab_setup.hub.spawner import TrialOneCard as Spawner

    c.SimpleLocalProcessSpawner.home_dir_template = f"{site.state}/homes/{{username}}"
elif site.spawner == "systemd":
    from lab_setup.hub.systemd import SystemdOneCard as Spawner

    c.Spawner.mem_limit = site.memory
else:
    from lab_setup.hub.spawner import LocalOneCard as Spawner
c.JupyterHub.spawner_class = Spawner
c.OneCard.servers_per_card = site.servers_per_card
if site.pretended_cards:
    c.OneCard.cards = site.pretend_cards
c.Spawner.cmd = [*python, "lab_setup.hub.server"]
c.Spawner.default_url = "/lab/tree/START_HERE.md"  # lab_setup/hub/server.py brings it
c.Spawner.start_timeout = c.Spawner.http_timeout = 120  # a first start reads much of the disk


def own_environment(spawner):
    """Roles, sockets and caches: see Site.server_environment."""
    spawner.environment = {**spawner.environment, **site.server_environment(spawner.user.name)}


c.Spawner.pre_spawn_hook = own_environment

# Root may run a trial; JupyterLab wants to hear that it is meant.
as_root = ["--allow-root"] if site.trial and os.geteuid() == 0 else []
c.Spawner.args = as_root

# ---- nbgrader. Its groups carry the names that its own plug-in looks for.
c.JupyterHub.load_groups = {
    f"formgrade-{COURSE}": {"users": [*site.instructors, site.grader]},
    f"nbgrader-{COURSE}": {"users": site.students},
}
c.JupyterHub.services = [
    {  # formgrader, and a terminal for the grading command, run by the one grading account
        "name": COURSE,
        "url": f"http://127.0.0.1:{site.grader_port}",
        "command": [
            *python,
            "jupyterhub.singleuser",
            f"--ServerApp.root_dir={site.course}",
            *as_root,
        ],
        "user": site.grader,
        "cwd": str(site.course),
        "environment": site.server_environment(site.grader),
        "oauth_no_confirm": True,
        "display": True,
    },
    {  # a forgotten server holds memory of a card
        "name": "idle-culler",
        "command": [*python, "jupyterhub_idle_culler", f"--timeout={site.idle_minutes * 60}"],
    },
]
_service = [
    f"access:services!service={COURSE}",
    "list:services",
    f"read:services!service={COURSE}",
]
c.JupyterHub.load_roles = [
    {"name": "instructors", "groups": [f"formgrade-{COURSE}"], "scopes": _service},
    {  # what a server may do for its user: nbgrader's Course List asks for the service
        "name": "server",
        "scopes": ["users:activity!user", "access:servers!server", *_service],
    },
    {  # formgrader looks students up and enters them in the course; never with an admin's token
        "name": "grading",
        "services": [COURSE],
        "scopes": [
            f"read:users!user={site.grader}",
            "list:groups",
            f"groups!group=nbgrader-{COURSE}",
        ],
    },
    {
        "name": "culling",
        "services": ["idle-culler"],
        "scopes": ["list:users", "read:users:activity", "read:servers", "delete:servers"],
    },
]
