"""The mini-Triton keeps Triton's rules: flat offsets, masks, hard edges, stores in place."""

from __future__ import annotations

import ast
import inspect

import numpy as np
import pytest

from autograder import minitriton
from autograder.minitriton import STATS, arange, cdiv, launch, load, store


@pytest.fixture(autouse=True)
def _fresh_counters():
    STATS.update(loads=0, stores=0)


@pytest.fixture
def x():
    return np.arange(10, dtype=np.float32)


def test_cdiv_rounds_up():
    assert [cdiv(a, 4) for a in (0, 1, 3, 4, 5, 98432)] == [0, 1, 1, 1, 2, 24608]
    assert cdiv(98432, 1024) == 97


def test_arange_counts_lanes():
    assert arange(0, 4).tolist() == arange(4).tolist() == [0, 1, 2, 3]
    assert arange(2, 5).tolist() == [2, 3, 4]


def test_pid_is_refused_as_a_number_and_is_a_tuple_otherwise(x):
    seen = []
    launch(lambda pid, out: seen.append(pid), (2, 1), x)
    assert seen == [(0, 0), (1, 0)] and repr(seen[1]) == "(1, 0)"
    for wrong in (lambda pid, out: pid * 4, lambda pid, out: 4 * pid):
        with pytest.raises(TypeError, match=r"write pid\[0\], not pid"):
            launch(wrong, (2,), x)


def test_load_reads_flat_offsets_in_the_shape_of_the_offsets(x):
    block = load(x.reshape(2, 5), np.array([[0, 5], [9, 1]]))
    assert block.tolist() == [[0, 5], [9, 1]]
    assert block.dtype == np.float32
    assert load(x, 7) == 7


def test_masked_lanes_get_other_and_need_not_exist(x):
    offs = arange(8, 12)
    assert load(x, offs, offs < 10).tolist() == [8, 9, 0, 0]
    assert load(x, offs, offs < 10, other=-np.inf).tolist() == [8, 9, -np.inf, -np.inf]
    assert load(x, offs - 9, offs >= 9, other=7).tolist() == [7, 0, 1, 2]


def test_mask_and_offsets_broadcast(x):
    rows, cols = arange(0, 2), arange(0, 5)
    block = load(x, rows[:, None] * 5 + cols, cols < 2)
    assert block.tolist() == [[0, 1, 0, 0, 0], [5, 6, 0, 0, 0]]
    assert load(x, 3, np.array([True, False]), other=-1).tolist() == [3, -1]


def test_store_writes_in_place_where_the_mask_is_true(x):
    matrix = x.reshape(2, 5)
    store(matrix, arange(0, 4), np.array([10.0, 11, 12, 13]), arange(0, 4) != 1)
    assert x.tolist() == [10, 1, 12, 13, 4, 5, 6, 7, 8, 9]
    store(matrix[1], arange(0, 5), -1)  # a row is an array of its own; values broadcast
    assert x.tolist()[5:] == [-1] * 5
    assert x.dtype == np.float32


@pytest.mark.parametrize("operation", ["load", "store"])
@pytest.mark.parametrize(
    "offsets, mask, said",
    [
        (arange(8, 12), None, r"offsets 10…11 \(2 of 4 lanes\).*10 numbers.*no mask"),
        (arange(-1, 3), None, r"offset -1 \(1 of 4 lanes\).*10 numbers.*no mask"),
        (arange(8, 12), arange(8, 12) <= 10, r"offset 10 \(1 of 4 lanes\).*the mask leaves"),
        (10, None, r"offset 10 \(1 of 1 lanes\)"),
    ],
)
def test_outside_is_an_index_error_that_says_where(x, operation, offsets, mask, said):
    def kernel(pid, x):
        if pid == (2, 1):
            load(x, offsets, mask) if operation == "load" else store(x, offsets, 5, mask)

    before = x.copy()
    with pytest.raises(IndexError, match=rf"program \(2, 1\) {operation}s at {said}"):
        launch(kernel, (3, 2), x)
    assert (x == before).all(), "nothing may be written by a store that fails"
    assert STATS == {"loads": 0, "stores": 0}
    with pytest.raises(IndexError, match=r"program \(no launch\)"):
        load(x, 10)


@pytest.mark.parametrize("view", [lambda a: a.T, lambda a: a[:, :3], lambda a: a[:, ::2]])
def test_an_array_that_cannot_be_viewed_flat_is_refused(view):
    array = view(np.zeros((4, 5), np.float32))
    with pytest.raises(ValueError, match="store cannot view this array of shape .* flat"):
        store(array, 0, 1.0)
    with pytest.raises(ValueError, match="load cannot view"):
        load(array, 0)


def test_a_flat_view_with_a_step_is_written_through(x):
    store(x[::2], arange(0, 5), 0.0)
    store(x[::-1], 0, 99.0)
    assert x.tolist() == [0, 1, 0, 3, 0, 5, 0, 7, 0, 99]


def test_what_is_no_array_no_offset_no_grid_is_said():
    with pytest.raises(TypeError, match="NumPy array.*list"):
        load([1, 2], 0)
    with pytest.raises(TypeError, match="whole numbers.*float64"):
        load(np.zeros(3), 1.0)
    with pytest.raises(TypeError, match=r"the grid is a tuple .* not 97"):
        launch(print, 97)


def test_launch_calls_every_program_of_the_grid_once():
    seen = []

    def kernel(pid, *args, **named):
        seen.append((pid, args, named))

    launch(kernel, (2, 3), "a", BLOCK=4)
    assert [pid for pid, *_ in seen] == [(i, j) for i in range(2) for j in range(3)]
    assert all(args == ("a",) and named == {"BLOCK": 4} for _, args, named in seen)
    launch(kernel, (), 1)
    launch(kernel, (0, 5), 1)
    assert len(seen) == 7 and seen[-1][0] == ()


def test_order_rearranges_the_programs():
    seen = []
    launch(lambda pid: seen.append(pid[0]), (4,), order=reversed)
    assert seen == [3, 2, 1, 0]


def test_stats_count_lanes_that_are_on_and_add_up_over_launches(x):
    def copy(pid, x, out):
        offs = pid[0] * 4 + arange(0, 4)
        store(out, offs, load(x, offs, offs < 10), offs < 10)

    launch(copy, (3,), x, np.empty(10))
    assert STATS == {"loads": 10, "stores": 10}
    launch(copy, (3,), x, np.empty(10))
    assert STATS == {"loads": 20, "stores": 20}


def test_the_page_that_the_lesson_walks_through_stays_short():
    """About forty lines: the bodies of what the lesson prints, and cdiv and arange."""
    walked = (load, store, launch, cdiv, arange, minitriton._lanes)
    lines = 0
    for function in walked:
        (tree,) = ast.parse(inspect.getsource(function)).body
        body = tree.body[1:] if ast.get_docstring(tree) else tree.body
        lines += 1 + body[-1].end_lineno - body[0].lineno + 1
    assert lines <= 40
