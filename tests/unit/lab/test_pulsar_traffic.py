"""Traffic that counts acknowledged and received messages, with a client that delivers at once or not at all."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pulsar
import pytest

from controller.lab.pulsar_traffic import Traffic

NO_LOG = Path("/dev/null")


class StubClient:
    """Delivers every message to the one consumer, except those of *lost*; acknowledges all but *refused*."""

    lost: frozenset[int] = frozenset()
    refused: frozenset[int] = frozenset()

    def __init__(self, _: str, **__: Any) -> None:
        self.listener: Callable[[Any, Any], None]
        self.closed = False

    def subscribe(self, *_: Any, message_listener: Callable[[Any, Any], None], **__: Any) -> "StubClient":
        self.listener = message_listener
        return self

    def create_producer(self, *_: Any, **__: Any) -> "StubClient":
        return self

    def send_async(self, content: bytes, callback: Callable[[Any, Any], None], sequence_id: int) -> None:
        if sequence_id not in self.lost:
            for _ in range(2):  # consumers see repeats
                self.listener(self, StubMessage(content))
        callback(pulsar.Result.Timeout if sequence_id in self.refused else pulsar.Result.Ok, None)

    def acknowledge(self, _: Any) -> None:
        pass

    def close(self) -> None:
        self.closed = True


class StubMessage:
    def __init__(self, content: bytes) -> None:
        self._content = content

    def data(self) -> bytes:
        return self._content


@pytest.fixture(autouse=True)
def client(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pulsar, "Client", StubClient)


def wait_for(done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not done():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_what_was_received_once_or_more_is_not_missing() -> None:
    with Traffic("pulsar://nowhere", {"a": 200.0, "b": 100.0}, NO_LOG) as traffic:
        wait_for(lambda: min(traffic.sent) >= 10)
        assert traffic.drain(5) == {}
        assert [len(each) for each in traffic.received] == traffic.sent
        assert traffic.total_acknowledged == sum(traffic.sent)
        assert traffic.sent[1] <= traffic.sent[0] <= 2 * traffic.sent[1] + 1


def test_what_the_brokers_refused_need_not_be_received(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(StubClient, "lost", frozenset({3}))
    monkeypatch.setattr(StubClient, "refused", frozenset({3}))
    with Traffic("pulsar://nowhere", {"a": 200.0}, NO_LOG) as traffic:
        wait_for(lambda: traffic.sent[0] >= 10)
        assert traffic.drain(0.2) == {}
        assert traffic.total_acknowledged == traffic.sent[0] - 1


def test_rates_can_be_changed_while_it_flows() -> None:
    with Traffic("pulsar://nowhere", {"a": 0.0, "b": 100.0}, NO_LOG) as traffic:
        wait_for(lambda: traffic.sent[1] >= 5)
        assert traffic.sent[0] == 0
        traffic.set_rates({"b": 0.0, "a": 100.0})
        wait_for(lambda: traffic.sent[0] >= 5)
        sent = traffic.sent[1]
        wait_for(lambda: traffic.sent[0] >= 10)
        assert traffic.sent[1] == sent
        assert traffic.drain(5) == {}


def test_drained_traffic_sends_no_more_messages() -> None:
    with Traffic("pulsar://nowhere", {"a": 100.0}, NO_LOG) as traffic:
        wait_for(lambda: traffic.sent[0] >= 5)
        traffic.drain(5)
        sent = list(traffic.sent)
        time.sleep(0.1)
        assert traffic.sent == sent
