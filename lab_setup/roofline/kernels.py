"""The course's kernels as the roofline sees them: on what they run, and against whom.

A row stands for one exercise. Its tensors are described by one size in which the work is linear
(elements, rows, heads, steps along K), so that counting a part of it tells the whole.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from autograder.ir.cards import Card
from autograder.records import Tensor
from lab_setup.roofline.model import Work, extrapolated, roof_ms, work_of

__all__ = ["KERNELS", "CourseKernel", "counted", "least_ms"]

Functions = dict[str, Callable[[], object]]


@dataclass(frozen=True)
class CourseKernel:
    """One exercise's function at the size at which it is measured.

    * ``id`` and ``name``: the exercise, and what a solution calls the function; ``label``: ours;
    * ``tensors(size)``: its tensor arguments; ``size`` is measured, ``part`` is what is counted,
      once and doubled; ``slices``: the part stands for the whole with a cache in proportion;
    * ``call(function)``: the function of those tensors alone;
    * ``bytes`` and ``flop``: what the task cannot do without: inputs and outputs once, and the
      operations of ``dtype`` on tensor cores (0: none);
    * ``band``: what a good kernel attains, as shares of the roof: the lessons' expectations;
    * ``rivals``: names of ``lab_setup.roofline.rivals``, the last is the reference;
    * ``backward``: it is the backward pass that counts; ``atol``: absolute difference to allow,
      besides torch's relative one.
    """

    id: str
    name: str
    label: str
    tensors: Callable[[int], tuple[Tensor, ...]]
    size: int
    part: int
    bytes: int
    rivals: tuple[str, ...]
    flop: int = 0
    dtype: str = ""
    band: tuple[float, float] = (0.8, 0.9)
    slices: bool = False
    backward: bool = False
    call: Callable[[Any], Callable] = lambda function: function
    atol: float | None = None
    unchecked: tuple[str, ...] = ()


def counted(kernel: CourseKernel, function: Any, card: Card) -> Work:
    """The work of ``kernel`` at its size, counted on two small parts of it.

    Raises Rejected and CouldNotCheck as ``work_of`` does.
    """
    call, part = kernel.call(function), kernel.part
    while True:
        once, twice = (
            work_of(
                call,
                kernel.tensors(n),
                card,
                backward=kernel.backward,
                share=n / kernel.size if kernel.slices else 1.0,
            )
            for n in (part, 2 * part)
        )
        # Where a block reaches over the whole part, its double costs no operation more.
        if twice.dot > once.dot or not once.dot or 2 * part >= kernel.size:
            return extrapolated(once, twice, kernel.size / part)
        part *= 2


def least_ms(kernel: CourseKernel, card: Card) -> float:
    """The task's own roof: no kernel whatever can do it in fewer milliseconds on this card."""
    return roof_ms(kernel.bytes, kernel.flop, kernel.dtype, card)


_ADD = 1 << 27  # elements
_ROWS, _COLUMNS = 4096, 16384
_N = 4096  # of square matrices
_HEADS, _T, _D = 16, 4096, 64
_HALF = "bfloat16"
_PLANE = 2 * _ROWS * _COLUMNS  # bytes of a matrix of rows in bfloat16
_HEAD = 2 * _T * _D  # bytes of one head of q, k, v or o


def _vectors(count: int) -> Callable[[int], tuple[Tensor, ...]]:
    return lambda n: (Tensor((n,)),) * count


def _rows(weights: int) -> Callable[[int], tuple[Tensor, ...]]:
    row = (Tensor((_COLUMNS,), _HALF),)
    return lambda n: (Tensor((n, _COLUMNS), _HALF), *row * weights)


def _matrices(k: int) -> tuple[Tensor, ...]:
    return Tensor((_N, k), _HALF), Tensor((k, _N), _HALF)


def _biased(k: int) -> tuple[Tensor, ...]:
    return *_matrices(k), Tensor((_N,), _HALF)


def _heads(share: int) -> Callable[[int], tuple[Tensor, ...]]:
    """q with all heads, k and v with one in ``share``."""

    def tensors(kv: int) -> tuple[Tensor, ...]:
        q, k = (Tensor((1, heads, _T, _D), _HALF) for heads in (kv * share, kv))
        return q, k, k

    return tensors


def _softmax_row(id: str, name: str, label: str, planes: int, **more) -> CourseKernel:
    more = {"unchecked": ("eager",), "rivals": ("eager", "compile", "torch")} | more
    return CourseKernel(id, name, label, _rows(0), _ROWS, 128, planes * _PLANE, **more)


def _norm_row(id: str, name: str, label: str, weights: int, **more) -> CourseKernel:
    nbytes = more.pop("planes", 2) * _PLANE
    return CourseKernel(
        id, name, label, _rows(weights), _ROWS, 128, nbytes, ("eager", "compile", "torch"), **more
    )


def _matmul_row(id: str, name: str, label: str, **more) -> CourseKernel:
    more = {"tensors": _matrices, "rivals": ("cuBLAS",), "atol": math.sqrt(_N) / 128} | more
    about = dict(size=_N, part=32, slices=True, flop=2 * _N**3, dtype=_HALF, band=(0.35, 0.7))
    return CourseKernel(id, name, label, bytes=3 * 2 * _N * _N, **about, **more)


def _flash_row(
    id: str, name: str, label: str, share: int = 1, causal: bool = True, **more
) -> CourseKernel:
    products, planes = (5, 8) if more.get("backward") else (2, 4)
    shared = planes // 2 * (_HEADS + _HEADS // share) * _HEAD  # q and o whole, k and v a share
    about = dict(
        # Two operations a number of each product, for all pairs of query and key or half of them.
        flop=products * 2 * _HEADS * _D * _T * _T // (2 if causal else 1),
        dtype=_HALF,
        band=(0.3, 0.55),
        rivals=("eager", "FlashAttention-2", "cuDNN"),
        call=lambda function: lambda q, k, v: function(q, k, v, causal)[0],
        atol=1e-2,
        unchecked=("eager",),
    )
    return CourseKernel(
        id, name, label, _heads(share), _HEADS // share, 1, shared, **(about | more)
    )


KERNELS: tuple[CourseKernel, ...] = (
    CourseKernel(
        "02.add", "add", "add", _vectors(2), _ADD, 1 << 18, 12 * _ADD, ("compile", "torch")
    ),
    CourseKernel(
        *("02.fma_relu", "fma_relu", "fma_relu", _vectors(3), _ADD, 1 << 18, 16 * _ADD),
        rivals=("compile", "torch"),
    ),
    _softmax_row("03.softmax", "triton_softmax", "softmax", 2),
    _softmax_row(
        *("03.softmax_backward", "triton_softmax", "softmax backward", 3),
        backward=True,
        rivals=("torch",),
        atol=1e-5,
    ),
    _softmax_row(
        *("03.softmax_long", "softmax_long", "softmax, long rows", 2),
        call=lambda function: lambda x: function(x, 2048),
    ),
    _norm_row("04.rmsnorm", "rmsnorm", "RMSNorm", 1),
    _norm_row("04.layernorm", "layernorm", "LayerNorm", 2),
    _norm_row(
        *("04.rmsnorm_backward", "TritonRMSNorm", "RMSNorm backward", 1),
        planes=3,
        backward=True,
        band=(0.3, 0.9),  # sums of dw by atomics
        call=lambda function: lambda x, w: function.apply(x, w, 1e-6),
        atol=0.25,  # dw sums 4096 rows, in another order
    ),
    _matmul_row("05.matmul", "matmul", "matmul"),
    _matmul_row("05.grouping", "matmul", "matmul, grouped"),
    _matmul_row(
        *("05.matmul_bias_gelu", "matmul_bias_gelu", "matmul, bias, GELU"),
        tensors=_biased,
        rivals=("compile", "torch"),
    ),
    _flash_row("06.flash_strong", "flash_attention", "flash, not causal", causal=False),
    _flash_row("06.flash_boss", "flash_attention", "flash, causal"),
    _flash_row(
        *("06.flash_backward", "FlashAttention", "flash backward"),
        backward=True,
        band=(0.2, 0.4),
        call=lambda function: lambda q, k, v: function.apply(q, k, v, True),
        rivals=("FlashAttention-2", "cuDNN"),
        atol=5e-2,
    ),
    _flash_row(
        *("06.flash_gqa", "flash_attention", "flash, grouped heads", 4),
        rivals=("FlashAttention-2", "cuDNN"),
    ),
)
