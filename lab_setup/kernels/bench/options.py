"""The words that ``python -m lab_setup kernels`` understands."""

from __future__ import annotations

import argparse

__all__ = ["add"]


def add(commands: argparse._SubParsersAction) -> None:
    """The command ``kernels`` beside the others."""
    fast = commands.add_parser("kernels", help="the fast kernels beside the vendor's")
    families = "rows, products, attentions (default: all)"
    fast.add_argument("--only", metavar="NAME", nargs="+", help=families)
    fast.add_argument("--json", metavar="OUT", help="figures as data (default: kernels.json)")
    fast.add_argument("--seconds", type=float, default=900.0, help="begin nothing after that")
    fast.add_argument("--resume", action="store_true", help="go on with OUT")
    fast.add_argument("--offline", metavar="CC", type=int, help="compile for it (89), no card")
    fast.add_argument("--plot", metavar="FILE.json", help="only draw such a file")
    joins = "write OUT from the figures of several runs, the last one's where two have the same"
    fast.add_argument("--join", metavar="FILE.json", nargs="+", help=joins)
    fast.add_argument("--page", action="store_true", help="write docs/KERNELS.md anew")
    fast.add_argument("--here", action="store_true", help=argparse.SUPPRESS)  # a child's
