"""The memory-bound kernels as they are measured, and whom they are compared with."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch

from lab_setup.kernels import add as adding
from lab_setup.kernels import fp8, rmsnorm, softmax
from lab_setup.kernels.bench import row_rivals as rivals
from lab_setup.kernels.bench.row_rivals import EPS, each_layer, no_grad
from lab_setup.kernels.bench.tasks import Make, Target, Task, Variant

__all__ = [
    "COLUMNS",
    "F8",
    "FP8",
    "NUMBERS",
    "RMSNORM_BACKWARD",
    "SMALL",
    "SOFTMAX",
    "TASKS",
    "fp8_tensors",
    "quantised",
]

NUMBERS = 1 << 26  # of a plane in bfloat16: 128 MiB, more than twice an H200's L2
COLUMNS = (256, 1024, 4096, 16384)
F8 = torch.float8_e4m3fn
SMALL = 4096  # numbers that one small launch adds
_PLANE = 2 * NUMBERS  # bytes


def _plane(columns: int) -> torch.Tensor:
    """A matrix of 2^26 normal random numbers on the card."""
    return torch.randn(NUMBERS // columns, columns, device="cuda", dtype=torch.bfloat16)


def _softmax_planes(columns: int) -> tuple[torch.Tensor, ...]:
    return rivals.torch_softmax(_plane(columns)), _plane(columns)


def _norm_planes(columns: int) -> tuple[torch.Tensor, ...]:
    return _plane(columns), torch.randn(columns, device="cuda", dtype=torch.bfloat16)


def _norm_saved(columns: int) -> tuple[torch.Tensor, ...]:
    x, w = _norm_planes(columns)
    return x, w, rmsnorm.rmsnorm_forward(x, w, EPS)[1], _plane(columns)


def _layers(n: int) -> int:
    """As many matrices of weights as make 256 MiB, so that none waits in the cache."""
    return (1 << 28) // (n * n)


def fp8_tensors(n: int) -> Callable[[int], tuple]:
    def tensors(rows: int) -> tuple:
        a, scale_a = quantised(torch.randn(rows, n, device="cuda"))
        weights = (torch.randn(n, n, device="cuda") / math.sqrt(n) for _ in range(_layers(n)))
        return a, scale_a, tuple(quantised(w) for w in weights)

    return tensors


def quantised(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    scale = (x.abs().max() / torch.finfo(F8).max).reshape(1)
    return (x / scale).to(F8), scale


def _small(launches: int) -> tuple[torch.Tensor, ...]:
    """The same small vectors for all launches: from the second on the cache holds them."""
    return tuple(torch.randn(SMALL, device="cuda").expand(launches, SMALL) for _ in range(2))


# ---------------------------------------------------------------- tasks


def _row_task(name: str, title: str, planes: int, tensors, own: Make, others: dict, **more) -> Task:
    columns = f"{title} bf16, rows of n numbers, {planes} × 128 MiB"
    about = {
        "own": (Variant("triton", own),),
        "rivals": {"copy": rivals.copy_of(planes)} | others,
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
    rivals={"compile": rivals.compiled(torch.add), "torch": no_grad(torch.add)},
    bytes=lambda n: 12 * n,
    dtype="float32",
    targets=(Target("triton", "torch", 0.99, 1.0),),
)

SOFTMAX = _row_task(
    *("softmax", "softmax", 2, lambda n: (_plane(n),), no_grad(softmax.softmax_forward)),
    others={
        "compile": rivals.compiled(rivals.torch_softmax),
        "torch": no_grad(rivals.torch_softmax),
    },
    targets=(
        Target("triton", "copy", 0.95, 1.0),
        Target("triton", "torch", 1.0),
        Target("triton", "compile", 0.97, sizes=(256, 1024)),
        Target("triton", "compile", 0.97, 2.0, sizes=(4096, 16384)),
    ),
)

_SOFTMAX_BACKWARD = _row_task(
    *("softmax_backward", "softmax backward", 3, _softmax_planes),
    no_grad(softmax.softmax_backward),
    others={
        "compile": rivals.compiled(rivals.softmax_gradient),
        "torch": no_grad(rivals.torch_softmax_gradient),
    },
    atol=lambda n: 1 / (8 * n),  # y is 1/n about, rounded at 2^-9; dy and their sums are 1 to 4
)

_RMSNORM = _row_task(
    *("rmsnorm", "RMSNorm", 2, _norm_planes, no_grad(rmsnorm.rmsnorm)),
    others={"compile": rivals.compiled(rivals.torch_norm), "torch": no_grad(rivals.torch_norm)},
)

RMSNORM_BACKWARD = _row_task(
    *("rmsnorm_backward", "RMSNorm backward with dw", 3, _norm_saved),
    no_grad(rmsnorm.rmsnorm_backward),
    others={
        "compile": rivals.gradients(rivals.compiled_norm),
        "torch": rivals.gradients(rivals.torch_norm),
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
        fp8_tensors(n),
        own=(Variant("triton", each_layer(fp8.fp8_gemm), needs=89),),
        rivals={
            "cuBLAS bf16": rivals.cublas_bf16,
            "scaled_mm": rivals.scaled_mm(False),
            "scaled_mm, fast": rivals.scaled_mm(True),
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
    f"n launches that add the same {SMALL} numbers",
    (100,),
    _small,
    own=(Variant("graph", rivals.launches_of),),
    rivals={"plain launches": rivals.plain_launches},
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
