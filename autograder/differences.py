"""What wrong values have in common, in words: where they lie, and how they differ.

A student who reads "all in [:, 64:], where each is 0" knows more than one who reads two numbers.
Everything is read off the values; nothing is known of the exercise.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

__all__ = ["NARROW", "place", "told"]

NARROW = (  # a question of its own: the exercise's is not asked behind it
    "All differences are below 1 % of the largest value: is a sum or a factor kept in a type "
    "narrower than float32, or is a small term wrong?"
)
_FEWEST = 8  # values from which a rule may be read; fewer may agree by chance
_CLOSE = 1e-3  # relative; sums in half precision agree to that


def told(
    bad: np.ndarray,
    got: np.ndarray,
    want: np.ndarray,
    of: str = "",
    unread: Sequence[tuple[str, np.ndarray]] = (),
) -> str:
    """Sentences on the values at ``bad``, a mask with at least one element. ``got`` and ``want``:
    float64 arrays of its shape; ``of``: " of o", where there are several outputs; ``unread``: as in
    ``Run``."""
    bad, got, want = np.atleast_1d(bad, got, want)
    box = place(bad)
    where = "every one" if bad.all() else f"all in {box}" if box else ""
    notes = [where, _same(bad, got, want)]
    where = ", ".join(note for note in notes if note)
    where = f" ({where})" if where else ""
    rule = "" if notes[1] else _rule(bad, got, want)
    left_out = _left_out(unread)
    some = _examples(bad, got, want, 1 if rule or left_out else 2)
    small = "" if rule else _nearly(bad, got, want)
    count = f"{int(bad.sum())} of {bad.size} values{of} are wrong{where}, e.g."
    if bad.size == 1:
        count = f"The only value{of} is wrong:"
    return f"{count} {some}.{rule}{left_out}{small}"


# ---------------------------------------------------------------- where


def place(bad: np.ndarray) -> str:
    """``[:, 64:]``, the smallest box that holds them, as an index in Python, or ``the upper
    triangle`` if that is smaller still; "" where it is everything."""
    ends = [(int(i.min()), int(i.max()) + 1) for i in np.nonzero(bad)]
    box = math.prod(end - start for start, end in ends)
    if bad.ndim >= 2 and min(bad.shape[-2:]) > 1:
        whole = np.ones(bad.shape, bool)
        for name, triangle in (("upper", np.triu(whole, 1)), ("lower", np.tril(whole))):
            if triangle.sum() < box and not (bad & ~triangle).any():
                return f"the {name} triangle"
    slices = [_slice(*pair, size) for pair, size in zip(ends, bad.shape, strict=True)]
    return f"[{', '.join(slices)}]" if any(part != ":" for part in slices) else ""


def _left_out(unread: Sequence[tuple[str, np.ndarray]]) -> str:
    """Which parts of inputs no program reads, where such a part is a box."""
    boxes = []
    for argument, missing in unread:
        ends = [slice(int(i.min()), int(i.max()) + 1) for i in np.nonzero(missing)]
        if missing[tuple(ends)].all():
            boxes.append(argument + place(missing))
    return f" No program reads {' or '.join(boxes[:2])}." if boxes else ""


def _slice(start: int, end: int, size: int) -> str:
    if end - start == size:
        return ":"
    if end - start == 1:
        return str(start)
    return f"{start or ''}:{end if end < size else ''}"


def _same(bad: np.ndarray, got: np.ndarray, want: np.ndarray) -> str:
    """The one value that all of them have."""
    if np.isnan(got[bad]).all():
        return "all are NaN"
    if np.isnan(want[bad]).all():
        return "only such as should be NaN"
    first = got[bad][0]
    return f"all are {number(first)}" if bad.sum() > 1 and (got[bad] == first).all() else ""


# ---------------------------------------------------------------- how


def _rule(bad: np.ndarray, got: np.ndarray, want: np.ndarray) -> str:
    """A sentence that holds for all of them, or for all that are not 0; "" where none is seen."""
    if int(bad.sum()) < _FEWEST or not np.isfinite(got[bad]).all():
        return ""
    zero = bad & (got == 0)
    if int(zero.sum()) < _FEWEST:
        zero[...] = False
    rest = bad & ~zero
    if int(rest.sum()) < _FEWEST:
        return ""
    how = _factor(got[rest], want[rest]) or _moved(rest, got, want)
    if not zero.any():
        return how and f" Each of them {how}."
    box = place(zero)
    zeros = f"{int(zero.sum())} of them are 0" + (f", all in {box}" if box else "")
    return f" {zeros}; each of the others {how}." if how else f" {zeros}." * bool(box)


def _factor(got: np.ndarray, want: np.ndarray) -> str:
    """By what each is too large, as a factor or as a summand, if that is one number for all."""
    if not np.isfinite(want).all():
        return ""
    # A hundredth of the smallest numbers there are is 0.
    large = (np.abs(want) >= np.abs(want).max() / 100) & (want != 0)
    ratio = got[large] / want[large]
    if len(ratio) >= _FEWEST and np.ptp(ratio) <= _CLOSE * np.abs(ratio).max():
        factor = float(np.median(ratio))
        if abs(factor - 1) <= 10 * _CLOSE:  # a matter of roundings
            return ""
        if abs(factor + 1) <= _CLOSE:
            return "has the wrong sign"
        return f"is {factor:.4g} times what it should be"
    apart = got - want
    if np.ptp(apart) <= _CLOSE * np.abs(apart).max():
        middle = float(np.median(apart))
        return f"is {abs(middle):.4g} too {'large' if middle > 0 else 'small'}"
    return ""


def _moved(bad: np.ndarray, got: np.ndarray, want: np.ndarray) -> str:
    """Whether they stand at the wrong place: next to where they belong, or where index 0 of an axis
    has them."""
    for axis in reversed(range(bad.ndim)):
        size = bad.shape[axis]
        if size < 2:
            continue
        which = f" along axis {axis}" if bad.ndim > 1 else ""
        start = np.take(want, [0], axis)
        if _alike(bad, got, np.broadcast_to(start, want.shape), want):
            return f"is what index 0{which} should hold"
        for step, way in ((1, "further on"), (-1, "further back")):
            shifted, inside = np.roll(want, -step, axis), bad.copy()
            edge = [slice(None)] * bad.ndim
            edge[axis] = -1 if step == 1 else 0
            inside[tuple(edge)] = False  # what should stand there, the roll took from the other end
            if _alike(inside, got, shifted, want):
                return f"is what should stand one element {way}{which}"
    return ""


def _alike(where: np.ndarray, got: np.ndarray, other: np.ndarray, want: np.ndarray) -> bool:
    """Whether ``got`` is ``other`` there, within roundings, and ``want`` is not."""
    if int(where.sum()) < _FEWEST:
        return False
    mine, theirs, right = got[where], other[where], want[where]
    with np.errstate(invalid="ignore"):
        near = _CLOSE * np.abs(theirs).max()
        return bool((np.abs(mine - theirs) <= near).all() and (np.abs(mine - right) > near).any())


def _nearly(bad: np.ndarray, got: np.ndarray, want: np.ndarray) -> str:
    """A sentence where every difference is as small as that of roundings to 8 or 11 bits.

    Such roundings grow with the value, so some of the larger values must be among the wrong ones:
    a wrong formula often differs for small values only.
    """
    size = np.where(np.isfinite(want), np.abs(want), 0.0)
    largest = size.max(initial=0.0)
    with np.errstate(invalid="ignore"):  # infinity minus infinity
        furthest = np.abs(got - want)[bad].max()
    if not furthest <= largest / 128:  # NaN is no small difference
        return ""
    return f" {NARROW}" if (size[bad] >= largest / 2).any() else ""


def _examples(bad: np.ndarray, got: np.ndarray, want: np.ndarray, most: int) -> str:
    parts = []
    for index in np.argwhere(bad)[:most]:
        at = tuple(index)
        parts.append(
            f"[{', '.join(map(str, index))}] is {number(got[at])}, should be {number(want[at])}"
        )
    return "; ".join(parts)


def number(x: float) -> str:
    return f"{x:.6g}"
