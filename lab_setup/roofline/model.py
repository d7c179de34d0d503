"""The roofline: what a kernel's bytes and operations say about its time on a card.

A kernel cannot end before its bytes have crossed the memory bus, nor before its operations have
been done; the slowest of these is the bound (Williams, Waterman and Patterson, 2009).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from autograder.counting import EFFECTIVE, Counts, counts
from autograder.ir.cards import Card
from autograder.records import Rejected

__all__ = [
    "Prediction",
    "Work",
    "above_roof",
    "extrapolated",
    "peak_of",
    "predict",
    "roof_ms",
    "work_of",
]


@dataclass(frozen=True)
class Work(Counts):
    """What one call needs: counted, or continued from counts, which leaves whole numbers."""

    @property
    def memory(self) -> float:
        """Bytes that cross the memory bus."""
        return self.fetched + self.written

    @property
    def operations(self) -> float:
        return self.dot + self.elementwise

    @property
    def intensity(self) -> float:
        """FLOP per byte of memory traffic."""
        return self.operations / self.memory


@dataclass(frozen=True)
class Prediction:
    """The least time of a piece of work on a card, and what a good kernel attains.

    ``bound``: "memory", "tensor cores" or "fp32 units"; ``ms``: at the roof; ``band``: attainable
    times, shortest first, in ms; ``tflops``: at the roof.
    """

    intensity: float
    bound: str
    ms: float
    band: tuple[float, float]
    tflops: float


def work_of(
    function: Callable,
    arguments: Sequence[Any],
    card: Card,
    *,
    backward: bool = False,
    share: float = 1.0,
) -> Work:
    """Counts one call on tensors that are only described (``autograder.records.Tensor``).

    A launch has the part EFFECTIVE of ``card``'s L2 cache, and one program
    runs on each SM. ``share`` below 1: the call is a slice along a sum, such a share of the whole.
    """
    capacity = EFFECTIVE * card.l2_mb * 2**20
    found = counts(
        function, arguments, at_once=card.sms, capacity=capacity, share=share, backward=backward
    )
    return Work(**asdict(found))


def extrapolated(once: Work, twice: Work, times: float) -> Work:
    """The work at ``times`` the size of ``once``, linear through it and that of double size."""

    def line(name: str) -> float:
        a, b = getattr(once, name), getattr(twice, name)
        return a + (b - a) * (times - 1)

    numbers = {f.name: line(f.name) for f in fields(Work) if f.name != "dtype"}
    return Work(**numbers, dtype=once.dtype)


def peak_of(dtype: str, card: Card) -> float:
    """TFLOP/s of ``tl.dot`` on this type. float32 goes through TF32, at half the rate of bf16; fp8
    and int8 at twice it where the card has it (cc 8.9 and up: fp8)."""
    if dtype in ("float32", "float64"):
        return card.bf16_tflops / 2
    if dtype == "int8" or (dtype.startswith("float8") and card.cc >= 89):
        return card.bf16_tflops * 2
    return card.bf16_tflops


def roof_ms(nbytes: float, flop: float, dtype: str, card: Card) -> float:
    """Milliseconds that these bytes and operations of ``tl.dot`` take at least."""
    return max(nbytes / card.bandwidth / 1e6, flop / peak_of(dtype, card) / 1e9)


def predict(work: Work, card: Card, band: tuple[float, float] = (0.8, 0.9)) -> Prediction:
    """The least time of ``work`` on ``card``; ``band``: attainable shares of the roof.

    Raises Rejected for work that moves nothing, such as a solution that is not written yet.
    """
    if not work.memory:
        raise Rejected("its kernels load and store nothing. Is the solution written yet?")
    seconds = {
        "memory": work.memory / (card.bandwidth * 1e9),
        "tensor cores": work.dot / (peak_of(work.dtype, card) * 1e12),
        "fp32 units": work.elementwise / (card.fp32_tflops * 1e12),
    }
    bound = max(seconds, key=seconds.get)
    least = seconds[bound]
    low, high = band
    return Prediction(
        intensity=work.intensity,
        bound=bound,
        ms=1e3 * least,
        band=(1e3 * least / high, 1e3 * least / low),
        tflops=work.operations / least / 1e12,
    )


def above_roof(
    card: Card | None, gbs: float, tflops: float | None = None, dtype: str = "bfloat16"
) -> str:
    """Why a figure cannot be true on this card, or an empty string.

    ``gbs``: the bytes that must cross the bus over the time; ``tflops``: operations of ``dtype`` on
    tensor cores over the time.
    """
    if card is None:
        return ""
    if gbs > card.bandwidth:
        return (
            f"{gbs:,.0f} GB/s is above the card's {card.bandwidth:,.0f}: part of the data never "
            "left the L2 cache, or bytes_of counts more than what moves"
        )
    peak = peak_of(dtype, card)
    if tflops is not None and tflops > peak:
        return (
            f"{tflops:,.0f} TFLOP/s is above the card's {peak:,.0f}: not all the work was done, or "
            "flop_of counts too much"
        )
    return ""
