"""Whom the memory-bound kernels are compared with, as makers of functions without arguments."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F

from lab_setup.kernels.bench import row_steps as steps
from lab_setup.kernels.bench.tasks import Make

__all__ = [
    "EPS",
    "compiled",
    "compiled_norm",
    "copy_of",
    "cublas_bf16",
    "each_layer",
    "gradients",
    "launches_of",
    "no_grad",
    "plain_launches",
    "scaled_mm",
    "softmax_gradient",
    "torch_norm",
    "torch_softmax",
    "torch_softmax_gradient",
]

EPS = 1e-6


def no_grad(function: Callable) -> Make:
    """The function of the task's tensors, without a graph of gradients."""

    def make(*tensors):
        def run():
            with torch.no_grad():
                return function(*tensors)

        return run

    return make


def compiled(function: Callable) -> Make:
    # Compiled anew for each size: what torch.compile does for sizes that it knows beforehand.
    return lambda *tensors: no_grad(torch.compile(function, dynamic=False))(*tensors)


def copy_of(planes: int) -> Make:
    """A copy that moves as many bytes as ``planes`` planes, read or written."""

    def make(x, *_):
        source = x.flatten().repeat(2)[: planes * x.numel() // 2]
        target = torch.empty_like(source)
        return lambda: target.copy_(source)

    return make


def gradients(forward: Callable) -> Make:
    """The backward pass alone of ``forward(x, w)``, as autograd does it."""

    def make(x, w, r, dy):
        x, w = x.detach().requires_grad_(), w.detach().requires_grad_()
        y = forward(x, w)
        return lambda: torch.autograd.grad(y, (x, w), dy, retain_graph=True)

    return make


def softmax_gradient(y, dy):
    y32, dy32 = y.float(), dy.float()
    return (y32 * (dy32 - (dy32 * y32).sum(1, keepdim=True))).to(y.dtype)


def torch_softmax_gradient(y, dy):
    return torch.ops.aten._softmax_backward_data(dy, y, 1, y.dtype)


def torch_softmax(x):
    return torch.softmax(x, dim=1)


def torch_norm(x, w):
    return F.rms_norm(x, w.shape, w, EPS)


def compiled_norm(x, w):
    # Lines of its own: torch.compile keeps eight versions of a function, and RMSNorm has four.
    return torch.compile(lambda x, w: F.rms_norm(x, w.shape, w, EPS), dynamic=False)(x, w)


def each_layer(product: Callable) -> Make:
    """``product(a, b, scale_a, scale_b)`` with every layer's weights, one after the other."""

    def make(a, scale_a, layers):
        return lambda: tuple(product(a, w.t(), scale_a, scale) for w, scale in layers)

    return make


def scaled_mm(fast: bool) -> Make:
    def product(a, b, scale_a, scale_b):
        return torch._scaled_mm(
            a, b, scale_a, scale_b, out_dtype=torch.bfloat16, use_fast_accum=fast
        )

    return each_layer(product)


def cublas_bf16(a, scale_a, layers):
    wide, weights = a.bfloat16(), [w.bfloat16() for w, _ in layers]
    return lambda: tuple(F.linear(wide, w) for w in weights)


def launches_of(x, y):
    out = torch.empty_like(x[0])
    launches = list(zip(x, y, strict=True))

    def run():
        for operands in launches:
            steps.add_small(*operands, out)
        return out

    return run


def plain_launches(x, y):
    run = launches_of(x, y)

    def launched():
        if torch.cuda.is_current_stream_capturing():
            raise RuntimeError("one launch after the other is what is measured here")
        return run()

    return launched
