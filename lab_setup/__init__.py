"""The lab box: its cards, who measures on them, is all in order, and the course's server."""
