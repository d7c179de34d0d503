"""One look for every picture: colours, type, and how a figure becomes SVG or PNG.

Colours are told apart by lightness as well as by hue, and every state that matters has a hatch of
its own, so a grey print and a colour-blind reader lose nothing. Figures have no background, and in
SVG their two inks are the page's ``currentColor``: they sit in light and dark pages alike. Words
stand in an ink, or on a fill in ON_FILL or PAPER; no colour can be read on white and on black.
"""

from __future__ import annotations

import io
import re
import secrets
import textwrap
from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING

from autograder.render.neutral import neutral

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# L* of each, for those who check: ink 12, muted 44, cell 84, in 57, next row 74, outside 40.
INK = "#1f2328"
MUTED = "#636971"  # 5.6 : 1 on white
FAINT = 0.72  # MUTED in SVG: this much of the page's ink, and 6 : 1 or more in either theme
INKS = (INK, MUTED)
PAPER = "#ffffff"
CELL = "#cdd3da"
READ = "#3f8fcb"
WRAPPED = "#e3b23c"
BARS = "#4a3600"
ON_FILL = "#000000"  # text on a coloured cell, in both themes
OUTSIDE = "#b5330f"
DONE = "#8fb8da"  # READ, faded: touched before this step
PASSED = "#1a7f37"  # grounds of badges with words in PAPER: 5 : 1 or more; OUTSIDE is the third
UNDECIDED = "#5f6670"
CARD = "#e9edf1"  # ground of a question, with words in INK
FIELD = "#dfe4ea"  # and of what is typed in

# Pages of our own: grounds, lines, and words (4.5 : 1 or more), for a light and a dark browser.
LIGHT = dict(
    paper=PAPER, wash="#f6f8fa", edge="#d0d7de",
    ink=INK, link="#0550ae", passed=PASSED, fault=OUTSIDE, undecided=UNDECIDED,
)  # fmt: skip
DARK = dict(
    paper="#0d1117", wash="#151b23", edge="#3d444d",
    ink="#e6edf3", link="#79b8ff", passed="#3fb950", fault="#ec7b55", undecided="#a2aab4",
)  # fmt: skip


def on(red: float, green: float, blue: float) -> str:
    """ON_FILL or PAPER, whichever can be read better on a colour (parts from 0 to 1): 4.6 : 1 or
    more. By WCAG 2's relative luminance."""
    parts = (red, green, blue)
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    light = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return ON_FILL if (light + 0.05) ** 2 > 0.05 * 1.05 else PAPER


# State of a cell or lane, in painting order: a later one covers an earlier one.
NOTHING, ARRAY, MASKED, PAST, INSIDE, NEXT_ROW, BEYOND = range(7)
STATES = {
    ARRAY: dict(facecolor=CELL, edgecolor="none"),
    MASKED: dict(facecolor="none", edgecolor=MUTED, hatch="////"),
    PAST: dict(facecolor=DONE, edgecolor="none"),
    INSIDE: dict(facecolor=READ, edgecolor="none"),
    NEXT_ROW: dict(facecolor=WRAPPED, edgecolor=BARS, hatch="----"),
    BEYOND: dict(facecolor=OUTSIDE, edgecolor=PAPER, hatch="xxxx"),
}
STATE_WORDS = {
    ARRAY: "elements",
    MASKED: "lane masked off",
    PAST: "touched before",
    INSIDE: "lane inside",
    NEXT_ROW: "lane in the next row",
    BEYOND: "lane outside",
}

# A number in a cell; outside the layout, which would weigh hundreds of them.
IN_CELL = dict(ha="center", va="center", fontsize=8, in_layout=False)

WIDTH = 8.4  # inches: a notebook's text column
_RC = {
    "font.family": ["DejaVu Sans"],
    "font.size": 9.5,
    "text.color": INK,
    "axes.edgecolor": MUTED,
    "axes.labelcolor": MUTED,
    "axes.linewidth": 0.7,
    "axes.titlesize": 9.5,
    "axes.titlelocation": "left",
    "axes.titlecolor": MUTED,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelsize": 8.5,
    "ytick.labelsize": 8.5,
    "hatch.linewidth": 0.6,
    "legend.frameon": False,
    "legend.fontsize": 8.5,
    "legend.handlelength": 1.6,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "savefig.facecolor": "none",
    "svg.fonttype": "path",
    "svg.hashsalt": "autograder",
    "text.parse_math": False,  # a student's name may hold a dollar sign
}


def look():
    """The style as a context manager; matplotlib's own settings are as before when it ends."""
    import matplotlib

    return matplotlib.rc_context(_RC)


@cache
def _picture_class() -> type:
    from matplotlib.figure import Figure

    class Picture(Figure):
        """A figure that Jupyter shows as SVG in the page's own ink, without pyplot's state."""

        def _repr_html_(self) -> str:
            return f'<div style="max-width:{WIDTH * 96:.0f}px">{svg(self)}</div>'

        def _repr_png_(self) -> bytes:
            return png(self)

    return Picture


def new_figure(height: float, title: str, subtitle: str = "", width: float = WIDTH) -> Figure:
    """A figure of ``width`` × ``height`` inches, plus what its headline needs on top.

    ``title`` says the point, in bold at the top left; ``subtitle`` gives the facts, muted.
    """
    characters = width * 11.2
    heads = textwrap.wrap(neutral(title, 240), int(characters))
    facts = textwrap.wrap(neutral(subtitle, 400), int(characters * 1.22))
    top = 0.10 + 0.19 * len(heads) + 0.165 * len(facts)
    figure = _picture_class()(figsize=(width, height + top), layout="constrained", dpi=100)
    total = height + top
    figure.get_layout_engine().set(w_pad=0.08, h_pad=0.05, rect=(0, 0, 1, height / total))
    place = dict(x=0.08 / width, ha="left", va="top", in_layout=False)
    figure.text(y=1 - 0.06 / total, s="\n".join(heads), fontsize=10.5, weight="bold", **place)
    y = 1 - (0.08 + 0.19 * len(heads)) / total
    figure.text(y=y, s="\n".join(facts), fontsize=8.8, color=MUTED, **place)
    figure.title = " ".join(heads)
    return figure


def legend(
    figure: Figure,
    seen: Iterable[int],
    looks: dict[int, dict] = STATES,
    words: dict[int, str] = STATE_WORDS,
) -> None:
    """A row of swatches below the picture, for the states that occur in it."""
    from matplotlib.patches import Patch

    seen = set(seen)
    handles = [
        Patch(label=words[state], linewidth=0.6, **look)
        for state, look in looks.items()
        if state in seen
    ]
    if handles:
        figure.legend(handles=handles, loc="outside lower left", ncols=len(handles))


def bare(axes: Axes, keep: str = "") -> None:
    """Axes without frame and ticks; ``keep`` may name sides to leave, e.g. ``"bottom"``."""
    for side, spine in axes.spines.items():
        spine.set_visible(side in keep)
    if "bottom" not in keep:
        axes.set_xticks([])
    if "left" not in keep:
        axes.set_yticks([])


def svg(figure: Figure, label: str = "") -> str:
    """Inline SVG without script, style sheet or head; text as paths; ink = currentColor."""
    buffer = io.StringIO()
    with look():
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>|<!--.*?-->", "", text, flags=re.S)
    text = re.sub(r"\s*\n\s*", " ", text)
    # matplotlib's style sheet says * { … } and would speak to the whole page
    text = re.sub(r"<style.*?</style>", "", text, flags=re.S)
    text = _own_ids(_in_the_pages_ink(text))
    words = neutral(label or getattr(figure, "title", "figure"), 200)
    for raw, entity in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ('"', "&quot;")):
        words = words.replace(raw, entity)
    head = (
        f'<svg role="img" aria-label="{words}" style="max-width:100%;height:auto;'
        'stroke-linejoin:round;stroke-linecap:butt" '
    )
    return head + text[len("<svg ") :]


def _in_the_pages_ink(text: str) -> str:
    """INK is the page's own colour, MUTED a thinner one; what has an opacity keeps that."""

    def thinner(match: re.Match) -> str:
        look = match[0]
        for part in ("fill", "stroke"):
            if f"{part}-opacity" not in look:
                look = look.replace(f"{part}: {MUTED}", f"{part}: {MUTED}; {part}-opacity: {FAINT}")
        return look

    text = re.sub(r'style="[^"]*"', thinner, text)
    return text.replace(INK, "currentColor").replace(MUTED, "currentColor")


def _own_ids(text: str) -> str:
    """Ids that no other picture has, and only where something refers to them.

    A browser takes the first element with an id; where that lies in a hidden tab or a closed fold,
    the hatches of a second copy of the picture would vanish. Hence chance, not a hash.
    """
    token = secrets.token_hex(4)
    used = set(re.findall(r'(?:url\(|href=")#([^")]+)', text))
    text = re.sub(r'((?:url\(|href=")#)', rf"\g<1>{token}-", text)
    return re.sub(r' id="([^"]+)"', lambda m: f' id="{token}-{m[1]}"' if m[1] in used else "", text)


def png(figure: Figure, dpi: int = 160) -> bytes:
    """PNG on white paper, for places that take no SVG."""
    buffer = io.BytesIO()
    with look():
        figure.savefig(buffer, format="png", dpi=dpi, facecolor=PAPER, metadata={"Software": None})
    return buffer.getvalue()
