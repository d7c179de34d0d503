"""Launches reach the hook after tuning and heuristics, and nothing is left behind."""

from __future__ import annotations

import copy

import pytest
import torch
import triton
import triton.language as tl
from triton.runtime.autotuner import Autotuner
from triton.runtime.jit import JITFunction

from autograder.ir.hook import hooked
from autograder.records import Rejected

X = torch.zeros(64, 32)


@triton.jit
def double(value):
    return value * 2


@triton.jit
def copy_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, double(x), mask=mask)


def launches(function, config=0):
    seen = []
    with hooked(lambda kernel, grid, values: seen.append((kernel, grid, values)), config) as hook:
        function()
    return seen, hook


@pytest.mark.parametrize(
    ("grid", "seen"),
    [
        ((97,), (97, 1, 1)),
        ([4, 5], (4, 5, 1)),
        ((2, 3, 4), (2, 3, 4)),
        (lambda meta: (triton.cdiv(meta["n"], meta["BLOCK"]),), (2, 1, 1)),
        (lambda meta: (0, 1), (0, 1, 1)),
    ],
)
def test_grids(grid, seen):
    (launch,), _ = launches(lambda: copy_kernel[grid](X, X, 100, BLOCK=64))
    assert launch[1] == seen


@pytest.mark.parametrize(
    ("grid", "told"),
    [
        (97, "must be a tuple, such as (97,), not 97 (int)"),
        ((1.5,), "1.5 (float) on axis 0; it needs whole numbers"),
        ((), "has 0 axes"),
        ((1, 1, 1, 1), "has 4 axes"),
        ((-1,), "-1 programs on axis 0"),
        ((1, 65536), "65536 programs on axis 1; a card takes 0 to 65535"),
        (None, "must be a tuple"),
    ],
)
def test_grids_that_a_card_refuses(grid, told):
    with pytest.raises(Rejected) as caught:
        launches(lambda: copy_kernel[grid](X, X, 100, BLOCK=64))
    assert told in str(caught.value)


def test_hooks_nest_and_come_off_also_after_errors():
    run, tuned = JITFunction.run, Autotuner.run
    outer, inner = [], []

    def launch():
        copy_kernel[(1,)](X, X, 100, BLOCK=64)

    with pytest.raises(ZeroDivisionError), hooked(lambda *a: outer.append(a)):
        with hooked(lambda *a: inner.append(a)):
            launch()
        launch()
        launch()
        1 / 0  # noqa: B018
    assert (len(inner), len(outer)) == (1, 2)
    assert JITFunction.run is run and Autotuner.run is tuned


def tuned_kernel(configs, **options):
    @triton.autotune(configs=configs, key=["n"], **options)
    @triton.heuristics({"EVEN": lambda args: args["n"] % args["BLOCK"] == 0})
    @triton.jit
    def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr, EVEN: tl.constexpr):
        offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        if EVEN:
            x = tl.load(x_ptr + offsets)
        else:
            x = tl.load(x_ptr + offsets, mask=offsets < n)
        tl.store(out_ptr + offsets, x, mask=offsets < n)

    return kernel


CONFIGS = [triton.Config({"BLOCK": 32 << i}, num_warps=1 << i) for i in range(3)]


def test_every_config_and_heuristics():
    kernel = tuned_kernel(CONFIGS)
    for index, (block, masks) in enumerate([(32, 1), (64, 2), (128, 2)]):
        (launch,), hook = launches(
            lambda: kernel[lambda meta: (triton.cdiv(96, meta["BLOCK"]),)](X, X, 96), index
        )
        assert hook.configs == 3
        assert launch[0].options["num_warps"] == 1 << index
        assert launch[1] == (-(-96 // block), 1, 1)
        assert launch[0].ir.count("arith.cmpi slt") == masks
    assert kernel.cache == {} and not hasattr(kernel, "best_config")


def test_pruning_leaves_fewer_configs():
    def prune(configs, named_args, **kwargs):
        return [c for c in configs if c.kwargs["BLOCK"] <= named_args["n"]]

    kernel = tuned_kernel(CONFIGS, prune_configs_by={"early_config_prune": prune})
    (launch,), hook = launches(lambda: kernel[(1,)](X, X, 64), config=3)
    assert hook.configs == 2 and "tensor<64xi32>" in launch[0].ir


def test_a_cached_choice_is_not_asked():
    kernel = tuned_kernel(CONFIGS)
    kernel.cache = {(96, "torch.float32", "torch.float32"): CONFIGS[2]}
    before = dict(kernel.cache)
    (launch,), _ = launches(lambda: kernel[(1,)](X, X, 96))
    assert "tensor<32xi32>" in launch[0].ir and kernel.cache == before


def test_hooks_of_configs_run_and_reset_to_zero_warns():
    ran = []
    config = triton.Config({"BLOCK": 32}, pre_hook=lambda args: ran.append(args["n"]))
    ones = torch.ones(64)
    kernel = tuned_kernel([config, CONFIGS[1]], reset_to_zero=["out_ptr"])
    _, hook = launches(lambda: kernel[(1,)](X, ones, 96))
    assert ran == [96] and ones.sum() == 0
    assert "reset_to_zero of kernel zeroes out_ptr" in hook.warnings[0]


@triton.jit
def add_into(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    tl.store(x_ptr + offsets, x + 1, mask=offsets < n)
    tl.atomic_add(out_ptr, tl.sum(tl.where(offsets < n, x, 0.0)))


def test_tuning_in_place_is_warned_about():
    said = "add_into changes `{}` in place"
    for options, names in (
        ({}, ["x_ptr", "out_ptr"]),
        ({"restore_value": ["x_ptr"]}, ["out_ptr"]),
        ({"restore_value": ["x_ptr", "out_ptr"]}, []),
    ):
        kernel = triton.autotune(CONFIGS, key=["n"], **options)(add_into)
        _, hook = launches(lambda kernel=kernel: kernel[(1,)](X, torch.zeros(1), 96))
        assert [w.split(", and")[0] for w in hook.warnings] == [said.format(n) for n in names]
    _, hook = launches(lambda: tuned_kernel(CONFIGS)[(1,)](X, X, 96))
    assert hook.warnings == []  # it reads x_ptr and writes out_ptr, at the same offsets
    single = triton.autotune(CONFIGS[:1], key=["n"])(add_into)
    assert launches(lambda: single[(1,)](X, torch.zeros(1), 96))[1].warnings == []


def test_what_autotuning_chooses_cannot_be_given():
    with pytest.raises(Rejected, match="launched with BLOCK, which autotuning chooses"):
        launches(lambda: tuned_kernel(CONFIGS)[(1,)](X, X, 96, BLOCK=32))


def test_best_config_can_be_read_while_it_lasts():
    kernel, seen = tuned_kernel(CONFIGS), []

    def function():
        kernel[(1,)](X, X, 96)
        seen.append(kernel.best_config.kwargs["BLOCK"])

    launches(function, config=1)
    assert seen == [64] and not hasattr(kernel, "best_config")


def test_warmup_and_compiled_kernels():
    def function():
        kernel = copy_kernel.warmup(X, X, 100, BLOCK=64, num_warps=2, grid=(1,))
        kernel._init_handles()
        assert 65536 // (kernel.n_regs * 32 * 2) > 0 and kernel.metadata.shared > 0
        kernel[(3, 1, 1)](X, X, 100, 64)
        kernel[(4, 1, 1)](X, X, 100)  # constants left out
        copy_kernel.run(X, X, 100, BLOCK=64, grid=(5,), warmup=False)

    seen, _ = launches(function)
    assert [grid[0] for _, grid, _ in seen] == [3, 4, 5]
    assert [kernel.options["num_warps"] for kernel, _, _ in seen] == [2, 2, 4]


def test_nothing_is_left_on_the_kernel_objects(monkeypatch):
    tuned = tuned_kernel(CONFIGS)
    inner = tuned.fn.fn
    objects = (copy_kernel, double, tuned, tuned.fn, inner)

    def state():
        kinds = (dict, list, set)
        return [
            {k: copy.copy(v) if type(v) in kinds else v for k, v in vars(o).items()}
            for o in objects
        ]

    before = state()
    launches(lambda: (copy_kernel[(1,)](X, X, 100, BLOCK=64), tuned[(1,)](X, X, 96)))
    assert state() == before
    assert not copy_kernel.device_caches and copy_kernel.hash is None
