"""FlashAttention at full size on the card: every config against float64, poisoned, repeated."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import product

import torch

from lab_setup.kernels import dispatch
from lab_setup.kernels.attention import KINDS, forward
from lab_setup.kernels.attention_backward import backward
from lab_setup.kernels.bench.launching import Planned, planned
from lab_setup.kernels.bench.tasks import Check

__all__ = ["RAGGED", "checks", "gradients", "output"]

RAGGED = 1000  # a T that no block divides
LONGEST = 16384
# bf16 rounds to 2⁻⁹ of a number at most. Forward rounds p and o, so that o is off by less than the
# sum of both; backward also rounds o and ds on the way to dq and dk.
FORWARD, BACKWARD = 2**-8, 2**-7
LSE = 2**-14  # absolute: scores are sums in float32 of at most 128 products, some 2⁻²⁴ each


def checks() -> Iterator[Check]:
    """(label, function, bound) for every kernel and config of this card.

    The function runs it on outputs full of NaN, several times, and returns the error as a share of
    what rounding explains: right if not above the bound. NaN: something was not written, or worse;
    infinity: another run gave other bits, which is a race. Make the next one when this one has run.
    """
    for d, causal in product((64, 128), (True, False)):
        for heads, t in (((2, 3), RAGGED), ((4, 16), LONGEST)):
            about = f"D = {d}, {'causal' if causal else 'full'}, T = {t}"
            shape = (*heads, t, d)
            q, k, v, do = (
                torch.randn(shape, device="cuda", dtype=torch.bfloat16) for _ in range(4)
            )
            kinds = [
                kind
                for kind in KINDS
                if kind == "pointers"
                or (dispatch.hopper() and (kind, t) != ("specialised", RAGGED))
            ]
            for kind in kinds:
                yield from _forward_checks(q, k, v, causal, kind, about)
            for kind in kinds:
                yield from _backward_checks(q, k, v, do, causal, kind, about)


def _forward_checks(q, k, v, causal: bool, kind: str, about: str) -> Iterator[Check]:
    (o, lse), (plans,) = planned(partial(forward, q, k, v, causal, kind=kind))
    right = _Once(lambda i: output(q[i], k[i], v[i], causal))
    for plan in plans:
        label = f"flash forward, {kind}, {about}, {plan.config}"
        outputs = [(o, 0, FORWARD, True), (lse, 1, LSE, False)]
        yield label, partial(_error, plan, outputs, right), 1.0


def _backward_checks(q, k, v, do, causal: bool, kind: str, about: str) -> Iterator[Check]:
    o, lse2 = forward(q, k, v, causal, unit=1.0, kind="pointers")
    made, (before, *steps) = planned(partial(backward, q, k, v, o, lse2, do, causal, kind))
    before[0].run()  # delta, which both others read
    right = _Once(lambda i: gradients(q[i], k[i], v[i], do[i], causal))
    for plans, places in zip(steps, ((1, 2), (0,)), strict=True):  # dk and dv, then dq
        outputs = [(made[place], place, BACKWARD, True) for place in places]
        for plan in plans:
            label = f"flash backward, {plan.launch.kernel.__name__}, {kind}, {about}, {plan.config}"
            yield label, partial(_error, plan, outputs, right), 1.0


class _Once:
    """The reference for the first head and the last, computed when it is asked for."""

    def __init__(self, of_head: Callable[[tuple[int, int]], tuple[torch.Tensor, ...]]):
        self._of_head, self._made = of_head, {}

    def __call__(self, at: tuple[int, int]) -> tuple[torch.Tensor, ...]:
        if at not in self._made:
            self._made[at] = self._of_head(at)
        return self._made[at]


def _error(
    plan: Planned,
    outputs: Sequence[tuple[torch.Tensor, int, float, bool]],
    right: Callable[[tuple[int, int]], tuple[torch.Tensor, ...]],
    runs: int = 5,
) -> float:
    """The worst error over its allowance. ``outputs``: (tensor, its place in what ``right`` gives,
    allowance, whether that is relative, by norms)."""
    first: list[torch.Tensor] = []
    for _ in range(runs):
        for tensor, *_ in outputs:
            tensor.fill_(math.nan)
        plan.run()
        if first and not all(torch.equal(x[0], y) for x, y in zip(outputs, first, strict=True)):
            same = all(bool(x[0].isfinite().all()) for x in outputs)
            return math.inf if same else math.nan
        first = first or [tensor.clone() for tensor, *_ in outputs]
    worst = 0.0
    for tensor, place, allowed, relative in outputs:
        if not bool(tensor.isfinite().all()):
            return math.nan
        for at in ((0, 0), (tensor.shape[0] - 1, tensor.shape[1] - 1)):
            expected = right(at)[place]
            off = tensor[at].double() - expected
            error = off.norm() / expected.norm() if relative else off.abs().max()
            worst = max(worst, error.item() / allowed)
    return worst


def _probabilities(q, k, causal: bool) -> tuple[torch.Tensor, torch.Tensor]:
    s = (q.double() @ k.double().T) / math.sqrt(q.shape[-1])
    if causal:
        s.masked_fill_(torch.ones(s.shape, dtype=torch.bool, device=s.device).triu_(1), -math.inf)
    lse = torch.logsumexp(s, -1)
    return s.sub_(lse[:, None]).exp_(), lse


def output(q, k, v, causal: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """o and lse of one head, (T, D) each, in float64."""
    p, lse = _probabilities(q, k, causal)
    return p @ v.double(), lse


def gradients(q, k, v, do, causal: bool) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """dq, dk and dv of one head in float64."""
    p, _ = _probabilities(q, k, causal)
    q, k, v, do = (x.double() for x in (q, k, v, do))
    dv = p.T @ do
    ds = do @ v.T
    ds.sub_(((p @ v) * do).sum(-1, keepdim=True)).mul_(p)
    scale = 1 / math.sqrt(q.shape[-1])
    return (ds @ k) * scale, (ds.T @ q) * scale, dv
