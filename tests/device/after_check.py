"""On a card: recording a kernel leaves its object as it was, so launching it afterwards works.

`python -m tests.device.after_check` records and then launches, in one process: a plain kernel, an
autotuned one (which must still tune), one whose constexpr global changes in between (which Triton
refuses once it remembers the old value), and the other order. Needs a GPU; nothing here runs in CI.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from autograder.records import Tensor
from autograder.trace.record import record

SCALE = tl.constexpr(2.0)
CONFIGS = [triton.Config({"BLOCK": block}, num_warps=4) for block in (256, 512, 1024)]


@triton.jit
def times(x):
    return x * SCALE


@triton.jit
def scale_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out_ptr + offsets, times(tl.load(x_ptr + offsets, mask=mask)), mask=mask)


tuned_kernel = triton.autotune(CONFIGS, key=["n"])(triton.jit(scale_kernel.fn))


def plain(x):
    out = torch.empty_like(x)
    scale_kernel[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](
        x, out, x.numel(), BLOCK=1024
    )
    return out


def tuned(x):
    out = torch.empty_like(x)
    tuned_kernel[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, out, x.numel())
    return out


def main() -> None:
    global SCALE
    x = torch.randn(98_432, device="cuda")
    geometry = (Tensor((98_432,)),)
    record(plain, geometry)
    SCALE = tl.constexpr(3.0)  # after recording, before the first compilation
    assert torch.equal(plain(x), x * 3)
    configs = record(tuned, geometry, config=2).configs
    assert configs == 3 and not tuned_kernel.cache
    assert torch.equal(tuned(x), x * 3)
    assert len(tuned_kernel.cache) == 1, "tuning did not happen"
    compiled = len(scale_kernel.device_caches[0][0])
    again = record(plain, geometry)
    assert "3.0" in again.kernels[0].ir or "3.000000" in again.kernels[0].ir
    assert len(scale_kernel.device_caches[0][0]) == compiled
    assert torch.equal(plain(x), x * 3) and torch.equal(tuned(x), x * 3)
    print(f"launching after recording works: {torch.cuda.get_device_name()}, {triton.__version__}")


if __name__ == "__main__":
    main()
