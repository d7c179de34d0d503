"""Foreign words made harmless, and numbers made readable.

Names and messages reach us from a student's file: a terminal must not obey them, a page must not be
reordered by them, and one name must not fill the screen.
"""

from __future__ import annotations

import re
import unicodedata

__all__ = ["count", "neutral", "spaced"]


_BLANKS = re.compile(r"[ \t\r\n\v\f]+")


def neutral(text: object, limit: int = 600) -> str:
    """``str(text)`` on one line, free of control, format and direction characters.

    What a terminal or a browser would act on (escape codes, right-to-left overrides, zero-width
    characters, lone surrogates) is written out, e.g. ``\\x1b``; white space becomes one blank; of
    stacked combining marks one stays. Longer texts end in ``…`` after ``limit`` characters.
    """
    whole = str(text)
    if len(whole) <= limit and whole.isascii() and whole.isprintable():  # nearly all
        return _BLANKS.sub(" ", whole).strip()
    out = []
    marked = False
    for character in _BLANKS.sub(" ", whole[: 4 * limit]).strip():  # it may be megabytes long
        mark = unicodedata.category(character) in ("Mn", "Me")
        if not (mark and marked):
            out.append(character if character.isprintable() else _written_out(character))
        marked = mark
    shown = "".join(out)
    cut = len(shown) > limit or len(whole) > 4 * limit
    return shown[: limit - 1] + "…" if cut else shown


def _written_out(character: str) -> str:
    code = ord(character)
    if unicodedata.category(character) == "Zs":
        return character if character == "\u202f" else " "
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def spaced(number: int, gap: str = " ") -> str:
    """``295296`` → ``295 296``. Four digits stay together, as in ``1024``."""
    return f"{number:,}".replace(",", gap) if abs(number) >= 10_000 else str(number)


def unbroken(text: str) -> str:
    """``text`` with the gaps of ``spaced`` between thousands, but narrow and fixed, so that no line
    ends in a number. What stands in backticks is code and stays as it is."""
    parts = text.split("`")
    for i in range(0, len(parts), 2):
        long = re.sub(r"(?<![\w.])\d{5,}(?!\w|\.\d)", lambda m: spaced(int(m[0])), parts[i])
        parts[i] = re.sub(r"(?<=\d) (?=\d{3}(?!\d))", "\u202f", long)
    return "`".join(parts)


def count(number: int, noun: str, plural: str = "") -> str:
    """``count(1, "lane")`` → ``1 lane``; ``count(896, "lane")`` → ``896 lanes``."""
    return f"{spaced(number)} {noun if number == 1 else plural or noun + 's'}"
