"""Where lanes went outside, in words: only offsets that are at fault, and of what they miss."""

from __future__ import annotations

import pytest
import torch
import triton
import triton.language as tl

from autograder.checking import inspect_call
from autograder.ir.findings import _span


@triton.jit
def read(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=mask), mask=mask)


def bounds_message(x: torch.Tensor, n: int, block: int = 8) -> str:
    def host(x):
        out = torch.empty(block)
        read[(1,)](x, out, n, BLOCK=block)
        return out

    (finding,) = [f for f in inspect_call(host, x).findings if f.kind == "out_of_bounds"]
    return finding.message


def test_the_gaps_of_a_strided_view_are_named_one_by_one():
    message = bounds_message(torch.zeros(10)[::2], 5)
    assert "2 of 5 unmasked lanes outside" in message
    assert "offsets 1, 3, x_ptr has 5 elements, 2 apart)" in message


def test_lanes_past_the_end_are_a_range():
    message = bounds_message(torch.zeros(5), 8)
    assert "3 of 8 lanes past the end" in message
    assert "offsets 5…7, x_ptr has 5 elements)" in message
    assert "1 of 8 lanes past the end" in bounds_message(torch.zeros(7), 8)
    assert "offset 7, x_ptr has 7 elements)" in bounds_message(torch.zeros(7), 8)


@pytest.mark.parametrize(
    ("offsets", "said"),
    [
        ((5,), "5"),
        ((5, 6), "5…6"),
        ((1, 3), "1, 3"),
        ((1, 3, 9, 11), "1, 3, 9, 11"),
        ((1, 3, 5, 7, 99), "1, 3 … 99"),
    ],
)
def test_a_span_names_no_offset_that_is_not_in_it(offsets, said):
    assert _span(*offsets) == said
