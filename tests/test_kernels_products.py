"""Products of matrices: right on the CPU through the interpreter, and what the compiler makes."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from functools import cache

import pytest
import torch

from autograder import interpret
from autograder.ir.cards import card
from autograder.ir.compile import compile_all
from autograder.ir.lower import lower
from lab_setup.kernels import matmul, matmul_plain, matmul_tma
from lab_setup.kernels.bench import products
from lab_setup.kernels.bench.products import error
from lab_setup.kernels.dispatch import named, of_capability
from lab_setup.roofline.command import function_of
from lab_setup.roofline.kernels import KERNELS

HALF = torch.bfloat16
SMALL = replace(card("H200"), sms=3)  # so few that a persistent program has several tiles
SHAPES = ((300, 520, 136), (512, 512, 128), (8, 264, 72))


def pair(m: int, n: int, k: int, transposed: bool, dtype=HALF):
    b = torch.randn(n, k).to(dtype).T if transposed else torch.randn(k, n).to(dtype)
    return torch.randn(m, k).to(dtype), b


def watched(function, a, b, on=SMALL, index: int = 0, **options):
    """The result, written over NaN, and the record of what happened."""
    c = torch.full((a.shape[0], b.shape[1]), math.nan, dtype=a.dtype)
    with named(on), interpret(config=index) as record:
        assert function(a, b, c, **options) is c
    assert record.findings == ()
    return c, record


def names(record) -> list[str]:
    return [kernel.name for kernel, _, _ in record.launches]


# ---------------------------------------------------------------- right


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("config", range(len(matmul_tma.CONFIGS)))
def test_descriptors_multiply(config, transposed):
    chosen = matmul_tma.CONFIGS[config]
    for shape in SHAPES:
        a, b = pair(*shape, transposed)
        c, record = watched(matmul_tma.run, a, b, config=chosen)
        assert error(c, a, b) <= 1
        (_, launch, _) = record.launches[0]
        most = SMALL.sms if chosen.kwargs["PERSISTENT"] else math.inf
        assert launch.grid[0] <= most


def test_a_persistent_program_walks_over_several_tiles():
    a, b = pair(300, 520, 136, False)
    _, record = watched(matmul_tma.matmul, a, b)
    (_, launch, _) = record.launches[0]
    assert matmul.tiles(torch.empty(300, 520), 128, 256) == 9 and launch.grid == (3, 1, 1)


@pytest.mark.parametrize("on", [SMALL, card("RTX 4080")], ids=["hopper", "ada"])
@pytest.mark.parametrize("index", range(5))
def test_pointers_multiply(index, on):
    for shape, transposed in (((144, 272, 80), False), ((129, 65, 33), True), ((64, 64, 64), True)):
        a, b = pair(*shape, transposed)
        c, _ = watched(matmul.matmul, a, b, on, index)
        assert error(c, a, b) <= 1


def test_pointers_take_any_strides():
    a = torch.randn(70, 90).to(HALF).T  # (90, 70)
    b = torch.randn(70, 200).to(HALF)[:, ::2]
    c = torch.full((100, 90), math.nan, dtype=HALF).T
    with named("H200"), interpret() as record:
        matmul.matmul(a, b, c)
    assert record.findings == () and error(c, a, b) <= 1


def test_a_sum_of_nothing_is_zero():
    for function in (matmul.matmul, matmul_tma.matmul):
        c, _ = watched(function, torch.randn(20, 0).to(HALF), torch.randn(0, 30).to(HALF))
        assert torch.equal(c, torch.zeros_like(c))


def test_float16_and_float32_keep_their_type():
    a, b = pair(64, 72, 40, False, torch.float16)
    for function in (matmul.matmul, matmul_tma.matmul):
        c, _ = watched(function, a, b)
        assert c.dtype == torch.float16 and error(c, a, b) <= 1
    wide, _ = watched(matmul.matmul, a.float(), b.float())
    torch.testing.assert_close(wide, a.float() @ b.float())


def test_the_order_of_programs_does_not_matter():
    a, b = pair(300, 520, 136, True)
    results = []
    for order in ("forward", "reversed", "shuffled"):
        c = torch.full((300, 520), math.nan, dtype=HALF)
        with named(SMALL), interpret(order=order):
            matmul_tma.matmul(a, b, c)
        results.append(c)
    assert all(torch.equal(c, results[0]) for c in results)


@pytest.mark.parametrize("group", [1, 3, 8])
def test_a_wrong_result_is_seen(group):
    a, b = pair(256, 256, 64, False)
    c = (a.double() @ b.double()).to(HALF)
    assert error(c, a, b) <= 1
    c[group, 7] *= 1 + 2**-6  # two units in the last place
    assert error(c, a, b) > 1
    c[group, 7] = math.nan
    assert error(c, a, b) == math.inf


# ---------------------------------------------------------------- which kernel, for whom


@pytest.mark.parametrize(
    "a, b",
    [
        pair(64, 72, 41, False),  # rows of a begin at odd addresses
        pair(64, 71, 40, False),
        (torch.randn(64, 80).to(HALF)[:, ::2], torch.randn(40, 72).to(HALF)),
        (torch.randn(64, 40), torch.randn(40, 72)),
    ],
    ids=["odd K", "odd N", "every second column", "float32"],
)
def test_what_no_descriptor_describes_goes_through_pointers(a, b):
    c, record = watched(matmul_tma.matmul, a, b)
    assert names(record) == ["matmul_kernel"]
    torch.testing.assert_close(c.double(), a.double() @ b.double(), rtol=2**-8, atol=1e-2)


def test_before_hopper_there_are_no_descriptors():
    a, b = pair(64, 72, 40, False)
    assert names(watched(matmul_tma.matmul, a, b, "RTX 4090")[1]) == ["matmul_kernel"]
    assert names(watched(matmul_tma.matmul, a, b, "H200")[1]) == ["matmul_tma_kernel"]


def test_what_does_not_fit_together_is_refused():
    a, b = pair(8, 8, 16, False)
    for wrong, said in (
        ((a, b.T), "with one K"),
        ((a, b.float()), "one floating-point type"),
        ((a.int(), b.int()), "one floating-point type"),
        ((a, b, torch.empty(8, 9, dtype=HALF)), "out is (8, 9)"),
        ((torch.empty(2, 16, dtype=HALF).expand(1, 2, 16)[0], b[0]), "with one K"),
    ):
        with pytest.raises(ValueError, match=re.escape(said)):
            matmul.matmul(*wrong)
    huge = torch.empty(1 << 16, 1 << 16, dtype=HALF, device="meta")
    with pytest.raises(ValueError, match="reaches over 4,294,967,296 elements"):
        matmul_tma.matmul(huge, huge)


# ---------------------------------------------------------------- the ladder and the tasks


def test_the_ladder_begins_with_the_solution_of_the_course(tmp_path):
    kernel = next(k for k in KERNELS if k.id == "05.matmul")
    theirs = function_of(kernel, None, tmp_path, on_card=False)
    a, b = (torch.randn(96, 96).to(HALF) for _ in range(2))
    with interpret() as of_course:
        expected = theirs(a, b)
    with interpret() as of_ladder:
        first = products.LADDERS[0].steps[0].make(a, b)
        assert torch.equal(first(), expected)
    (one, at, _), (other, launch, _) = of_course.launches[0], of_ladder.launches[0]
    assert _instructions(one) == _instructions(other)
    assert one.options == other.options and at.grid == launch.grid


def _instructions(kernel) -> list[str]:
    """The IR without places in the source, values numbered as they come."""
    numbers: dict[str, str] = {}
    text = re.sub(r"#loc.*|\bloc\(.*", "", kernel.ir).replace(kernel.name, "kernel")
    text = re.sub(r"%\w+", lambda m: numbers.setdefault(m[0], f"%{len(numbers)}"), text)
    return [line.strip() for line in text.splitlines() if line.strip()]


@pytest.mark.parametrize("step", products.LADDERS[0].steps, ids=lambda step: step.label)
def test_every_step_of_the_ladder_multiplies(step):
    a, b = pair(264, 384, 136, False)
    with named(SMALL), interpret() as record:
        c = step.make(a, b)()
    assert record.findings == () and error(c, a, b) <= 1


def test_tasks_and_their_targets_name_what_is_there():
    for task in products.TASKS:
        own = {variant.label for variant in task.own}
        for target in task.targets:
            assert target.own in own and target.rival in task.rivals
            assert set(target.sizes) <= set(task.sizes)
    for ladder in products.LADDERS:
        assert set(ladder.rivals) <= set(ladder.task.rivals)
        assert all(step.reason for step in ladder.steps)
        assert [step.expect is None for step in ladder.steps] == [True] + [False] * (
            len(ladder.steps) - 1
        )


# ---------------------------------------------------------------- compiled


@cache
def compiled(cc: int):
    """Launch → what the compiler says of it."""
    launches = list(products.launches(cc))
    kernels = [lower(launch.kernel, launch.args, launch.options)[0] for launch in launches]
    facts = compile_all(kernels, of_capability(cc))
    return {launch.label: of for launch, of in zip(launches, facts, strict=True)}


def test_every_kernel_fits_ada_and_the_fast_ones_do_not_spill():
    found = compiled(89)
    assert not any("descriptors" in label for label in found)
    for label, facts in found.items():
        assert facts.error == "" and facts.shared <= 101_376, label
    for layout in ("plain", "NN", "NT", "masked", "unaligned"):
        assert any(f.spills == 0 for label, f in found.items() if f" {layout} " in label), layout


def test_on_hopper_every_kernel_is_free_of_spills():
    for label, facts in compiled(90).items():
        assert facts.error == "" and facts.spills == 0, label
        assert facts.instructions.get("wgmma"), (label, facts.instructions)


def test_no_more_is_asked_for_than_the_prune_rule_says():
    """The rule drops configs before they are compiled; it may not keep one that does not fit."""
    for cc, on in ((89, "RTX 4080"), (90, "H200")):
        for launch in products.launches(cc):
            if launch.kernel is matmul_plain.plain_kernel:
                continue
            named_args = (
                dict(zip(launch.kernel.arg_names, launch.args, strict=False)) | launch.options
            )
            rule = matmul_tma if "a_desc" in named_args else matmul
            with named(on):
                kept = rule._shared(named_args)
            barriers = 64  # mbarriers and what they are aligned to
            assert compiled(cc)[launch.label].shared <= kept + barriers, launch.label
            assert kept + barriers <= card(on).shared_per_block
