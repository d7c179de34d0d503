"""One card under test, for the doctor: a Triton kernel compiles and runs, and how fast it copies.

Run in a process of its own with one card in ``CUDA_VISIBLE_DEVICES``; prints JSON: ``gbs``, GB/s
(10^9 bytes) read and written by a copy of 1 GiB, and ``sheet``, the data sheet's or null.
"""

from __future__ import annotations

import json

import torch
import triton
import triton.language as tl

from autograder.ir.cards import card
from lab_setup.gpulock import hold
from lab_setup.gpus import current

_BYTES = 1 << 30


@triton.jit
def copy_kernel(source, target, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(target + offsets, tl.load(source + offsets, mask=mask, other=0.0), mask=mask)


def copy(source: torch.Tensor, target: torch.Tensor) -> None:
    """Launches the copy of a contiguous tensor, 4 bytes an element, on a card."""
    n = source.numel()
    copy_kernel[(triton.cdiv(n, 4096),)](source, target, n, BLOCK=4096, num_warps=8)


def main() -> None:
    source = torch.rand(_BYTES // 4, device="cuda")
    target = torch.full_like(source, float("nan"))
    copy(source, target)
    torch.testing.assert_close(target, source, rtol=0, atol=0)
    with hold(current(), tell=lambda text: None):
        ms = triton.testing.do_bench(
            lambda: copy(source, target), warmup=50, rep=200, return_mode="median"
        )
    try:
        sheet = card(torch.cuda.get_device_name()).bandwidth
    except ValueError:
        sheet = None
    print(json.dumps({"gbs": 2 * _BYTES / ms / 1e6, "sheet": sheet}))


if __name__ == "__main__":
    main()
