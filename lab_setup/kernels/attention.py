"""FlashAttention: softmax(q kᵀ / √D) v block by block, the form that runs on every card.

After Tri Dao, *FlashAttention-2* (2023). Beside the course's solution: powers of two with the scale
folded into the exponent, full blocks without masks before the blocks that need one, and the
programs with the longest rows first.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl

from lab_setup.kernels import attention_backward, attention_hopper, dispatch
from lab_setup.kernels.attention_shared import (
    LN2,
    buffers,
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

__all__ = ["KINDS", "FlashAttention", "flash_attention", "forward"]

KINDS = ("pointers", "descriptors", "specialised")


@triton.jit
def _blocks(
    acc, total, top, q, k_ptr, v_ptr, skt, svt, rows, start, end, T, scale,
    D: tl.constexpr, BLOCK_N: tl.constexpr,
    CAUSAL: tl.constexpr, MASKED: tl.constexpr, EVEN: tl.constexpr,
):  # fmt: skip
    dims = tl.arange(0, D)
    for at in tl.range(start, end, BLOCK_N):
        # Addresses anew in each step, from 32-bit offsets: blocks of pointers that are moved along
        # take four registers a number of a tile for nothing (7 % at T = 8192 on an H200).
        columns = at + tl.arange(0, BLOCK_N)
        k_ptrs = k_ptr + columns[None, :] * skt + dims[:, None]
        v_ptrs = v_ptr + columns[:, None] * svt + dims[None, :]
        if MASKED and not EVEN:
            k = tl.load(k_ptrs, mask=columns[None, :] < T, other=0.0)
        else:
            k = tl.load(k_ptrs)
        s = tl.dot(q, k)
        if MASKED:
            s = seen(s, rows, at, T, BLOCK_N, CAUSAL)
        if MASKED and not EVEN:
            v = tl.load(v_ptrs, mask=columns[:, None] < T, other=0.0)
        else:
            v = tl.load(v_ptrs)
        acc, total, top = online_softmax(acc, total, top, s, v, scale)
    return acc, total, top


def _shared(options: dict[str, Any]) -> int:
    """q, and as many blocks of k and v as loads are under way."""
    rows = options["BLOCK_M"] + 2 * options["BLOCK_N"] * buffers(options["num_stages"])
    return rows * options["D"] * options["q_ptr"].element_size()


def _worth_trying(options: dict[str, Any]) -> bool:
    """With more than 64 sums a thread registers spill; two stages are for small shared memory."""
    deep = options["num_stages"] == 3 or not dispatch.hopper()
    return deep and options["BLOCK_M"] * options["D"] <= 2048 * options["num_warps"]


@tuned(
    configs=configs(
        (64, 64, 4, 3), (128, 64, 4, 3), (64, 64, 4, 2), (128, 64, 8, 2), (128, 32, 4, 2),
        (64, 32, 4, 2),
    ),
    prune_configs_by=keeping(_worth_trying, _shared),
)  # fmt: skip
@triton.jit(do_not_specialize=["together", "LENGTH"])
def forward_kernel(
    q_ptr, k_ptr, v_ptr, o_ptr, lse_ptr, sqb, sqh, sqt, skb, skh, skt, svb, svh, svt,
    H, pairs, T, scale, unit, together, LENGTH,
    D: tl.constexpr, CAUSAL: tl.constexpr, EVEN: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    """o and lse for BLOCK_M queries of one of ``pairs`` heads; ``unit``: of lse, ln 2 makes it
    natural. EVEN promises that blocks divide T. LENGTH only tells the tuner what is alike."""
    block, pair = place(pairs, tl.cdiv(T, BLOCK_M), together, CAUSAL)
    batch = (pair // H).to(tl.int64)
    head = (pair % H).to(tl.int64)
    q_ptr += batch * sqb + head * sqh
    k_ptr += batch * skb + head * skh
    v_ptr += batch * svb + head * svh
    rows = block * BLOCK_M + tl.arange(0, BLOCK_M)
    dims = tl.arange(0, D)
    inside = rows < T
    q_ptrs = q_ptr + rows[:, None] * sqt + dims[None, :]
    if EVEN:
        q = tl.load(q_ptrs)
    else:
        q = tl.load(q_ptrs, mask=inside[:, None], other=0.0)
    top = tl.full((BLOCK_M,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, D), tl.float32)
    if CAUSAL:
        full = block * BLOCK_M // BLOCK_N * BLOCK_N  # up to here every query sees every key
        end = tl.minimum((block + 1) * BLOCK_M, T)
    else:
        full = T // BLOCK_N * BLOCK_N
        end = T
    acc, total, top = _blocks(
        acc, total, top, q, k_ptr, v_ptr, skt, svt, rows, 0, full, T, scale,
        D, BLOCK_N, CAUSAL, False, EVEN,
    )  # fmt: skip
    if CAUSAL or not EVEN:
        acc, total, top = _blocks(
            acc, total, top, q, k_ptr, v_ptr, skt, svt, rows, full, end, T, scale,
            D, BLOCK_N, CAUSAL, True, EVEN,
        )  # fmt: skip
    at = pair.to(tl.int64) * T + rows
    o = (acc / total[:, None]).to(o_ptr.dtype.element_ty)
    o_ptrs = o_ptr + at[:, None] * D + dims[None, :]
    lse = (top + tl.log2(total)) * unit
    if EVEN:
        tl.store(o_ptrs, o)
        tl.store(lse_ptr + at, lse)
    else:
        tl.store(o_ptrs, o, mask=inside[:, None])
        tl.store(lse_ptr + at, lse, mask=inside)


def flash_attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool = True
) -> tuple[torch.Tensor, torch.Tensor]:
    """o = softmax(q kᵀ / √D) v, and lse, the natural logarithm of each query's sum of exponentials.

    q, k, v: (B, H, T, D) of one floating type, any strides, D one of 16, 32, 64, 128. With
    ``causal`` query i sees keys 0 … i. Returns o, as q and contiguous, and lse, (B, H, T) float32.
    Raises ValueError for shapes or types that do not go together.
    """
    return forward(q, k, v, causal)


def forward(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    causal: bool,
    unit: float = LN2,
    kind: str | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """``flash_attention`` with lse in another unit (1: base two), or by a kernel of KINDS."""
    _check(q, k, v)
    q, k, v = (_near(t) for t in (q, k, v))
    kind = kind or best_kind(q, k, v, causal)
    o = torch.empty(q.shape, dtype=q.dtype, device=q.device)
    lse = torch.empty(q.shape[:3], dtype=torch.float32, device=q.device)
    if kind == "pointers":
        _pointers(q, k, v, o, lse, causal, unit)
    else:
        attention_hopper.forward(q, k, v, o, lse, causal, unit, kind == "specialised")
    return o, lse


def _near(t: torch.Tensor) -> torch.Tensor:
    """``t``, copied where numbers of a row are apart or 32 bits do not reach through a head."""
    near = t.stride(-1) == 1 and t.shape[2] * t.stride(2) < 2**31
    return t if near else t.contiguous()


def best_kind(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool) -> str:
    """The fastest kernel that takes these tensors on this card, as measured on an H200."""
    t, d = q.shape[2:]
    plain = all(x.is_contiguous() for x in (q, k, v)) and q.element_size() == 2
    if not (dispatch.hopper() and plain and d >= 64):
        return "pointers"
    if causal and d == 64:
        return "pointers"
    # Couples of long causal rows no longer share what L2 holds.
    return (
        "specialised" if attention_hopper.whole(t) and (t < 8192 or not causal) else "descriptors"
    )


def _pointers(q, k, v, o, lse, causal: bool, unit: float) -> None:
    b, h, t, d = q.shape
    pairs = b * h
    forward_kernel[lambda meta: (triton.cdiv(t, meta["BLOCK_M"]) * pairs,)](
        q, k, v, o, lse, *q.stride()[:3], *k.stride()[:3], *v.stride()[:3],
        h, pairs, t, scale_of(d), unit, heads_in_l2(t, d, q.element_size()), length(t),
        D=d, CAUSAL=causal, EVEN=t % 128 == 0,
    )  # fmt: skip


def _check(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> None:
    if q.ndim != 4 or k.shape != q.shape or v.shape != q.shape or not q.numel():
        shapes = ", ".join(str(tuple(t.shape)) for t in (q, k, v))
        raise ValueError(f"q, k and v want one shape (B, H, T, D), none of them 0; given: {shapes}")
    if q.shape[3] not in (16, 32, 64, 128):
        raise ValueError(f"D, the last size, is 16, 32, 64 or 128, not {q.shape[3]}")
    if not q.dtype == k.dtype == v.dtype or not q.is_floating_point():
        raise ValueError(
            f"q, k and v want one floating type; given: {q.dtype}, {k.dtype}, {v.dtype}"
        )


class FlashAttention(torch.autograd.Function):
    """``FlashAttention.apply(q, k, v, causal)``: o, with gradients of q, k and v."""

    @staticmethod
    def forward(ctx, q, k, v, causal=True):
        o, lse2 = forward(q, k, v, causal, unit=1.0)
        ctx.save_for_backward(q, k, v, o, lse2)
        ctx.causal = causal
        return o

    @staticmethod
    def backward(ctx, do):
        return *attention_backward.backward(*ctx.saved_tensors, do, ctx.causal), None
