# expect: torch_computed kernel
import torch


def layernorm(x, w, b, eps=1e-5):
    return torch.nn.functional.layer_norm(x, (x.shape[-1],), w, b, eps)
