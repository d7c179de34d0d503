"""What eager PyTorch moves: one kernel an operation, each reads its tensors and writes its results.

Counted on the CPU from the operations that reach torch's dispatcher; views cost nothing there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

__all__ = ["Eager", "eager"]


@dataclass(frozen=True)
class Eager:
    """The operations of one call in order: (name, elements read, elements written)."""

    operations: tuple[tuple[str, int, int], ...]

    @property
    def elements(self) -> int:
        """Elements read and written by all operations together."""
        return sum(read + written for _, read, written in self.operations)

    def __repr__(self) -> str:
        lines = [f"{'operation':16}{'read':>12}{'written':>12}"]
        for name, read, written in self.operations:
            lines.append(f"{name:16}{read:12,}{written:12,}")
        kernels = len(self.operations)
        lines.append(f"{kernels} kernel{'s' * (kernels != 1)}, {self.elements:,} numbers moved")
        return "\n".join(lines)


def eager(function: Callable, *arguments: Any) -> Eager:
    """What ``function(*arguments)`` moves when PyTorch runs each operation as a kernel.

    Every tensor that an operation takes is read whole, every tensor that it returns is written
    whole; a broadcast operand counts the elements that it has. Views are left out.
    """
    noted: list[tuple[str, int, int]] = []
    with _Count(noted):
        function(*arguments)
    return Eager(tuple(noted))


class _Count(TorchDispatchMode):
    def __init__(self, noted: list) -> None:
        super().__init__()
        self._noted = noted

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Keep torch from importing its compiler for us, which takes as long as torch itself."""
        return False

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        taken, made = _tensors((args, kwargs or {})), _tensors(result)
        storages = {t.untyped_storage()._cdata for t in taken}
        writes = any(
            a.alias_info is not None and a.alias_info.is_write for a in func._schema.arguments
        )
        looks = bool(made) and all(t.untyped_storage()._cdata in storages for t in made)
        if writes or not looks:  # a view moves nothing
            read, written = (sum(t.numel() for t in tensors) for tensors in (taken, made))
            self._noted.append((func._schema.name.partition("::")[2], read, written))
        return result


def _tensors(values: Any) -> list[torch.Tensor]:
    return [leaf for leaf in tree_leaves(values) if isinstance(leaf, torch.Tensor)]
