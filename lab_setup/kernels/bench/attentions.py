"""FlashAttention beside cuDNN's and FlashAttention-2, forward and backward, and its ladder."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import product

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

from lab_setup.kernels import dispatch
from lab_setup.kernels.attention import KINDS, FlashAttention, flash_attention, forward
from lab_setup.kernels.attention_backward import backward
from lab_setup.kernels.bench.attention_checks import RAGGED, checks
from lab_setup.kernels.bench.attention_steps import step
from lab_setup.kernels.bench.launching import first_of_each, launches_of
from lab_setup.kernels.bench.tasks import Ladder, Launch, Target, Task, Variant

__all__ = ["LADDERS", "TASKS", "checks", "launches"]

BATCH, HEADS = 4, 16
SIZES = (1024, 2048, 4096, 8192, 16384)
BACKENDS = {
    "FlashAttention-2": SDPBackend.FLASH_ATTENTION,
    "cuDNN": SDPBackend.CUDNN_ATTENTION,
}
NEEDS = {"pointers": 80, "descriptors": 90, "specialised": 90}


def _tensors(d: int, count: int, t: int) -> tuple[torch.Tensor, ...]:
    shape = (BATCH, HEADS, t, d)
    return tuple(torch.randn(shape, device="cuda", dtype=torch.bfloat16) for _ in range(count))


def _sdpa(backend: SDPBackend, causal: bool, q, k, v) -> Callable[[], torch.Tensor]:
    def run() -> torch.Tensor:
        with sdpa_kernel(backend):
            return F.scaled_dot_product_attention(q, k, v, is_causal=causal)

    return run


def _ours(kind: str | None, causal: bool, q, k, v) -> Callable[[], torch.Tensor]:
    if kind is None:
        return lambda: flash_attention(q, k, v, causal)[0]
    return lambda: forward(q, k, v, causal, kind=kind)[0]


def _gradients(
    output: Callable[..., torch.Tensor], q, k, v, do
) -> Callable[[], tuple[torch.Tensor, ...]]:
    """The backward pass alone: the forward pass has run, what it saved is used again and again."""
    leaves = [x.detach().requires_grad_() for x in (q, k, v)]
    o = output(*leaves)
    return lambda: torch.autograd.grad(o, leaves, do, retain_graph=True)


def _sdpa_gradients(backend: SDPBackend, causal: bool, *tensors):
    return _gradients(lambda q, k, v: _sdpa(backend, causal, q, k, v)(), *tensors)


def _our_gradients(kind: str | None, causal: bool, q, k, v, do):
    if kind is None:
        return _gradients(lambda *leaves: FlashAttention.apply(*leaves, causal), q, k, v, do)
    o, lse2 = forward(q, k, v, causal, unit=1.0)
    return lambda: backward(q, k, v, o, lse2, do, causal, kind)


def _work(products: int, d: int, causal: bool, t: int) -> int:
    """Operations of ``products`` matrix products of all pairs of query and key, or half of them."""
    return products * 2 * BATCH * HEADS * t * t * d // (2 if causal else 1)


def _bytes(planes: int, d: int, t: int) -> int:
    """``planes`` tensors like q, and lse."""
    return BATCH * HEADS * t * (2 * d * planes + 4)


def _title(what: str, d: int, causal: bool) -> str:
    mask = "causal" if causal else "full"
    return f"FlashAttention {what}, D = {d}, {mask}, T of {BATCH} × {HEADS} heads"


def _forward_task(d: int, causal: bool) -> Task:
    least, stretch, over_fa2 = {64: (0.94, 1.0, 1.45), 128: (0.8, 0.88, 1.4)}[d]
    return Task(
        name=f"flash_forward_{d}_{'causal' if causal else 'full'}",
        title=_title("forward", d, causal),
        sizes=SIZES,
        tensors=partial(_tensors, d, 3),
        own=(
            Variant("flash_attention", partial(_ours, None, causal)),
            *(Variant(kind, partial(_ours, kind, causal), needs=NEEDS[kind]) for kind in KINDS),
        ),
        rivals={name: partial(_sdpa, backend, causal) for name, backend in BACKENDS.items()},
        bytes=partial(_bytes, 4, d),
        flop=partial(_work, 2, d, causal),
        atol=lambda t: 1e-2,
        targets=(
            Target("flash_attention", "cuDNN", least, stretch),
            Target("flash_attention", "FlashAttention-2", over_fa2),
        ),
    )


def _backward_task(d: int, causal: bool) -> Task:
    least, stretch = {64: (0.84, 0.9), 128: (0.72, 0.8)}[d]
    return Task(
        name=f"flash_backward_{d}_{'causal' if causal else 'full'}",
        title=_title("backward", d, causal),
        sizes=SIZES,
        tensors=partial(_tensors, d, 4),
        own=(
            Variant("FlashAttention", partial(_our_gradients, None, causal)),
            *(
                Variant(kind, partial(_our_gradients, kind, causal), needs=NEEDS[kind])
                for kind in KINDS
            ),
        ),
        rivals={
            name: partial(_sdpa_gradients, backend, causal) for name, backend in BACKENDS.items()
        },
        bytes=partial(_bytes, 8, d),
        flop=partial(_work, 5, d, causal),
        atol=lambda t: 5e-2,
        targets=(
            Target("FlashAttention", "cuDNN", least, stretch),
            Target("FlashAttention", "FlashAttention-2", 1.3),
        ),
    )


_CASES = tuple(product((64, 128), (True, False)))
_FORWARD = {(d, causal): _forward_task(d, causal) for d, causal in _CASES}
TASKS: tuple[Task, ...] = (
    *_FORWARD.values(),
    *(_backward_task(d, causal) for d, causal in _CASES),
)

_EXP2 = {"exp2": True}
_FREE = _EXP2 | {"bounds": False}
_SPLIT = _FREE | {"split": True}
_ORDERED = _SPLIT | {"ordered": True}

LADDERS: tuple[Ladder, ...] = (
    Ladder(
        "flash",
        _FORWARD[64, True],
        (8192,),
        (
            Variant("plain", step(), "The course's solution, in blocks of 64 × 64."),
            Variant(
                "exp2",
                step(**_EXP2),
                "The card computes powers of two; with log₂e and 1/√D folded into one factor an "
                "element costs one multiply-add and one exp2 instead of three operations more.",
                expect=1.15,
            ),
            Variant(
                "no bounds masks",
                step(**_FREE),
                "T is a multiple of the block, so no lane can lie outside: loads become whole "
                "asynchronous copies and a comparison an element goes.",
                expect=1.1,
            ),
            Variant(
                "split loop",
                step(**_SPLIT),
                "Only the blocks on the diagonal need the causal mask; of 128 blocks of keys the "
                "longest rows compare in one.",
                expect=1.2,
            ),
            Variant(
                "longest rows first",
                step(**_ORDERED),
                "Rows differ 128-fold in work; if the long ones start first, the short ones fill "
                "the gaps at the end.",
                expect=1.05,
            ),
            Variant(
                "heads side by side",
                step(**_ORDERED, cached=True),
                "As many heads as L2 holds advance together, so the longest rows of all of them "
                "come first and not only those of one head.",
                expect=1.02,
            ),
            Variant(
                "tuned",
                partial(_ours, "pointers", True),
                "Tiles, warps and stages are chosen by the clock.",
                expect=1.05,
            ),
            Variant(
                "for this card",
                partial(_ours, None, True),
                "On compute capability 9.0 the kernel that was fastest there: by descriptors, "
                "warps specialised, or by pointers.",
                expect=1.0,
            ),
        ),
        ("FlashAttention-2", "cuDNN"),
    ),
)


def launches(cc: int) -> Iterator[Launch]:
    """Every kernel and config that a card of this compute capability would try."""
    with dispatch.named(dispatch.of_capability(cc)):
        for (d, causal), kind in product(_CASES, KINDS):
            if cc < NEEDS[kind]:
                continue
            about = f"{kind}, D = {d}, {'causal' if causal else 'full'}"
            for t in (SIZES[0], RAGGED):
                if kind == "specialised" and t == RAGGED:
                    continue
                more = "" if t == SIZES[0] else f", T = {t}"
                q, k, v, do = _shapes(d, 4, t)
                o, lse = _shapes(d, 2, t)
                calls = {
                    "forward": partial(forward, q, k, v, causal, kind=kind),
                    "backward": partial(
                        backward, q, k, v, o, lse[..., 0].float(), do, causal, kind
                    ),
                }
                for name, call in calls.items():
                    every = launches_of(call, f"flash {name}, {about}{more}", NEEDS[kind])
                    yield from every if t == SIZES[0] else first_of_each(every)
        q, k, v = _shapes(64, 3, SIZES[0])
        for variant in LADDERS[0].steps[:6]:
            yield from launches_of(variant.make(q, k, v), f"flash ladder, {variant.label}")


def _shapes(d: int, count: int, t: int) -> tuple[torch.Tensor, ...]:
    shape = (BATCH, HEADS, t, d)
    return tuple(torch.empty(shape, device="meta", dtype=torch.bfloat16) for _ in range(count))
