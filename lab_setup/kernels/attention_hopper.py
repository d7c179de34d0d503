"""FlashAttention forward for compute capability 9.0: tiles come by descriptor (TMA).

Two kernels: one program a block of rows, as in ``attention``; and a persistent one whose warps are
specialised (some load, the others compute), for lengths that its blocks divide.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

from lab_setup.kernels import dispatch
from lab_setup.kernels.attention_shared import (
    configs,
    heads_in_l2,
    keeping,
    length,
    online_softmax,
    place,
    scale_of,
    seen,
    tuned,
)

__all__ = ["by_head", "forward", "scratch", "set_tiles", "whole"]


def by_head(t: torch.Tensor) -> TensorDescriptor:
    """A contiguous (B, H, T, D) tensor as (B·H, T, D): no tile reaches into another head."""
    b, h, n, d = t.shape
    return TensorDescriptor(t, [b * h, n, d], [n * d, d, 1], [1, 16, d])


def scratch(size: int, alignment: int, stream: int | None) -> torch.Tensor:
    """Memory of the card in which a kernel keeps the descriptors that it makes itself."""
    return torch.empty((size,), dtype=torch.int8, device="cuda")


def set_tiles(arguments: dict[str, Any]) -> None:
    """Tiles as a config wants them: descriptors are made before the tuner chooses."""
    for names, block in ((("q", "o", "do", "dq"), "BLOCK_M"), (("k", "v", "dk", "dv"), "BLOCK_N")):
        for name in names:
            if name in arguments:
                arguments[name].block_shape = [1, arguments[block], arguments["D"]]


@triton.jit
def _blocks(
    acc, total, top, q, k_desc, v_desc, head, rows, start, end, T, scale,
    D: tl.constexpr, BLOCK_N: tl.constexpr, CAUSAL: tl.constexpr, MASKED: tl.constexpr,
):  # fmt: skip
    for at in tl.range(start, end, BLOCK_N):
        k = k_desc.load([head, at, 0]).reshape([BLOCK_N, D])
        s = tl.dot(q, k.T)
        if MASKED:
            s = seen(s, rows, at, T, BLOCK_N, CAUSAL)
        v = v_desc.load([head, at, 0]).reshape([BLOCK_N, D])
        acc, total, top = online_softmax(acc, total, top, s, v, scale)
    return acc, total, top


@tuned(
    configs=configs(
        (64, 64, 4, 3), (128, 64, 4, 2), (64, 128, 4, 2), (128, 64, 8, 3), pre_hook=set_tiles
    ),
    # Each of the first two was the best at D = 128 for some length, the others never.
    prune_configs_by=keeping(lambda o: o["D"] == 64 or o["num_warps"] * o["BLOCK_N"] == 256),
)  # fmt: skip
@triton.jit(do_not_specialize=["together", "LENGTH"])
def descriptor_kernel(
    q, k, v, o, lse_ptr, pairs, T, scale, unit, together, LENGTH,
    D: tl.constexpr, CAUSAL: tl.constexpr, EVEN: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    """As ``attention.forward_kernel``. Beyond the last row TMA gives zeros and stores nothing."""
    block, head = place(pairs, tl.cdiv(T, BLOCK_M), together, CAUSAL)
    rows = block * BLOCK_M + tl.arange(0, BLOCK_M)
    q_tile = q.load([head, block * BLOCK_M, 0]).reshape([BLOCK_M, D])
    top = tl.full((BLOCK_M,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, D), tl.float32)
    if CAUSAL:
        full = block * BLOCK_M // BLOCK_N * BLOCK_N
        end = tl.minimum((block + 1) * BLOCK_M, T)
    else:
        full = T // BLOCK_N * BLOCK_N
        end = T
    acc, total, top = _blocks(
        acc, total, top, q_tile, k, v, head, rows, 0, full, T, scale, D, BLOCK_N, CAUSAL, False
    )
    if CAUSAL or not EVEN:
        acc, total, top = _blocks(
            acc, total, top, q_tile, k, v, head, rows, full, end, T, scale,
            D, BLOCK_N, CAUSAL, True,
        )  # fmt: skip
    tile = (acc / total[:, None]).to(o.dtype).reshape([1, BLOCK_M, D])
    o.store([head, block * BLOCK_M, 0], tile)
    at = head.to(tl.int64) * T + rows
    tl.store(lse_ptr + at, (top + tl.log2(total)) * unit, mask=rows < T)


@tuned(
    configs=configs((128, 256, 4, 2), (128, 128, 4, 2)),
    # Tiles of 128 × 256 pay for D = 64 without the causal mask alone, and there always.
    prune_configs_by=keeping(lambda o: (o["BLOCK_N"] == 256) == (o["D"] == 64 and not o["CAUSAL"])),
)
@triton.jit(do_not_specialize=["LENGTH"])
def specialised_kernel(
    q_ptr, k_ptr, v_ptr, o_ptr, lse_ptr, pairs, T, scale, unit, LENGTH,
    D: tl.constexpr, CAUSAL: tl.constexpr, EVEN: tl.constexpr, PROGRAMS: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    """Persistent: PROGRAMS programs take couples of blocks, one after the other.

    A couple is a block of rows from the front and its counterpart from the end, so that under the
    causal mask every couple is the same work. Triton 3.6 specialises one loop, of 4 warps, over
    descriptors that the kernel makes: hence a mask in every step, and one loop over couples and
    halves. ``whole(T)`` is asked for.
    """
    q = tl.make_tensor_descriptor(q_ptr, [pairs * T, D], [D, 1], [BLOCK_M, D])
    k = tl.make_tensor_descriptor(k_ptr, [pairs * T, D], [D, 1], [BLOCK_N, D])
    v = tl.make_tensor_descriptor(v_ptr, [pairs * T, D], [D, 1], [BLOCK_N, D])
    o = tl.make_tensor_descriptor(o_ptr, [pairs * T, D], [D, 1], [BLOCK_M, D])
    blocks = T // BLOCK_M
    half = blocks // 2
    start = tl.program_id(0)
    couples = tl.cdiv(pairs * half - start, PROGRAMS)
    for step in tl.range(0, 2 * couples, 1, warp_specialize=True):
        couple = start + step // 2 * PROGRAMS
        head = couple // half
        front = couple % half
        late = step % 2
        block = late * front + (1 - late) * (blocks - 1 - front)
        before = head * T
        q_tile = q.load([before + block * BLOCK_M, 0])
        rows = block * BLOCK_M + tl.arange(0, BLOCK_M)
        top = tl.full((BLOCK_M,), -float("inf"), tl.float32)
        total = tl.zeros((BLOCK_M,), tl.float32)
        acc = tl.zeros((BLOCK_M, D), tl.float32)
        end = T
        if CAUSAL:
            end = (block + 1) * BLOCK_M
        for at in tl.range(0, end, BLOCK_N):
            k_tile = k.load([before + at, 0])
            s = tl.dot(q_tile, k_tile.T)
            if CAUSAL:
                s = tl.where(
                    tl.arange(0, BLOCK_N)[None, :] <= (rows - at)[:, None], s, -float("inf")
                )
            new_top = tl.maximum(top, tl.max(s, 1) * scale)
            p = tl.exp2(s * scale - new_top[:, None])
            shrink = tl.exp2(top - new_top)
            here = tl.sum(p, 1)
            acc = acc * shrink[:, None]
            v_tile = v.load([before + at, 0])
            acc = tl.dot(p.to(v_tile.dtype), v_tile, acc)
            total = total * shrink + here
            top = new_top
        tl.store(lse_ptr + before + rows, (top + tl.log2(total)) * unit)
        o.store([before + block * BLOCK_M, 0], (acc / total[:, None]).to(o.dtype))


def whole(t: int) -> bool:
    """Whether the persistent kernel takes a length: its blocks, and couples of them, divide it."""
    return t % 256 == 0


def forward(q, k, v, o, lse, causal: bool, unit: float, specialised: bool) -> None:
    """Fills o and lse, on compute capability 9.0, for contiguous tensors of a 16-bit type.

    Raises ValueError where the specialised kernel is asked for a T that 256 does not divide.
    """
    b, h, t, d = q.shape
    pairs = b * h
    numbers = (pairs, t, scale_of(d), unit)
    constants = {"D": d, "CAUSAL": causal, "EVEN": t % 128 == 0}
    if not specialised:
        tiles = (by_head(x) for x in (q, k, v, o))
        descriptor_kernel[lambda meta: (triton.cdiv(t, meta["BLOCK_M"]) * pairs,)](
            *tiles, lse, *numbers, heads_in_l2(t, d, 2), length(t), **constants
        )
        return
    if not whole(t):
        raise ValueError(f"the specialised kernel takes multiples of 256 as T, not {t}")
    triton.set_allocator(scratch)
    programs = dispatch.sms()
    specialised_kernel[lambda meta: (min(programs, pairs * (t // meta["BLOCK_M"] // 2)),)](
        q, k, v, o, lse, *numbers, length(t), PROGRAMS=programs, **constants
    )
