"""``python -m lab_setup doctor | gpulock | roofline | kernels``: arguments in, exit status out."""

from __future__ import annotations

import argparse
import sys
from importlib.util import find_spec


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m lab_setup", description="The lab box.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    doctor = commands.add_parser("doctor", help="is this machine ready, and what mends it")
    doctor.add_argument("--json", action="store_true", help="print a JSON list")

    lock = commands.add_parser("gpulock", help="run a command alone on a card, in turn")
    lock.add_argument("--gpu", help="number or UUID (default: the one that torch takes)")
    lock.add_argument("--who", action="store_true", help="show who measures and who waits")
    lock.add_argument("words", nargs="*", metavar="COMMAND", help="after --: what to run")

    roof = commands.add_parser("roofline", help="how fast kernels can be, or are, on a card")
    roof.add_argument("--card", metavar="NAME", help='predict for it, for example "RTX 4090"')
    roof.add_argument(
        "--kernel", metavar="ID", action="append", help="an exercise, for example 02.add"
    )
    roof.add_argument("--file", metavar="FILE", help="your solution of that exercise")
    roof.add_argument("--json", metavar="OUT", help="where the figures go as data")
    roof.add_argument("--out", metavar="OUT", help="where the figure goes (.png or .svg)")
    roof.add_argument("--plot", metavar="FILE.json", help="only draw such a file")

    if find_spec("lab_setup.kernels"):  # no part of the students' copy: it answers exercises
        from lab_setup.kernels.bench.options import add

        add(commands)

    options = parser.parse_args(arguments)
    if options.command == "doctor":
        from lab_setup import doctor as chosen
    elif options.command == "roofline":
        from lab_setup.roofline import command as chosen
    elif options.command == "kernels":
        from lab_setup.kernels.bench import command as chosen
    else:
        from lab_setup import gpulock as chosen
    try:
        return chosen.main(options)
    except KeyboardInterrupt:
        print("Stopped.", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
