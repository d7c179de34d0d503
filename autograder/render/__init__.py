"""Renderings of a Verdict or a Run: text, HTML, JSON, figures. Pure functions."""
