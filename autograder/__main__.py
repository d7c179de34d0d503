"""``python -m autograder check | hint | grade | audit``: arguments in, exit status out."""

from __future__ import annotations

import argparse
import gc
import importlib.util
import os
import signal
import sys

from autograder.records import CouldNotCheck, Rejected


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m autograder", description="Check one solution, or grade a class."
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    _add_check(commands)
    _add_hint(commands)
    if _has_grading():
        _add_grade(commands)
        _add_audit(commands)
    else:
        arguments = sys.argv[1:] if arguments is None else arguments
        if arguments[:1] in (["grade"], ["audit"]):
            print(
                f"{arguments[0]} works in the instructor's course directory; what students get "
                "holds no grading. Here: python -m autograder check ID FILE",
                file=sys.stderr,
            )
            return 2
    options = parser.parse_args(arguments)
    try:
        status = options.run(options)
        sys.stdout.flush()
        return status
    except BrokenPipeError:  # the reader, such as head, has seen enough; Python would flush again
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    except Rejected as error:
        print(error, file=sys.stderr)
        return 1
    except CouldNotCheck as error:
        print(error, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(_stopped(options), file=sys.stderr)
        return 130


def _stopped(options: argparse.Namespace) -> str:
    if options.run is not _grade:
        return "Stopped."
    without = ", without --regrade," if options.regrade else ""
    return f"Stopped. The same command{without} goes on where it was."


def _has_grading() -> bool:
    """The bundle for students leaves the room ``grading`` out."""
    return importlib.util.find_spec("autograder.grading") is not None


def _add_check(commands) -> None:
    check = commands.add_parser("check", help="check a file or notebook that solves an exercise")
    check.add_argument("id", metavar="ID", help="exercise, e.g. 02.add")
    check.add_argument("file", metavar="FILE", help=".py file or notebook that defines its names")
    check.add_argument("--json", action="store_true", help="print a JSON object")
    check.add_argument("--hidden", action="store_true", help="hidden cases too (instructors)")
    check.set_defaults(run=_check)


def _add_hint(commands) -> None:
    hint = commands.add_parser("hint", help="the first hint of an exercise, or the first N")
    hint.add_argument("id", metavar="ID", help="exercise, e.g. 02.add")
    hint.add_argument("opened", metavar="N", nargs="?", type=int, default=1, help="(default: 1)")
    hint.set_defaults(run=_hint)


def _add_grade(commands) -> None:
    grade = commands.add_parser("grade", help="grade all of submitted/ for an assignment")
    grade.add_argument("assignment", metavar="NN", help="assignment, e.g. 02 or 02_vector_add")
    grade.add_argument("--student", action="append", default=[], help="only this one (repeatable)")
    grade.add_argument("--regrade", action="store_true", help="judge again what is graded already")
    grade.add_argument("--workers", type=int, help="processes on this machine (default: all cores)")
    grade.add_argument("--scheduler", metavar="tcp://…", help="a Dask scheduler to grade on")
    grade.add_argument("--feedback", action="store_true", help="write feedback/ as well")
    grade.add_argument("--json", action="store_true", help="print a JSON object")
    grade.add_argument("--course", metavar="DIR", help="course directory (default: this one)")
    grade.add_argument(
        "--unsafe-no-sandbox",
        action="store_true",
        help="run students' code on this machine without a sandbox",
    )
    grade.set_defaults(run=_grade)


def _add_audit(commands) -> None:
    audit = commands.add_parser("audit", help="grade the graders: right and wrong answers, mutants")
    audit.add_argument("ids", metavar="ID", nargs="*", help="exercises, or units (default: all)")
    audit.add_argument("--sample", type=int, metavar="N", help="N answers an exercise, not all")
    audit.add_argument(
        "--agree", action="store_true", help="compare the notebook's check with the judge instead"
    )
    audit.add_argument("--workers", type=int, help="processes on this machine (default: all cores)")
    audit.add_argument("--json", action="store_true", help="print a JSON object")
    audit.add_argument(
        "--keep", metavar="FILE", help="note what is known of every answer there, and go on from it"
    )
    audit.set_defaults(run=_audit)


def _check(options: argparse.Namespace) -> int:
    from autograder.checking import check_file

    return check_file(options.id, options.file, as_json=options.json, hidden=options.hidden)


def _hint(options: argparse.Namespace) -> int:
    from autograder import exercises
    from autograder.render.text import hints_text

    again = f"python -m autograder hint {options.id} {options.opened + 1}"
    print(hints_text(exercises.get(options.id), options.opened, again))
    return 0


def _grade(options: argparse.Namespace) -> int:
    # jsonschema, which nbformat imports, would build a grammar for internationalised addresses and
    # load calendars: seconds of start-up for formats of texts, at which nobody looks. None makes
    # their import fail, as allowed.
    for formats in ("rfc3987_syntax", "rfc3986_validator", "isoduration"):
        sys.modules.setdefault(formats, None)
    gc.disable()  # nbgrader's imports make no garbage, and many objects to look through
    from autograder.grading.report import grade_command

    gc.freeze()
    gc.enable()
    return grade_command(options)


def _audit(options: argparse.Namespace) -> int:
    from autograder.checking import check_functions
    from autograder.grading.audit_report import audit_command

    return audit_command(options, check_functions)


if __name__ == "__main__":
    sys.exit(main())
