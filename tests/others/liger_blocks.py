"""Liger-Kernel's larger blocks: mixture of experts, hyper-connections, a fused MLP, GRPO's loss."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from liger_kernel import ops
from liger_kernel.ops import grpo_loss

from tests.others.cases import Case, compared, normal, pair, whole


def mixture_of_experts():
    chosen = torch.stack([torch.randperm(4)[:2] for _ in range(30)]).int()

    def reference(x, up, down, index, weights):
        out = torch.zeros_like(x)
        for k in range(2):
            gate, value = torch.einsum("th,tih->ti", x, up[index[:, k]]).chunk(2, -1)
            y = torch.einsum("ti,thi->th", F.silu(gate) * value, down[index[:, k]])
            out = out + weights[:, k, None] * y
        return out

    arguments = (
        normal(30, 64),
        normal(4, 96, 64, seed=1) / 8,
        normal(4, 64, 48, seed=2) / 8,
        chosen,
        normal(30, 2, seed=3).softmax(-1),
    )
    return compared(ops.LigerFusedMoEFunction.apply, reference, arguments, 400)


def _mlp(x, gate, up, down):
    return (F.silu(x @ gate.T) * (x @ up.T)) @ down.T


def mlp():
    half = torch.float16
    arguments = [normal(2, 70, 64, dtype=half), normal(96, 64, seed=1, dtype=half) / 8]
    arguments += [normal(96, 64, seed=2, dtype=half) / 8, normal(64, 96, seed=3, dtype=half) / 8]
    call = lambda *a: ops.LigerMLPFunction.apply(*a)  # noqa: E731
    return compared(call, _mlp, arguments, 140)


def mlp_inference():
    half = torch.float16
    arguments = [normal(2, 70, 64, dtype=half), normal(96, 64, seed=1, dtype=half) / 8]
    arguments += [normal(96, 64, seed=2, dtype=half) / 8, normal(64, 96, seed=3, dtype=half) / 8]
    call = lambda *a: ops.LigerMLPFunction.apply(*a)  # noqa: E731
    return compared(call, _mlp, arguments, 140, backward=False)


def hyper_coefficients():
    streams, rounds = 4, 3

    def reference(x, phi, b, pre, post, res):
        flat = x.flatten(-2)
        mix = flat @ phi * torch.rsqrt(flat.pow(2).mean(-1, keepdim=True) + 1e-6)
        first = torch.sigmoid(mix[:, :4] * pre + b[:4]) + 1e-3
        second = 2 * torch.sigmoid(mix[:, 4:8] * post + b[4:8])
        matrix = (mix[:, 8:] * res + b[8:]).view(-1, 4, 4).softmax(-1) + 1e-6
        matrix = matrix / (matrix.sum(-2, keepdim=True) + 1e-6)
        for _ in range(rounds - 1):
            matrix = matrix / (matrix.sum(-1, keepdim=True) + 1e-6)
            matrix = matrix / (matrix.sum(-2, keepdim=True) + 1e-6)
        return first, second, matrix

    def call(x, phi, b, pre, post, res):
        return ops.LigerMHCCoeffsFunction.apply(
            x, phi, b, pre, post, res, True, rounds, 1e-6, 1e-3, 1e-6, 2.0
        )

    arguments = [normal(10, streams, 32), normal(128, 24, seed=1) / 8, normal(24, seed=2)]
    arguments += [normal(seed=3), normal(seed=4), normal(seed=5)]
    return compared(call, reference, arguments, 400)


def hyper_pre():
    call = lambda x, h: ops.LigerMHCPreFunction.apply(x, h)  # noqa: E731
    reference = lambda x, h: (h[..., None] * x).sum(-2)  # noqa: E731
    return compared(call, reference, (normal(10, 4, 100), normal(10, 4, seed=1)), 100)


def hyper_post():
    def reference(x, f, post, mix):
        return post[..., None] * f[:, None] + mix @ x

    call = lambda *a: ops.LigerMHCPostResFunction.apply(*a)  # noqa: E731
    arguments = (normal(10, 4, 100), normal(10, 100, seed=1), normal(10, 4, seed=2))
    return compared(call, reference, (*arguments, normal(10, 4, 4, seed=3)), 100)


def grpo(level):
    ids = whole(50, 3, 6)
    advantages = torch.tensor([1.0, -0.5, 0.7])
    old = normal(3, 6, seed=4) / 4 - 4

    def reference(logits):
        logp = (logits[:, :-1] / 0.9).log_softmax(-1).gather(-1, ids[..., None])[..., 0]
        ratio = logp - old.double()
        ratio = (ratio.mean(-1, keepdim=True) if level == "sequence" else ratio).exp()
        a = advantages.double()[:, None]
        loss = -torch.minimum(ratio * a, ratio.clamp(0.8, 1.2) * a)
        return loss.mean(-1).mean()

    def call(logits):
        return ops.GrpoLossFunction.apply(
            *(logits, old, None, ids, advantages, None, 0.9, 0.0, 0.2, 0.2, False),
            *("grpo", None, True, level),
        )[0]

    return compared(call, reference, (normal(3, 7, 50),), 100)


def selective_log_softmax():
    logits, ids = normal(3, 7, 50), whole(50, 3, 6)
    got = grpo_loss.fused_selective_log_softmax(logits, ids, 0.9)
    want = (logits.double()[:, :-1] / 0.9).log_softmax(-1).gather(-1, ids[..., None])[..., 0]
    return [pair("log p", got, want, 50)]


def cases() -> list[Case]:
    calls = [mixture_of_experts, mlp, mlp_inference, hyper_coefficients, hyper_pre, hyper_post]
    return [Case(call.__name__, call) for call in (*calls, selective_log_softmax)] + [
        Case("grpo", lambda: grpo("token")),
        Case("grpo by sequence", lambda: grpo("sequence")),
    ]
