"""What a public kernel is asked: its host function, a PyTorch reference in float64, a tolerance."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from autograder.floats import UNIT


@dataclass(frozen=True)
class Pair:
    """One tensor that came back and what PyTorch says, float64; ``unit`` of the type in which the
    kernel computed, ``terms`` of its longest sum."""

    name: str
    got: torch.Tensor
    want: torch.Tensor
    unit: float
    terms: int

    @property
    def tolerance(self) -> float:
        """Roundings of a sum add up to at most its length times the unit, relative to its terms
        (Higham, Accuracy and Stability of Numerical Algorithms, 4.2); 16 more for what is done to
        the inputs and with the result. Exact types must agree exactly."""
        largest = self.want.abs().max().item() if self.want.numel() else 0.0
        return (self.terms + 16) * self.unit * largest

    @property
    def error(self) -> float:
        """Largest difference in units of the tolerance; infinite where shapes or NaNs differ."""
        got, want = self.got.detach().double(), self.want.detach().double()
        if got.shape != want.shape or bool((got.isnan() != want.isnan()).any()):
            return float("inf")
        same = (got == want) | got.isnan()
        difference = (got - want).abs().masked_fill(same, 0.0)
        largest = difference.max().item() if difference.numel() else 0.0
        return (
            0.0 if largest == 0.0 else largest / self.tolerance if self.tolerance else float("inf")
        )


@dataclass(frozen=True)
class Case:
    """``call()`` runs the host function (the runner interprets its launches) and returns pairs.

    ``kernels`` are the names of some that have to be launched by it.
    """

    name: str
    call: Callable[[], list[Pair]]
    kernels: tuple[str, ...] = ()


def normal(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def whole(high: int, *shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randint(0, high, shape, generator=torch.Generator().manual_seed(seed))


def pair(name: str, got: torch.Tensor, want: torch.Tensor, terms: int = 1, dtype=None) -> Pair:
    kind = str(dtype or got.dtype).removeprefix("torch.")
    return Pair(name, got, want, UNIT.get(kind, 0.0), terms)


def compared(
    function: Callable,
    reference: Callable,
    arguments: Sequence[Any],
    terms: int = 1,
    *,
    backward: bool = True,
    dtype: torch.dtype | None = None,
    names: Sequence[str] = (),
) -> list[Pair]:
    """Outputs, and gradients of floating arguments, of both functions on the same numbers.

    ``reference`` gets float64 copies. ``dtype``: the type in which the kernel computes, where it is
    coarser than that of its outputs. ``arguments`` whose gradient is None on both sides are left
    out.
    """
    mine = [_leaf(a, None, backward) for a in arguments]
    exact = [_leaf(a, torch.float64, backward) for a in arguments]
    got, want = _tuple(function(*mine)), _tuple(reference(*exact))
    pairs = [
        pair(f"output {i}", g, w, terms, dtype)
        for i, (g, w) in enumerate(zip(got, want, strict=True))
    ]
    if not backward:
        return pairs
    incoming = [
        normal(*w.shape, seed=100 + i).to(g.dtype)
        for i, (g, w) in enumerate(zip(got, want, strict=True))
    ]
    through = [i for i, w in enumerate(want) if w.requires_grad]
    theirs = [incoming[i].clone() for i in through]  # some kernels write over what comes in
    torch.autograd.backward([got[i] for i in through], theirs)
    torch.autograd.backward([want[i] for i in through], [incoming[i].double() for i in through])
    for i, (g, w) in enumerate(zip(mine, exact, strict=True)):
        if isinstance(w, torch.Tensor) and w.grad is not None:
            grad = torch.full_like(g, torch.nan) if g.grad is None else g.grad
            pairs.append(pair(f"gradient {i}", grad, w.grad, terms, dtype))
    return pairs


def _leaf(argument: Any, dtype: torch.dtype | None, backward: bool) -> Any:
    if not isinstance(argument, torch.Tensor):
        return argument
    if not argument.is_floating_point():
        return argument.clone()
    copy = argument.detach().clone().to(dtype or argument.dtype)
    return copy.requires_grad_(backward)


def _tuple(returned: Any) -> tuple:
    return tuple(returned) if isinstance(returned, (tuple, list)) else (returned,)
