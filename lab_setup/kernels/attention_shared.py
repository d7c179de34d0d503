"""What the attention kernels share: the order of programs, a step of the online softmax, tuning."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import triton
import triton.language as tl

from lab_setup.kernels import dispatch

__all__ = [
    "LN2",
    "buffers",
    "configs",
    "dkdv_step",
    "dq_step",
    "heads_in_l2",
    "keeping",
    "length",
    "online_softmax",
    "place",
    "scale_of",
    "seen",
    "tuned",
]

LN2 = math.log(2)


@triton.jit
def place(pairs, blocks, together, CAUSAL: tl.constexpr):
    """Which block of rows of which head is this program's: (block, head).

    Causal rows differ in work: the last block sees all keys. Programs start in the order of their
    ids, so the long ones come first and the short ones fill the gaps at the end. ``together`` heads
    advance side by side, as many as keep their keys and values in L2.
    """
    program = tl.program_id(0)
    block = program % blocks
    head = program // blocks
    if CAUSAL:
        first = program // (together * blocks) * together
        heads = tl.minimum(pairs - first, together)
        within = program - first * blocks
        block = blocks - 1 - within // heads
        head = first + within % heads
    return block, head


@triton.jit
def online_softmax(acc, total, top, s, v, scale):
    """One step: scores ``s`` of a block of keys with values ``v``; ``scale`` is log₂e / √D."""
    new_top = tl.maximum(top, tl.max(s, 1) * scale)
    p = tl.exp2(s * scale - new_top[:, None])  # one multiply-add and one exp2 an element
    shrink = tl.exp2(top - new_top)
    total = total * shrink + tl.sum(p, 1)
    acc = tl.dot(p.to(v.dtype), v, acc * shrink[:, None])
    return acc, total, new_top


@triton.jit
def seen(s, rows, start, T, BLOCK_N: tl.constexpr, CAUSAL: tl.constexpr):
    """Scores with minus infinity where a query may not look: after itself, or beyond the end."""
    columns = tl.arange(0, BLOCK_N)[None, :]
    if CAUSAL:
        return tl.where(columns <= (tl.minimum(rows, T - 1) - start)[:, None], s, -float("inf"))
    else:
        return tl.where(columns < T - start, s, -float("inf"))


def buffers(num_stages: int) -> int:
    """How many tiles of one tensor a pipelined loop keeps in shared memory. On compute capability
    9.0 tensor cores read there while the next tile arrives, so it is one more."""
    return num_stages if dispatch.hopper() else max(1, num_stages - 1)


def configs(
    *rows: tuple[int, int, int, int], pre_hook: Any = None, **constants: Any
) -> list[triton.Config]:
    """Configs of (BLOCK_M, BLOCK_N, num_warps, num_stages), all with these constants."""
    return [
        triton.Config(
            {"BLOCK_M": m, "BLOCK_N": n, **constants},
            num_warps=warps,
            num_stages=stages,
            pre_hook=pre_hook,
        )
        for m, n, warps, stages in rows
    ]


def keeping(
    wanted: Callable[[dict[str, Any]], bool],
    shared_of: Callable[[dict[str, Any]], int] | None = None,
) -> dict[str, Callable[..., list]]:
    """For ``prune_configs_by``: configs that ``wanted`` takes and that the card can hold."""

    def prune(choice: list, arguments: dict[str, Any], **options: Any) -> list:
        choice = [c for c in choice if wanted({**arguments, **options, **c.all_kwargs()})]
        return dispatch.fitting(shared_of)(choice, arguments, **options) if shared_of else choice

    return {"early_config_prune": prune}


tuned = partial(
    triton.autotune,
    key=["LENGTH", "D", "CAUSAL", "EVEN"],
    do_bench=partial(triton.testing.do_bench, warmup=10, rep=100),
)


def scale_of(d: int) -> float:
    """log₂e / √D: with it, a power of two is the exponential of a scaled score."""
    return 1 / (LN2 * math.sqrt(d))


def heads_in_l2(t: int, d: int, itemsize: int) -> int:
    """How many heads' keys and values take 25 MB, about half of the L2 cache of an H200."""
    return max(1, 25_000_000 // (2 * t * d * itemsize))


def length(t: int) -> int:
    """T up to the next power of two: what the tuner takes for the same."""
    return triton.next_power_of_2(t)


@triton.jit
def dkdv_step(dk, dv, k, v, q, do, lse, delta, ahead, scale, MASKED: tl.constexpr):
    """What a block of queries adds to dk and dv of a block of keys, all transposed: keys by rows.

    ``ahead``: by how many places each key is after the first query, for the causal mask.
    """
    s = tl.dot(k, tl.trans(q))
    p = tl.exp2(s * scale - lse[None, :])
    if MASKED:
        p = tl.where(tl.arange(0, q.shape[0])[None, :] >= ahead[:, None], p, 0.0)
    dv = tl.dot(p.to(do.dtype), do, dv)
    dp = tl.dot(v, tl.trans(do))
    ds = (p * (dp - delta[None, :])).to(q.dtype)
    dk = tl.dot(ds, q, dk)
    return dk, dv


@triton.jit
def dq_step(
    dq, q, do, k, v, lse, delta, rows, start, T, scale, CAUSAL: tl.constexpr, MASKED: tl.constexpr
):
    """What the block of keys from ``start`` on adds to dq of a block of queries."""
    s = tl.dot(q, tl.trans(k)) * scale
    if MASKED:
        s = seen(s, rows, start, T, k.shape[0], CAUSAL)
    p = tl.exp2(s - lse[:, None])
    dp = tl.dot(do, tl.trans(v))
    ds = (p * (dp - delta[:, None])).to(k.dtype)
    return tl.dot(ds, k, dq)
