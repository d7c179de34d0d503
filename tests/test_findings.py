"""Every faulty kernel of the table gives exactly its findings, every right one none."""

from __future__ import annotations

from collections import Counter

import pytest

from autograder.checking import inspect_call
from autograder.grading.corpus import refusals
from autograder.records import Rejected
from tests.kernels import (  # each import fills its part of the tables
    faulty_bounds,
    faulty_contents,  # noqa: F401
    faulty_pointers,  # noqa: F401
    faulty_races,  # noqa: F401
    faulty_tiles,  # noqa: F401
    right_blocks,  # noqa: F401
    right_operations,  # noqa: F401
    right_simple,  # noqa: F401
)
from tests.kernels.table import FAULTY, RIGHT, Example, key


def _rows(table: list[Example]):
    return [pytest.param(row, id=row.label.replace(" ", "-")) for row in table]


BLOCK_POINTERS = {
    "a boundary check without padding, summed",
    "a block pointer that stores unchecked",
    "a block pointer without boundary check",
    "a block pointer over a shape that is too large",
    "a block pointer that checks rows only",
    "a block pointer that advances",
    "block pointers over 100 elements",
    "block pointers over 128 elements",
}


def looked_at(row: Example):
    """The row's run; None where this Triton has no word for it and says so."""
    words = refusals()["block pointers"]
    if row.label in BLOCK_POINTERS and words:
        with pytest.raises(Rejected, match=words):
            inspect_call(row.host, *row.made())
        return None
    return inspect_call(row.host, *row.made())


@pytest.mark.parametrize("row", _rows(FAULTY))
def test_exactly_the_expected_findings(row: Example):
    run = looked_at(row)
    if run is None:
        return
    assert Counter(map(key, run.findings)) == Counter(fault.key() for fault in row.faults)


@pytest.mark.parametrize("row", _rows(RIGHT))
def test_nothing_is_found_in_a_right_kernel(row: Example):
    run = looked_at(row)
    if run is None:
        return
    assert [finding.message for finding in run.findings] == []
    assert run.outputs


def test_the_tables_are_as_large_as_promised():
    assert len(FAULTY) >= 60
    assert len(RIGHT) >= 40
    labels = Counter(row.label for row in [*FAULTY, *RIGHT])
    assert set(labels) >= BLOCK_POINTERS
    assert [label for label, count in labels.items() if count > 1] == []


def test_a_row_must_mark_its_line():
    fault = faulty_bounds.bounds(faulty_bounds.copy_masked, "x", (0,), 1, "nowhere")
    with pytest.raises(ValueError, match="0 lines marked"):
        fault.key()
