"""What a host function would launch, with each of its configs, without launching it."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

from triton.runtime.autotuner import Autotuner
from triton.runtime.jit import JITFunction
from triton.tools.tensor_descriptor import TensorDescriptor

from lab_setup.kernels.bench.tasks import Launch

__all__ = ["Planned", "first_of_each", "launches_of", "planned"]


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
        named = dict(zip(tuner.arg_names, args, strict=False))
        configs = tuner.configs
        if tuner.early_config_prune:
            configs = tuner.early_config_prune(configs, named, **options)
        plans = []
        for config in configs:
            every = {name: _own(value) for name, value in named.items()}
            chosen = {**options, **config.all_kwargs()}
            if config.pre_hook is not None:
                config.pre_hook({**every, **chosen})
            plans.append(_plan(tuner.fn, str(config), grid, every, chosen))
        found.append(plans)

    def plain(kernel: JITFunction, *args: Any, grid: Any, **options: Any) -> None:
        options.pop("warmup", None)
        named = dict(zip(kernel.arg_names, args, strict=False))
        found.append([_plan(kernel, "", grid, named, options)])

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


def _plan(kernel: Any, config: str, grid: Any, named: dict, options: dict) -> Planned:
    if callable(grid):
        grid = grid({**named, **options})
    return Planned(config, tuple(grid), Launch("", kernel, tuple(named.values()), options))


def _own(value: Any) -> Any:
    """A descriptor of its own, since a config's hook sets its tile."""
    return copy.copy(value) if isinstance(value, TensorDescriptor) else value
