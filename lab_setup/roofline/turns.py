"""Times functions on the card side by side: they take turns, each on an emptied L2 cache."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager

__all__ = ["captured", "in_turn", "own_stream"]


def own_stream() -> AbstractContextManager:
    """A stream beside the default one, on which functions can be made, captured and timed."""
    import torch

    return torch.cuda.stream(torch.cuda.Stream())


def captured(
    functions: Mapping[str, Callable[[], object]],
) -> tuple[dict[str, Callable[[], object]], dict[str, str]]:
    """The functions as CUDA graphs, whose launches cost the host nothing, so that the card's work
    is timed and not Python's. Second, by name, why a function stays as it is.

    Within ``own_stream``, in which the functions were made and have run once.
    """
    import torch

    ready: dict[str, Callable[[], object]] = {}
    plain: dict[str, str] = {}
    for name, function in functions.items():
        graph = torch.cuda.CUDAGraph()
        torch.cuda.synchronize()
        try:
            with torch.cuda.graph(graph, stream=torch.cuda.current_stream()):
                kept = function()
            graph.replay()
            torch.cuda.synchronize()
        except Exception as error:  # whatever a function does that cannot be captured
            ready[name] = function
            plain[name] = (str(error).splitlines() or [type(error).__name__])[0][:120]
            continue
        ready[name] = _Replay(graph, kept)
    return ready, plain


class _Replay:
    """One graph with the tensors that it writes."""

    def __init__(self, graph, kept: object):
        self.graph, self.kept = graph, kept

    def __call__(self) -> None:
        self.graph.replay()


def in_turn(
    functions: Mapping[str, Callable[[], object]], warmup: float, rep: float
) -> dict[str, list[float]]:
    """Milliseconds of every run, by the card's own clock, on an L2 cache that was emptied before.

    One function after the other would meet a cold card first and a hot one, at a lower clock,
    last: on an H200 that makes 5 %. So they take turns, and each round begins with another one.
    ``warmup`` and ``rep`` are milliseconds a function.
    """
    from triton.runtime import driver

    device = driver.active.get_device_interface()
    cache = driver.active.get_empty_cache_for_benchmark()
    names = list(functions)

    def rounds(count: int) -> dict[str, list[float]]:
        events = []
        for turn in range(count):
            first = turn % len(names)
            for name in names[first:] + names[:first]:
                start, end = device.Event(enable_timing=True), device.Event(enable_timing=True)
                driver.active.clear_cache(cache)
                start.record()
                functions[name]()
                end.record()
                events.append((name, start, end))
        device.synchronize()
        times: dict[str, list[float]] = {name: [] for name in names}
        for name, start, end in events:
            times[name].append(start.elapsed_time(end))
        return times

    rounds(1)  # compiles what is not compiled yet
    whole = sum(statistics.median(times) for times in rounds(3).values())
    rounds(_between(1, warmup * len(names) / whole, 100))
    # Fewer than 25 runs of a long kernel leave 3 % between medians of one and the same.
    return rounds(_between(25, rep * len(names) / whole, 1000))


def _between(least: int, wanted: float, most: int) -> int:
    return max(least, min(int(wanted), most))
