"""`make bench`: every benchmark of the course, one after the other, each printing its ratios."""

from __future__ import annotations

import runpy
import sys

BENCHES = ("interpreter", "check", "grading")


def main(names: list[str]) -> int:
    unknown = [n for n in names if n not in BENCHES]
    if unknown:
        print(
            f"There is no bench {unknown[0]!r}. There are: {', '.join(BENCHES)}.", file=sys.stderr
        )
        return 2
    for name in names or BENCHES:
        print(f"== {name}", flush=True)
        sys.argv = [name]
        runpy.run_module(f"tests.bench.{name}", run_name="__main__", alter_sys=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
