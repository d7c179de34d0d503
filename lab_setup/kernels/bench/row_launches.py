"""The memory-bound kernels with every config that a card would try, to compile without one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from lab_setup.kernels import add as adding
from lab_setup.kernels import fp8, rmsnorm, softmax
from lab_setup.kernels.bench import row_steps as steps
from lab_setup.kernels.bench.launching import tries_of
from lab_setup.kernels.bench.row_rivals import EPS
from lab_setup.kernels.bench.row_tasks import COLUMNS, F8, NUMBERS, SMALL
from lab_setup.kernels.bench.tasks import Launch
from lab_setup.kernels.dispatch import named, of_capability

__all__ = ["launches"]


def _meta(*shape: int, dtype: torch.dtype = torch.bfloat16) -> torch.Tensor:
    return torch.empty(shape, device="meta", dtype=dtype)


def launches(cc: int) -> Iterator[Launch]:
    """Every kernel with every config that a card of this compute capability would try."""
    with named(of_capability(cc)):
        found = [*_add_launches(), *_row_launches()]
        found += _fp8_launches() if cc >= 89 else []
    yield from found


def _tuned(label: str, tuner: Any, args: tuple, needs: int = 80, **options) -> Iterator[Launch]:
    """A launch for each config that tuning would try, of the bare kernel."""
    for one in tries_of(tuner, args, options):
        config, made = one.config, one.launch
        numbers = " ".join(f"{name}={value}" for name, value in config.kwargs.items())
        about = f"{numbers} warps={config.num_warps} stages={config.num_stages}"
        yield Launch(f"{label}: {about}", made.kernel, made.args, made.options, needs)


def _add_launches() -> Iterator[Launch]:
    vector = _meta(1 << 27, dtype=torch.float32)
    yield from _tuned("add", adding.add_kernel, (vector, vector, vector, 1 << 27))
    small = (vector, vector, vector, SMALL)
    yield Launch("small", steps.small_kernel, small, {"BLOCK": 1024})


def _row_launches() -> Iterator[Launch]:
    for n in COLUMNS:
        rows = NUMBERS // n
        x, w = _meta(rows, n), _meta(n)
        r = _meta(rows, dtype=torch.float32)
        sums, used = _meta(64, n, dtype=torch.float32), _meta(1, dtype=torch.int32)
        shape = (rows, n)
        kernels = {
            "softmax": (softmax.softmax_forward_kernel, (x, x, n, n, *shape)),
            "RMSNorm": (rmsnorm.rmsnorm_forward_kernel, (x, w, x, r, n, *shape, EPS)),
            "RMSNorm backward": (
                *(rmsnorm.rmsnorm_backward_kernel,),
                (x, w, r, x, x, sums, used, n, n, *shape, 0),
            ),
        }
        if n <= softmax.LONG:
            backward = softmax.softmax_backward_kernel, (x, x, x, n, n, n, *shape)
            kernels["softmax backward"] = backward
        else:
            args = (x, x, x, n, n, n, n)
            kernel = softmax.softmax_backward_long_kernel
            yield from _tuned(f"softmax backward, {n}", kernel, args)
        for label, (kernel, args) in kernels.items():
            yield from _tuned(f"{label}, {n}", kernel, args, BLOCK=n)
        columns = 8 if n <= 1024 else 32
        sizes = {"BLOCK_ROWS": 4096 // columns, "BLOCK_COLS": columns, "num_warps": 8}
        yield Launch(f"sum of dw, {n}", rmsnorm.rmsnorm_reduce_kernel, (sums, used, w, n), sizes)
        plain = {"BLOCK_SIZE": n, "num_warps": steps.warps_of(n)}
        yield Launch(f"plain softmax, {n}", steps.plain_softmax_kernel, (x, x, n, n, n), plain)
        args = (x, w, r, x, x, _meta(n, dtype=torch.float32), n, n)
        yield Launch(
            f"plain RMSNorm backward, {n}", steps.plain_norm_kernel, args, {"BLOCK_SIZE": n}
        )


def _fp8_launches() -> Iterator[Launch]:
    scale = _meta(1, dtype=torch.float32)
    for n in (4096, 8192):
        for m in (1, 16, 64):
            a, b = _meta(m, n, dtype=F8), _meta(n, n, dtype=F8)
            args = (a, b, _meta(m, n), scale, scale, m, n, n, n, n)
            sizes = {"BLOCK_M": fp8.rows_of(m), "SPLIT_K": 1}
            yield from _tuned(f"fp8, {m} × {n}", fp8.fp8_gemm_kernel, args, needs=89, **sizes)
    parts, out = _meta(4, 16, 4096, dtype=torch.float32), _meta(16, 4096)
    split = (parts, out, scale, scale, 16 * 4096)
    yield Launch(
        "fp8, sum of 4 parts", fp8.fp8_reduce_kernel, split, {"SPLIT_K": 4, "BLOCK": 256}, 89
    )
    a, b = _meta(16, 4096, dtype=F8), _meta(4096, 4096, dtype=F8)
    args = (a, b, parts, scale, scale, 16, 4096, 4096, 4096, 4096)
    yield from _tuned("fp8, in 4 parts", fp8.fp8_gemm_kernel, args, 89, BLOCK_M=16, SPLIT_K=4)
