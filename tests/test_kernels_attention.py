"""Fast attention: right on the CPU by the interpreter, and what the compiler makes of it."""

from __future__ import annotations

import collections
import math
from pathlib import Path

import pytest
import torch

from autograder.interpreting import interpret
from autograder.ir.compile import compile_all
from autograder.solutions import load_solution
from lab_setup.kernels import attention, attention_backward, dispatch
from lab_setup.kernels.bench import attentions
from lab_setup.kernels.bench.attention_checks import gradients
from lab_setup.kernels.bench.attention_steps import step
from lab_setup.kernels.bench.checking import poisoned

ROOT = Path(__file__).resolve().parents[1]
CARD = {"pointers": "RTX 4080", "descriptors": "H200", "specialised": "H200"}


def tensors(b, h, t, d, dtype=torch.float16, count=3, seed=0):
    made = torch.Generator().manual_seed(seed)
    return [torch.randn((b, h, t, d), generator=made).to(dtype) for _ in range(count)]


def exact(q, k, v, causal):
    """o and lse in float64."""
    q, k, v = (x.double() for x in (q, k, v))
    s = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
    if causal:
        hidden = torch.ones(s.shape[-2:], dtype=torch.bool).triu(1)
        s = s.masked_fill(hidden, -math.inf)
    return torch.softmax(s, -1) @ v, torch.logsumexp(s, -1)


def close(q, k, v, o, lse, causal):
    expected, logs = exact(q, k, v, causal)
    # p and o are rounded once each, to 2⁻¹¹ of themselves; p's weights sum to 1, so neither moves
    # o by more than 2⁻¹¹ of the largest value. float32 sums are below that by far.
    assert (o.double() - expected).abs().max() <= 2**-10 * v.abs().max()
    # Scores are float32: some D roundings of 2⁻²⁴ each, of products that are at most |q||k|.
    reach = (q.double().norm(dim=-1).max() * k.double().norm(dim=-1).max()).item()
    bound = 2**-24 * reach * (q.shape[-1] + 8) / math.sqrt(q.shape[-1]) + 2**-20
    assert (lse.double() - logs).abs().max() <= bound


def run(q, k, v, causal, kind, config=0):
    with dispatch.named(CARD[kind]), interpret(config=config) as record, poisoned():
        o, lse = attention.forward(q, k, v, causal, kind=kind)
    assert not record.findings, record
    return o, lse


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("t", [1, 63, 128, 200])
@pytest.mark.parametrize("kind", ["pointers", "descriptors"])
def test_forward_of_any_length(kind, t, causal):
    q, k, v = tensors(1, 3, t, 64)
    close(q, k, v, *run(q, k, v, causal, kind), causal)


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("d", [64, 128])
def test_persistent_forward(d, causal):
    q, k, v = tensors(1, 3, 512, d)
    close(q, k, v, *run(q, k, v, causal, "specialised"), causal)


@pytest.mark.parametrize("config", range(5))
@pytest.mark.parametrize("kind", ["pointers", "descriptors"])
def test_every_config(kind, config):
    q, k, v = tensors(1, 1, 300, 64)
    close(q, k, v, *run(q, k, v, True, kind, config), True)


@pytest.mark.parametrize("causal", [True, False])
def test_any_strides_and_many_heads(causal, monkeypatch):
    packed = torch.randn((2, 70, 3, 5, 32), generator=torch.Generator().manual_seed(1)).half()
    q, k, v = (packed[:, :, i].transpose(1, 2) for i in range(3))
    monkeypatch.setattr(attention, "heads_in_l2", lambda *a: 4)  # 10 heads: the last group is short
    close(q, k, v, *run(q, k, v, causal, "pointers"), causal)


def test_kernels_of_a_card():
    q = torch.empty((1, 1, 256, 64), dtype=torch.float16)
    wide = torch.empty((1, 1, 256, 128), dtype=torch.float16)
    ragged = torch.empty((1, 1, 255, 128), dtype=torch.float16)
    with dispatch.named("RTX 4080"):
        assert attention.best_kind(wide, wide, wide, False) == "pointers"
    with dispatch.named("H200"):
        assert attention.best_kind(q, q, q, False) == "specialised"
        assert attention.best_kind(ragged, ragged, ragged, True) == "descriptors"
        assert attention.best_kind(wide.float(), wide.float(), wide.float(), True) == "pointers"
        assert attention.best_kind(wide[..., ::2], q, q, True) == "pointers"


def test_bad_calls_are_one_sentence():
    q = torch.zeros(1, 1, 16, 64)
    with pytest.raises(ValueError, match="one shape"):
        attention.flash_attention(q, q[:, :, :8], q)
    with pytest.raises(ValueError, match="D, the last size"):
        attention.flash_attention(*[torch.zeros(1, 1, 16, 48)] * 3)
    with pytest.raises(ValueError, match="one floating type"):
        attention.flash_attention(q, q.half(), q)
    with pytest.raises(ValueError, match="multiples of 256"):
        attention.forward(*[q.half()] * 3, True, kind="specialised")


@pytest.mark.parametrize("number", range(6))
def test_steps_of_the_ladder(number):
    q, k, v = tensors(1, 3, 256, 64)
    with interpret() as record, poisoned():
        o = attentions.LADDERS[0].steps[number].make(q, k, v)()
    assert not record.findings
    assert (o.double() - exact(q, k, v, True)[0]).abs().max() <= 2**-10 * v.abs().max()


def test_a_step_without_bounds_refuses_what_it_cannot_do():
    with pytest.raises(ValueError, match="multiple of 64"):
        step(exp2=True, bounds=False)(*tensors(1, 1, 65, 64))


def backward_close(q, k, v, do, causal, kind, config=0):
    with dispatch.named(CARD[kind]), interpret(config=config) as record, poisoned():
        o, lse2 = attention.forward(q, k, v, causal, unit=1.0, kind="pointers")
        made = attention_backward.backward(q, k, v, o, lse2, do, causal, kind)
    assert not record.findings, record
    for h in range(q.shape[1]):
        expected = gradients(q[0, h], k[0, h], v[0, h], do[0, h], causal)
        for got, right in zip(made, expected, strict=True):
            # o, p, ds and the result are rounded to 2⁻¹¹ of themselves at most, each of which
            # moves a gradient's norm by that share of it, or of what cancels in it.
            assert (got[0, h].double() - right).norm() <= 2**-8 * right.norm()


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("t", [63, 128, 200])
@pytest.mark.parametrize("kind", ["pointers", "descriptors"])
def test_backward_of_any_length(kind, t, causal):
    tensors_ = tensors(1, 2, t, 64, count=4)
    backward_close(*tensors_, causal, kind)


@pytest.mark.parametrize("causal", [True, False])
def test_persistent_backward(causal):
    tensors_ = tensors(1, 3, 512, 64, count=4)
    backward_close(*tensors_, causal, "specialised")


@pytest.mark.parametrize("config", range(5))
@pytest.mark.parametrize("kind", ["pointers", "descriptors"])
def test_every_config_backward(kind, config):
    tensors_ = tensors(1, 1, 300, 64, count=4)
    backward_close(*tensors_, True, kind, config)


@pytest.mark.parametrize("card", ["RTX 4080", "H200"])
def test_autograd(card):
    leaves = [x.requires_grad_() for x in tensors(1, 2, 40, 64)]
    with dispatch.named(card), interpret() as record:
        o = attention.FlashAttention.apply(*leaves, True)
        o.sum().backward()  # its gradient is one number, expanded
    assert not record.findings
    q, k, v = (x.detach()[0, 1] for x in leaves)
    for leaf, right in zip(leaves, gradients(q, k, v, torch.ones_like(q), True), strict=True):
        assert (leaf.grad[0, 1].double() - right).norm() <= 2**-8 * right.norm()


# ---------------------------------------------------------------- the compiler


def facts_of_both_passes(card, kind, config):
    """What the compiler says of each kernel of both passes, by D and name."""
    found = {}
    for d in (64, 128):
        q, k, v, do = tensors(1, 1, 128, d, torch.bfloat16, 4)
        with dispatch.named(card) as row, interpret(config=config) as record:
            o, lse2 = attention.forward(q, k, v, True, unit=1.0, kind=kind)
            attention_backward.backward(q, k, v, o, lse2, do, True, kind)
        kernels = [kernel for kernel, _, _ in record.launches]
        found |= {(d, facts.kernel): facts for facts in compile_all(kernels, row)}
    assert len(found) == 8  # forward, delta, dk and dv, dq
    return found


def test_every_kernel_fits_compute_capability_8_9_without_spills():
    left = None
    for config in (0, 1):
        facts = facts_of_both_passes("RTX 4080", "pointers", config)
        assert all(not f.error and f.shared <= 101_376 for f in facts.values()), facts
        spilling = {which for which, f in facts.items() if f.spills}
        left = spilling if left is None else left & spilling
    assert not left


def test_every_kernel_with_descriptors_compiles_and_fits():
    for facts in facts_of_both_passes("H200", "descriptors", 0).values():
        assert not facts.error and facts.shared <= facts.shared_limit, facts
        assert facts.instructions["cp.async.bulk"] or facts.kernel == "delta_kernel"


def test_the_first_step_is_the_course_solution():
    course = load_solution(str(ROOT / "source/06_flash_attention/06_flash_attention.ipynb"))["boss"]
    q, k, v = tensors(1, 2, 256, 64, torch.bfloat16)
    with interpret() as theirs:
        course(q, k, v, True)
    with interpret() as ours:
        attentions.LADDERS[0].steps[0].make(q, k, v)()
    assert ours.operations == theirs.operations and ours.bytes == theirs.bytes
    kernels = [record.launches[0][0] for record in (ours, theirs)]
    assert kernels[0].options == kernels[1].options
    first, second = compile_all(kernels)
    assert first.shared == second.shared and first.instructions == second.instructions
    assert 512 // first.registers == 512 // second.registers  # as many programs of 128 threads


def test_a_card_tries_few_configs():
    for cc in (89, 90):
        found = collections.Counter(
            x.label.partition(", BLOCK_M")[0] for x in attentions.launches(cc)
        )
        assert max(found.values()) <= 6, found
        assert any("descriptors" in label for label in found) == (cc >= 90)
