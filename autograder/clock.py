"""For lessons: the clocks of a host and of a card, modelled: measuring without a card.

A ``ModelCard`` computes nothing. A launch costs the host some time and puts work into the card's
queue; the work takes as long as its bytes need, from memory or from L2. Inside ``with card:`` the
functions by which Triton and torch time a card read these clocks, so ``triton.testing.do_bench``
itself runs and shows what it would do. Its figures are the model's and no measurement.
"""

from __future__ import annotations

import contextlib
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, NamedTuple
from unittest import mock

import torch
from triton.runtime.driver import driver

from autograder.ir.cards import DEFAULT, card
from autograder.trace.pretend import card_answers

__all__ = ["ModelCard", "Span"]

_FLUSH = 256 * 10**6  # bytes that do_bench overwrites to empty L2


class Span(NamedTuple):
    """Something that took time: ``where`` is "host" or "card"; start and end in µs."""

    where: str
    name: str
    start: float
    end: float


class ModelCard:
    """Two clocks in µs: ``host`` is now, ``free`` is when the card will have done all it was given.

    * ``launch_us``: host time of a launch. 17 lies among the 16–19 µs measured for a Triton kernel
      on one H200 machine (Triton 3.6); torch took 6–9 there.
    * ``kernel_us``: what a kernel takes besides moving its bytes, 1 µs; in a graph of 100 small
      kernels each took 0.95 µs there.
    * ``l2_speed``: how many times faster than memory L2 delivers. An assumption; 4 is round.

    Bandwidth (GB/s) and size of L2 are those of the data sheet of ``name``.
    """

    def __init__(
        self,
        name: str = DEFAULT,
        launch_us: float = 17.0,
        kernel_us: float = 1.0,
        l2_speed: float = 4.0,
    ) -> None:
        row = card(name)
        self.name = f"model of an {row.name}"
        self.bandwidth, self.l2_bytes = row.bandwidth, row.l2_mb * 2**20
        self.launch_us, self.kernel_us, self.l2_speed = launch_us, kernel_us, l2_speed
        self.host = self.free = 0.0
        self.spans: list[Span] = []
        self._l2: OrderedDict[str, float] = OrderedDict()  # the buffer touched last stands last
        self._capturing: list[Callable[[], None]] | None = None
        self._patches = contextlib.ExitStack()

    def kernel(self, name: str, compile_us: float = 0.0, **buffers: float) -> Callable[[], None]:
        """A function that launches a kernel which moves ``buffers``, in bytes by name.

        Its first call takes ``compile_us`` of host time more.
        """
        waiting = [compile_us] if compile_us else []

        def launch() -> None:
            if waiting:
                self._on_host("compile", waiting.pop())
            if self._capturing is not None:
                self._capturing.append(lambda: self._work(name, buffers))
                return
            self._on_host("launch", self.launch_us)
            self._work(name, buffers)

        return launch

    def synchronize(self, *_: Any) -> None:
        """The host waits until the card has nothing left to do."""
        if self.free > self.host:
            self._on_host("wait", self.free - self.host)

    def _on_host(self, name: str, duration: float) -> None:
        self.spans.append(Span("host", name, self.host, self.host + duration))
        self.host += duration

    def _work(self, name: str, buffers: dict[str, float]) -> None:
        """The card begins when it has been told and all before is done: one queue, in order."""
        start = max(self.host, self.free)
        duration = self.kernel_us + sum(self._moved(*item) for item in buffers.items())
        self.free = start + duration
        self.spans.append(Span("card", name, start, self.free))

    def _moved(self, buffer: str, size: float) -> float:
        """µs to move a buffer once; L2 keeps what was touched last, whole buffers only."""
        speed = self.bandwidth * (self.l2_speed if self._l2.pop(buffer, 0) >= size else 1.0)
        if size <= self.l2_bytes:
            self._l2[buffer] = size
        else:
            self._l2.clear()  # it streamed through
        while sum(self._l2.values()) > self.l2_bytes:
            self._l2.popitem(last=False)
        return size / speed / 1e3

    # ---------------------------------------------------------------- what times a card

    def __enter__(self) -> ModelCard:
        model = self

        class Event:
            """A mark in the card's queue."""

            def __init__(self, *_: Any, **__: Any) -> None:
                self.time = 0.0

            def record(self, *_: Any) -> None:
                self.time = max(model.host, model.free)

            def elapsed_time(self, end: Event) -> float:
                return (end.time - self.time) / 1e3

        class Graph:
            """Launches that were noted, to be handed over in one."""

            def __init__(self) -> None:
                self.works: list[Callable[[], None]] = []

            def replay(self) -> None:
                model._on_host("launch", model.launch_us)
                for work in self.works:
                    work()

        @contextlib.contextmanager
        def capture(graph: Graph, *_: Any, **__: Any):
            model._capturing = graph.works
            try:
                yield
            finally:
                model._capturing = None

        stand_ins = dict(Event=Event, CUDAGraph=Graph, graph=capture, synchronize=self.synchronize)
        self._patches.enter_context(card_answers())
        self._patches.enter_context(mock.patch.multiple(torch.cuda, **stand_ins))
        flush = mock.patch.object(
            driver.active, "clear_cache", lambda cache: self._work("flush", {"flush": _FLUSH})
        )
        self._patches.enter_context(flush)
        return self

    def __exit__(self, *error: Any) -> None:
        self._patches.close()
