"""Can a figure's words be read on a light page and on a dark one? By WCAG 2's formula."""

from __future__ import annotations

import numpy as np

from autograder.render import style

# JupyterLab's light and dark page, and GitHub's dark one.
GROUNDS = ("#ffffff", "#111111", "#0d1117")
ENOUGH = 4.5  # WCAG AA, for words of any size


def contrast(a, b) -> float:
    """Contrast of two colours, as hex words or as red, green and blue from 0 to 1: 1 to 21."""
    high, low = sorted((_luminance(a), _luminance(b)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def _luminance(colour) -> float:
    if isinstance(colour, str):
        colour = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in colour]
    return float(np.dot((0.2126, 0.7152, 0.0722), linear))


def assert_hollow(figure) -> None:
    """Fails with each marker that is hollow on a light page only: PAPER within an ink is a full
    disc where the page's ink is white."""
    from matplotlib.colors import to_hex
    from matplotlib.lines import Line2D

    for line in figure.findobj(Line2D):
        face, edge = line.get_markerfacecolor(), line.get_markeredgecolor()
        if line.get_marker() not in ("None", "", " ", None) and "none" not in (face, edge):
            full = to_hex(face) == style.PAPER and to_hex(edge) in style.INKS
            assert not full, f"marker {line.get_marker()!r} is hollow on a light page only"


def assert_readable(figure) -> None:
    """Fails with each text whose contrast is too low on what lies under it.

    Words on the bare page have to be in the inks that SVG takes from the page (``style.INKS``):
    no colour reaches 4.5 on white and on black.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.colors import to_hex, to_rgb
    from matplotlib.text import Text

    assert_hollow(figure)
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    shown = [t for t in figure.findobj(Text) if t.get_visible() and t.get_text().strip()]
    places = [(text, text.get_window_extent()) for text in dict.fromkeys(shown)]
    engine = figure.get_layout_engine()
    figure.set_layout_engine("none")  # or everything would move into the place of the words
    for text, _ in places:
        text.set_visible(False)
    try:
        canvas.draw()
        pixels = np.asarray(canvas.buffer_rgba()).astype(float) / 255
    finally:
        figure.set_layout_engine(engine)
        for text, _ in places:
            text.set_visible(True)
    faults = []
    for text, box in places:
        colour, own = text.get_color(), text.get_bbox_patch()
        if own is not None and own.get_facecolor()[3] == 1:
            ground = np.array(own.get_facecolor())
        else:
            ground = _under(pixels, box)
        if ground is None:
            continue  # outside the picture: a tick beyond the limits of its axis
        if ground[3] < 0.5:
            if to_hex(colour) not in style.INKS:
                faults.append(f"{text.get_text()!r} stands on the page in {to_hex(colour)}")
        elif (got := contrast(to_rgb(colour), ground[:3])) < ENOUGH:
            faults.append(f"{text.get_text()!r} on {to_hex(ground[:3])} has {got:.1f} : 1")
    assert not faults, f"{getattr(figure, 'title', '')}: " + "; ".join(faults[:8])


def _under(pixels: np.ndarray, box) -> np.ndarray | None:
    """The commonest colour under a text's box, with its opacity."""
    height = len(pixels)
    rows = slice(max(int(height - box.y1), 0), max(int(height - box.y0), 0) + 1)
    part = pixels[rows, max(int(box.x0), 0) : max(int(box.x1), 0) + 1].reshape(-1, 4)
    if not len(part):
        return None
    values, times = np.unique(part, axis=0, return_counts=True)
    return values[times.argmax()]
