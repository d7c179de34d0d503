"""What an installer is made of: steps that know whether they are done.

A step that is done is skipped, so a second run changes nothing; a dry run prints the others.
"""

from __future__ import annotations

import grp
import os
import pwd
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Step", "directory", "run", "text_file", "tree"]


@dataclass(frozen=True)
class Step:
    says: str
    done: Callable[[], bool]
    do: Callable[[], object]


def run(steps: Iterable[Step], dry: bool, say: Callable[[str], object] = print) -> int:
    """Does what is not done yet and returns how many steps that were (would be, if ``dry``).

    A step that is not done afterwards raises RuntimeError: nothing may stay half-way in silence.
    """
    changed = 0
    for step in steps:
        if step.done():
            continue
        changed += 1
        say(f"would do: {step.says}" if dry else step.says)
        if not dry:
            step.do()
            if not step.done():
                raise RuntimeError(f"This step had no effect: {step.says}.")
    return changed


def directory(place: Path, mode: int, owner: str = "root", group: str = "") -> Step:
    """A directory with exactly this mode (``0o1777``), owner and, where it is named, group."""

    def done() -> bool:
        if not place.is_dir() or place.is_symlink():
            return False
        found = place.stat()
        right = found.st_mode & 0o7777 == mode and found.st_uid == _uid(owner)
        return right and (not group or found.st_gid == grp.getgrnam(group).gr_gid)

    def do() -> None:
        place.mkdir(parents=True, exist_ok=True)
        os.chown(place, _uid(owner), grp.getgrnam(group).gr_gid if group else _gid(owner))
        place.chmod(mode)

    says = f"{place}: mode {mode:04o}, owner {owner}"
    return Step(says + (f", group {group}" if group else ""), done, do)


def text_file(place: Path, text: str, mode: int = 0o644) -> Step:
    """A file of root's with this content."""

    def done() -> bool:
        return (
            place.is_file() and place.read_text() == text and place.stat().st_mode & 0o7777 == mode
        )

    def do() -> None:
        place.parent.mkdir(parents=True, exist_ok=True)
        place.touch(mode=mode)
        place.chmod(mode)
        place.write_text(text)

    return Step(f"{place}", done, do)


def tree(place: Path, files: dict[str, bytes], says: str) -> Step:
    """A directory of root's that holds these files (path → content) and no others."""

    def stale() -> list[Path]:
        return [
            path
            for path in sorted(place.rglob("*"))
            if path.is_file()
            and "__pycache__" not in path.parts
            and path.relative_to(place).as_posix() not in files
        ]

    def missing() -> list[str]:
        return [
            name
            for name, content in files.items()
            if not (place / name).is_file() or (place / name).read_bytes() != content
        ]

    def do() -> None:
        for path in stale():
            path.unlink()
        for name in missing():
            path = place / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(files[name])
            path.chmod(0o644)
            for parent in path.relative_to(place).parents[:-1]:
                (place / parent).chmod(0o755)

    return Step(f"{place}: {says} ({len(files)} files)", lambda: not stale() and not missing(), do)


def _uid(owner: str) -> int:
    return pwd.getpwnam(owner).pw_uid


def _gid(owner: str) -> int:
    return pwd.getpwnam(owner).pw_gid
