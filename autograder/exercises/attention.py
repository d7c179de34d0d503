"""Attention in float64, its gradients, and bounds on what roundings can add up to.

q, k, v are (B, H, T, D); s = q kᵀ/√D, P = softmax(s) along the keys, o = P v, and lse is the
log-sum-exp of s, a float32 for each query. Tolerances count roundings (``roundings``); everything
is computed in float32 except what a tensor core takes in, which has the tensors' type.

Let A = |q| |k|ᵀ/√D, M the largest |s| of a row, b the number of key blocks, n the unit roundoff of
the tensors' type (0 for float32). To first order:

* an exponent s − m errs by (D u + n) A + u (5 |s| + M + 3 |s − max s|): the inner product; q may be
  scaled in its own type (n A); 1/√D and log₂e are rounded and multiplied; products and difference;
* the running maximum moves at most b times and by the row's range R in all: b (4u + 2u + 2u M) +
  3u R, in l = Σ exp and in the sum of values alike;
* both together, weighted by P, are l's relative error, and with the logarithm's own lse's;
* o = Σ p v ÷ l: what p and l have in common moves o by e |v − o| only. p is rounded to the tensors'
  type for the second product (n |v|), and the two sums are rounded on their own.
"""

from __future__ import annotations

import math

import numpy as np

from autograder.exercises.roundings import DIVIDE, EXP, FLUSHED, U, of_sum, stored
from autograder.floats import TINY, UNIT

__all__ = ["attention", "attention_backward", "backward_tolerance", "forward_tolerance"]

LOG = 4 * U  # PTX ISA: lg2.approx errs by 2^-22, absolute near 1 and relative elsewhere

# ---------------------------------------------------------------- reference


def _repeated(k: np.ndarray, heads: int) -> np.ndarray:
    """Head h of the queries reads head h // (heads // k's heads)."""
    return np.repeat(k, heads // k.shape[1], axis=1)


def _scores(q: np.ndarray, k: np.ndarray, causal: bool) -> tuple[np.ndarray, np.ndarray]:
    """s, and which of it a query may see."""
    s = q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])
    seen = np.ones(s.shape[-2:], bool)
    return s, np.tril(seen) if causal else seen


def _softmax(s: np.ndarray, seen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """P and lse."""
    s = np.where(seen, s, -np.inf)
    largest = s.max(axis=-1, keepdims=True)
    e = np.exp(s - largest)
    total = e.sum(axis=-1, keepdims=True)
    return e / total, (largest + np.log(total))[..., 0]


def attention(q, k, v, causal=True, block_m=64, block_n=64) -> tuple[np.ndarray, np.ndarray]:
    k, v = _repeated(k, q.shape[1]), _repeated(v, q.shape[1])
    p, lse = _softmax(*_scores(q, k, causal))
    return p @ v, lse


def attention_backward(q, k, v, causal, do) -> tuple[np.ndarray, ...]:
    """o, and with δ = Σ do o: dS = P (do vᵀ − δ), dq = dS k/√D, dk = dSᵀ q/√D, dv = Pᵀ do.

    Dao, FlashAttention-2, 2023, section 3.1.
    """
    scale = 1 / math.sqrt(q.shape[-1])
    p, _ = _softmax(*_scores(q, k, causal))
    o = p @ v
    ds = p * (do @ v.swapaxes(-1, -2) - (do * o).sum(axis=-1, keepdims=True))
    return o, scale * ds @ k, scale * ds.swapaxes(-1, -2) @ q, p.swapaxes(-1, -2) @ do


# ---------------------------------------------------------------- tolerance


class _Bounds:
    """Bounds of the forward pass, before anything is stored; module docstring for the formulas."""

    def __init__(self, q, k, v, causal: bool, dtype: str, block: int):
        k, v = _repeated(k, q.shape[1]), _repeated(v, q.shape[1])
        self.narrow = 0.0 if dtype == "float32" else UNIT[dtype]
        self.tiny = 0.0 if dtype == "float32" else TINY[dtype]
        t, d = q.shape[-2:]
        scale = 1 / math.sqrt(d)
        s, self.seen = _scores(q, k, causal)
        self.p, self.lse = _softmax(s, self.seen)
        self.o = self.p @ v
        products = scale * np.abs(q) @ np.abs(k).swapaxes(-1, -2)
        scaled = self.narrow * products + self.tiny * np.abs(k).sum(-1)[..., None, :]
        visible = np.where(self.seen, s, np.nan)
        size = np.nanmax(np.abs(visible), axis=-1, keepdims=True)
        largest = np.nanmax(visible, axis=-1, keepdims=True)
        reach = largest - np.nanmin(visible, axis=-1, keepdims=True)
        exponent = d * U * products + scaled
        exponent = exponent + U * (5 * np.abs(s) + size + 3 * np.abs(s - largest))
        self.exponent = np.where(self.seen, exponent, 0.0)
        blocks = -(-t // block)
        rescaled = blocks * (EXP + 2 * U + 2 * U * size) + 3 * U * reach
        e = np.expm1(self.exponent) + EXP + rescaled
        total = (self.p * e).sum(-1) + of_sum(t)  # l's relative error
        log = np.abs(self.lse - largest[..., 0])
        self.lse_error = -np.log1p(-np.minimum(total, 0.5)) + LOG * np.maximum(log, 1.0)
        self.lse_error += U * (5 * size[..., 0] + log + 3 * np.abs(self.lse))
        own = of_sum(t) + 2 * blocks * U  # the sums' and the rescalings' own roundings
        a, o = np.abs(v), np.abs(self.o)
        common = (self.p * e)[..., None] * np.abs(v[..., None, :, :] - self.o[..., None, :])
        o_error = common.sum(-2) + (self.p @ a) * (self.narrow + U + own)
        o_error += (self.tiny + FLUSHED) * (self.seen @ a) + o * (own + DIVIDE + U)
        self.o_error = o_error / (1 - np.minimum(total, 0.5))[..., None]


def forward_tolerance(
    arguments: tuple, expected: tuple, dtype: str, block: int
) -> tuple[np.ndarray, np.ndarray]:
    """Largest allowed |difference| of o and of lse, for blocks of ``block`` keys."""
    bounds = _Bounds(*arguments[:4], dtype, block)
    return (
        stored(bounds.o_error, expected[0], dtype),
        stored(bounds.lse_error, expected[1], "float32"),
    )


def backward_tolerance(arguments: tuple, expected: tuple, dtype: str) -> tuple[np.ndarray, ...]:
    """Of o, and of the gradients from P recomputed by exp(s − lse), as sums over keys or queries.

    P errs by the exponent's error, once more by lse's, and by exp's. δ is computed from the stored
    o. dS and P are rounded to the tensors' type for the products that they enter.
    """
    q, k, v, causal, do = arguments
    t, d = q.shape[-2:]
    scale = 1 / math.sqrt(d)
    bounds = _Bounds(q, k, v, causal, dtype, 16)  # the blocks are the solution's own
    p, narrow, tiny = bounds.p, bounds.narrow, bounds.tiny
    o_stored = stored(bounds.o_error, expected[0], dtype)
    p_error = p * (np.expm1(bounds.exponent + bounds.lse_error[..., None]) + EXP) + FLUSHED
    p_error = np.where(bounds.seen, p_error, 0.0)
    dp, size = do @ v.swapaxes(-1, -2), np.abs(do) @ np.abs(v).swapaxes(-1, -2)
    delta = (do * expected[0]).sum(-1, keepdims=True)
    delta_error = d * U * (np.abs(do) * np.abs(expected[0])).sum(-1, keepdims=True)
    delta_error = delta_error + (np.abs(do) * o_stored).sum(-1, keepdims=True)
    both = np.abs(dp) + np.abs(delta)
    ds = np.abs(p * (dp - delta))
    ds_error = p * (d * U * size + delta_error + U * both) + p_error * np.abs(dp - delta)
    ds_error = ds_error + p_error * (d * U * size + delta_error) + 3 * U * ds
    ds_error = np.where(bounds.seen, ds_error * (1 + narrow) + narrow * ds + tiny, 0.0)
    p_sum = np.where(bounds.seen, p_error * (1 + narrow) + narrow * p + tiny, 0.0)
    sums = of_sum(t) + 3 * U
    dq = scale * (ds_error @ np.abs(k) + sums * ds @ np.abs(k))
    dk = scale * (ds_error.swapaxes(-1, -2) @ np.abs(q) + sums * ds.swapaxes(-1, -2) @ np.abs(q))
    dv = p_sum.swapaxes(-1, -2) @ np.abs(do) + sums * p.swapaxes(-1, -2) @ np.abs(do)
    errors = zip((dq, dk, dv), expected[1:], strict=True)
    return (o_stored, *(stored(error, value, dtype) for error, value in errors))
