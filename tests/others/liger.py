"""Liger-Kernel's operations, forward and backward, against the formulas that they fuse."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from liger_kernel import ops
from liger_kernel.ops import softmax, swiglu, utils
from liger_kernel.ops.experimental import embedding, mm_int8int2

from tests.others import liger_blocks
from tests.others.cases import Case, compared, normal, pair, whole


def rms(x, weight, eps=1e-6):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * weight


def rotated(x, cos, sin):
    half = x.shape[-1] // 2
    return x * cos + torch.cat([-x[..., half:], x[..., :half]], -1) * sin


def angles(*shape):
    """cos and sin whose halves are equal, as rotary embeddings have them."""
    half = normal(*shape[:-1], shape[-1] // 2, seed=9)
    return torch.cat([half, half], -1).cos(), torch.cat([half, half], -1).sin()


# ---------------------------------------------------------------- activations and norms


def geglu():
    reference = lambda a, b: F.gelu(a, approximate="tanh") * b  # noqa: E731
    return compared(
        ops.LigerGELUMulFunction.apply, reference, (normal(6, 300), normal(6, 300, seed=1))
    )


def silu_mul():
    call = lambda a, b: ops.LigerSiLUMulFunction.apply(a, b)  # noqa: E731
    return compared(call, lambda a, b: F.silu(a) * b, (normal(6, 300), normal(6, 300, seed=1)))


def silu_mul_tiled():
    a, b = normal(2, 9000), normal(2, 9000, seed=1)
    before = swiglu._should_tile
    swiglu._should_tile = lambda n_cols: True
    try:
        call = lambda a, b: ops.LigerSiLUMulFunction.apply(a, b)  # noqa: E731
        return compared(call, lambda a, b: F.silu(a) * b, (a, b))
    finally:
        swiglu._should_tile = before


def gate_up():
    reference = lambda y: F.silu(y[..., :150]) * y[..., 150:]  # noqa: E731
    return compared(ops.LigerFusedGateUpSiLUMulFunction.apply, reference, (normal(6, 300),))


def relu_squared():
    return compared(ops.LigerReLUSquaredFunction.apply, lambda x: F.relu(x) ** 2, (normal(6, 300),))


def dyt():
    arguments = (normal(2, 5, 300), normal(1, seed=1), normal(300, seed=2), normal(300, seed=3))
    reference = lambda x, a, g, b: g * torch.tanh(a * x) + b  # noqa: E731
    return compared(ops.LigerDyTFunction.apply, reference, arguments, 3000)


def rms_norm():
    call = lambda x, w: ops.LigerRMSNormFunction.apply(x, w, 1e-6, 0.0, "llama", False)  # noqa: E731
    return compared(call, rms, (normal(4, 300), normal(300, seed=1)), 300)


def rms_norm_block():
    call = lambda x, w: ops.LigerRMSNormFunction.apply(  # noqa: E731
        x, w, 1e-6, 0.0, "llama", False, False
    )
    return compared(call, rms, (normal(4096 * 8, 48), normal(48, seed=1)), 4096 * 8)


def fused_add_rms_norm():
    def call(x, r, w):
        return ops.LigerFusedAddRMSNormFunction.apply(x, r, w, 1e-6, 0.0, "llama", False)

    def reference(x, r, w):
        return rms(x + r, w), x + r

    arguments = (normal(4, 300), normal(4, 300, seed=1), normal(300, seed=2))
    return compared(call, reference, arguments, 300)


def modulated_rms_norm():
    def call(x, w, scale, shift):
        return ops.LigerModulatedRMSNormFunction.apply(
            x, w, scale, shift, 1e-6, 0.0, "llama", False
        )

    def reference(x, w, scale, shift):
        return rms(x, w) * (1 + scale[:, None]) + shift[:, None]

    arguments = (normal(2, 3, 300), normal(300, seed=1), normal(2, 300, seed=2))
    return compared(call, reference, (*arguments, normal(2, 300, seed=3)), 300)


def layer_norm():
    call = lambda x, w, b: ops.LigerLayerNormFunction.apply(x, w, b, 1e-6)  # noqa: E731
    reference = lambda x, w, b: F.layer_norm(x, (300,), w, b, 1e-6)  # noqa: E731
    return compared(
        call, reference, (normal(4, 300), normal(300, seed=1), normal(300, seed=2)), 300
    )


def group_norm():
    def call(x, w, b):
        return ops.LigerGroupNormFunction.apply(x, w, b, 12, 3, 1e-5)

    reference = lambda x, w, b: F.group_norm(x, 3, w, b, 1e-5)  # noqa: E731
    arguments = (normal(2, 12, 70), normal(12, seed=1), normal(12, seed=2))
    return compared(call, reference, arguments, 1000)


def poly_norm():
    def reference(x, w, b):
        norm = lambda v: v * torch.rsqrt(v.pow(2).mean(-1, keepdim=True) + 1e-6)  # noqa: E731
        return w[0] * norm(x**3) + w[1] * norm(x**2) + w[2] * norm(x) + b

    call = lambda x, w, b: ops.LigerPolyNormFunction.apply(x, w, b, 1e-6, False)  # noqa: E731
    return compared(call, reference, (normal(4, 300), normal(3, seed=1), normal(seed=2)), 1200)


# ---------------------------------------------------------------- softmax and its relatives


def softmax_one():
    return compared(
        softmax.LigerSoftmaxFunction.apply, lambda x: x.softmax(-1), (normal(4, 300),), 300
    )


def softmax_many():
    before = softmax.calculate_settings
    softmax.calculate_settings = lambda n: (128, 4)  # blocks shorter than a row
    try:
        return compared(
            softmax.LigerSoftmaxFunction.apply, lambda x: x.softmax(-1), (normal(4, 300),), 300
        )
    finally:
        softmax.calculate_settings = before


def _sparsemax(x):
    """Martins and Astudillo 2016, algorithm 1."""
    z, _ = x.sort(-1, descending=True)
    k = torch.arange(1, x.shape[-1] + 1, dtype=x.dtype)
    inside = 1 + k * z > z.cumsum(-1)
    size = inside.sum(-1, keepdim=True)
    tau = ((z * inside).sum(-1, keepdim=True) - 1) / size
    return (x - tau).clamp(min=0)


def sparsemax():
    return compared(
        lambda x: ops.LigerSparsemaxFunction.apply(x, -1), _sparsemax, (normal(4, 100),), 100
    )


def multi_token_attention():
    later = torch.ones(8, 8).triu(1).bool()

    def reference(scores, weight, bias):
        p = scores.masked_fill(later, -torch.inf).softmax(-1)
        return F.conv2d(p, weight, bias, padding=1).masked_fill(later, 0.0)

    def call(scores, weight, bias):
        return ops.LigerMultiTokenAttentionFunction.apply(scores, weight, bias, 1, 1)

    arguments = (normal(2, 3, 8, 8), normal(3, 3, 3, 3, seed=1), normal(3, seed=2))
    return compared(call, reference, arguments, 128)


# ---------------------------------------------------------------- losses


def cross_entropy():
    target = whole(300, 6)

    def call(x, target):
        return ops.LigerCrossEntropyFunction.apply(x, target, None, -100, 0.0, 0.1, "mean")[0]

    def reference(x, target):
        return F.cross_entropy(x, target, label_smoothing=0.1)

    return compared(call, reference, (normal(6, 300), target), 300)


def linear_cross_entropy():
    target = whole(70, 6)

    def call(x, w, target):
        return ops.LigerFusedLinearCrossEntropyFunction.apply(x, w, target)[0]

    return compared(
        call,
        lambda x, w, t: F.cross_entropy(x @ w.T, t),
        (normal(6, 40), normal(70, 40, seed=1), target),
        110,
    )


def vocab_parallel_cross_entropy():
    def call(x, target):
        from liger_kernel.ops.vocab_parallel_cross_entropy import LigerVocabParallelCEFunction

        return LigerVocabParallelCEFunction.apply(x, target, None, -100, 0.0, "megatron", "global")

    def reference(x, target):
        return F.cross_entropy(x.flatten(0, 1), target.flatten(), reduction="none").view(3, 2)

    return compared(call, reference, (normal(3, 2, 300), whole(300, 3, 2)), 300)


def kl_div():
    def call(log_p, q):
        return ops.LigerKLDivLossFunction.apply(log_p.log_softmax(-1), q.softmax(-1).detach())

    def reference(log_p, q):
        return F.kl_div(log_p.log_softmax(-1), q.softmax(-1).detach(), reduction="batchmean")

    return compared(call, reference, (normal(6, 300), normal(6, 300, seed=1)), 600)


def linear_kl_div():
    def call(x, w, q):
        return ops.LigerFusedLinearKLDivFunction.apply(x, w, q.softmax(-1).detach())

    def reference(x, w, q):
        return F.kl_div((x @ w.T).log_softmax(-1), q.softmax(-1).detach(), reduction="batchmean")

    return compared(
        call, reference, (normal(6, 40), normal(70, 40, seed=1), normal(6, 70, seed=2)), 200
    )


def _jsd(x, y):
    """Of log-probabilities, beta = 1/2, by row."""
    m = ((x.exp() + y.exp()) / 2).log()
    return ((y.exp() * (y - m) + x.exp() * (x - m)) / 2).sum() / x.shape[0]


def jsd():
    call = lambda x, y: ops.LigerJSDFunction.apply(x.log_softmax(-1), y.log_softmax(-1).detach())  # noqa: E731
    reference = lambda x, y: _jsd(x.log_softmax(-1), y.log_softmax(-1).detach())  # noqa: E731
    return compared(call, reference, (normal(6, 300), normal(6, 300, seed=1)), 600)


def linear_jsd():
    def call(x, w, y, v):
        return ops.LigerFusedLinearJSDFunction.apply(x, w, y.detach(), v.detach())

    def reference(x, w, y, v):
        return _jsd((x @ w.T).log_softmax(-1), (y @ v.T).log_softmax(-1).detach())

    arguments = (
        normal(6, 40),
        normal(70, 40, seed=1),
        normal(6, 40, seed=2),
        normal(70, 40, seed=3),
    )
    return compared(call, reference, arguments, 300)


def tvd():
    def call(p, q):
        return ops.LigerTVDLossFunction.apply(p.softmax(-1), q.softmax(-1).detach())

    def reference(p, q):
        return (p.softmax(-1) - q.softmax(-1).detach()).abs().sum() / 2 / 6

    return compared(call, reference, (normal(6, 300), normal(6, 300, seed=1)), 600)


def ce_tvd():
    def call(x, y, target):
        return ops.LigerFusedCETVDFunction.apply(x, y.detach(), target)

    def reference(x, y, target):
        distance = (x.softmax(-1) - y.softmax(-1).detach()).abs().sum(-1) / 2
        return F.cross_entropy(x, target, reduction="none"), distance

    return compared(call, reference, (normal(6, 300), normal(6, 300, seed=1), whole(300, 6)), 600)


# ---------------------------------------------------------------- positions, tables, products


def rope():
    cos, sin = (t[None] for t in angles(5, 32))
    call = lambda q, k: ops.LigerRopeFunction.apply(q, k, cos, sin)  # noqa: E731

    def reference(q, k):
        return rotated(q, cos.double(), sin.double()), rotated(k, cos.double(), sin.double())

    return compared(call, reference, (normal(2, 4, 5, 32), normal(2, 2, 5, 32, seed=1)))


def mrope():
    cos, sin = angles(3, 2, 5, 32)
    section = [4, 6, 6]

    def table(t):
        parts = t.double().split(section * 2, dim=-1)
        return torch.cat([p[i % 3] for i, p in enumerate(parts)], -1)[:, None]

    def reference(q, k):
        return rotated(q, table(cos), table(sin)), rotated(k, table(cos), table(sin))

    call = lambda q, k: ops.LigerQwen2VLMRopeFunction.apply(q, k, cos, sin, section)  # noqa: E731
    return compared(call, reference, (normal(2, 4, 5, 32), normal(2, 2, 5, 32, seed=1)))


def llama4_rope():
    turn = torch.polar(torch.ones(5, 16), normal(5, 16, seed=9))

    def one(x):
        pairs = torch.view_as_complex(x.unflatten(-1, (-1, 2)))
        return torch.view_as_real(pairs * turn.to(torch.complex128)[None, :, None]).flatten(-2)

    call = lambda q, k: ops.LigerLlama4RopeFunction.apply(q, k, turn)  # noqa: E731
    reference = lambda q, k: (one(q), one(k))  # noqa: E731
    return compared(call, reference, (normal(2, 5, 4, 32), normal(2, 5, 2, 32, seed=1)))


def embeddings():
    indices = whole(20, 3, 7)
    call = lambda w: embedding.LigerEmbeddingFunction.apply(w, indices)  # noqa: E731
    return compared(call, lambda w: F.embedding(indices, w), (normal(20, 50),), 21)


def times_scalar():
    x, factor = normal(6, 300), normal(1, seed=1)
    before = x.double()
    utils.element_mul_kernel[(6,)](x, x.stride(0), factor, 300, BLOCK_SIZE=512)
    return [pair("x", x, before * factor.double())]


def int8_by_int2():
    a, weights = whole(200, 32, 512).to(torch.int8), whole(3, 512, 32) - 1
    packed = mm_int8int2.pack_weights(weights.clone(), 2)  # it adds the one itself
    got = mm_int8int2.matmul(a, packed)
    return [pair("c", got, a.double() @ weights.double(), dtype=torch.int32)]


def neighborhood_attention():
    def reference(q, k, v):
        t = q.shape[-2]
        at = torch.arange(t)
        near = (at[:, None] - at[None, :]).abs() <= 3
        scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
        return scores.masked_fill(~near, -torch.inf).softmax(-1) @ v

    call = lambda q, k, v: ops.LigerFusedNeighborhoodAttentionFunction.apply(q, k, v, 7, 1)  # noqa: E731
    arguments = tuple(normal(2, 2, 20, 16, seed=i) for i in range(3))
    return compared(call, reference, arguments, 100)


def attention_over_layers():
    def reference(blocks, query, norm):
        keys = rms(blocks, norm)
        weights = (keys * query).sum(-1).softmax(0)
        return (weights[..., None] * blocks).sum(0)

    call = lambda v, q, n: ops.LigerAttnResFunction.apply(v, q, n, 1e-6)  # noqa: E731
    return compared(
        call, reference, (normal(3, 2, 5, 64), normal(64, seed=1), normal(64, seed=2)), 300
    )


def cases() -> list[Case]:
    def case(call, *kernels):
        return Case(call.__name__, call, kernels)

    return [
        case(geglu, "_geglu_tanh_forward_kernel", "_geglu_tanh_backward_kernel"),
        case(silu_mul, "_swiglu_forward_kernel", "_swiglu_backward_kernel"),
        case(silu_mul_tiled, "_swiglu_forward_kernel_tiled", "_swiglu_backward_kernel_tiled"),
        case(
            gate_up, "_swiglu_fused_gate_up_forward_kernel", "_swiglu_fused_gate_up_backward_kernel"
        ),
        case(relu_squared, "_relu_squared_forward_kernel", "_relu_squared_backward_kernel"),
        case(dyt, "_dyt_fwd_kernel", "_dyt_bwd_kernel"),
        case(rms_norm, "_rms_norm_forward_kernel", "_rms_norm_backward_kernel"),
        case(rms_norm_block, "_block_rms_norm_forward_kernel", "_block_rms_norm_backward_kernel"),
        case(
            fused_add_rms_norm,
            "_fused_add_rms_norm_forward_kernel",
            "_fused_add_rms_norm_backward_kernel",
        ),
        case(
            modulated_rms_norm,
            "_modulated_rms_norm_forward_kernel",
            "_modulated_rms_norm_backward_kernel",
        ),
        case(layer_norm, "_layer_norm_forward_kernel", "_layer_norm_backward_kernel"),
        case(group_norm, "_group_norm_forward_kernel", "_group_norm_backward_kernel"),
        case(poly_norm, "_poly_norm_forward_kernel", "_poly_norm_backward_kernel"),
        case(
            softmax_one,
            "_softmax_single_block_forward_kernel",
            "_softmax_single_block_backward_kernel",
        ),
        case(
            softmax_many,
            "_softmax_multi_block_forward_kernel",
            "_softmax_multi_block_backward_kernel",
        ),
        case(sparsemax, "_sparsemax_forward_kernel", "_sparsemax_backward_kernel"),
        case(
            multi_token_attention,
            "_mask_fwd_kernel",
            "_mask_bwd_kernel",
        ),
        case(cross_entropy, "liger_cross_entropy_kernel", "element_mul_kernel"),
        case(linear_cross_entropy, "liger_cross_entropy_kernel", "element_mul_kernel"),
        case(vocab_parallel_cross_entropy),
        case(kl_div, "_kldiv_kernel_forward", "_kldiv_kernel_backward"),
        case(linear_kl_div),
        case(jsd, "_jsd_kernel"),
        case(linear_jsd, "_jsd_kernel", "element_mul_kernel"),
        case(tvd, "_tv_distance_kernel"),
        case(ce_tvd, "_fused_ce_tvd_forward_kernel", "_fused_ce_tvd_backward_kernel"),
        case(rope, "_triton_rope"),
        case(mrope, "_triton_qwen2vl_mrope"),
        case(llama4_rope, "_llama4_rope_kernel"),
        case(embeddings, "embedding_forward_kernel", "embedding_backward_kernel"),
        case(times_scalar, "element_mul_kernel"),
        case(int8_by_int2, "matmul_kernel"),
        case(neighborhood_attention),
        case(attention_over_layers),
        *liger_blocks.cases(),
    ]
