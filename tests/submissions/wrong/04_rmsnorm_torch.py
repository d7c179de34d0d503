# expect: torch_computed kernel
import torch


def rmsnorm(x, w, eps=1e-6):
    return torch.nn.functional.rms_norm(x, (x.shape[-1],), w, eps)
