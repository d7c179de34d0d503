"""Where lanes lie: offsets to rows and columns, states, bins, rectangles."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autograder.records import Access, View
from autograder.render import geometry
from autograder.render.style import ARRAY, BEYOND, INSIDE, MASKED, NEXT_ROW, NOTHING
from tests.render_records import rows, tile, vector


def view(shape, strides, offset=0):
    return View(0, offset, shape, strides, "float32")


def access(v, offsets, active=None, inside=None, programs=None):
    offsets = np.asarray(offsets)
    on = np.ones_like(offsets, bool)
    programs = np.arange(len(offsets)) if programs is None else programs
    return Access(
        "k", 1, "x", "load", programs, offsets, on if active is None else active,
        on if inside is None else inside, v,
    )  # fmt: skip


def place(a, which=None):
    layout = geometry.page(a.view)
    chosen = np.arange(len(a.programs)) if which is None else np.array(which)
    return geometry.lanes(a, chosen, layout), layout


@st.composite
def strided_views(draw):
    """Views without overlap: dense strides in some order of axes, with padding and signs."""
    shape = draw(st.lists(st.integers(1, 5), min_size=1, max_size=4))
    order = draw(st.permutations(range(len(shape))))
    strides, step = [0] * len(shape), draw(st.integers(1, 3))
    for axis in order:
        strides[axis] = step
        step = step * shape[axis] + draw(st.integers(0, 2)) * step
        if draw(st.booleans()) and shape[axis] > 1:
            strides[axis] *= -1
    return view(tuple(shape), tuple(strides))


@settings(deadline=None)
@given(strided_views())
def test_every_element_of_a_view_has_a_cell_of_its_own(v):
    layout = geometry.page(v)
    index = np.indices(v.shape).reshape(len(v.shape), -1)
    offsets = (index * np.array(v.strides)[:, None]).sum(axis=0)
    row, column = layout.cells(offsets)
    assert row.min() == column.min() == 0
    assert row.max() == layout.rows - 1 and column.max() == layout.columns - 1
    assert len(set(zip(row.tolist(), column.tolist(), strict=True))) == offsets.size


@pytest.mark.parametrize(
    ("v", "size", "axes"),
    [
        (view((7,), (1,)), (1, 7), ("axis ", "axis 0")),
        (view((7,), (3,)), (1, 7), ("axis ", "axis 0")),
        (view((4, 6), (6, 1)), (4, 6), ("axis 0", "axis 1")),
        (view((4, 6), (1, 4)), (6, 4), ("axis 1", "axis 0")),  # transposed: columns in memory
        (view((2, 3, 4), (12, 4, 1)), (6, 4), ("axis 0 and 1", "axis 2")),
        (view((4, 6), (0, 1)), (1, 6), ("axis ", "axis 1")),  # broadcast rows are one row
        (view((4, 0), (0, 1)), (0, 0), ("", "")),
        (view((), ()), (1, 1), ("", "")),
    ],
)
def test_how_a_view_is_laid_out(v, size, axes):
    layout = geometry.page(v)
    assert (layout.rows, layout.columns) == size
    assert layout.axes == axes


def test_states_of_a_ragged_vector():
    placed, _ = place(vector(10, 4, range(3)))
    assert placed.states.tolist() == [[INSIDE] * 4, [INSIDE] * 4, [INSIDE] * 2 + [BEYOND] * 2]
    placed, _ = place(vector(10, 4, range(3), mask=True))
    assert placed.states[2].tolist() == [INSIDE, INSIDE, MASKED, MASKED]
    assert placed.columns[2].tolist() == [8, 9, 10, 11]
    assert placed.one(2).programs.tolist() == [2] and placed.one(2).how_many(MASKED) == 2


def test_a_row_overrun_lies_right_of_the_edge_padded_or_not():
    padded, layout = place(rows(3, 5, 8, pitch=16))
    assert padded.columns.tolist() == [list(range(8))] * 3
    assert (padded.states[:, 5:] == BEYOND).all()
    dense, layout = place(rows(3, 5, 8))
    assert layout.pitch == 5
    assert dense.rows.tolist() == [[0] * 8, [1] * 8, [2] * 8]
    assert (dense.states[:2, 5:] == NEXT_ROW).all()  # memory of the next row
    assert (dense.states[2, 5:] == BEYOND).all()  # no row follows the last


def test_a_tile_keeps_its_shape_over_the_corner():
    placed, _ = place(tile(5, 5, 4, 4, mask=True), [3])
    assert placed.box == (4, 4, 4, 4)
    assert placed.how_many(INSIDE) == 1 and placed.how_many(MASKED) == 15


def test_lanes_that_form_no_grid_lie_where_memory_has_them():
    v = view((4, 6), (6, 1))
    offsets = np.array([[0, 7, 5, 23]])  # a gather
    placed, _ = place(access(v, offsets))
    assert placed.rows.tolist() == [[0, 1, 0, 3]] and placed.columns.tolist() == [[0, 1, 5, 5]]
    wrapped = access(v, (np.arange(8) % 6)[None])  # offs % n: regular only at its beginning
    placed, _ = place(wrapped)
    assert placed.columns.max() == 5 and (placed.states == INSIDE).all()


def test_scalars_and_negative_offsets_have_a_place():
    placed, _ = place(access(view((4,), (1,)), np.array([2, 3])))
    assert placed.columns.tolist() == [[2], [3]]
    outside = np.array([[False, True]])
    placed, _ = place(access(view((4,), (1,)), np.array([[-1, 0]]), inside=outside))
    assert placed.columns.tolist() == [[-1, 0]] and placed.states.tolist() == [[BEYOND, INSIDE]]
    placed, _ = place(access(view((4,), (-1,)), np.array([[0, -1, -2, -3]])))
    assert sorted(placed.columns[0].tolist()) == [0, 1, 2, 3]
    assert (placed.states == INSIDE).all()


def test_a_bin_shows_the_most_telling_of_its_states():
    a = vector(10_000_000, 1024, range(9766))
    layout = geometry.page(a.view)
    states, window, _, per = geometry.overview(a, layout, (1, 500))
    assert window == (0, 0, 1, 9766 * 1024) and states.shape == (1, -(-9766 * 1024 // per))
    assert states[0, -1] == BEYOND and (states[0, :-1] == INSIDE).all()
    small, per_row, per_column = geometry.grid(layout, None, (0, -10, 1, 30), (1, 100))
    assert (per_row, per_column) == (1, 1)
    assert small[0].tolist() == [NOTHING] * 10 + [ARRAY] * 20


def test_programs_to_look_at_have_lanes_outside_if_any_do():
    a = vector(98432, 1024, range(97))
    assert 96 in geometry.select(a, None, 3)
    assert geometry.select(a, 5, 3).tolist() == [5]
    assert geometry.select(a, None, 200).tolist() == list(range(97))
    with pytest.raises(ValueError, match="program 97"):
        geometry.select(a, 97, 3)


@settings(deadline=None, max_examples=60)
@given(st.integers(1, 9), st.integers(1, 9), st.randoms(use_true_random=False))
def test_rectangles_cover_exactly_the_cells_of_their_state(height, width, random):
    states = np.array([[random.choice((0, 1, 1, 3)) for _ in range(width)] for _ in range(height)])
    for state in (0, 1, 3):
        covered = np.zeros(states.shape, int)
        for row, column, h, w in geometry.merged(states, state):
            assert h > 0 and w > 0
            covered[row : row + h, column : column + w] += 1
        assert np.array_equal(covered, states == state)


def test_a_full_page_is_one_rectangle():
    assert geometry.merged(np.ones((300, 200), int), 1) == [(0, 0, 300, 200)]
