# expect: torch_computed kernel
import torch


def flash_attention(q, k, v, causal=True, BLOCK_M=64, BLOCK_N=64):
    s = q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5
    if causal:
        hidden = torch.ones(s.shape[-2:], dtype=torch.bool, device=q.device).triu(1)
        s = s.masked_fill(hidden, -float("inf"))
    return torch.softmax(s.float(), dim=-1).to(v.dtype) @ v, torch.logsumexp(s.float(), dim=-1)
