"""What checks at full size have in common: poisoned memory, the measure of an error, races."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch

__all__ = ["apart", "error", "poisoned"]


@contextmanager
def poisoned() -> Iterator[None]:
    """Within it, ``torch.empty`` gives NaN: a number that nobody writes shows in the result."""
    before = torch.are_deterministic_algorithms_enabled()
    filled = torch.utils.deterministic.fill_uninitialized_memory
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.utils.deterministic.fill_uninitialized_memory = True
    try:
        yield
    finally:
        torch.utils.deterministic.fill_uninitialized_memory = filled
        torch.use_deterministic_algorithms(before)


def error(found: torch.Tensor, reference: torch.Tensor) -> float:
    """‖found - reference‖ / ‖reference‖ in the reference's type, which should be the wider one."""
    wide = found.detach().to(reference.dtype)
    return float((wide - reference.detach()).norm() / reference.detach().norm())


def apart(function: Callable[[], torch.Tensor | tuple[torch.Tensor, ...]], runs: int = 5) -> float:
    """In how many numbers repeated runs differ, bit by bit: any means a race."""
    first, *others = (_bits(function()) for _ in range(runs))
    pairs = (pair for other in others for pair in zip(first, other, strict=True))
    return float(sum((a != b).sum().item() for a, b in pairs))


def _bits(found: torch.Tensor | tuple[torch.Tensor, ...]) -> list[torch.Tensor]:
    tensors = found if isinstance(found, tuple) else (found,)
    return [t.detach().contiguous().view(torch.uint8) for t in tensors]
