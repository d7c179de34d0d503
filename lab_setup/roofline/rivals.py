"""Whom a kernel of the course is measured against: eager PyTorch, torch.compile, the vendor's."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

from autograder.records import Rejected
from lab_setup.roofline.kernels import CourseKernel, Functions

__all__ = ["functions_of", "on_card"]


def functions_of(kernel: CourseKernel, function: Any) -> tuple[Functions, list[str]]:
    """Functions without arguments, by name, on fresh tensors on the card: the course's first, its
    reference last. And a sentence for each rival that this machine does not have.

    Raises Rejected where not one rival runs.
    """
    tensors = on_card(kernel)
    rivals = {name: _rival(kernel, name) for name in kernel.rivals}
    found, absent = {}, []
    for name, call in ({"triton": kernel.call(function)} | rivals).items():
        ready = _backward(call, tensors) if kernel.backward else _forward(call, tensors)
        try:
            ready()
        except RuntimeError as error:
            if name == "triton":
                raise
            said = (str(error).splitlines() or [type(error).__name__])[0]
            absent.append(f"{kernel.id}: {name} does not run here ({said[:100]})")
            continue
        found[name] = ready
    if len(found) == 1:
        raise Rejected(f"{kernel.id}: no rival runs here: {'; '.join(absent)}.")
    return found, absent


def on_card(kernel: CourseKernel) -> list[torch.Tensor]:
    """The kernel's tensors with normal random numbers."""
    return [
        torch.randn(t.shape, device="cuda", dtype=getattr(torch, t.dtype), requires_grad=grad)
        for grad in (kernel.backward,)
        for t in kernel.tensors(kernel.size)
    ]


def _forward(call: Callable, tensors: list[torch.Tensor]) -> Callable[[], object]:
    def forward():
        with torch.no_grad():
            return call(*tensors)

    return forward


def _backward(call: Callable, tensors: list[torch.Tensor]) -> Callable[[], object]:
    """The backward pass alone. The forward pass has run; what it saved is used again and again."""
    made: dict[str, Any] = {}

    def backward():
        if not made:
            made["out"] = call(*tensors)
            # The same incoming gradient for all rivals, or they could not be compared.
            generator = torch.Generator("cuda").manual_seed(0)
            like = made["out"]
            made["gradient"] = torch.randn(
                like.shape, dtype=like.dtype, device=like.device, generator=generator
            )
        return torch.autograd.grad(made["out"], tensors, made["gradient"], retain_graph=True)

    return backward


def _rival(kernel: CourseKernel, name: str) -> Callable:
    """The rival's function of the kernel's tensors."""
    if kernel.id.startswith("06."):
        causal = kernel.id != "06.flash_strong"
        if name == "eager":
            return lambda q, k, v: _attention(q, k, v, causal)
        backend = {
            "FlashAttention-2": SDPBackend.FLASH_ATTENTION,
            "cuDNN": SDPBackend.CUDNN_ATTENTION,
        }[name]
        return lambda q, k, v: _sdpa(q, k, v, causal, backend)
    eager, vendor = _LINES[kernel.id]
    if name == "compile":
        return torch.compile(eager, dynamic=False)
    return eager if name == "eager" else vendor


def _sdpa(q, k, v, causal: bool, backend: SDPBackend) -> torch.Tensor:
    with sdpa_kernel(backend):
        shared = q.shape[1] != k.shape[1]
        return F.scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=shared)


def _attention(q, k, v, causal: bool) -> torch.Tensor:
    scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
    if causal:
        hidden = torch.ones(scores.shape[-2:], dtype=torch.bool, device=q.device).triu(1)
        scores = scores.masked_fill(hidden, -math.inf)
    return torch.softmax(scores, dim=-1) @ v


def _softmax(x: torch.Tensor) -> torch.Tensor:
    e = torch.exp(x - x.amax(dim=1, keepdim=True))
    return e / e.sum(dim=1, keepdim=True)


def _rmsnorm(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    wide = x.float()
    scale = torch.rsqrt((wide * wide).mean(dim=1, keepdim=True) + 1e-6)
    return (wide * scale * w.float()).to(x.dtype)


def _layernorm(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    wide = x.float()
    centred = wide - wide.mean(dim=1, keepdim=True)
    scale = torch.rsqrt((centred * centred).mean(dim=1, keepdim=True) + 1e-5)
    return (centred * scale * w.float() + b.float()).to(x.dtype)


def _torch_softmax(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x, dim=1)


def _torch_rmsnorm(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return F.rms_norm(x, w.shape, w, 1e-6)


def _biased(a: torch.Tensor, b: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    return F.gelu(torch.addmm(bias, a, b), approximate="tanh")


# Exercise → its eager lines, and what the vendor (or PyTorch in one kernel) has.
_LINES: dict[str, tuple[Callable, Callable]] = {
    "02.add": (torch.add, torch.add),
    "02.fma_relu": (lambda x, y, z: torch.relu(x * y + z),) * 2,
    "03.softmax": (_softmax, _torch_softmax),
    "03.softmax_backward": (_softmax, _torch_softmax),
    "03.softmax_long": (_softmax, _torch_softmax),
    "04.rmsnorm": (_rmsnorm, _torch_rmsnorm),
    "04.layernorm": (_layernorm, lambda x, w, b: F.layer_norm(x, w.shape, w, b)),
    "04.rmsnorm_backward": (_rmsnorm, _torch_rmsnorm),
    "05.matmul": (torch.matmul, torch.matmul),
    "05.grouping": (torch.matmul, torch.matmul),
    "05.matmul_bias_gelu": (_biased, _biased),
}
