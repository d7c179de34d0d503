"""Which card kernels are launched for: what decides between configs, and between kernels.

Importing this touches no device. A test names a card of the table instead of having one:
``with named("H200"): softmax(x)``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from typing import Any

from autograder.ir.cards import CARDS, Card, card

__all__ = ["capability", "fitting", "hopper", "named", "of_capability", "shared_per_block", "sms"]

_named: ContextVar[Card | None] = ContextVar("the card that a test named", default=None)


@contextmanager
def named(name: str | Card) -> Iterator[Card]:
    """Within it, kernels are chosen for this card, whatever is in the machine.

    Raises ValueError with the known names where the table has no such card.
    """
    row = name if isinstance(name, Card) else card(name)
    token = _named.set(row)
    try:
        yield row
    finally:
        _named.reset(token)


def of_capability(cc: int) -> Card:
    """The table's last card of a compute capability, 89 for 8.9.

    Raises ValueError with the known ones where there is none.
    """
    rows = {row.cc: row for row in CARDS.values()}
    if cc not in rows:
        known = ", ".join(str(c) for c in sorted(rows))
        raise ValueError(f"no card of compute capability {cc} in the table; it has {known}")
    return rows[cc]


def capability() -> int:
    """Compute capability as one number: 89, 90. Without a card, that of the table's default one."""
    return _card()[0]


def hopper() -> bool:
    """Whether the card has tensor descriptors in hardware (TMA) and Triton specialises warps."""
    return capability() >= 90


def sms() -> int:
    """Streaming multiprocessors: as many programs a persistent kernel starts, times a few."""
    return _card()[1]


def shared_per_block() -> int:
    """Bytes of shared memory that one program may have."""
    return _card()[2]


def fitting(shared_of: Callable[[dict[str, Any]], int]) -> Callable[..., list]:
    """For ``triton.autotune``: ``prune_configs_by={"early_config_prune": fitting(shared_of)}``.

    ``shared_of(options)``: bytes of shared memory of a config, from the launch's arguments by name
    with the config's own, ``num_warps`` and ``num_stages`` among them. What the card cannot hold is
    dropped before anything is compiled. Raises ValueError where nothing is left.
    """

    def prune(configs: list, arguments: dict[str, Any], **options: Any) -> list:
        wanted = {c: shared_of({**arguments, **options, **c.all_kwargs()}) for c in configs}
        kept = [c for c in configs if wanted[c] <= shared_per_block()]
        if not kept:
            raise ValueError(
                f"no config fits: the smallest wants {min(wanted.values()):,} bytes of shared "
                f"memory, the card has {shared_per_block():,}; add a config with smaller tiles."
            )
        return kept

    return prune


def _card() -> tuple[int, int, int]:
    """Compute capability, multiprocessors, bytes of shared memory a program."""
    import torch

    row = _named.get()
    if row is None and torch.cuda.is_available():
        return _device(torch.cuda.current_device())
    row = row or card()
    return row.cc, row.sms, row.shared_per_block


@lru_cache
def _device(index: int) -> tuple[int, int, int]:
    import torch
    from triton.runtime import driver

    seen = torch.cuda.get_device_properties(index)
    # The limit that Triton itself refuses a launch by.
    shared = driver.active.utils.get_device_properties(index)["max_shared_mem"]
    return 10 * seen.major + seen.minor, seen.multi_processor_count, shared
