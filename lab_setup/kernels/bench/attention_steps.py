"""The ladder of FlashAttention: the course's solution, and one change after the other."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
import triton
import triton.language as tl

from lab_setup.kernels.attention_shared import LN2, heads_in_l2, place

__all__ = ["step"]


@triton.jit(do_not_specialize=["together"])
def step_kernel(
    q_ptr, k_ptr, v_ptr, o_ptr, lse_ptr,
    sqb, sqh, sqt, sqd, skb, skh, skt, skd, svb, svh, svt, svd,
    H, pairs, T, scale, together,
    D: tl.constexpr, CAUSAL: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
    EXP2: tl.constexpr, BOUNDS: tl.constexpr, SPLIT: tl.constexpr, ORDERED: tl.constexpr,
):  # fmt: skip
    """Without EXP2, SPLIT and ORDERED and with BOUNDS: the solution of 06.flash_boss."""
    block, pair = tl.program_id(0), tl.program_id(1)
    if ORDERED:
        block, pair = place(pairs, tl.cdiv(T, BLOCK_M), together, CAUSAL)
    batch, head = pair // H, pair % H
    rows, dims = block * BLOCK_M + tl.arange(0, BLOCK_M), tl.arange(0, D)
    q_ptr += batch * sqb + head * sqh
    k_ptr += batch * skb + head * skh
    v_ptr += batch * svb + head * svh
    q_ptrs = q_ptr + rows[:, None] * sqt + dims[None, :] * sqd
    q = tl.load(q_ptrs, mask=rows[:, None] < T, other=0.0)
    m = tl.full((BLOCK_M,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, D), tl.float32)
    end = min((block + 1) * BLOCK_M, T) if CAUSAL else T
    full = block * BLOCK_M // BLOCK_N * BLOCK_N if CAUSAL else T  # every query sees these keys
    for part in tl.static_range(2 if SPLIT else 1):
        for start in range(full if part else 0, full if SPLIT and not part else end, BLOCK_N):
            cols = start + tl.arange(0, BLOCK_N)
            k_ptrs = k_ptr + cols[None, :] * skt + dims[:, None] * skd
            v_ptrs = v_ptr + cols[:, None] * svt + dims[None, :] * svd
            if BOUNDS:
                k = tl.load(k_ptrs, mask=cols[None, :] < T, other=0.0)
                v = tl.load(v_ptrs, mask=cols[:, None] < T, other=0.0)
            else:
                k = tl.load(k_ptrs)
                v = tl.load(v_ptrs)
            s = tl.dot(q, k)
            if not EXP2:
                s = s * scale
            if BOUNDS:
                seen = cols[None, :] < T
                if CAUSAL:
                    seen = seen & (cols[None, :] <= rows[:, None])
                s = tl.where(seen, s, -float("inf"))
            elif CAUSAL and (part or not SPLIT):
                s = tl.where(cols[None, :] <= rows[:, None], s, -float("inf"))
            if EXP2:
                new_m = tl.maximum(m, tl.max(s, axis=1) * scale)
                p = tl.exp2(s * scale - new_m[:, None])
                shrink = tl.exp2(m - new_m)
            else:
                new_m = tl.maximum(m, tl.max(s, axis=1))
                p = tl.exp(s - new_m[:, None])
                shrink = tl.exp(m - new_m)
            total = total * shrink + tl.sum(p, axis=1)
            acc = tl.dot(p.to(v.dtype), v, acc * shrink[:, None])
            m = new_m
    at = pair * T + rows
    o = (acc / total[:, None]).to(o_ptr.dtype.element_ty)
    lse = (m + tl.log2(total)) * 0.6931471805599453 if EXP2 else m + tl.log(total)
    tl.store(o_ptr + at[:, None] * D + dims[None, :], o, mask=rows[:, None] < T)
    tl.store(lse_ptr + at, lse, mask=rows < T)


def step(
    exp2: bool = False,
    bounds: bool = True,
    split: bool = False,
    ordered: bool = False,
    cached: bool = False,
    causal: bool = True,
) -> Callable[..., Callable[[], torch.Tensor]]:
    """A Make with these changes to the course's solution, in its blocks of 64 × 64.

    Without ``bounds`` no key is masked off at the end of the sequence: T is a multiple of 64.
    ``ordered``: the longest rows first; ``cached``: of as many heads at once as fit L2.
    """

    def make(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> Callable[[], torch.Tensor]:
        b, h, t, d = q.shape
        if not bounds and t % 64:
            raise ValueError(f"without bounds T is a multiple of 64, not {t}")
        o = torch.empty(q.shape, dtype=q.dtype, device=q.device)
        lse = torch.empty((b, h, t), dtype=torch.float32, device=q.device)
        blocks = triton.cdiv(t, 64)
        grid = (blocks * b * h,) if ordered else (blocks, b * h)
        scale = 1 / (LN2 * math.sqrt(d)) if exp2 else d**-0.5
        together = heads_in_l2(t, d, q.element_size()) if cached else 1

        def run() -> torch.Tensor:
            step_kernel[grid](
                q, k, v, o, lse, *q.stride(), *k.stride(), *v.stride(),
                h, b * h, t, scale, together, D=d, CAUSAL=causal, BLOCK_M=64, BLOCK_N=64,
                EXP2=exp2, BOUNDS=bounds, SPLIT=split, ORDERED=ordered,
            )  # fmt: skip
            return o

        return run

    return make
