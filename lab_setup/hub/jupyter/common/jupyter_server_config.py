"""Every server of the lab."""

c = get_config()  # noqa: F821  (traitlets puts it there)

# A kernel holds memory of a card. An open tab counts as use for the hub's culler, so kernels are
# culled by their servers, tabs open or not; the notebook stays, its variables are gone.
c.MappingKernelManager.cull_idle_timeout = 30 * 60
c.MappingKernelManager.cull_interval = 2 * 60
c.MappingKernelManager.cull_connected = True

# Sockets in a directory that only their user can enter, not ports that the whole box can try.
c.KernelManager.transport = "ipc"

# A login shell would forget our PATH, and with it the course's Python.
c.ServerApp.terminado_settings = {"shell_command": ["/bin/bash"]}
