"""The player: every operation of every program can be reached, with and without widgets."""

from __future__ import annotations

import numpy as np
import pytest

from autograder.records import Access, Run, View
from autograder.render import player as module
from autograder.render.player import player
from autograder.render.style import BEYOND, INSIDE, MASKED, PAST
from tests.render_records import tile, vector
from tests.test_render_figures import check, drawn


def add(n=10, block=4, programs=range(3), mask=True):
    kinds = (("load", "x"), ("load", "y"), ("store", "out"))
    return [vector(n, block, programs, mask, operation, name) for operation, name in kinds]


def matmul(m=40, n=36, k=24, size=16):
    """The accesses of a tiled matmul, two loads a turn of its loop."""
    across = -(-n // size)
    programs = np.arange(-(-m // size) * across)
    row = (programs // across)[:, None] * size + np.arange(size)
    column = (programs % across)[:, None] * size + np.arange(size)
    out = []

    def touch(argument, operation, line, r, c, shape):
        offsets = r[:, :, None] * shape[1] + c[:, None, :]
        on = (r < shape[0])[:, :, None] & (c < shape[1])[:, None, :]
        view = View(0, 0, shape, (shape[1], 1), "float32")
        out.append(
            Access("matmul_kernel", line, argument, operation, programs, offsets, on, on, view)
        )

    for start in range(0, k, size):
        inner = np.broadcast_to(start + np.arange(size), (len(programs), size))
        touch("A", "load", 12, row, inner, (m, k))
        touch("B", "load", 13, inner, column, (k, n))
    touch("C", "store", 20, row, column, (m, n))
    return out


def test_a_program_is_played_in_its_own_order():
    made = player(add())
    assert made.programs == [0, 1, 2]
    assert [(a.operation, a.argument, row) for a, row in made.steps(2)] == [
        ("load", "x", 2),
        ("load", "y", 2),
        ("store", "out", 2),
    ]
    assert [a.argument for a, _ in player(matmul()).steps(8)] == ["A", "B", "A", "B", "C"]


def test_a_frame_shows_the_lanes_now_and_in_pale_what_was_before():
    made = player(add())
    figure = check(made.frame(2, 0), "program 2, step 1 of 3: load from x", "2 in, 2 masked")
    assert (drawn(figure, INSIDE), drawn(figure, MASKED), drawn(figure, PAST)) == (2, 2, 0)
    figure = check(made.frame(2, 2), "step 3 of 3: store to out", "out", "y")
    assert (drawn(figure, INSIDE), drawn(figure, PAST)) == (2, 4)
    outside = player(add(mask=False)).frame(2, 0)
    assert drawn(outside, BEYOND) == 2


@pytest.mark.parametrize("step", range(5))
def test_frames_of_a_matmul(step):
    figure = check(player(matmul()).frame(8, step), f"program 8, step {step + 1} of 5", "A", "B")
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["A", "B", "C"]
    bold = [axes._left_title.get_weight() == "bold" for axes in figure.axes]
    assert bold == [name == "ABABC"[step] for name in "ABC"]


def test_frames_of_large_launches():
    made = player(add(98432, 1024, range(97)))
    check(made.frame(96, 1), "program 96, step 2 of 3", "128 in, 896 masked", "98 432")
    check(player([tile(4096, 2500, 128, 128, mask=True)]).frame(639, 0), "8704 in, 7680 masked")


def test_what_is_not_there_is_said():
    made = player(add())
    with pytest.raises(ValueError, match="program 2 has 3 steps, not step 3"):
        made.frame(2, 3)
    with pytest.raises(ValueError, match="program 7 has 0 steps"):
        made.frame(7, 0)
    for nothing in (Run((), ()), [], [vector(programs=[])]):
        with pytest.raises(ValueError, match="keep_accesses=True"):
            player(nothing)


def test_it_takes_a_run():
    made = player(Run((), (), accesses=tuple(add())))
    assert made.programs == [0, 1, 2]


def test_the_static_picture_holds_a_few_programs():
    check(player(add()).overview(), "3 programs, operation by operation", "program 2 · load x")
    check(player(add(98432, 1024, range(97))).overview(), "3 programs of 97", "program 96 · load x")
    check(player(matmul()).overview(), "3 programs of 9", "the first 4 operations of each")
    check(player([tile(4096, 2500, 128, 128)]).overview(), "every load and every store")


def test_of_a_large_launch_some_programs_are_kept_and_all_are_counted():
    made = player(add(98432, 1024, [0, 1, 48, 96]))
    assert "3 programs of 97" in made.overview().title
    assert repr(made).startswith("player of 4 of 97 programs; program 0:")


def test_programs_at_the_ends_are_drawn_as_wide_as_others():
    figure = player(add(98432, 1024, range(97))).overview()
    widths = {axes.get_xlim()[1] - axes.get_xlim()[0] for axes in figure.axes}
    assert widths == {1024 + 2 * (1024 // 6)}


def test_text_tells_the_steps_of_the_first_program():
    assert repr(player(add())).splitlines() == [
        "player of 3 programs; program 0:",
        "  1. load from x, line 7: 4 in",
        "  2. load from y, line 7: 4 in",
        "  3. store to out, line 7: 4 in",
    ]


def test_sliders_redraw_the_picture():
    made = player(add(10, 4, range(3)))
    box = made.widget()
    (program, step, _), picture = box.children[0].children, box.children[1]
    assert program.options == (0, 1, 2) and step.max == 3
    assert "program 0, step 1 of 3" in picture.value
    step.value = 3
    assert "program 0, step 3 of 3" in picture.value
    program.value = 2
    assert "program 2, step 3 of 3" in picture.value
    assert "<svg" in picture.value and "<script" not in picture.value


def test_a_program_with_fewer_steps_pulls_the_slider_back():
    short = vector(10, 4, [0], True, "load", "x")
    made = player([short, *add()])
    box = made.widget()
    (program, step, _), picture = box.children[0].children, box.children[1]
    step.value = 4
    assert "program 0, step 4 of 4" in picture.value
    program.value = 1
    assert step.max == 3 and "program 1, step 3 of 3" in picture.value


def shown(made):
    """What a front end would get: a list of MIME bundles."""
    from IPython.core.interactiveshell import InteractiveShell
    from IPython.utils.capture import capture_output

    InteractiveShell.instance()
    with capture_output() as captured:
        from IPython.display import display

        display(made)
    return [output.data for output in captured.outputs]


def test_jupyter_gets_sliders_only_where_they_run(monkeypatch):
    monkeypatch.setattr(module, "_widgets_run", lambda: False)
    (still,) = shown(player(add()))
    assert set(still) == {"text/plain", "text/html"} and "<svg" in still["text/html"]
    monkeypatch.setattr(module, "_widgets_run", lambda: True)
    live, below = shown(player(add()))
    assert "application/vnd.jupyter.widget-view+json" in live
    assert "<details>" in below["text/html"] and "<svg" in below["text/html"]
    (still,) = shown(player(add(), static=True))
    assert set(still) == {"text/plain", "text/html"}


def test_frames_are_drawn_once_and_steps_are_bounded(monkeypatch):
    calls = []
    draw = module._frame
    monkeypatch.setattr(module, "_frame", lambda *a: calls.append(a) or draw(*a))
    box = player(add()).widget()
    step = box.children[0].children[1]
    for value in (2, 1, 2, 1):
        step.value = value
    assert len(calls) == 2
    many = player([vector(10, 4, [0])] * 1000)
    assert len(many.steps(0)) == 200
