"""``python -m tests.links`` follows every link of pages and lessons that leaves the repository.

Needs the internet; the status is 1 if one of them leads nowhere.
"""

from __future__ import annotations

import re
import sys
import urllib.error
import urllib.request

from tests.test_house import ROOT, tracked

_PLACES = ("README.md", "CITATION.cff", "docs/", "course/lessons/", "course/assignments/")


def found() -> dict[str, list[str]]:
    """Address → the files that name it."""
    told: dict[str, list[str]] = {}
    for path in tracked():
        name = path.relative_to(ROOT).as_posix()
        if path.suffix not in (".md", ".py", ".cff") or not name.startswith((*_PLACES, "course/s")):
            continue
        text = path.read_text(encoding="utf-8")
        for address in re.findall(r"https://[^\s)>\]\"'`]+", text):
            told.setdefault(address.rstrip(".,;:"), []).append(name)
    return told


def main() -> int:
    broken = 0
    for address, files in found().items():
        request = urllib.request.Request(address, headers={"User-Agent": "Mozilla/5.0"})
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                print(f"ok {answer.status}: {address}")
        except OSError as error:  # URLError and HTTPError are among them
            broken += 1
            print(f"{error}: {address} in {', '.join(files)}")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
