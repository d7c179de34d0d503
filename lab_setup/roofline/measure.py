"""Optional GPU cells: what runs here, and how fast a kernel is on this machine's card.

Nothing here keeps figures. Without a card ``measure`` times nothing and returns the expectation
that the caller passed in, marked as one.
"""

from __future__ import annotations

import json
import os
import statistics
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from autograder.ir.cards import card
from lab_setup.roofline.versions import TritonMissing, versions

__all__ = [
    "Measured",
    "Timing",
    "TritonMissing",
    "differs",
    "gpu",
    "measure",
    "peak_bytes",
    "versions",
]


@dataclass(frozen=True)
class Timing:
    """One function at one size: median, 20th and 80th percentile in milliseconds."""

    name: str
    size: int
    ms: float
    low: float
    high: float
    gbs: float  # GB/s, 10^9 bytes: the bytes that theory asks for, by the median
    tflops: float | None = None  # TFLOP/s, where the caller says how many operations there are


@dataclass(frozen=True)
class Measured:
    """What ``measure`` found: timings, or none of them and a sentence that says why."""

    timings: tuple[Timing, ...]
    card: str = ""
    bandwidth: float | None = None  # the data sheet's, GB/s, where the card is in the table
    peak: float | None = None  # the data sheet's, TFLOP/s in bf16 with float32 sums, likewise
    note: str = ""

    def __repr__(self) -> str:
        if not self.timings:
            return self.note
        by_work = all(t.tflops is not None for t in self.timings)
        top, unit = (self.peak, "TFLOP/s") if by_work else (self.bandwidth, "GB/s")
        sheet = f", {top:g} {unit} by its data sheet" if top else ""
        lines = [self.card + sheet]
        lines.append(f"{'n':>12}  {'':12}{'ms':>9}{'(20–80 %)':>18}{unit:>9}{'of peak':>9}")
        for t in self.timings:
            speed = t.tflops if by_work else t.gbs
            share = f"{speed / top:8.0%}" if top else "       –"
            spread = f"({t.low:.4f}–{t.high:.4f})"
            lines.append(f"{t.size:>12,}  {t.name:12}{t.ms:9.4f}{spread:>18}{speed:9.0f} {share}")
        return "\n".join(lines + [self.note] * bool(self.note))


def _refusal() -> str:
    """Why nothing can be timed here, or an empty string."""
    import torch

    if os.environ.get("TRITON_INTERPRET", "0") not in ("", "0"):
        return (
            "Nothing was measured: TRITON_INTERPRET is set, so this would time Triton's "
            "interpreter on the CPU. Unset it and restart the kernel of the notebook."
        )
    if not torch.cuda.is_available():
        return "Nothing was measured: there is no GPU here."
    return ""


def _wrapped(*sentences: str) -> str:
    """Lines of at most 92 characters, which fit a page of JupyterLab: it breaks longer ones within
    a word."""
    return "\n".join(textwrap.fill(text, 92, break_on_hyphens=False) for text in sentences)


def gpu(expect: str) -> bool:
    """Whether a GPU cell can run. If not, prints why and ``expect``: what it would have shown."""
    refusal = _refusal()
    if refusal:
        print(_wrapped(refusal, f"Expected on a GPU: {expect}"))
    return not refusal


def measure(
    rivals: Callable[[int], Mapping[str, Callable[[], object]]],
    sizes: Sequence[int],
    *,
    bytes_of: Callable[[int], int],
    expect: str,
    flop_of: Callable[[int], float] | None = None,
    atol_of: Callable[[int], float] | None = None,
    unchecked: Sequence[str] = (),
    dtype: str = "bfloat16",
    warmup: int = 25,
    rep: int = 100,
    save: str | Path | None = None,
) -> Measured:
    """Times functions side by side: they take turns, and L2 is emptied before each run.

    ``rivals(size)`` makes the tensors on the card and returns the functions by name, without
    arguments; ``bytes_of(size)`` is what theory asks for, ``flop_of(size)`` the floating-point
    operations where these set the pace; ``warmup`` and ``rep`` are milliseconds a function. Where
    results differ (by ``torch.testing.assert_close``, from the last function's) nothing is timed: a
    wrong kernel has no speed. ``atol_of(size)`` is an absolute difference to allow besides torch's
    relative one, for sums that end near zero; ``unchecked`` names functions that may differ, such
    as one that rounds at every step.

    One process at a time measures on a card: others wait for its lock. Functions run as CUDA graphs
    where they can. A figure above the roof, for operations that of ``dtype``, is refused with the
    reason in ``note``; there also stands who else was on the card. ``save`` names a JSON file for
    all that, with clocks and versions.

    Without a GPU, or with TRITON_INTERPRET set, ``rivals`` is not called. Then ``timings`` is empty
    and ``note`` says why, what was expected, and what the roofline predicts.
    """
    refusal = _refusal()
    if refusal:
        said = _roof_times(sizes, bytes_of, flop_of, dtype)
        return Measured((), note=_wrapped(refusal, f"Expected on a GPU: {expect}", said))

    # Only here: without Triton or on another system, versions() must have its say first.
    import torch

    from lab_setup.gpulock import hold
    from lab_setup.gpus import current
    from lab_setup.roofline.machine import about, card_here, others_on
    from lab_setup.roofline.model import above_roof, peak_of
    from lab_setup.roofline.turns import captured, in_turn, own_stream

    name, uuid, row = torch.cuda.get_device_name(), current(), card_here()
    notes: list[str] = []
    timings: list[Timing] = []
    before = set(others_on(uuid))
    with hold(uuid), own_stream():
        for size in sizes:
            functions = rivals(size)
            difference = _difference(functions, unchecked, atol_of(size) if atol_of else None)
            if difference:
                return Measured((), note=f"Nothing was measured: at n = {size}, {difference}")
            ready, plain = captured(functions)
            for label, why in plain.items():
                notes.append(f"{label} was not captured as a CUDA graph ({why}): launches count.")
            for label, times in in_turn(ready, warmup, rep).items():
                timing = _timing(label, size, times, bytes_of(size), flop_of and flop_of(size))
                why = above_roof(row, timing.gbs, timing.tflops, dtype)
                if why:
                    notes.append(f"Refused: {label} at n = {size:,}: {why}.")
                else:
                    timings.append(timing)
    for process in sorted(before | set(others_on(uuid))):
        notes.append(f"{process} had memory on this card meanwhile: if it worked, figures are off.")
    found = Measured(
        tuple(timings),
        name,
        row.bandwidth if row else None,
        peak_of(dtype, row) if row else None,
        "\n".join(dict.fromkeys(notes)),
    )
    if save:
        Path(save).write_text(json.dumps(about() | asdict(found), indent=1), encoding="utf-8")
    return found


def _roof_times(
    sizes: Sequence[int],
    bytes_of: Callable[[int], int],
    flop_of: Callable[[int], float] | None,
    dtype: str,
) -> str:
    """One line: the least times that the default card's roof allows, which is a prediction."""
    from lab_setup.roofline.model import roof_ms

    row = card()
    times = []
    for size in sizes:
        ms = roof_ms(bytes_of(size), flop_of(size) if flop_of else 0.0, dtype, row)
        text = f"{1e3 * ms:.3g} µs" if ms < 1 else f"{ms:.3g} ms"
        times.append(f"{text} at n = {size:,}")
    return f"Predicted, the roof of the {row.name}: no kernel needs less than {', '.join(times)}."


def _timing(
    name: str, size: int, times: Sequence[float], nbytes: int, flop: float | None
) -> Timing:
    tenths = statistics.quantiles(times, n=10, method="inclusive")
    low, ms, high = tenths[1], tenths[4], tenths[7]
    return Timing(name, size, ms, low, high, nbytes / ms / 1e6, flop / ms / 1e9 if flop else None)


def _difference(
    functions: Mapping[str, Callable[[], object]],
    unchecked: Sequence[str],
    atol: float | None = None,
) -> str:
    """A sentence that names the first function whose result is not the last one's, or nothing."""
    *others, (reference, function) = functions.items()
    expected = function()
    for name, other in others:
        if name in unchecked:
            continue
        if what := differs(other(), expected, atol):
            return f"{name} does not give what {reference} gives. {what}"
    return ""


def differs(result: object, expected: object, atol: float | None = None) -> str:
    """How tensors, or tuples of them, differ by ``torch.testing.assert_close``, or nothing.

    ``atol``: an absolute difference to allow besides torch's relative one for bfloat16; torch's
    own of both without it. NaN differs from everything.
    """
    from torch.testing import assert_close

    try:
        if atol is None:
            assert_close(result, expected)
        else:
            assert_close(result, expected, rtol=1.6e-2, atol=atol)  # torch's for bfloat16
    except (AssertionError, TypeError) as error:
        return " ".join(str(error).split()[:24])
    return ""


def peak_bytes(function: Callable[[], object]) -> int:
    """Most bytes of the card's memory that one call of ``function`` takes on top of what is there.

    Wants a GPU: ask ``gpu`` first.
    """
    import torch

    function()  # what is compiled or cached at the first call is none of its own
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    kept = function()
    torch.cuda.synchronize()
    del kept
    return torch.cuda.max_memory_allocated() - before
