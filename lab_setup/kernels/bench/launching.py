"""What a host function would launch, with each of its configs, without launching it."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

from triton.runtime.autotuner import Autotuner, Config
from triton.runtime.jit import JITFunction
from triton.tools.tensor_descriptor import TensorDescriptor

from lab_setup.kernels.bench.tasks import Launch

__all__ = ["Planned", "first_of_each", "launches_of", "planned", "tries_of"]


@dataclass(frozen=True)
class Try:
    """A config that tuning would try (None for a kernel that is not tuned), and its launch."""

    config: Config | None
    launch: Launch


def tries_of(tuner: Autotuner, args: Sequence[Any], options: dict[str, Any]) -> Iterator[Try]:
    """For each config that the card would try, the launch of the bare kernel: what hooks set in a
    descriptor and what heuristics work out is in it. Nothing is launched."""
    named = dict(zip(tuner.arg_names, args, strict=False))
    configs = tuner.configs
    if tuner.early_config_prune:
        configs = tuner.early_config_prune(configs, named, **options)
    for config in configs:
        given = {name: _own(value) for name, value in named.items()}
        chosen = {**options, **config.all_kwargs()}
        if config.pre_hook is not None:
            config.pre_hook({**given, **chosen})
        kernel = tuner.fn
        while not isinstance(kernel, JITFunction):  # heuristics
            chosen |= {name: rule({**given, **chosen}) for name, rule in kernel.values.items()}
            kernel = kernel.fn
        yield Try(config, Launch("", kernel, tuple(given.values()), chosen))


@dataclass(frozen=True)
class Planned:
    """One launch of one config: ``run()`` does it, ``launch`` is the same for the compiler."""

    config: str
    grid: tuple[int, ...]
    launch: Launch

    def run(self) -> None:
        self.launch.kernel[self.grid](*self.launch.args, **self.launch.options)


def planned(call: Callable[[], object]) -> tuple[object, list[list[Planned]]]:
    """What ``call`` returns, with nothing in it, and for each kernel that it would have launched
    one Planned a config that the card would try."""
    found: list[list[Planned]] = []

    def tuned(tuner: Autotuner, *args: Any, grid: Any, **options: Any) -> None:
        options.pop("warmup", None)
        tries = list(tries_of(tuner, args, options))
        found.append([Planned(str(one.config), _grid(grid, one), one.launch) for one in tries])

    def plain(kernel: JITFunction, *args: Any, grid: Any, **options: Any) -> None:
        options.pop("warmup", None)
        one = Try(None, Launch("", kernel, args, options))
        found.append([Planned("", _grid(grid, one), one.launch)])

    with patch.object(Autotuner, "run", tuned), patch.object(JITFunction, "run", plain):
        result = call()
    return result, found


def launches_of(call: Callable[[], object], label: str, needs: int = 80) -> Iterator[Launch]:
    """Every kernel and config of ``call``, for the compiler."""
    for plans in planned(call)[1]:
        for plan in plans:
            made = plan.launch
            title = f"{label}, {made.kernel.fn.__name__}, {plan.config}".rstrip(", ")
            yield Launch(title, made.kernel, made.args, made.options, needs)


def first_of_each(launches: Iterable[Launch]) -> Iterator[Launch]:
    """The first config of every kernel."""
    seen: set[int] = set()  # by identity: the hash of a kernel reads its source
    for launch in launches:
        if id(launch.kernel) not in seen:
            seen.add(id(launch.kernel))
            yield launch


def _grid(grid: Any, one: Try) -> tuple[int, ...]:
    return tuple(grid(_named(one.launch)) if callable(grid) else grid)


def _named(launch: Launch) -> dict[str, Any]:
    return dict(zip(launch.kernel.arg_names, launch.args, strict=False)) | launch.options


def _own(value: Any) -> Any:
    """A descriptor of its own, since a config's hook sets its tile."""
    return copy.copy(value) if isinstance(value, TensorDescriptor) else value
