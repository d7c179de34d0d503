"""The L2 model: what it does by hand, against a card, and fed by a real kernel."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import torch

from autograder.ir.cards import card
from autograder.ir.l2 import (
    EFFECTIVE,
    Step,
    fetched,
    grouped,
    matmul_programs,
    order_finding,
    programs_of,
)
from autograder.records import ProgramOrder, Run, Tensor, Touch, View
from autograder.solutions import load_solution
from autograder.trace.record import record
from autograder.trace.replay import replay
from tests.kernels.course import matmul, matmul_kernel
from tests.submitted import SUBMISSIONS


def load(*names: str, size: int = 1) -> Step:
    return Step(tuple((name, size) for name in names))


def store(name: str) -> Step:
    return Step(((name, 1),), stores=True)


# ---------------------------------------------------------------- by hand


def test_what_is_in_the_cache_is_not_fetched_again():
    assert fetched([[load("x"), load("x")], [load("x")]], at_once=1, capacity=10) == 1


def test_the_longest_untouched_piece_goes_first():
    touched = ["x", "y", "x", "z", "x", "y"]  # z takes y's place, for x was touched since
    assert fetched([[load(name) for name in touched]], at_once=1, capacity=2) == 4


def test_a_piece_that_never_fits_is_fetched_every_time():
    assert fetched([[load("x", size=8), load("x", size=8)]], at_once=1, capacity=4) == 16


def test_programs_of_a_wave_go_in_lockstep():
    programs = [[load("x"), load("y")], [load("x"), load("y")]]
    assert fetched(programs, at_once=2, capacity=1) == 2
    assert fetched(programs, at_once=1, capacity=1) == 4


def test_a_wave_ends_before_the_next_begins():
    long, short = [load("x"), load("y"), load("z")], [load("x")]
    assert fetched([long, short, short], at_once=2, capacity=1) == 3 + 1


def test_a_store_fetches_nothing_and_takes_room():
    assert fetched([[store("c")]], at_once=1, capacity=1) == 0
    assert fetched([[load("x"), store("c"), load("x")]], at_once=1, capacity=1) == 2
    assert fetched([[load("x"), store("c"), load("x")]], at_once=1, capacity=2) == 1


def test_grouped_order_walks_down_and_then_to_the_right():
    assert list(grouped(3, 2, 2)) == [(0, 0), (1, 0), (0, 1), (1, 1), (2, 0), (2, 1)]
    assert list(grouped(2, 3, 1)) == [(r, c) for r in range(2) for c in range(3)]
    assert len(set(grouped(19, 7, 8))) == 19 * 7


def test_tiles_at_the_edge_are_as_large_as_the_matrix_leaves_them():
    first, *_, last = matmul_programs(100, 70, 50, grouped(2, 2, 1), (64, 64, 32), itemsize=4)
    assert [size for step in first for _, size in step.pieces] == [
        *(64 * 32 * 4, 32 * 64 * 4),
        *(64 * 18 * 4, 18 * 64 * 4),
        64 * 64 * 4,
    ]
    assert last[-1].box == (64, 64, 99, 69) and last[-1].pieces[0][1] == 36 * 6 * 4


# ---------------------------------------------------------------- against a card

# MB that one H200 read from memory for a bf16 matmul of 8192², tiles of 128 × 128, by group of
# rows (Nsight Compute, 29 November 2026).
MEASURED = {1: 4365, 2: 4527, 4: 2528, 8: 1738, 16: 1732, 32: 2480}


@pytest.mark.parametrize("group", MEASURED)
def test_the_model_is_within_ten_percent_of_what_an_h200_reads(group):
    h200 = card("H200 SXM")
    programs = matmul_programs(8192, 8192, 8192, grouped(64, 64, group), (128, 128, 1024))
    predicted = fetched(programs, h200.sms, EFFECTIVE * h200.l2_mb * 2**20) / 1e6
    assert predicted == pytest.approx(MEASURED[group], rel=0.1)


def test_long_steps_along_k_are_as_good_as_short_ones():
    order = list(grouped(16, 16, 4))
    short, long = (
        fetched(matmul_programs(2048, 2048, 2048, order, (128, 128, bk)), 40, 4 * 2**20)
        for bk in (64, 512)
    )
    assert long == pytest.approx(short, rel=0.03)


# ---------------------------------------------------------------- fed by a kernel


def tiled(a, b, side, group):
    """The course's matmul with square tiles of ``side`` in groups of ``group`` rows."""
    (m, k), n = a.shape, b.shape[1]
    c = torch.empty((m, n), dtype=a.dtype)
    grid = (-(-m // side) * -(-n // side),)
    strides = (*a.stride(), *b.stride(), *c.stride())
    blocks = {"BM": side, "BN": side, "BK": 32, "GROUP_M": group}
    matmul_kernel[grid](a, b, c, m, n, k, *strides, **blocks)
    return c


def run_of(function, m, n, k, dtype="float16") -> Run:
    trace = record(function, (Tensor((m, k), dtype), Tensor((k, n), dtype)))
    return replay(trace, (), count_only=True, keep_touches=True)


@pytest.mark.parametrize("group", [1, 4])
def test_what_a_kernel_touches_is_what_its_tiles_say(group):
    run = run_of(partial(tiled, side=32, group=group), 256, 320, 96)
    (programs,) = programs_of(run.touches)
    for capacity in (8 << 10, 20 << 10, 64 << 10, 1 << 20):
        described = list(matmul_programs(256, 320, 96, grouped(8, 10, group), (32, 32, 32)))
        assert fetched(programs, 12, capacity) == fetched(described, 12, capacity)


def test_a_tile_is_one_piece_and_the_rest_of_a_sector_belongs_to_both():
    """Rows of 20 numbers of 2 bytes end within a sector of 32."""
    run = run_of(partial(tiled, side=16, group=1), 32, 20, 16)
    (programs,) = programs_of(run.touches)
    assert len(programs) == 4
    a, b, c = programs[0]
    assert sum(size for _, size in a.pieces) == 16 * 32  # 16 rows of 16 numbers: whole sectors
    shared = set(b.pieces) & set(programs[1][1].pieces)
    assert shared and c.stores and c.box == (0, 0, 15, 15)


def test_touches_do_not_depend_on_values_or_on_the_order_of_programs():
    trace = record(matmul, (Tensor((150, 70)), Tensor((70, 90))))
    inputs = [np.ones((150, 70), np.float32), np.ones((70, 90), np.float32)]
    counted = replay(trace, (), count_only=True, keep_touches=True)
    computed = replay(trace, inputs, order="reversed", keep_touches=True)
    for capacity in (10_000, 50_000):
        one, other = (
            fetched(programs_of(run.touches)[0], 4, capacity) for run in (counted, computed)
        )
        assert one == other > 0
    assert replay(trace, inputs).touches == ()


ORDER = ProgramOrder(group=8, at_once=76, bytes_per_element=128)


def test_grouping_by_eight_is_no_finding_and_row_major_is_one():
    assert order_finding(run_of(partial(tiled, side=32, group=8), 1024, 1024, 64), ORDER) is None
    finding = order_finding(run_of(partial(tiled, side=32, group=1), 1024, 1024, 64), ORDER)
    assert finding.kind == "traffic"
    assert "128 KB (for tiles of 32 × 32) has to fetch 1968 KB" in finding.message
    assert "in groups of 8 rows it is 1084 KB (76 programs run at a time)" in finding.message


def test_groups_of_columns_are_as_good_though_rows_take_less_of_a_wide_matrix():
    columns = load_solution(str(SUBMISSIONS / "right" / "05_grouping_columns.py"))["matmul"]
    assert order_finding(run_of(columns, 1024, 2048, 64), ORDER) is None
    assert order_finding(run_of(partial(tiled, side=64, group=1), 1024, 2048, 64), ORDER)


def test_a_program_with_two_tiles_is_taken_apart():
    """Two tiles a program, a row apart: the order of the tiles counts, not that of the programs."""
    view = View(2, 0, (8, 4), (4, 1), "float32")
    a = View(0, 0, (8, 8), (8, 1), "float32")

    def touch(operation, at, sectors, first, last):
        rows = np.arange(len(first), dtype=np.int32)
        ends = np.arange(1, len(first) + 1)
        return Touch(0, operation, at, rows, np.array(sectors), ends, *map(np.array, (first, last)))

    one = [0, 0], [0, 0]
    touches = (
        touch("load", a, [0, 1], *one),
        touch("store", view, [10, 12], [0, 16], [3, 19]),
        touch("load", a, [2, 3], *one),
        touch("store", view, [11, 13], [4, 20], [7, 23]),
    )
    (programs,) = programs_of(touches)
    assert [step.box for step in programs[1] if step.stores] == [(4, 0, 4, 3), (5, 0, 5, 3)]
    assert order_finding(Run((), (), touches=touches), ProgramOrder(8, 2, 64)) is None


def test_a_run_without_launches_has_no_order():
    assert programs_of(()) == [] and order_finding(Run((), ()), ORDER) is None
