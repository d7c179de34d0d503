"""The course's JupyterHub: who may enter, one card a server, and the way work goes to and fro."""
