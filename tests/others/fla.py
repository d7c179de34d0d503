"""Flash linear attention: chunked kernels against the recurrences that they compute."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from fla.modules import rotary
from fla.ops.delta_rule import fused_recurrent_delta_rule
from fla.ops.gated_delta_rule import chunk_gated_delta_rule
from fla.ops.gla import chunk_gla, fused_recurrent_gla
from fla.ops.hgrn import chunk_hgrn, fused_recurrent_hgrn
from fla.ops.linear_attn import chunk_linear_attn
from fla.ops.retention import chunk_retention
from fla.ops.simple_gla import chunk_simple_gla

from tests.others.cases import Case, compared, normal

B, T, H, D = 1, 70, 2, 32


def _state(q, k, v, decay, scale, beta=None):
    """o_t = S_t^T q_t with S_t = decay_t S_{t-1} + k_t u_t^T; u_t is v_t, or by the delta rule
    beta_t (v_t − S^T k_t)."""
    state = q.new_zeros(B, H, D, D)
    out = []
    for t in range(T):
        state = decay[:, t, :, :, None].exp() * state
        value = v[:, t]
        if beta is not None:
            value = beta[:, t, :, None] * (value - torch.einsum("bhkv,bhk->bhv", state, k[:, t]))
        state = state + k[:, t, :, :, None] * value[:, :, None, :]
        out.append(torch.einsum("bhkv,bhk->bhv", state, q[:, t] * scale))
    return torch.stack(out, 1)


def _qkv():
    k = F.normalize(normal(B, T, H, D, seed=1), dim=-1)
    return normal(B, T, H, D), k, normal(B, T, H, D, seed=2)


def _first(function, **options):
    return lambda *a: function(*a, **options)[0]


def gla(function):
    g = F.logsigmoid(normal(B, T, H, D, seed=3))
    reference = lambda q, k, v, g: _state(q, k, v, g, D**-0.5)  # noqa: E731
    return compared(_first(function), reference, (*_qkv(), g), T * D)


def simple_gla():
    g = F.logsigmoid(normal(B, T, H, seed=3))
    reference = lambda q, k, v, g: _state(q, k, v, g[..., None].expand(B, T, H, D), D**-0.5)  # noqa: E731
    return compared(_first(chunk_simple_gla), reference, (*_qkv(), g), T * D)


def retention():
    def reference(q, k, v):
        decay = (1 - q.new_tensor(2.0).pow(-5.0 - torch.arange(H, dtype=q.dtype))).log()
        return _state(q, k, v, decay[None, None, :, None].expand(B, T, H, D), D**-0.5)

    return compared(_first(chunk_retention), reference, _qkv(), T * D)


def linear_attention():
    def reference(q, k, v):
        return _state(q, k, v, torch.zeros_like(q), D**-0.5)

    return compared(_first(chunk_linear_attn, normalize=False), reference, _qkv(), T * D)


def delta_rule():
    beta = normal(B, T, H, seed=4).sigmoid()

    def reference(q, k, v, beta):
        return _state(q, k, v, torch.zeros_like(q), D**-0.5, beta)

    return compared(_first(fused_recurrent_delta_rule), reference, (*_qkv(), beta), T * D)


def gated_delta_rule():
    g, beta = F.logsigmoid(normal(B, T, H, seed=3)), normal(B, T, H, seed=4).sigmoid()

    def reference(q, k, v, g, beta):
        return _state(q, k, v, g[..., None].expand(B, T, H, D), D**-0.5, beta)

    return compared(_first(chunk_gated_delta_rule), reference, (*_qkv(), g, beta), T * D)


def hgrn(function):
    def reference(x, g):
        state, out = x.new_zeros(B, D), []
        for t in range(T):
            state = g[:, t].exp() * state + x[:, t]
            out.append(state)
        return torch.stack(out, 1)

    arguments = (normal(B, T, D), F.logsigmoid(normal(B, T, D, seed=1)))
    return compared(_first(function), reference, arguments, T)


def rotary_embedding():
    angle = normal(T, D // 2, seed=9)

    def reference(x):
        cos, sin = angle.double().cos()[:, None], angle.double().sin()[:, None]
        a, b = x.chunk(2, -1)
        return torch.cat([a * cos - b * sin, a * sin + b * cos], -1)

    call = lambda x: rotary.rotary_embedding(x, angle.cos(), angle.sin())  # noqa: E731
    return compared(call, reference, (normal(B, T, H, D),))


def cases() -> list[Case]:
    return [
        Case("chunk_gla", lambda: gla(chunk_gla)),
        Case("fused_recurrent_gla", lambda: gla(fused_recurrent_gla)),
        Case("chunk_hgrn", lambda: hgrn(chunk_hgrn)),
        Case("fused_recurrent_hgrn", lambda: hgrn(fused_recurrent_hgrn)),
        *(
            Case(call.__name__, call)
            for call in (
                *(simple_gla, retention, linear_attention, delta_rule, gated_delta_rule),
                rotary_embedding,
            )
        ),
    ]
