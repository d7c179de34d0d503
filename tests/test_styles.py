"""Ways to write a kernel, under the Triton that is installed: each runs, or is refused by name.

``make versions`` runs this under every Triton that is supported.
"""

from __future__ import annotations

import pytest
import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

from autograder import interpret
from autograder.grading.corpus import refusals
from autograder.records import Rejected

ROWS, COLUMNS, B = 12, 20, 16


@triton.jit
def by_pointers(x_ptr, out_ptr, M, N, B: tl.constexpr):
    r, c = tl.arange(0, B)[:, None], tl.program_id(0) * B + tl.arange(0, B)[None, :]
    x = tl.load(x_ptr + r * N + c, mask=(r < M) & (c < N), other=0.0)
    tl.store(out_ptr + r * N + c, 2 * x, mask=(r < M) & (c < N))


@triton.jit
def by_block_pointers(x_ptr, out_ptr, M, N, B: tl.constexpr):
    at = tl.program_id(0) * B
    x = tl.make_block_ptr(x_ptr, (M, N), (N, 1), (0, at), (B, B), (1, 0))
    out = tl.make_block_ptr(out_ptr, (M, N), (N, 1), (0, at), (B, B), (1, 0))
    tl.store(out, 2 * tl.load(x, boundary_check=(0, 1)), boundary_check=(0, 1))


@triton.jit
def by_device_descriptors(x_ptr, out_ptr, M, N, B: tl.constexpr):
    x = tl.make_tensor_descriptor(x_ptr, [M, N], [N, 1], [B, B])
    out = tl.make_tensor_descriptor(out_ptr, [M, N], [N, 1], [B, B])
    at = tl.program_id(0) * B
    out.store([0, at], 2 * x.load([0, at]))


@triton.jit
def by_close_rows(x_ptr, out_ptr, M, N, B: tl.constexpr):
    """All numbers as one column, whose rows lie one element apart."""
    x = tl.make_tensor_descriptor(x_ptr, [M, 1], [N, 1], [B * B, B])
    out = tl.make_tensor_descriptor(out_ptr, [M, 1], [N, 1], [B * B, B])
    at = tl.program_id(0) * B * B
    out.store([at, 0], 2 * x.load([at, 0]))


@triton.jit
def by_host_descriptors(x, out, M, N, B: tl.constexpr):
    at = tl.program_id(0) * B
    out.store([0, at], 2 * x.load([0, at]))


@triton.jit
def by_tuples(pointers, sizes, B: tl.constexpr):
    r, c = tl.arange(0, B)[:, None], tl.program_id(0) * B + tl.arange(0, B)[None, :]
    mask = (r < sizes[0]) & (c < sizes[1])
    x = tl.load(pointers[0] + r * sizes[1] + c, mask=mask)
    tl.store(pointers[1] + r * sizes[1] + c, 2 * x, mask=mask)


@triton.jit
def _double(x):
    return 2 * x


@triton.jit
def by_map(x_ptr, out_ptr, M, N, B: tl.constexpr):
    r, c = tl.arange(0, B)[:, None], tl.program_id(0) * B + tl.arange(0, B)[None, :]
    x = tl.load(x_ptr + r * N + c, mask=(r < M) & (c < N), other=0.0)
    tl.store(out_ptr + r * N + c, tl.map_elementwise(_double, x), mask=(r < M) & (c < N))


def _tuples(x, out):
    return (x, out), (ROWS, COLUMNS)


def _descriptors(x, out):
    return *(TensorDescriptor.from_tensor(t, [B, B]) for t in (x, out)), ROWS, COLUMNS


def _column(x, out):
    return x, out, ROWS * COLUMNS, 1


def _plain(x, out):
    return x, out, ROWS, COLUMNS


# style -> (kernel, its arguments)
STYLES = {
    "pointers": (by_pointers, _plain),
    "block pointers": (by_block_pointers, _plain),
    "device descriptors": (by_device_descriptors, _plain),
    "descriptors of close rows": (by_close_rows, _column),
    "host descriptors": (by_host_descriptors, _descriptors),
    "tuples": (by_tuples, _tuples),
    "map_elementwise": (by_map, _plain),
}


@pytest.mark.parametrize("style", STYLES)
def test_a_style_runs_or_is_refused_by_name(style):
    kernel, arguments = STYLES[style]
    # Descriptors want rows of a multiple of 16 bytes, which these have: 20 floats.
    x, out = torch.randn(ROWS, COLUMNS), torch.zeros(ROWS, COLUMNS)
    launch = interpret(kernel)[(triton.cdiv(COLUMNS, B),)]
    if words := refusals().get(style):
        with pytest.raises(Rejected, match=words) as raised:
            launch(*arguments(x, out), B=B)
        assert "\n" not in str(raised.value) and raised.value.line
        return
    record = launch(*arguments(x, out), B=B)
    assert torch.equal(out, 2 * x) and record.findings == ()
