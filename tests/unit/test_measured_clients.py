"""Clients that measure their longest gaps, with a client library that delivers at once, or to nobody."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pulsar
import pytest

from controller.model.errors import TrimtabError
from tests.measure.clients import LongestGaps, SteadyClients

NO_LOG = Path("/dev/null")


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def gaps_at(*times: float, clock: Clock, gaps: LongestGaps, source: int = 0) -> None:
    for moment in times:
        clock.now = moment
        gaps.event(source)


def test_the_longest_gap_of_each_source_is_kept() -> None:
    clock = Clock()
    gaps = LongestGaps(3, clock)
    gaps_at(1.0, 1.5, 4.0, 4.5, clock=clock, gaps=gaps)
    gaps_at(5.0, 6.0, clock=clock, gaps=gaps, source=2)
    assert gaps.longest() == [2.5, 0.0, 1.0]


def test_a_gap_that_began_before_the_restart_counts_in_full_and_one_that_is_open_does_not() -> None:
    clock = Clock()
    gaps = LongestGaps(1, clock)
    gaps_at(1.0, 5.0, clock=clock, gaps=gaps)
    clock.now = 6.0
    gaps.restart()
    clock.now = 9.0
    assert gaps.longest() == [0.0]
    gaps.event(0)
    assert gaps.longest() == [4.0]


class StubClient:
    """Delivers each message to the consumers of its topic; topics in *mute* acknowledge nothing."""

    mute: frozenset[str] = frozenset()

    def __init__(self, _: str, **__: Any) -> None:
        self.listeners: list[Callable[[Any, Any], None]] = []
        self.closed = False

    def subscribe(self, *_: Any, message_listener: Callable[[Any, Any], None]) -> None:
        self.listeners.append(message_listener)

    def create_producer(self, topic: str) -> "StubProducer":
        return StubProducer(self, topic)

    def acknowledge(self, _: Any) -> None:
        pass

    def close(self) -> None:
        self.closed = True


class StubProducer:
    def __init__(self, client: StubClient, topic: str) -> None:
        self._client, self._topic = client, topic

    def send_async(self, content: bytes, callback: Callable[[Any, Any], None]) -> None:
        if self._topic in StubClient.mute:
            callback(pulsar.Result.Timeout, None)
            return
        for listener in self._client.listeners:
            listener(self._client, content)
        callback(pulsar.Result.Ok, None)


@pytest.fixture(autouse=True)
def client(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pulsar, "Client", StubClient)


def test_every_producer_and_every_consumer_has_events_of_its_own() -> None:
    with SteadyClients("pulsar://x", ["a", "b"], each=2, rate=500.0, log=NO_LOG) as clients:
        clients.wait_until_all_work(30.0)
        clients.restart()
        time.sleep(0.01)
        clients.wait_until_all_work(30.0)
    assert [len(each.longest()) for each in (clients.sent, clients.received)] == [4, 4]
    assert all(0 < gap < 30 for gap in clients.sent.longest() + clients.received.longest())


def test_clients_that_get_nothing_done_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(StubClient, "mute", frozenset({"b"}))
    with (
        SteadyClients("pulsar://x", ["a", "b"], each=2, rate=500.0, log=NO_LOG) as clients,
        pytest.raises(TrimtabError, match="4 producers and consumers did nothing for 0 s: see /dev/null"),
    ):
        clients.wait_until_all_work(0.1)
