"""Servers spread over the cards, keep theirs over a restart of the hub, and free them."""

from __future__ import annotations

import asyncio
from collections import Counter
from types import SimpleNamespace

import pytest
from jupyterhub.spawner import SpawnException
from traitlets.config import Configurable

from lab_setup.gpus import Gpu
from lab_setup.hub import spawner
from lab_setup.hub.spawner import OneCard, choose

GB = 1 << 30
CARDS = tuple(Gpu(i, f"GPU-{i}", "NVIDIA GeForce RTX 4080", 89, 15 * GB) for i in range(4))


class Server(Configurable):
    """What jupyterhub's spawners do, as far as the mixin can see."""

    fails = False

    def __init__(self, user: str):
        super().__init__()
        self.user, self.name, self.pid = SimpleNamespace(name=user), "", 0

    async def start(self):
        if self.fails:
            raise OSError("no such program")
        self.pid = 4711
        return "127.0.0.1", 8888

    def get_env(self):
        return {"HOME": "/home"}

    def get_state(self):
        return {"pid": self.pid} if self.pid else {}

    def load_state(self, state):
        self.pid = state.get("pid", 0)

    def clear_state(self):
        self.pid = 0


class Spawner(OneCard, Server):
    pass


@pytest.fixture(autouse=True)
def empty_hub(monkeypatch):
    monkeypatch.setattr(spawner, "_taken", {})


def server(user: str, most: int = 2) -> Spawner:
    made = Spawner(user)
    made.cards, made.servers_per_card = (lambda: CARDS), most
    return made


def started(*users: str) -> list[Spawner]:
    servers = [server(user) for user in users]
    for each in servers:
        asyncio.run(each.start())
    return servers


EIGHT = [f"student{i}" for i in range(8)]


def test_eight_students_land_two_a_card():
    servers = started(*EIGHT)
    assert Counter(s.get_env()["CUDA_VISIBLE_DEVICES"] for s in servers) == {
        card.uuid: 2 for card in CARDS
    }
    assert servers[0].get_env()["CUDA_DEVICE_ORDER"] == "PCI_BUS_ID"
    assert servers[0].get_env()["HOME"] == "/home"


def test_eight_students_at_the_same_moment_too():
    """Each choice counts those that are still starting."""
    servers = [server(user) for user in EIGHT]

    async def together():
        await asyncio.gather(*(each.start() for each in servers))

    asyncio.run(together())
    assert set(Counter(s.card for s in servers).values()) == {2}


def test_the_ninth_gets_one_clear_sentence():
    started(*EIGHT)
    with pytest.raises(SpawnException) as error:
        asyncio.run(server("ninth").start())
    assert error.value.status_code == 503
    assert "All 4 cards have 2 users each" in error.value.message
    asyncio.run(server("ninth", most=0).start())  # without a limit there is always room


def test_a_restarted_hub_knows_who_has_what(monkeypatch):
    before = {s.user.name: (s.card, s.get_state()) for s in started(*EIGHT)}
    monkeypatch.setattr(spawner, "_taken", {})  # the new process
    after = []
    for user, (card, state) in before.items():
        after.append(server(user))
        after[-1].load_state(state)
        assert after[-1].card == card
    with pytest.raises(SpawnException):
        asyncio.run(server("ninth").start())


def test_a_server_that_ended_frees_its_card():
    servers = started(*EIGHT)
    servers[5].clear_state()  # the hub does so when a server stopped or was found dead
    assert "card" not in servers[5].get_state()
    ninth = server("ninth")
    asyncio.run(ninth.start())
    assert ninth.card not in ("", None)
    assert Counter(s.card for s in [*servers, ninth] if s.card) == {c.uuid: 2 for c in CARDS}


def test_a_server_that_does_not_start_holds_no_card():
    failing = server("student")
    failing.fails = True
    with pytest.raises(OSError):
        asyncio.run(failing.start())
    assert failing.card == "" and spawner._taken == {}


def test_a_user_who_starts_again_does_not_count_twice():
    (first,) = started("student")
    asyncio.run(first.start())
    assert list(spawner._taken.values()) == [first.card]


def test_no_card_no_variable():
    lonely = server("student")
    lonely.cards = lambda: ()
    asyncio.run(lonely.start())
    assert "CUDA_VISIBLE_DEVICES" not in lonely.get_env()


def test_among_equals_the_card_with_the_most_free_memory():
    cards = (Gpu(0, "a", "", 89, 3), Gpu(1, "b", "", 89, 9), Gpu(2, "c", "", 89, 9))
    assert choose(cards, []).uuid == "b"
    assert choose(cards, ["b"]).uuid == "c"
    assert choose(cards, ["b", "c"]).uuid == "a"
    assert choose(cards, ["a", "b", "c"], most=1) is None
    assert choose((), []) is None
