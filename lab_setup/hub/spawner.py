"""One card for each server: the one with the fewest servers, then with the most free memory.

``OneCard`` is a mixin before any spawner class. A server keeps its card for its life; the hub keeps
the choice in the spawner's state, so a restart of the hub changes nothing.

``CUDA_VISIBLE_DEVICES`` is a courtesy: a program may set it anew. What enforces the choice is
systemd's device policy (``SystemdOneCard``, production).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

from jupyterhub.spawner import (
    LocalProcessSpawner,
    SimpleLocalProcessSpawner,
    SpawnException,
)
from jupyterhub.utils import maybe_future
from traitlets import Any, Integer
from traitlets.config import Configurable

from lab_setup.gpus import Gpu, gpus

__all__ = ["LocalOneCard", "OneCard", "TrialOneCard", "choose"]

# (user, server name) → UUID of the card that the server has or is about to get. One hub is one
# process; the table comes back from the spawners' states when it starts again.
_taken: dict[tuple[str, str], str] = {}


def choose(cards: Iterable[Gpu], taken: Iterable[str], most: int = 0) -> Gpu | None:
    """The card for one more server, where ``taken`` has the card's UUID for each live server.

    Fewest servers first, then most free memory, then the lowest number. None where every card has
    ``most`` servers already (0: no limit) or there is no card.
    """
    servers = Counter(taken)
    open_to_one_more = [card for card in cards if not most or servers[card.uuid] < most]
    return min(
        open_to_one_more,
        key=lambda card: (servers[card.uuid], -card.free, card.index),
        default=None,
    )


class OneCard(Configurable):
    """Mixin for a spawner: ``class MySpawner(OneCard, LocalProcessSpawner)``."""

    cards: Callable[[], tuple[Gpu, ...]] = Any(
        gpus, help="Function that returns the machine's cards; a trial may pretend some."
    ).tag(config=True)
    servers_per_card = Integer(
        0, help="Most live servers on a card; a further student is told to wait. 0: no limit."
    ).tag(config=True)

    card = ""  # UUID, while the server lives

    @property
    def _key(self) -> tuple[str, str]:
        return self.user.name, self.name

    async def start(self):
        cards = self.cards()
        others = [uuid for key, uuid in _taken.items() if key != self._key]
        chosen = choose(cards, others, self.servers_per_card)
        if cards and chosen is None:
            raise SpawnException(
                f"All {len(cards)} cards have {self.servers_per_card} users each. Try again when a "
                "classmate has stopped a server, or ask your instructor.",
                reason="cards_full",
                status_code=503,
            )
        self._hold(chosen.uuid if chosen else "")
        try:
            return await maybe_future(super().start())
        except BaseException:
            self._hold("")
            raise

    def get_env(self):
        environment = super().get_env()
        if self.card:
            environment |= {
                "CUDA_VISIBLE_DEVICES": self.card,
                "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
            }
        return environment

    def get_state(self):
        state = super().get_state()
        return state | {"card": self.card} if self.card else state

    def load_state(self, state):
        super().load_state(state)
        self._hold(state.get("card", ""))

    def clear_state(self):
        super().clear_state()
        self._hold("")

    def _hold(self, uuid: str) -> None:
        self.card = uuid
        if uuid:
            _taken[self._key] = uuid
        else:
            _taken.pop(self._key, None)


class LocalOneCard(OneCard, LocalProcessSpawner):
    """Servers as plain processes of their accounts."""


class TrialOneCard(OneCard, SimpleLocalProcessSpawner):
    """Servers of dummy accounts, all with the rights of who started the hub."""
