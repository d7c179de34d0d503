"""The memory-bound kernels as they are measured, and whom they are compared with."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F

from lab_setup.kernels import add as adding
from lab_setup.kernels import fp8, rmsnorm, softmax
from lab_setup.kernels.bench import row_steps as steps
from lab_setup.kernels.bench.tasks import Make, Target, Task, Variant

__all__ = [
    "COLUMNS",
    "EPS",
    "F8",
    "FP8",
    "NUMBERS",
    "RMSNORM_BACKWARD",
    "SMALL",
    "SOFTMAX",
    "TASKS",
    "each_layer",
    "quantised",
    "no_grad",
]

NUMBERS = 1 << 26  # of a plane in bfloat16: 128 MiB, more than twice an H200's L2
COLUMNS = (256, 1024, 4096, 16384)
EPS = 1e-6
F8 = torch.float8_e4m3fn
SMALL = 4096  # numbers that one small launch adds
_PLANE = 2 * NUMBERS  # bytes


# ---------------------------------------------------------------- whom they are compared with


def no_grad(function: Callable) -> Make:
    """The function of the task's tensors, without a graph of gradients."""

    def make(*tensors):
        def run():
            with torch.no_grad():
                return function(*tensors)

        return run

    return make


def _compiled(function: Callable) -> Make:
    # Compiled anew for each size: what torch.compile does for sizes that it knows beforehand.
    return lambda *tensors: no_grad(torch.compile(function, dynamic=False))(*tensors)


def _copy(planes: int) -> Make:
    """A copy that moves as many bytes as ``planes`` planes, read or written."""

    def make(x, *_):
        source = x.flatten().repeat(2)[: planes * x.numel() // 2]
        target = torch.empty_like(source)
        return lambda: target.copy_(source)

    return make


def _gradients(forward: Callable) -> Make:
    """The backward pass alone of ``forward(x, w)``, as autograd does it."""

    def make(x, w, r, dy):
        x, w = x.detach().requires_grad_(), w.detach().requires_grad_()
        y = forward(x, w)
        return lambda: torch.autograd.grad(y, (x, w), dy, retain_graph=True)

    return make


def _softmax_gradient(y, dy):
    y32, dy32 = y.float(), dy.float()
    return (y32 * (dy32 - (dy32 * y32).sum(1, keepdim=True))).to(y.dtype)


def _torch_softmax_gradient(y, dy):
    return torch.ops.aten._softmax_backward_data(dy, y, 1, y.dtype)


def _torch_softmax(x):
    return torch.softmax(x, dim=1)


def _torch_norm(x, w):
    return F.rms_norm(x, w.shape, w, EPS)


# ---------------------------------------------------------------- tensors


def _plane(columns: int) -> torch.Tensor:
    """A matrix of 2^26 normal random numbers on the card."""
    return torch.randn(NUMBERS // columns, columns, device="cuda", dtype=torch.bfloat16)


def _softmax_planes(columns: int) -> tuple[torch.Tensor, ...]:
    return _torch_softmax(_plane(columns)), _plane(columns)


def _norm_planes(columns: int) -> tuple[torch.Tensor, ...]:
    return _plane(columns), torch.randn(columns, device="cuda", dtype=torch.bfloat16)


def _norm_saved(columns: int) -> tuple[torch.Tensor, ...]:
    x, w = _norm_planes(columns)
    return x, w, rmsnorm.rmsnorm_forward(x, w, EPS)[1], _plane(columns)


def _layers(n: int) -> int:
    """As many matrices of weights as make 256 MiB, so that none waits in the cache."""
    return (1 << 28) // (n * n)


def _fp8_tensors(n: int) -> Callable[[int], tuple]:
    def tensors(rows: int) -> tuple:
        a, scale_a = quantised(torch.randn(rows, n, device="cuda"))
        weights = (torch.randn(n, n, device="cuda") / math.sqrt(n) for _ in range(_layers(n)))
        return a, scale_a, tuple(quantised(w) for w in weights)

    return tensors


def quantised(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    scale = (x.abs().max() / torch.finfo(F8).max).reshape(1)
    return (x / scale).to(F8), scale


def each_layer(product: Callable) -> Make:
    """``product(a, b, scale_a, scale_b)`` with every layer's weights, one after the other."""

    def make(a, scale_a, layers):
        return lambda: tuple(product(a, w.t(), scale_a, scale) for w, scale in layers)

    return make


def _scaled_mm(fast: bool) -> Make:
    def product(a, b, scale_a, scale_b):
        return torch._scaled_mm(
            a, b, scale_a, scale_b, out_dtype=torch.bfloat16, use_fast_accum=fast
        )

    return each_layer(product)


def _bf16(a, scale_a, layers):
    wide, weights = a.bfloat16(), [w.bfloat16() for w, _ in layers]
    return lambda: tuple(F.linear(wide, w) for w in weights)


def _small(launches: int) -> tuple[torch.Tensor, ...]:
    return tuple(torch.randn(launches, SMALL, device="cuda") for _ in range(2))


def _graph(x, y):
    out = torch.empty_like(x)
    launches = list(zip(x, y, out, strict=True))

    def run():
        for operands in launches:
            steps.add_small(*operands)
        return out

    return run


def _plain_launches(x, y):
    run = _graph(x, y)

    def launched():
        if torch.cuda.is_current_stream_capturing():
            raise RuntimeError("one launch after the other is what is measured here")
        return run()

    return launched


# ---------------------------------------------------------------- tasks


def _row_task(name: str, title: str, planes: int, tensors, own: Make, rivals: dict, **more) -> Task:
    columns = f"{title} bf16, rows of n numbers, {planes} × 128 MiB"
    about = {
        "own": (Variant("triton", own),),
        "rivals": {"copy": _copy(planes)} | rivals,
        "bytes": lambda n: planes * _PLANE,
        "unchecked": ("copy",),
        "targets": (
            Target("triton", "copy", 0.95, 1.0),
            Target("triton", "torch", 1.0),
            Target("triton", "compile", 0.97),
        ),
    }
    return Task(name, columns, COLUMNS, tensors, **(about | more))


_ADD = Task(
    "add",
    "add fp32, n numbers",
    (1 << 27,),
    lambda n: tuple(torch.randn(n, device="cuda") for _ in range(2)),
    own=(Variant("triton", no_grad(adding.add)),),
    rivals={"compile": _compiled(torch.add), "torch": no_grad(torch.add)},
    bytes=lambda n: 12 * n,
    dtype="float32",
    targets=(Target("triton", "torch", 0.99, 1.0),),
)

SOFTMAX = _row_task(
    *("softmax", "softmax", 2, lambda n: (_plane(n),), no_grad(softmax.softmax_forward)),
    rivals={"compile": _compiled(_torch_softmax), "torch": no_grad(_torch_softmax)},
    targets=(
        Target("triton", "copy", 0.95, 1.0),
        Target("triton", "torch", 1.0),
        Target("triton", "compile", 0.97),
        Target("triton", "compile", 0.97, 2.0, sizes=(4096, 16384)),
    ),
)

_SOFTMAX_BACKWARD = _row_task(
    *(
        "softmax_backward",
        "softmax backward",
        3,
        _softmax_planes,
        no_grad(softmax.softmax_backward),
    ),
    rivals={"compile": _compiled(_softmax_gradient), "torch": no_grad(_torch_softmax_gradient)},
    atol=lambda n: 1 / (8 * n),  # y is 1/n about, rounded at 2^-9; dy and their sums are 1 to 4
)

_RMSNORM = _row_task(
    *("rmsnorm", "RMSNorm", 2, _norm_planes, no_grad(rmsnorm.rmsnorm)),
    rivals={"compile": _compiled(_torch_norm), "torch": no_grad(_torch_norm)},
)

RMSNORM_BACKWARD = _row_task(
    *("rmsnorm_backward", "RMSNorm backward with dw", 3, _norm_saved),
    no_grad(lambda x, w, r, dy: rmsnorm.rmsnorm_backward(x, w, r, dy)),
    rivals={
        "compile": _gradients(
            torch.compile(lambda x, w: F.rms_norm(x, w.shape, w, EPS), dynamic=False)
        ),
        "torch": _gradients(_torch_norm),
    },
    # dw sums a column of normal products: √rows large, rounded at 2^-9 of that by either side.
    atol=lambda n: math.sqrt(NUMBERS / n) / 128,
    targets=(Target("triton", "copy", 0.85, 0.9), Target("triton", "compile", 1.0)),
)


def _fp8_task(n: int) -> Task:
    return Task(
        f"fp8_{n}",
        f"fp8 e4m3, n × {n} by {n} × {n}, {_layers(n)} layers",
        (1, 16, 64),
        _fp8_tensors(n),
        own=(Variant("triton", each_layer(fp8.fp8_gemm), needs=89),),
        rivals={
            "cuBLAS bf16": _bf16,
            "scaled_mm": _scaled_mm(False),
            "scaled_mm, fast": _scaled_mm(True),
        },
        bytes=lambda rows: _layers(n) * (n * n + rows * n + 2 * rows * n),
        flop=lambda rows: 2.0 * _layers(n) * rows * n * n,
        dtype="float8",
        # Hopper keeps 13 bits of a sum that it has in flight, after each 32 of the n products:
        # as many errors of 2^-13 of a sum that is about 1.
        atol=lambda rows: n / 32 * 2**-13,
        unchecked=("cuBLAS bf16",),
        targets=(Target("triton", "scaled_mm, fast", 0.92, 1.0),),
    )


FP8 = tuple(_fp8_task(n) for n in (4096, 8192))

_LAUNCHES = Task(
    "launches",
    f"n launches that add {SMALL} numbers each",
    (100,),
    _small,
    own=(Variant("graph", _graph),),
    rivals={"plain launches": _plain_launches},
    bytes=lambda n: 12 * n * SMALL,
    dtype="float32",
    targets=(Target("graph", "plain launches", 10.0, 17.0),),
)

TASKS: tuple[Task, ...] = (
    _ADD,
    SOFTMAX,
    _SOFTMAX_BACKWARD,
    _RMSNORM,
    RMSNORM_BACKWARD,
    *FP8,
    _LAUNCHES,
)
