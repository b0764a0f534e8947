"""Topics of the log that were created a moment ago: brokers cache that there is none, and learn of it later."""

from typing import Any

import pytest

from controller.adapters.pulsar.log import connection as module
from controller.adapters.pulsar.log.connection import LogConnection
from controller.model.errors import TrimtabError
from controller.settings.pulsar_log import PulsarLogSettings


class Brokers:
    """Every *late* answers say that there is no such topic; then they know its two partitions."""

    def __init__(self, late: int) -> None:
        self.late, self.asked = late, 0

    def get_topic_partitions(self, full: str) -> list[str]:
        self.asked += 1
        return [full] if self.asked <= self.late else [f"{full}-partition-{each}" for each in range(2)]


def connected(brokers: Brokers, monkeypatch: pytest.MonkeyPatch, *, seconds: float) -> LogConnection:
    def client(*_: Any, **__: Any) -> Brokers:
        return brokers

    monkeypatch.setattr(module, "log_client", client)
    settings = PulsarLogSettings(service_url="pulsar://127.0.0.1:1", admin_url=("http://127.0.0.1:1",))
    return LogConnection(settings, seconds=seconds)


def test_a_topic_that_was_created_is_asked_for_until_the_broker_that_answers_knows_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    connection = connected(Brokers(late=2), monkeypatch, seconds=30.0)
    assert connection.existing("journal", is_created=True) == 2


def test_a_topic_that_nobody_created_is_named_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    brokers = Brokers(late=2)
    with pytest.raises(TrimtabError, match="'persistent://public/trimtab/journal' does not exist"):
        connected(brokers, monkeypatch, seconds=30.0).existing("journal")
    assert brokers.asked == 1


def test_a_created_topic_that_stays_unknown_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TrimtabError, match="does not exist as a partitioned topic"):
        connected(Brokers(late=1000), monkeypatch, seconds=0.2).existing("journal", is_created=True)
