"""Whether the memory-bound kernels are right where the interpreter cannot follow: at full size."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import torch

from lab_setup.kernels import add as adding
from lab_setup.kernels import fp8, rmsnorm, softmax
from lab_setup.kernels.bench.checking import apart, error, poisoned
from lab_setup.kernels.bench.row_rivals import EPS
from lab_setup.kernels.bench.row_tasks import COLUMNS, NUMBERS, quantised
from lab_setup.kernels.bench.tasks import Check

__all__ = ["SHAPES", "checks", "differences"]

# Sizes that divide nothing, then those of the targets.
SHAPES = ((1823, 781), (257, 256), (77, 10000), (1, 1), (3, 40001))
_FULL = tuple((NUMBERS // n, n) for n in COLUMNS)
_FP8 = ((1, 4096, 4096), (16, 4096, 4096), (64, 8192, 8192), (33, 4000, 1000), (1, 100, 8200))

# Half a step of bfloat16 is 2^-9 of a number; sums in float32 add next to nothing to that.
_BOUND = 2**-8


def checks(device: str = "cuda") -> Iterator[Check]:
    """(what, function that returns an error, bound): the reference is computed in float64, sums of
    2^26 numbers included, and memory is poisoned before each call."""
    yield from _add_checks(device)
    for shape in (*SHAPES, *_FULL):
        yield from row_checks(shape, device)
    for shape in _FP8:
        for split in (1, 4):
            yield from fp8_checks(shape, split, device)


def _add_checks(device: str) -> Iterator[Check]:
    for n in (1, 1000003, 1 << 27):

        def run(n=n):
            x, y = (torch.randn(n, device=device) for _ in range(2))
            with poisoned():
                found = adding.add(x, y)
            return float((found != x + y).sum())  # one addition, rounded once: the same number

        yield f"add, {n:,}", run, 0.0


def row_checks(shape: tuple[int, int], device: str) -> Iterator[Check]:
    """Softmax and RMSNorm on a matrix of that shape, forward, backward, and again and again."""
    for name, function in (("softmax", _softmax), ("RMSNorm", _rmsnorm)):
        label = f"{name}, {shape[0]} × {shape[1]}"
        errors = differences(function, shape, device)
        for part in _PARTS[name]:
            yield f"{label}, {part}", lambda errors=errors, part=part: errors()[part], _BOUND
        yield f"{label}, repeated", lambda errors=errors: errors()["repeated"], 0.0


_PARTS = {"softmax": ("y", "dx"), "RMSNorm": ("y", "dx", "dw")}


def differences(
    function: Callable[[torch.Tensor, torch.Tensor], dict[str, float]],
    shape: tuple[int, int],
    device: str,
) -> Callable[[], dict[str, float]]:
    """The errors of ``function(x, dy)`` by what they are of, computed when first asked for."""
    found: dict[str, float] = {}

    def errors() -> dict[str, float]:
        if not found:
            found.update(
                function(*(torch.randn(shape, device=device).bfloat16() for _ in range(2)))
            )
        return found

    return errors


def _softmax(x: torch.Tensor, dy: torch.Tensor) -> dict[str, float]:
    x.requires_grad_()

    def both():
        y = softmax.softmax(x)
        return y.detach(), torch.autograd.grad(y, x, dy)[0]

    with poisoned():
        y, dx = both()
    found = {"y": error(y, torch.softmax(x.detach().double(), dim=1))}
    # The gradient of the y that backward gets, which is rounded.
    wide = y.double()
    reference = wide * (dy.double() - (wide * dy.double()).sum(1, keepdim=True))
    found["dx"] = _of_difference(dx, reference, wide * dy.double())
    return found | {"repeated": apart(both)}


def _of_difference(found: torch.Tensor, reference: torch.Tensor, term: torch.Tensor) -> float:
    """The error of a difference whose first term is ``term``. What float32 loses there is as large
    as the terms, however small the difference: _BOUND times 2^-12 are 16 of its roundings."""
    lost = (found.double() - reference).norm()
    return float(lost / (reference.norm() + 2**-12 * term.norm()))


def _rmsnorm(x: torch.Tensor, dy: torch.Tensor) -> dict[str, float]:
    w = torch.randn(x.shape[1], device=x.device).bfloat16().requires_grad_()
    x.requires_grad_()

    def both():
        y = rmsnorm.rmsnorm(x, w, EPS)
        return y.detach(), *torch.autograd.grad(y, (x, w), dy)

    with poisoned():
        y, dx, dw = both()
    wide, weights, gradient = x.detach().double(), w.detach().double(), dy.double()
    r = torch.rsqrt(wide.square().mean(1, keepdim=True) + EPS)
    wide *= r  # in place: a plane in float64 is 512 MiB
    found = {"y": error(y, wide * weights), "dw": error(dw, (wide * gradient).sum(0))}
    gradient *= weights
    reference = (gradient - wide * (wide * gradient).mean(1, keepdim=True)) * r
    found["dx"] = _of_difference(dx, reference, gradient * r)
    return found | {"repeated": apart(both)}


def fp8_checks(shape: tuple[int, int, int], split: int, device: str) -> Iterator[Check]:
    """The fp8 product of (M, K) by (K, N), with the sum over K in ``split`` parts."""
    M, N, K = shape
    label = f"fp8, {M} × {K} by {K} × {N}, {split} parts"

    def operands():
        a, scale_a = quantised(torch.randn(M, K, device=device))
        b, scale_b = quantised(torch.randn(N, K, device=device))
        return a, b.t(), scale_a, scale_b

    def run():
        a, b, scale_a, scale_b = operands()
        with poisoned():
            found = fp8.fp8_gemm(a, b, scale_a, scale_b, split_k=split)
        return error(found, (a.double() @ b.double()) * (scale_a.double() * scale_b.double()))

    # Hopper cuts the sum that it has in flight to 13 bits after every 32 products: a walk of K/32
    # steps of up to 2^-13 of the sum so far, which grows as their root. Then bfloat16.
    yield label, run, _BOUND + 2**-13 * math.sqrt(K / 32)
    given = operands()
    yield f"{label}, repeated", lambda: apart(lambda: fp8.fp8_gemm(*given, split_k=split)), 0.0
