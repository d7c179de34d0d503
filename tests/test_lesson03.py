"""What lessons 03 and 04 show: counts of eager PyTorch, compiler's facts, gradients, pictures."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import triton
import triton.language as tl

from autograder.checking import inspect_call
from autograder.compiled import facts_of
from autograder.eager import eager
from autograder.records import CompileFacts, Rejected
from autograder.render import lesson03, lesson04
from autograder.render.style import svg
from tests.lesson_pages import said_in


def naive(x):
    e = torch.exp(x - x.amax(dim=1, keepdim=True))
    return e / e.sum(dim=1, keepdim=True)


# ---------------------------------------------------------------- counts


def test_eager_softmax_is_five_kernels_and_eight_passes():
    counted = eager(naive, torch.randn(50, 200))
    names = [name for name, _, _ in counted.operations]
    assert names == ["amax", "sub", "exp", "sum", "div"]
    assert counted.elements == 8 * 50 * 200 + 4 * 50
    assert "5 kernels, 80,200 numbers moved" in repr(counted)
    assert eager(torch.softmax, torch.randn(50, 200), 1).elements == 2 * 50 * 200


def test_eager_rmsnorm_is_six_kernels_and_seven_passes():
    def rmsnorm(x, w):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * w

    counted = eager(rmsnorm, torch.randn(50, 200), torch.randn(200))
    assert len(counted.operations) == 6 and counted.elements // (50 * 200) == 7


def test_views_move_nothing_and_copies_do():
    def turned(x):
        return x.t()[1:].reshape(-1)

    assert eager(turned, torch.randn(4, 6)).operations == (("clone", 20, 20),)


# ---------------------------------------------------------------- kernels without a card


@triton.jit
def scale_kernel(x_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    cols = tl.arange(0, BLOCK_SIZE)
    tl.store(out_ptr + cols, 2 * tl.load(x_ptr + cols, mask=cols < n), mask=cols < n)


def double(x):
    out = torch.empty_like(x)
    scale_kernel[(1,)](x, out, x.numel(), BLOCK_SIZE=16)
    return out


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return double(x)

    @staticmethod
    def backward(ctx, dy):
        return double(dy)


def test_inspect_call_runs_backward_on_the_gradients_it_is_given():
    x, dy = torch.arange(5.0), torch.tensor([1.0, 0, 3, 0, 5])
    for function in (Double, Double.apply):
        run = inspect_call(function, x, gradients=(dy,))
        assert [o.values.tolist() for o in run.outputs] == [[0, 2, 4, 6, 8], [2, 0, 6, 0, 10]]
        assert not run.findings


def test_a_kernel_without_a_function_has_no_gradient():
    with pytest.raises(Rejected, match="No gradient flows through double"):
        inspect_call(double, torch.arange(5.0), gradients=(torch.ones(5),))


def test_facts_of_several_calls_come_in_their_order():
    x = torch.empty(16)
    calls = [((x, x, 16), dict(BLOCK_SIZE=16, num_warps=warps)) for warps in (1, 4)]
    facts = facts_of(scale_kernel, calls)
    assert [f.num_warps for f in facts] == [1, 4]
    assert all(f.kernel == "scale_kernel" and f.registers > 0 and not f.error for f in facts)


# ---------------------------------------------------------------- pictures


def test_passes_are_drawn_with_their_sums():
    softmax, norm = said_in(lesson03.passes()), said_in(lesson04.passes())
    assert "eight times" in softmax and " 8 " in f" {softmax} " and "m = max of x" in softmax
    assert "seven times" in norm and "1/√" in norm


def test_lanes_show_their_numbers_and_only_the_sums_that_are_asked_for():
    steps = {"x": [1.0, -2.0, -np.inf], "exp": [0.5, 0.25, 0.0]}
    words = said_in(lesson03.lanes(steps, inside=2, title="a tail", sums=("exp",)))
    assert "a tail" in words and "lane 2" in words and "beyond the row" in words
    assert "−2" in words and "−∞" in words and "0.75" in words
    assert "sum" not in said_in(lesson03.lanes(steps, inside=2, title="a tail"))


def test_registers_say_where_the_compiler_spilled():
    facts = [
        CompileFacts("k", "RTX 4080", 16, 101376, registers, spills, num_warps=4)
        for registers, spills in ((20, 0), (255, 236))
    ]
    words = said_in(lesson03.registers(facts, [1024, 32768]))
    assert "236 bytes spilled" in words and "4 warps" in words and "32 768" in words


def test_the_running_sum_ends_at_the_sum_of_the_whole_row():
    row = [0.5, 1.5, 2.5, 0.2, 4.0]
    words = said_in(lesson03.online(row, block=2))
    whole = f"{np.exp(np.array(row) - 4).sum():.3g}"
    assert words.count(whole) >= 2 and "s begins" in words


def test_errors_are_drawn_by_type_and_by_width():
    sums = {"float16": [1.0, 2.0, 2.0], "float32": [1.0, 2.0, 3.0]}
    words = said_in(lesson04.accumulation(sums, [1.0, 2.0, 3.0]))
    assert "float16" in words and "float32" in words
    assert "fills its block" in said_in(lesson04.by_width([3, 4, 5], [0.3, 0.0, 0.2], [4, 4, 8]))


def test_pictures_become_svg():
    for figure in (
        lesson03.passes(),
        lesson03.online([1.0, 2.0, 3.0], 2),
        lesson04.passes(),
        lesson04.by_width([3, 4], [0.3, 0.0], [4, 4]),
    ):
        assert svg(figure).startswith("<svg")
