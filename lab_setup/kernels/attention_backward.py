"""FlashAttention backward: delta, then dk and dv by blocks of keys, then dq by blocks of queries.

After Tri Dao, *FlashAttention-2* (2023), section 3.1. With p = 2^(s · log₂e / √D − lse) and the
gradient do of o: delta = Σ o · do of a row, dv = pᵀ do, ds = p ∘ (do vᵀ − delta), dk = dsᵀ q / √D,
dq = ds k / √D. p is computed anew in both kernels, so nothing of size T × T is kept.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl

from lab_setup.kernels import attention_backward_hopper, dispatch
from lab_setup.kernels.attention_shared import (
    buffers,
    configs,
    dkdv_step,
    dq_step,
    heads_in_l2,
    length,
    place,
    scale_of,
    tuned,
)

__all__ = ["backward", "best_kind"]


@triton.jit
def delta_kernel(o_ptr, do_ptr, delta_ptr, n, D: tl.constexpr, BLOCK: tl.constexpr):
    """delta of ``n`` rows: Σ o · do, in float32."""
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    at = rows.to(tl.int64)[:, None] * D + tl.arange(0, D)[None, :]
    inside = rows < n
    o = tl.load(o_ptr + at, mask=inside[:, None], other=0.0).to(tl.float32)
    do = tl.load(do_ptr + at, mask=inside[:, None], other=0.0).to(tl.float32)
    tl.store(delta_ptr + rows, tl.sum(o * do, 1), mask=inside)


@triton.jit
def _load(ptrs, inside, other, EVEN: tl.constexpr):
    if EVEN:
        return tl.load(ptrs)
    else:
        return tl.load(ptrs, mask=inside, other=other)


@triton.jit
def _queries(
    dk, dv, k, v, q_ptr, do_ptr, lse_ptr, delta_ptr, sqt, columns, start, end, T, scale,
    D: tl.constexpr, BLOCK_M: tl.constexpr, MASKED: tl.constexpr, EVEN: tl.constexpr,
):  # fmt: skip
    lanes = tl.arange(0, BLOCK_M)
    dims = tl.arange(0, D)
    q_ptrs = q_ptr + (start + lanes)[:, None] * sqt + dims[None, :]
    do_ptrs = do_ptr + (start + lanes)[:, None] * D + dims[None, :]
    for at in tl.range(start, end, BLOCK_M):
        rows = at + lanes
        inside = rows < T
        q = _load(q_ptrs, inside[:, None], 0.0, EVEN)
        lse = _load(lse_ptr + rows, inside, float("inf"), EVEN)  # so that p is 0 beyond the end
        do = _load(do_ptrs, inside[:, None], 0.0, EVEN)
        delta = _load(delta_ptr + rows, inside, 0.0, EVEN)
        dk, dv = dkdv_step(dk, dv, k, v, q, do, lse, delta, columns - at, scale, MASKED)
        q_ptrs += BLOCK_M * sqt
        do_ptrs += BLOCK_M * D
    return dk, dv


def _shared(options: dict[str, Any]) -> int:
    """The program's own two tiles, as many pairs of tiles as are under way, and ds."""
    own, other = options["BLOCK_M"], options["BLOCK_N"]
    if "dk_ptr" in options:
        own, other = other, own
    rows = 2 * own + 2 * other * buffers(options["num_stages"])
    return (rows * options["D"] + own * other) * options["q_ptr"].element_size()


_fitting = {"early_config_prune": dispatch.fitting(_shared)}


@tuned(
    configs=configs(
        (64, 64, 8, 2), (32, 64, 4, 2), (64, 64, 4, 2), (128, 64, 8, 2), (64, 128, 8, 2)
    ),
    prune_configs_by=_fitting,
)  # fmt: skip
@triton.jit(do_not_specialize=["together", "LENGTH"])
def dkdv_kernel(
    q_ptr, k_ptr, v_ptr, do_ptr, dk_ptr, dv_ptr, lse_ptr, delta_ptr,
    sqb, sqh, sqt, skb, skh, skt, svb, svh, svt,
    H, pairs, T, scale, rescale, together, LENGTH,
    D: tl.constexpr, CAUSAL: tl.constexpr, EVEN: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    """dk and dv of BLOCK_N keys; ``rescale`` is 1/√D, lse has base two."""
    blocks = tl.cdiv(T, BLOCK_N)
    block, pair = place(pairs, blocks, together, CAUSAL)
    if CAUSAL:
        block = blocks - 1 - block  # the first keys are seen by all queries: the longest
    batch = (pair // H).to(tl.int64)
    head = (pair % H).to(tl.int64)
    q_ptr += batch * sqb + head * sqh
    before = pair.to(tl.int64) * T
    do_ptr += before * D
    lse_ptr += before
    delta_ptr += before
    columns = block * BLOCK_N + tl.arange(0, BLOCK_N)
    dims = tl.arange(0, D)
    inside = columns < T
    k_ptrs = k_ptr + batch * skb + head * skh + columns[:, None] * skt + dims[None, :]
    v_ptrs = v_ptr + batch * svb + head * svh + columns[:, None] * svt + dims[None, :]
    k = _load(k_ptrs, inside[:, None], 0.0, EVEN)
    v = _load(v_ptrs, inside[:, None], 0.0, EVEN)
    dk = tl.zeros((BLOCK_N, D), tl.float32)
    dv = tl.zeros((BLOCK_N, D), tl.float32)
    first = 0
    full = 0
    if CAUSAL:
        first = block * BLOCK_N // BLOCK_M * BLOCK_M
        full = tl.minimum(tl.cdiv((block + 1) * BLOCK_N, BLOCK_M), tl.cdiv(T, BLOCK_M)) * BLOCK_M
    dk, dv = _queries(
        dk, dv, k, v, q_ptr, do_ptr, lse_ptr, delta_ptr, sqt, columns, full, T, T, scale,
        D, BLOCK_M, False, EVEN,
    )  # fmt: skip
    if CAUSAL:  # the diagonal last, as attention_backward_hopper says
        dk, dv = _queries(
            dk, dv, k, v, q_ptr, do_ptr, lse_ptr, delta_ptr, sqt, columns, first, full, T, scale,
            D, BLOCK_M, True, EVEN,
        )  # fmt: skip
    at = (before + columns)[:, None] * D + dims[None, :]
    dk = (dk * rescale).to(dk_ptr.dtype.element_ty)
    dv = dv.to(dv_ptr.dtype.element_ty)
    if EVEN:
        tl.store(dk_ptr + at, dk)
        tl.store(dv_ptr + at, dv)
    else:
        tl.store(dk_ptr + at, dk, mask=inside[:, None])
        tl.store(dv_ptr + at, dv, mask=inside[:, None])


@triton.jit
def _keys(
    dq, q, do, lse, delta, k_ptr, v_ptr, skt, svt, rows, start, end, T, scale,
    D: tl.constexpr, BLOCK_N: tl.constexpr,
    CAUSAL: tl.constexpr, MASKED: tl.constexpr, EVEN: tl.constexpr,
):  # fmt: skip
    lanes = tl.arange(0, BLOCK_N)
    dims = tl.arange(0, D)
    k_ptrs = k_ptr + (start + lanes)[:, None] * skt + dims[None, :]
    v_ptrs = v_ptr + (start + lanes)[:, None] * svt + dims[None, :]
    for at in tl.range(start, end, BLOCK_N):
        inside = (at + lanes)[:, None] < T
        k = _load(k_ptrs, inside, 0.0, EVEN or not MASKED)
        v = _load(v_ptrs, inside, 0.0, EVEN or not MASKED)
        dq = dq_step(dq, q, do, k, v, lse, delta, rows, at, T, scale, CAUSAL, MASKED)
        k_ptrs += BLOCK_N * skt
        v_ptrs += BLOCK_N * svt
    return dq


@tuned(
    configs=configs(
        (64, 32, 4, 2), (64, 64, 4, 2), (128, 64, 8, 2), (128, 64, 8, 3), (64, 64, 4, 3)
    ),
    prune_configs_by=_fitting,
)  # fmt: skip
@triton.jit(do_not_specialize=["together", "LENGTH"])
def dq_kernel(
    q_ptr, k_ptr, v_ptr, do_ptr, dq_ptr, lse_ptr, delta_ptr,
    sqb, sqh, sqt, skb, skh, skt, svb, svh, svt,
    H, pairs, T, scale, rescale, together, LENGTH,
    D: tl.constexpr, CAUSAL: tl.constexpr, EVEN: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    """dq of BLOCK_M queries."""
    block, pair = place(pairs, tl.cdiv(T, BLOCK_M), together, CAUSAL)
    batch = (pair // H).to(tl.int64)
    head = (pair % H).to(tl.int64)
    k_ptr += batch * skb + head * skh
    v_ptr += batch * svb + head * svh
    before = pair.to(tl.int64) * T
    rows = block * BLOCK_M + tl.arange(0, BLOCK_M)
    dims = tl.arange(0, D)
    inside = rows < T
    at = (before + rows)[:, None] * D + dims[None, :]
    q_ptrs = q_ptr + batch * sqb + head * sqh + rows[:, None] * sqt + dims[None, :]
    q = _load(q_ptrs, inside[:, None], 0.0, EVEN)
    do = _load(do_ptr + at, inside[:, None], 0.0, EVEN)
    lse = _load(lse_ptr + before + rows, inside, float("inf"), EVEN)
    delta = _load(delta_ptr + before + rows, inside, 0.0, EVEN)
    dq = tl.zeros((BLOCK_M, D), tl.float32)
    if CAUSAL:
        full = block * BLOCK_M // BLOCK_N * BLOCK_N
        end = tl.minimum((block + 1) * BLOCK_M, T)
    else:
        full = T // BLOCK_N * BLOCK_N
        end = T
    dq = _keys(
        dq, q, do, lse, delta, k_ptr, v_ptr, skt, svt, rows, 0, full, T, scale,
        D, BLOCK_N, CAUSAL, False, EVEN,
    )  # fmt: skip
    if CAUSAL or not EVEN:
        dq = _keys(
            dq, q, do, lse, delta, k_ptr, v_ptr, skt, svt, rows, full, end, T, scale,
            D, BLOCK_N, CAUSAL, True, EVEN,
        )  # fmt: skip
    dq = (dq * rescale).to(dq_ptr.dtype.element_ty)
    if EVEN:
        tl.store(dq_ptr + at, dq)
    else:
        tl.store(dq_ptr + at, dq, mask=inside[:, None])


def backward(
    q, k, v, o, lse2, do, causal: bool, kind: str | None = None
) -> tuple[torch.Tensor, ...]:
    """dq, dk and dv, contiguous, of what ``attention.forward`` gave o and, with unit 1, lse2.

    ``kind``: of ``attention.KINDS``; "specialised" is so in dk and dv alone.
    """
    b, h, t, d = q.shape
    pairs = b * h
    kind = kind or best_kind(q, k, v, causal)
    do = do.contiguous()
    delta = torch.empty(lse2.shape, dtype=torch.float32, device=q.device)
    delta_kernel[(triton.cdiv(pairs * t, 64),)](o, do, delta, pairs * t, D=d, BLOCK=64)
    dq, dk, dv = (torch.empty(q.shape, dtype=q.dtype, device=q.device) for _ in range(3))
    if kind != "pointers":
        attention_backward_hopper.backward(
            q, k, v, do, lse2, delta, dq, dk, dv, causal, kind == "specialised"
        )
        return dq, dk, dv
    strides = (*q.stride()[:3], *k.stride()[:3], *v.stride()[:3])
    numbers = (h, pairs, t, scale_of(d), d**-0.5, heads_in_l2(t, d, q.element_size()), length(t))
    about = {"D": d, "CAUSAL": causal, "EVEN": t % 128 == 0}
    dkdv_kernel[lambda meta: (triton.cdiv(t, meta["BLOCK_N"]) * pairs,)](
        q, k, v, do, dk, dv, lse2, delta, *strides, *numbers, **about
    )
    dq_kernel[lambda meta: (triton.cdiv(t, meta["BLOCK_M"]) * pairs,)](
        q, k, v, do, dq, lse2, delta, *strides, *numbers, **about
    )
    return dq, dk, dv


def best_kind(q, k, v, causal: bool) -> str:
    """The fastest kernels that take these tensors on this card, as measured on an H200."""
    plain = all(x.is_contiguous() for x in (q, k, v)) and q.element_size() == 2
    return "descriptors" if dispatch.hopper() and plain and q.shape[3] >= 64 else "pointers"
