"""Every picture: nothing cut off, nothing on top of other words, the point in its title."""

from __future__ import annotations

import itertools
import re
import time

import numpy as np
import pytest

from autograder.records import Access, View
from autograder.render import style
from autograder.render.figures import (
    counts_of,
    coverage,
    error_map,
    lanes_over_array,
    program_map,
    roofline,
    sectors,
    tiles_of,
)
from autograder.render.style import BEYOND, INSIDE, MASKED, NEXT_ROW
from tests.figure_looks import assert_readable
from tests.render_records import rows, tile, vector


def texts(figure):
    """All words that can be seen, with their boxes in pixels."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.text import Text

    FigureCanvasAgg(figure).draw()
    found = []
    for text in dict.fromkeys(figure.findobj(Text)):
        if text.get_visible() and text.get_text().strip() and _shown(text, figure):
            found.append((text.get_text(), text.get_window_extent()))
    return found


def _shown(text, figure) -> bool:
    """Ticks beyond the limits of their axis exist but are not drawn."""
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            labels = [t for tick in axis.get_major_ticks() for t in (tick.label1, tick.label2)]
            if text in labels:
                low, high = sorted(axis.get_view_interval())
                return low - 1e-9 <= _position(text, axis, axes) <= high + 1e-9
    return True


def _position(text, axis, axes):
    x, y = text.get_position()
    return x if axis is axes.xaxis else y


def drawn(figure, state) -> int:
    """How many rectangles of a state the figure holds."""
    found = figure.findobj(lambda artist: artist.get_gid() == f"state-{state}")
    return sum(len(collection.get_paths()) for collection in found)


def check(figure, *said):
    """Words can be read, lie within the figure and apart, and the figure shows something."""
    assert_readable(figure)
    words = texts(figure)
    page = figure.bbox
    for text, box in words:
        assert box.x0 >= page.x0 - 1 and box.x1 <= page.x1 + 1, f"{text!r} is cut off sideways"
        assert box.y0 >= page.y0 - 1 and box.y1 <= page.y1 + 1, f"{text!r} is cut off"
    for (a, one), (b, other) in itertools.combinations(words, 2):
        wide = min(one.x1, other.x1) - max(one.x0, other.x0)
        high = min(one.y1, other.y1) - max(one.y0, other.y0)
        assert wide <= 1 or high <= 1, f"{a!r} lies on {b!r}"
    for part in said:
        assert any(part in text.replace("\u202f", " ") for text, _ in words), (part, words)
    pixels = np.asarray(figure.canvas.buffer_rgba())
    assert (pixels[..., 3] > 0).mean() > 0.02, "the picture is empty"
    return figure


ON = np.ones((1, 32), bool)
STRIDED = Access(
    "k", 4, "x", "load", np.array([0]), (np.arange(32) * 32)[None], ON, ON,
    View(0, 0, (1024,), (1,), "float32"),
)  # fmt: skip
NAMED = "$x_{a}$ <b> \u202e\x1b[31m " + "n" * 200


LANES = {
    "ten": (vector(10, 4, range(3)), "program 2: 2 of 4 lanes are outside", "8", "2 in, 2 outside"),
    "lesson": (vector(), "program 96: 896 of 1024 lanes are outside", "98 432", "99 327"),
    "masked": (vector(mask=True), "the mask stops 896 of 2048 lanes", "128 in, 896 masked"),
    "alone": (vector(programs=[96]), "128 in, 896 outside"),
    "tiny": (vector(10, 1024, [0]), "1014 of 1024 lanes are outside", "10 in"),
    "one": (vector(1, 1, [0]), "1 lane in bounds", "1 element"),
    "ten million": (vector(10_000_000, programs=range(9766)), "384 of 1024 lanes are outside"),
    "tile": (tile(), "768 of 1024 lanes are outside", "1000 (end)", "close up"),
    "padded tile": (tile(pitch=1024), "896 of 1024 lanes are outside", "row starts every 1024"),
    "masked tile": (tile(mask=True), "the mask stops 992 of 1024 lanes"),
    "small tile": (tile(10, 12, 4, 8), "16 of 32 lanes are outside", "10 (end)"),
    "rows": (rows(), "243 of 1024 lanes are outside", "781 (end)"),
    "padded rows": (rows(pitch=1024), "243 of 1024 lanes are outside", "781 (end)"),
    "next row": (rows(programs=[4]), "243 lanes of 1024 end up in the next row"),
    "large tiles": (tile(4096, 2500, 128, 128), "60 of 16 384 lanes are outside, 7620 in the next"),
    "named": (vector(10, 4, range(3), argument=NAMED), "$x_{a}$"),
}


@pytest.mark.parametrize("name", LANES)
def test_lanes(name):
    access, *said = LANES[name]
    check(lanes_over_array(access), *said)


def test_lanes_show_each_state_that_occurs_and_no_other():
    figure = lanes_over_array(vector(10, 4, range(3)))
    assert drawn(figure, BEYOND) == 2 and drawn(figure, INSIDE) == 10
    assert drawn(figure, MASKED) == 0 and drawn(figure, NEXT_ROW) == 0
    figure = lanes_over_array(vector(10, 4, range(3), mask=True))
    assert drawn(figure, MASKED) == 2 and drawn(figure, BEYOND) == 0
    assert drawn(lanes_over_array(rows(programs=[4])), NEXT_ROW) >= 1


def test_lanes_of_one_program():
    figure = lanes_over_array(vector(), program=5)
    check(figure, "program 5", "1024 in", "5120")
    assert drawn(figure, BEYOND) >= 1  # in the overview: another program's
    with pytest.raises(ValueError, match="program 97 has no such access"):
        lanes_over_array(vector(), program=97)
    with pytest.raises(ValueError, match="no programs"):
        lanes_over_array(vector(programs=[]))


@pytest.mark.parametrize(
    ("shape", "strides", "offsets"),
    [
        ((0,), (1,), [[0, 1]]),  # an empty tensor: every lane is outside
        ((4,), (-1,), [[0, -1, -2, -3, -4]]),
        ((3, 4), (0, 1), [[0, 1, 2, 3]]),
        ((2, 3, 4), (12, 4, 1), [list(range(12, 30))]),
        ((4, 6), (1, 4), [[0, 1, 2, 3, 4, 5, 6]]),
        ((5,), (1,), [[10**12, -(10**12)]]),  # far away on both sides
        ((), (), [[0]]),
    ],
)
def test_lanes_over_tensors_of_every_kind(shape, strides, offsets):
    view = View(0, 0, shape, strides, "float32")
    valid = sum((i * s for i, s in zip(np.indices(shape), strides, strict=True)), np.zeros(shape))
    offsets = np.array(offsets)
    inside = np.isin(offsets, valid)
    access = Access("k", 2, "x", "load", np.array([0]), offsets, np.ones_like(inside), inside, view)
    figure = check(lanes_over_array(access))
    assert bool(drawn(figure, BEYOND)) == (not inside.all())


def test_a_single_lane_outside_is_looked_at_closely():
    access = vector(mask=True, programs=[96])
    access.active[0, 128] = True  # one lane too many: <= n for < n
    figure = check(
        lanes_over_array(access), "1 of 129 unmasked lanes are outside", "895 masked, 1 outside"
    )
    page = tile(1000, 900, 128, 128, pitch=1024, mask=True, programs=[7])
    page.active[0, :, 4] = True  # column 900
    sheet = check(lanes_over_array(page), "128 of 640 unmasked lanes are outside")
    for picture in (figure, sheet):
        marked = [c for c in picture.axes[1].collections if c.get_gid() == f"state-{BEYOND}"]
        box = marked[0].get_paths()[0].get_extents()
        box = picture.axes[1].transData.transform_bbox(box)
        assert min(abs(box.width), abs(box.height)) > 5  # pixels


def test_lanes_far_out_do_not_make_the_tensor_a_speck():
    view = View(0, 0, (5, 3), (3, 1), "float32")
    offsets = (np.arange(16)[:, None] * 16 + np.arange(16))[None]  # the tile's width as pitch
    inside, active = offsets < 15, np.broadcast_to(np.arange(16)[:, None] < 5, offsets.shape)
    access = Access("k", 2, "A", "load", np.array([0]), offsets, active, inside, view)
    figure = check(lanes_over_array(access), "65 of 80 unmasked lanes are outside", "5 (end)")
    low, high = sorted(figure.axes[0].get_ylim())
    assert 5 / (high - low) > 0.15


def test_pictures_of_ten_million_elements_are_bounded():
    for access in (vector(10_000_000, programs=range(9766)), tile(4096, 2500, 128, 128)):
        start = time.process_time()
        text = style.svg(lanes_over_array(access))
        assert time.process_time() - start < 10  # about 1.5 s
        assert len(text) < 200_000


def test_lanes_scattered_without_a_pattern_stay_a_small_picture():
    random = np.random.default_rng(2)
    for shape in ((500, 500), (250_000,)):
        strides = (500, 1) if len(shape) == 2 else (1,)
        offsets = random.integers(0, 260_000, (1, 65_536))
        inside = offsets < 250_000
        active = random.random(offsets.shape) < 0.5
        view = View(0, 0, shape, strides, "float32")
        scattered = Access("k", 2, "x", "load", np.array([0]), offsets, active, inside, view)
        figure = check(lanes_over_array(scattered), "lanes are outside")
        assert drawn(figure, BEYOND) and len(style.svg(figure)) < 1_500_000


# ---------------------------------------------------------------- tiles


def grouped(across, down, group):
    """Programs in groups of rows, as the matmul of unit 05 takes them."""
    tiles = np.zeros((down, across), int)
    for program in range(across * down):
        first = program // (group * across) * group
        size = min(down - first, group)
        within = program % (group * across)
        tiles[first + within % size, within // size] = program
    return tiles


@pytest.mark.parametrize(
    ("tiles", "said"),
    [
        (np.arange(64).reshape(8, 8), "64 programs, 8 × 8 tiles: row by row"),
        (np.arange(12).reshape(4, 3).T, "12 programs, 3 × 4 tiles: column by column"),
        (grouped(16, 16, 8), "down 8 rows, then to the right (groups of 8)"),
        (grouped(5, 7, 3), "groups of 3"),
        (grouped(64, 64, 8), "4096 programs, 64 × 64 tiles"),
        (np.random.default_rng(0).permutation(20).reshape(4, 5), "in an order of its own"),
        (np.array([[0, 1], [2, -1]]), "1 tile without a program"),
        (np.array([[0]]), "1 program, 1 × 1 tiles"),
        (np.arange(40).reshape(1, 40), "row by row"),
    ],
)
def test_program_map(tiles, said):
    check(program_map(tiles), said)


def test_program_map_outlines_what_runs_at_once():
    figure = check(program_map(grouped(16, 16, 8), at_once=76), "the first 76")
    (outline,) = [c for c in figure.axes[0].collections if len(c.get_segments()) > 4]
    # 76 = 9 columns of 8 tiles and 4 more: a border of 2 · (10 + 8) edges
    assert len(outline.get_segments()) == 36
    assert not program_map(grouped(4, 4, 2), at_once=99).axes[0].collections


def test_tiles_come_from_stores():
    tiles = tiles_of(tile(100, 90, mask=True), (32, 32))
    assert np.array_equal(tiles, np.arange(12).reshape(4, 3))
    halves = [tile(100, 90, mask=True, programs=p) for p in (range(6), range(8, 12))]
    assert tiles_of(halves, (32, 32)).ravel().tolist() == [0, 1, 2, 3, 4, 5, -1, -1, 8, 9, 10, 11]


# ---------------------------------------------------------------- whole tensors


def counts(shape, never=(), twice=()):
    out = np.ones(shape, int)
    out[never] = 0 if never else out[never]
    out[twice] = 2 if twice else out[twice]
    return out


def test_coverage_says_what_is_missing_and_where():
    once = np.ones(98432, int)
    check(coverage(once, "out"), "out: every one of 98 432 cells is written once")
    once[-128:] = 0
    check(coverage(once, "out"), "128 cells never written", "98 304…98 431 (to the end)")
    page = np.ones((100, 90), int)
    page[96:], page[10:20, 5:15] = 0, 3
    figure = check(coverage(page), "360 cells never written and 100 cells written more than once")
    assert drawn(figure, 3) == 1 and drawn(figure, 2) == 1
    few = np.array([[1, 1, 0], [1, 2, 1]])
    check(coverage(few), "1 cell never written and 1 cell written more than once", "2", "0")


def test_counts_come_from_stores():
    whole = counts_of(vector(10, 4, range(3)))
    assert whole.tolist() == [1] * 10  # lanes outside write no cell
    assert counts_of(vector(10, 4, [0, 2], mask=True)).tolist() == [1] * 4 + [0] * 4 + [1] * 2
    twice = counts_of([tile(10, 12, 4, 8, mask=True), tile(10, 12, 4, 8, mask=True, programs=[3])])
    assert twice.shape == (10, 12) and (twice[4:8, 8:] == 2).all() and twice.sum() == 120 + 16
    check(coverage(twice), "16 cells written more than once")


def test_one_odd_cell_among_ten_million_is_drawn():
    once = np.ones(10_000_000, int)
    once[5_000_000] = 2
    figure = check(coverage(once), "1 cell written more than once", "5 000 000")
    assert drawn(figure, 2) == 1
    from matplotlib.collections import PatchCollection

    (odd,) = figure.findobj(lambda a: isinstance(a, PatchCollection) and a.get_gid() == "state-2")
    box = odd.axes.transData.transform_bbox(odd.get_paths()[0].get_extents())
    assert box.width > 2  # pixels


def test_error_map_tells_near_far_and_not_finite_apart():
    expected = np.random.default_rng(1).normal(size=(64, 96))
    actual = expected.copy()
    check(error_map(actual, expected, 1e-6, "y"), "y: all 6144 values agree")
    actual[60:] += 1
    actual[10:14, 20:24] += 3e-6
    actual[3, 4] = np.nan
    figure = check(
        error_map(actual, expected, 1e-6, "y"), "401 of 6144 values differ", "NaN or infinite"
    )
    assert [drawn(figure, state) for state in (2, 3, 4)] == [1, 1, 1]
    check(error_map(actual[3], expected[3], 1e-6), "1 of 96 values differ", "within 4")


def test_error_map_takes_equal_infinities_and_expected_nan_as_right():
    expected = np.array([np.inf, -np.inf, np.nan, 1.0])
    check(error_map(expected.copy(), expected, 0.0), "all 4 values agree")
    figure = error_map(np.array([np.inf, np.inf, 0.0, 1.0]), expected, 1e-3)
    check(figure, "2 of 4 values differ")
    with pytest.raises(ValueError, match="shapes differ"):
        error_map(np.zeros(3), np.zeros(4), 1.0)


@pytest.mark.parametrize("shape", [(2, 3, 40, 50), (1, 7), (5, 1), (1,), (0,), (3, 0), ()])
def test_maps_take_every_shape(shape):
    check(coverage(np.ones(shape, int)))
    check(error_map(np.zeros(shape), np.zeros(shape), 1.0))


# ---------------------------------------------------------------- memory and speed


def test_sectors_say_how_much_of_each_is_used():
    check(sectors(vector(4096, 64, range(4))), "64 lanes, 8 sectors, 100 % of the bytes are used")
    check(sectors(STRIDED), "32 lanes, 32 sectors, 12 % of the bytes", "128 bytes used of 1024")
    check(sectors(vector(), program=96), "program 96", "128 lanes, 16 sectors")
    check(sectors(vector()), "first 16 of 128 sectors in detail")
    check(sectors(vector(10, 4, range(3)), program=2), "2 lanes, 1 sector, 25 %")
    with pytest.raises(ValueError, match="program 97"):
        sectors(vector(), program=97)


def test_sectors_count_from_the_start_of_the_buffer():
    view = View(0, 3, (8,), (1,), "float32")  # 12 bytes into a sector of 32
    on = np.ones((1, 8), bool)
    access = Access("k", 1, "x", "load", np.array([0]), np.arange(8)[None], on, on, view)
    check(sectors(access), "8 lanes, 2 sectors, 50 % of the bytes are used")


def test_sectors_of_lanes_that_are_all_masked():
    off = Access(
        "k", 1, "x", "load", np.array([0]), np.arange(8)[None], np.zeros((1, 8), bool),
        np.ones((1, 8), bool), View(0, 0, (8,), (1,), "float32"),
    )  # fmt: skip
    check(sectors(off), "0 lanes, 0 sectors")


CARD = {"name": "RTX 4080", "bandwidth": 716.8, "peak": 97.5}


def test_roofline_tells_predictions_from_measurements():
    points = [
        {"label": "add", "intensity": 1 / 12},
        {"label": "x + y", "intensity": 1 / 12, "performance": 0.05},
        {"label": "softmax", "intensity": 5 / 8},
        {"label": "matmul", "intensity": 1365, "performance": 80, "predicted": True},
    ]
    figure = check(
        roofline(CARD, points),
        "below 136 FLOP a byte, memory sets the pace",
        "add (predicted)",
        "matmul (predicted)",
        "x + y",
    )
    markers = [line for line in figure.axes[0].lines if line.get_marker() == "o"]
    filled = {float(line.get_ydata()[0]): line.get_markerfacecolor() for line in markers}
    assert filled[0.05] == style.OUTSIDE
    assert [face for y, face in filled.items() if y != 0.05] == ["none"] * 3
    add = min(y for y in filled if y != 0.05)
    assert add == pytest.approx(716.8e-3 / 12)  # on the roof
    labels = [text for text, _ in texts(figure)]
    assert "x + y" in labels and "x + y (predicted)" not in labels


def test_roofline_of_a_card_alone():
    check(roofline(CARD), "RTX 4080", "716.8 GB/s and 97.5 TFLOP/s")


# ---------------------------------------------------------------- style


def test_figures_show_themselves_without_pyplot():
    import subprocess
    import sys

    code = (
        "import sys; from tests.render_records import vector;"
        "from autograder.render.figures import lanes_over_array;"
        "assert 'matplotlib' not in sys.modules;"  # imported when something is drawn
        "f = lanes_over_array(vector()); assert f._repr_html_().startswith('<div');"
        "assert f._repr_png_()[:4] == b'\\x89PNG'; assert 'matplotlib.pyplot' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_svg_stands_alone_and_is_the_same_up_to_its_ids():
    first, second = (style.svg(lanes_over_array(vector(mask=True))) for _ in range(2))
    assert first.startswith("<svg role=") and first.rstrip().endswith("</svg>")
    for foreign in ("<?xml", "<!DOCTYPE", "<style", "<script", "<metadata", "<!--"):
        assert foreign not in first
    ids = [re.findall(r' id="([^"]+)"', text) for text in (first, second)]
    assert ids[0] and not set(ids[0]) & set(ids[1])  # a hidden copy must not lend its hatches
    used = re.findall(r'(?:url\(|href=")#([^")]+)', first)
    assert set(used) == set(ids[0]) and "url(#" in first
    tokens = [one[0].split("-")[0] for one in ids]
    assert first.replace(tokens[0], "") == second.replace(tokens[1], "")


def test_matplotlibs_own_settings_are_left_alone():
    import matplotlib

    before = dict(matplotlib.rcParams)
    style.png(lanes_over_array(vector(10, 4, range(3))))
    assert dict(matplotlib.rcParams) == before
