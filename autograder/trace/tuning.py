"""What Triton's autotuner hands to a prune rule, made from plain data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
import triton

__all__ = ["Tuning"]


class Tuning:
    """The arguments of ``early_config_prune(configs, named_args, **kwargs)``.

    ``data``: ``configs``, each with ``kwargs``, ``num_warps`` and ``num_stages``; ``tensors``
    (argument → dtype and sizes), which become tensors without memory; ``scalars`` (argument →
    number); ``given``, the keyword arguments of the launch.
    """

    def __init__(self, data: Mapping[str, Any]):
        self.configs = tuple(
            triton.Config(
                dict(row["kwargs"]), num_warps=row["num_warps"], num_stages=row["num_stages"]
            )
            for row in data["configs"]
        )
        tensors = {
            name: torch.empty(shape, dtype=getattr(torch, dtype), device="meta")
            for name, (dtype, *shape) in data["tensors"].items()
        }
        self.named_args = tensors | data["scalars"]
        self.kwargs = dict(data["given"])
