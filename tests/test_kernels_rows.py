"""The memory-bound kernels: right in the interpreter, fitting for cards, as the course begins."""

import math
from pathlib import Path

import pytest
import torch

from autograder import interpret
from autograder.ir.compile import compile_all
from lab_setup.kernels import fp8, rmsnorm, rows, softmax
from lab_setup.kernels.add import add
from lab_setup.kernels.bench import row_checks
from lab_setup.kernels.bench.checking import apart, error, poisoned
from lab_setup.kernels.bench.rows import launches
from lab_setup.kernels.dispatch import named

ROOT = Path(__file__).parents[1]
SHAPES = ((1, 1), (7, 100), (13, 256), (5, 1030), (3, 9000))


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(10)


def passed(checks, **options) -> int:
    """Asserts that each check holds in the interpreter, without findings. Returns how many."""
    done = 0
    for label, function, bound in checks:
        with interpret(**options) as record:
            found = function()
        assert found <= bound, f"{label}: {found} > {bound}"  # NaN is not <= anything
        assert not record.findings and not record.warnings, label
        done += 1
    return done


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_softmax_and_norm_are_right(shape):
    assert passed(row_checks.row_checks(shape, "cpu")) == 7


@pytest.mark.parametrize("config", (1, 2, 3, 4, 5))
def test_every_config_is_right(config):
    for shape in ((37, 250), (5, 1000)):
        passed(row_checks.row_checks(shape, "cpu"), config=config, order="shuffled")


@pytest.mark.parametrize("config", range(6))
@pytest.mark.parametrize("width", (300, 1500, 3000, 7000, 9000))
def test_every_config_of_the_backward_pass_is_right_on_every_card(width, config):
    for card in ("RTX 4080", "H200"):
        with named(card):
            checks = row_checks.row_checks((3, width), "cpu")
            passed((c for c in checks if c[0].endswith("dx")), config=config)


@pytest.mark.parametrize(
    "shape", ((1, 96, 512), (16, 80, 300), (33, 96, 768), (64, 40, 1000)), ids=str
)
@pytest.mark.parametrize("split", (1, 3))
def test_fp8_is_right(shape, split):
    checks = list(row_checks.fp8_checks(shape, split, "cpu"))
    for config in range(3):
        assert passed(checks, config=config) == 2


def test_fp8_scales_once_and_rounds_once():
    a, b = torch.full((2, 32), 1.5), torch.full((48, 32), 0.25)
    with interpret():
        out = fp8.fp8_gemm(
            *(a.to(torch.float8_e4m3fn), b.to(torch.float8_e4m3fn).t()),
            *(torch.tensor([0.5]), torch.tensor([4.0])),
            split_k=2,
        )
    assert out.dtype == torch.bfloat16 and torch.equal(out.float(), torch.full((2, 48), 24.0))


@pytest.mark.parametrize("n", (0, 1, 5000))
@pytest.mark.parametrize("dtype", (torch.float32, torch.bfloat16))
def test_add_is_right(n, dtype):
    x, y = (torch.randn(n, dtype=dtype) for _ in range(2))
    with interpret() as record, poisoned():
        out = add(x, y)
    assert torch.equal(out, x + y) and not record.findings


def test_padded_rows_other_types_and_extreme_numbers():
    wide = torch.randn(6, 70)
    wide[0, 3], wide[1] = 3e4, -1e4
    wide[2, 5:] = -math.inf
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        x = wide.to(dtype)[:, 1:65]
        w = torch.randn(64, dtype=dtype)
        with interpret() as record, poisoned():
            y, normed = softmax.softmax(x), rmsnorm.rmsnorm(x[3:], w, 1e-5)
            turned = softmax.softmax(x.t().contiguous().t())
        assert not record.findings and torch.equal(y, turned)
        # Half a step of the type, and float32's own: sums of 64 and an exponential.
        bound = torch.finfo(dtype).eps + 64 * torch.finfo(torch.float32).eps
        assert error(y, torch.softmax(x.double(), 1)) <= bound
        d = x[3:].double()
        reference = d * torch.rsqrt(d.square().mean(1, keepdim=True) + 1e-5) * w.double()
        assert error(normed, reference) <= 2 * bound


def test_gradients_that_arrive_turned_and_long_rows_in_float32():
    x = torch.randn(4, 9000, requires_grad=True)
    w = torch.randn(9000, requires_grad=True)
    dy = torch.randn(9000, 4).t()
    with interpret() as record, named("H200"):
        found = torch.autograd.grad(rmsnorm.rmsnorm(x, w), (x, w), dy)
        y = softmax.softmax(x)
        (dx,) = torch.autograd.grad(y, x, dy)
    assert not record.findings
    d, v = x.detach().double().requires_grad_(), w.detach().double().requires_grad_()
    normed = torch.nn.functional.rms_norm(d, (9000,), v, 1e-6)
    for ours, theirs in zip(found, torch.autograd.grad(normed, (d, v), dy.double()), strict=True):
        assert error(ours, theirs) < 1e-5
    assert error(dx, torch.autograd.grad(torch.softmax(d, 1), d, dy.double())[0]) < 1e-5


def test_nothing_to_do_is_done():
    for shape in ((0, 5), (3, 0)):
        x, w = torch.empty(shape).requires_grad_(), torch.ones(shape[1], requires_grad=True)
        with interpret() as record:
            out = softmax.softmax(x) + rmsnorm.rmsnorm(x, w)
            dx, dw = torch.autograd.grad(out, (x, w), torch.empty(shape))
        assert not record.launches and dx.shape == x.shape and torch.equal(dw, torch.zeros(w.shape))


@pytest.mark.parametrize(
    "call, words",
    (
        (lambda: add(torch.ones(3), torch.ones(4)), "one shape"),
        (lambda: add(torch.ones(3, 2).t(), torch.ones(2, 3)), "contiguous"),
        (lambda: softmax.softmax(torch.ones(2, 3, 4)), "reshape"),
        (lambda: softmax.softmax(torch.ones(1, rows.LONGEST + 1)), "softmax_long"),
        (lambda: rmsnorm.rmsnorm(torch.ones(2, 3), torch.ones(4)), "3 contiguous weights"),
        (lambda: fp8.fp8_gemm(*[torch.ones(2, 2)] * 2, None, None), "float8_e4m3fn"),
        (lambda: _fp8((65, 16), (16, 16)), "from 1 to 64"),
        (lambda: _fp8((2, 16), (8, 16)), r"\(2, 16\) by \(8, 16\)"),
        (lambda: _fp8((2, 16), (16, 16)), "transpose"),
    ),
)
def test_what_does_not_fit_is_one_sentence(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def _fp8(a, b):
    return fp8.fp8_gemm(*(torch.ones(s).to(torch.float8_e4m3fn) for s in (a, b)), None, None)


# ---------------------------------------------------------------- cards


@pytest.mark.parametrize("card", ("RTX 4080", "H200"))
def test_kernels_fit_a_card_and_do_not_spill(card):
    with named(card) as row, interpret() as record:
        for shape in ((32, 256), (8, 4096), (2, 16384)):
            x = torch.randn(shape).bfloat16().requires_grad_()
            w = torch.ones(shape[1], dtype=torch.bfloat16, requires_grad=True)
            (softmax.softmax(x) + rmsnorm.rmsnorm(x, w)).sum().backward()
        for split in (1, 2):
            for _, run, _ in row_checks.fp8_checks((64, 64, 512), split, "cpu"):
                run()
        add(torch.ones(4096), torch.ones(4096))
    kernels = {(k.name, k.ir): k for k, _, _ in record.launches}
    assert len({name for name, _ in kernels}) == 9
    for facts in compile_all(list(kernels.values()), row):
        assert not facts.error and facts.shared <= row.shared_per_block, facts
        assert facts.spills == 0, facts


def test_a_card_tries_few_configs_and_none_that_is_too_large():
    for cc, most in ((89, 101_376), (90, 232_448)):
        found: dict[str, int] = {}
        for launch in launches(cc):
            label = launch.label.partition(":")[0]
            found[label] = found.get(label, 0) + 1
            if "BLOCK_M" in launch.options:
                o = launch.options
                tiles = o["BLOCK_K"] * (o["BLOCK_M"] + o["BLOCK_N"]) * o["num_stages"]
                assert tiles <= most, launch.label
        assert max(found.values()) <= 6 and "RMSNorm backward, 16384" in found


# ---------------------------------------------------------------- the checks themselves


def test_a_check_sees_what_is_wrong():
    with poisoned():
        assert torch.empty(3).isnan().all()
    x = torch.arange(4.0)
    assert error(x, x.double()) == 0 and math.isnan(error(x * math.nan, x.double()))
    results = iter((x, x, x + 1))
    assert apart(lambda: next(results), runs=3) > 0
    assert apart(lambda: (x, x), runs=3) == 0


def test_a_wrong_gradient_is_seen(monkeypatch):
    def doubled(*operands):
        dx, dw = rmsnorm_backward(*operands)
        return dx, 2 * dw

    rmsnorm_backward = rmsnorm.rmsnorm_backward
    monkeypatch.setattr(rmsnorm, "rmsnorm_backward", doubled)
    wrong = []
    for label, run, bound in row_checks.row_checks((5, 64), "cpu"):
        with interpret():
            if not run() <= bound:
                wrong.append(label)
    assert wrong == ["RMSNorm, 5 × 64, dw"]
