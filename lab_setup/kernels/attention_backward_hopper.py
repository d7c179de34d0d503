"""FlashAttention backward for compute capability 9.0: tiles come by descriptor (TMA).

The formulas are those of ``attention_backward``. dk and dv also come from a persistent kernel with
specialised warps, for lengths that its blocks divide.
"""

from __future__ import annotations

import triton
import triton.language as tl

from lab_setup.kernels import dispatch
from lab_setup.kernels.attention_hopper import by_head, scratch, set_tiles, whole
from lab_setup.kernels.attention_shared import (
    configs,
    dkdv_step,
    dq_step,
    heads_in_l2,
    keeping,
    length,
    place,
    scale_of,
    tuned,
)

__all__ = ["backward"]


@triton.jit
def _row(ptr, rows, T, other, EVEN: tl.constexpr):
    if EVEN:
        return tl.load(ptr + rows)
    else:
        return tl.load(ptr + rows, mask=rows < T, other=other)


@triton.jit
def _queries(
    dk, dv, k, v, q_desc, do_desc, lse_ptr, delta_ptr, head, columns, start, end, T, scale,
    D: tl.constexpr, BLOCK_M: tl.constexpr, MASKED: tl.constexpr, EVEN: tl.constexpr,
):  # fmt: skip
    for at in tl.range(start, end, BLOCK_M):
        rows = at + tl.arange(0, BLOCK_M)
        q = q_desc.load([head, at, 0]).reshape([BLOCK_M, D])
        lse = _row(lse_ptr, rows, T, float("inf"), EVEN)  # so that p is 0 beyond the end
        do = do_desc.load([head, at, 0]).reshape([BLOCK_M, D])
        delta = _row(delta_ptr, rows, T, 0.0, EVEN)
        dk, dv = dkdv_step(dk, dv, k, v, q, do, lse, delta, columns - at, scale, MASKED)
    return dk, dv


@tuned(
    configs=configs((64, 64, 4, 2), SPLIT=False, pre_hook=set_tiles)
    + configs((64, 64, 4, 2), (128, 64, 4, 2), (64, 128, 8, 3), SPLIT=True, pre_hook=set_tiles),
    # More queries spill at D = 128; at D = 64 they win at every length.
    prune_configs_by=keeping(
        lambda o: o["BLOCK_M"] * o["D"] == 8192 and (o["BLOCK_N"] == 64 or o["D"] == 128)
    ),
)
@triton.jit(do_not_specialize=["together", "LENGTH"])
def dkdv_kernel(
    q, k, v, do, dk, dv, lse_ptr, delta_ptr, pairs, T, scale, rescale, together, LENGTH,
    D: tl.constexpr, CAUSAL: tl.constexpr, EVEN: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, SPLIT: tl.constexpr,
):  # fmt: skip
    """dk and dv of BLOCK_N keys. Without SPLIT one loop masks throughout: fewer registers."""
    blocks = tl.cdiv(T, BLOCK_N)
    block, head = place(pairs, blocks, together, CAUSAL)
    if CAUSAL:
        block = blocks - 1 - block  # the first keys are seen by all queries: the longest
    lse_ptr += head.to(tl.int64) * T
    delta_ptr += head.to(tl.int64) * T
    columns = block * BLOCK_N + tl.arange(0, BLOCK_N)
    k_tile = k.load([head, block * BLOCK_N, 0]).reshape([BLOCK_N, D])
    v_tile = v.load([head, block * BLOCK_N, 0]).reshape([BLOCK_N, D])
    dk_sum = tl.zeros((BLOCK_N, D), tl.float32)
    dv_sum = tl.zeros((BLOCK_N, D), tl.float32)
    first = 0
    full = 0
    if CAUSAL:
        first = block * BLOCK_N // BLOCK_M * BLOCK_M
        full = tl.minimum(tl.cdiv((block + 1) * BLOCK_N, BLOCK_M), tl.cdiv(T, BLOCK_M)) * BLOCK_M
        if not SPLIT:
            full = T
    # The diagonal comes last: in the other order ptxas gives up overlapping tensor-core operations
    # (its remark C7515).
    if SPLIT or not CAUSAL:
        dk_sum, dv_sum = _queries(
            dk_sum, dv_sum, k_tile, v_tile, q, do, lse_ptr, delta_ptr, head, columns,
            full, T, T, scale, D, BLOCK_M, False, EVEN,
        )  # fmt: skip
    if CAUSAL:
        dk_sum, dv_sum = _queries(
            dk_sum, dv_sum, k_tile, v_tile, q, do, lse_ptr, delta_ptr, head, columns,
            first, full, T, scale, D, BLOCK_M, True, EVEN,
        )  # fmt: skip
    tile = (dk_sum * rescale).to(dk.dtype).reshape([1, BLOCK_N, D])
    dk.store([head, block * BLOCK_N, 0], tile)
    dv.store([head, block * BLOCK_N, 0], dv_sum.to(dv.dtype).reshape([1, BLOCK_N, D]))


@tuned(configs=configs((64, 128, 4, 2)))
@triton.jit(do_not_specialize=["LENGTH"])
def dkdv_specialised_kernel(
    q_ptr, k_ptr, v_ptr, do_ptr, dk_ptr, dv_ptr, lse_ptr, delta_ptr,
    pairs, T, scale, rescale, LENGTH,
    D: tl.constexpr, CAUSAL: tl.constexpr, EVEN: tl.constexpr, PROGRAMS: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    """Persistent, by couples of a block of keys from the front and its counterpart from the end,
    as ``attention_hopper.specialised_kernel``. ``whole(T)`` is asked for."""
    q = tl.make_tensor_descriptor(q_ptr, [pairs * T, D], [D, 1], [BLOCK_M, D])
    do = tl.make_tensor_descriptor(do_ptr, [pairs * T, D], [D, 1], [BLOCK_M, D])
    k = tl.make_tensor_descriptor(k_ptr, [pairs * T, D], [D, 1], [BLOCK_N, D])
    v = tl.make_tensor_descriptor(v_ptr, [pairs * T, D], [D, 1], [BLOCK_N, D])
    dk = tl.make_tensor_descriptor(dk_ptr, [pairs * T, D], [D, 1], [BLOCK_N, D])
    dv = tl.make_tensor_descriptor(dv_ptr, [pairs * T, D], [D, 1], [BLOCK_N, D])
    half = T // BLOCK_N // 2
    start = tl.program_id(0)
    couples = tl.cdiv(pairs * half - start, PROGRAMS)
    for step in tl.range(0, 2 * couples, 1, warp_specialize=True):
        couple = start + step // 2 * PROGRAMS
        head = couple // half
        front = couple % half
        late = step % 2
        block = (1 - late) * front + late * (2 * half - 1 - front)
        before = head * T
        k_tile = k.load([before + block * BLOCK_N, 0])
        v_tile = v.load([before + block * BLOCK_N, 0])
        dk_sum = tl.zeros((BLOCK_N, D), tl.float32)
        dv_sum = tl.zeros((BLOCK_N, D), tl.float32)
        columns = block * BLOCK_N + tl.arange(0, BLOCK_N)
        first = 0
        if CAUSAL:
            first = block * BLOCK_N // BLOCK_M * BLOCK_M
        for at in tl.range(first, T, BLOCK_M):
            q_tile = q.load([before + at, 0])
            rows = before + at + tl.arange(0, BLOCK_M)
            lse = tl.load(lse_ptr + rows)
            delta = tl.load(delta_ptr + rows)
            s = tl.dot(k_tile, q_tile.T)
            p = tl.exp2(s * scale - lse[None, :])
            if CAUSAL:
                p = tl.where(tl.arange(0, BLOCK_M)[None, :] >= (columns - at)[:, None], p, 0.0)
            do_tile = do.load([before + at, 0])
            dv_sum = tl.dot(p.to(do_tile.dtype), do_tile, dv_sum)
            dp = tl.dot(v_tile, do_tile.T)
            ds = (p * (dp - delta[None, :])).to(q_tile.dtype)
            dk_sum = tl.dot(ds, q_tile, dk_sum)
        dk.store([before + block * BLOCK_N, 0], (dk_sum * rescale).to(dk.dtype))
        dv.store([before + block * BLOCK_N, 0], dv_sum.to(dv.dtype))


@triton.jit
def _keys(
    dq, q, do, lse, delta, k_desc, v_desc, head, rows, start, end, T, scale,
    D: tl.constexpr, BLOCK_N: tl.constexpr, CAUSAL: tl.constexpr, MASKED: tl.constexpr,
):  # fmt: skip
    for at in tl.range(start, end, BLOCK_N):
        k = k_desc.load([head, at, 0]).reshape([BLOCK_N, D])
        v = v_desc.load([head, at, 0]).reshape([BLOCK_N, D])
        dq = dq_step(dq, q, do, k, v, lse, delta, rows, at, T, scale, CAUSAL, MASKED)
    return dq


@tuned(configs=configs((64, 64, 4, 2), (128, 64, 8, 3), (64, 64, 4, 3), pre_hook=set_tiles))
@triton.jit(do_not_specialize=["together", "LENGTH"])
def dq_kernel(
    q, k, v, do, dq, lse_ptr, delta_ptr, pairs, T, scale, rescale, together, LENGTH,
    D: tl.constexpr, CAUSAL: tl.constexpr, EVEN: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    """dq of BLOCK_M queries."""
    block, head = place(pairs, tl.cdiv(T, BLOCK_M), together, CAUSAL)
    rows = block * BLOCK_M + tl.arange(0, BLOCK_M)
    q_tile = q.load([head, block * BLOCK_M, 0]).reshape([BLOCK_M, D])
    do_tile = do.load([head, block * BLOCK_M, 0]).reshape([BLOCK_M, D])
    lse = _row(lse_ptr + head.to(tl.int64) * T, rows, T, float("inf"), EVEN)
    delta = _row(delta_ptr + head.to(tl.int64) * T, rows, T, 0.0, EVEN)
    dq_sum = tl.zeros((BLOCK_M, D), tl.float32)
    if CAUSAL:
        full = block * BLOCK_M // BLOCK_N * BLOCK_N
        end = tl.minimum((block + 1) * BLOCK_M, T)
    else:
        full = T // BLOCK_N * BLOCK_N
        end = T
    dq_sum = _keys(
        dq_sum, q_tile, do_tile, lse, delta, k, v, head, rows, 0, full, T, scale,
        D, BLOCK_N, CAUSAL, False,
    )  # fmt: skip
    if CAUSAL or not EVEN:
        dq_sum = _keys(
            dq_sum, q_tile, do_tile, lse, delta, k, v, head, rows, full, end, T, scale,
            D, BLOCK_N, CAUSAL, True,
        )  # fmt: skip
    dq.store([head, block * BLOCK_M, 0], (dq_sum * rescale).to(dq.dtype).reshape([1, BLOCK_M, D]))


def backward(q, k, v, do, lse2, delta, dq, dk, dv, causal: bool, specialised: bool) -> None:
    """Fills dq, dk and dv, on compute capability 9.0, for contiguous tensors of a 16-bit type.

    Raises ValueError where the specialised kernel is asked for a T that 256 does not divide.
    """
    b, h, t, d = q.shape
    pairs = b * h
    if specialised and not whole(t):
        raise ValueError(f"the specialised kernel takes multiples of 256 as T, not {t}")
    numbers = (pairs, t, scale_of(d), d**-0.5)
    order = (heads_in_l2(t, d, 2), length(t))
    about = {"D": d, "CAUSAL": causal, "EVEN": t % 128 == 0}
    if specialised:
        triton.set_allocator(scratch)
        programs = dispatch.sms()
        dkdv_specialised_kernel[lambda meta: (min(programs, pairs * (t // meta["BLOCK_N"] // 2)),)](
            q, k, v, do, dk, dv, lse2, delta, *numbers, length(t), PROGRAMS=programs, **about
        )
    else:
        tiles = (by_head(x) for x in (q, k, v, do, dk, dv))
        dkdv_kernel[lambda meta: (triton.cdiv(t, meta["BLOCK_N"]) * pairs,)](
            *tiles, lse2, delta, *numbers, *order, **about
        )
    tiles = (by_head(x) for x in (q, k, v, do, dq))  # anew: a tile is the kernel's that set it
    dq_kernel[lambda meta: (triton.cdiv(t, meta["BLOCK_M"]) * pairs,)](
        *tiles, lse2, delta, *numbers, *order, **about
    )
